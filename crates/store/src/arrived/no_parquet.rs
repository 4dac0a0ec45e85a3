//! Without the feature `parquet`.

use std::fs::File;

use super::rows::{ArrivedError, Reason, Rows};

/// Always an error.
pub(super) fn read(_file: File, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    Err(rows.error(Reason::NotBuilt))
}
