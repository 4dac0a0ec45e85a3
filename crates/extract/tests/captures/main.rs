//! What is read in real captures, compared with other programs.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod handshakes;
mod messages;
mod reading;
mod records;
mod values;
