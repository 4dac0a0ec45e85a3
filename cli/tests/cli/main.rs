//! Tests of the `ringtap` command: flags, exit codes, stdout, stderr, signals.
//!
//! Invariant: each test works in its own folder and leaves no files behind.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]
#![allow(clippy::disallowed_methods, reason = "tests start threads and sleep")]

mod alerts;
mod allow;
mod anonymise;
mod arrived;
mod cards;
mod check;
mod clickhouse;
mod common;
mod cuts;
mod dedup;
mod docs;
mod doctor;
mod events;
mod export;
mod export_facts;
mod expressions;
mod extract;
mod filter;
mod filter_live;
mod filter_offload;
mod flag_table;
mod flags;
mod formats;
mod generate;
mod hour;
mod inputs;
mod interfaces;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod kafka_states;
mod library;
mod live;
mod measure;
mod measure_live;
mod memory;
mod merge;
mod metrics;
mod monitor;
mod net;
mod origins;
mod outputs;
mod overwrite;
mod packets;
mod page;
mod parts;
mod peers;
mod query;
mod records;
mod reload;
mod report;
mod responses;
mod resume;
mod rotate;
mod secrets;
mod send;
mod services;
mod signals;
mod statistics;
mod store;
mod store_faults;
mod syn;
mod text;
mod tui;
mod usage;
mod watch;
mod web;
