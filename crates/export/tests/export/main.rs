//! Export from outside: bytes against golden ones and another decoder, links against collectors that come and go.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod collectors;
mod common;
mod decode;
mod golden;
mod links;
mod tls;
