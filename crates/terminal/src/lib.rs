//! Terminal input and output shared by all programs: values of flags, numbers and tables, stdout
//! and stderr.
//!
//! Invariant: no packets here.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod console;
mod form;
pub mod names;
pub mod numbers;
pub mod page;
pub mod table;
pub mod units;
mod usage;

pub use form::{Form, Output};
pub use usage::{Usage, exit_code};
