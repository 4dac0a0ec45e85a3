//! Where alerts go.

mod lines;

pub(crate) use lines::AlertLines;
