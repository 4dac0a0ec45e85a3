//! Input and output shared by both programs: parsing of flag values, text of numbers and tables,
//! reports as text and as HTML pages, charts, messages on stdout and stderr.
//!
//! Invariants: of the project, this crate uses `base` alone; text reaches a terminal or a page as `ringtap_base::text` shows it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod chart;
pub mod console;
mod form;
pub mod html;
pub mod names;
pub mod numbers;
pub mod page;
pub mod table;
pub mod units;
mod usage;

pub use form::{Form, Output, ReportForm};
pub use usage::{Usage, exit_code, message};
