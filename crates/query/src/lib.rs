//! Questions to flow records that were stored: a filter language, short forms, and the SQL that answers them.
//!
//! ```text
//! "top hosts where tcp port 443" ─▶ Question ─▶ SQL over flows, events, alerts ─┐
//! --sql TEXT ───────────────────────────────────────────────────────────────────┴▶ Script ─▶ duckdb ─▶ rows
//! files of the store in the time ─▶ tables of DuckDB ───────────────────────────────┘
//! "tcp port 443" ─▶ Filter ─▶ Matcher ─▶ the same of a record of the run
//! ```
//!
//! Invariants: the SQL of a user reaches the engine as data, and it may be a query alone; the engine reads nothing but the files
//! of the tables.
#![forbid(unsafe_code)]

pub mod filter;
pub mod moment;
mod question;
mod script;
mod sql;
mod text;

pub use filter::{Filter, Matcher};
pub use question::Question;
pub use script::{Format, Limits, Script, Source, Unusable};
pub use text::Misunderstood;
