//! Replaces `parquet/` in a program without the feature `parquet`: only the name exists.

use super::TextFormat;

pub(super) const FORMAT: Option<TextFormat> = None;
