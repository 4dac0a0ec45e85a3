//! The sketches from outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "processes of tests talk to them")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod apache;
mod hierarchy;
mod images;
mod laws;
mod reversible;
mod shared;
mod support;
