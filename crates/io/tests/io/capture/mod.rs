//! Capture files.

mod classic;
mod common;
mod inputs;
mod oracle;
mod pcapng;
