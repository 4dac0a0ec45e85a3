//! The command as users meet it: flags, exit codes, stdout, stderr, signals.
//!
//! Invariant: every test works in a folder of its own and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]
#![allow(clippy::disallowed_methods, reason = "threads of tests, and how long they wait")]

mod check;
mod common;
mod docs;
mod doctor;
mod export;
mod expressions;
mod filter;
mod filter_live;
mod filter_offload;
mod formats;
mod forward;
mod generate;
mod inputs;
mod interfaces;
mod live;
mod measure;
mod measure_live;
mod memory;
mod metrics;
mod monitor;
mod ndn;
mod net;
mod outputs;
mod records;
mod report;
mod send;
mod services;
mod signals;
mod tui;
mod usage;
