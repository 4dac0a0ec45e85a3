//! Export from outside: bytes against golden ones and another decoder, links against collectors that come and go.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
mod decode;
mod golden;
mod links;
mod tls;
