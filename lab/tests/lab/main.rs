//! Integration tests of the lab.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![allow(clippy::print_stdout, reason = "child processes report on stdout")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

mod commands;
mod common;
mod filter;
mod honesty;
mod predictions;
mod published;
mod quiet;
mod report;
