//! What there is of Parquet in a program without it: the name.

use super::TextFormat;

pub(super) const FORMAT: Option<TextFormat> = None;
