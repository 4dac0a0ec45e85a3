//! The forwarder among programs and neighbours that others wrote.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod ndnd;
mod support;
