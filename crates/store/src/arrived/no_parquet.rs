//! Without the feature `parquet`.

use std::fs::File;
use std::path::Path;

use super::rows::{ArrivedError, Reason, Rows};

/// Always an error.
pub(super) fn read(_file: File, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    Err(rows.error(Reason::NotBuilt))
}

/// Always an error.
pub(super) fn names(_file: File, path: &Path) -> Result<Vec<String>, ArrivedError> {
    Err(ArrivedError { path: path.to_owned(), reason: Reason::NotBuilt })
}
