//! The packet filter: rules that say who may send to whom, bans, and their changes while packets pass.
//!
//! ```text
//! text ─▶ statements ─▶ RuleSet (never changes) ─▶ Board ─▶ workers, each between two bursts
//!         line numbers   next revision, or nothing
//! ```
//!
//! A packet passes if its source is not banned and the last rule about its source and destination
//! allows it; if there is none, the default decides.
//!
//! Invariants: a [`RuleSet`] is never changed, so a packet is judged by one revision and no other. A
//! transaction makes the next revision, or nothing. A look-up allocates nothing and takes no lock. No threads, rings,
//! clocks or I/O outside [`run`], which puts the filter over captures and interfaces.
#![forbid(unsafe_code)]

mod bans;
mod blocks;
mod board;
mod counters;
mod plane;
mod policy;
mod ruleset;
pub mod run;
mod span;
mod statement;
mod steps;

pub use bans::Banned;
pub use board::{Board, Reader};
pub use counters::{Counters, Row};
pub use policy::Policy;
pub use ruleset::{BanCounts, Entry, Limits, Reason, RuleSet, TransactionError, Verdict};
pub use span::{Span, SpanError};
pub use statement::{LineError, Rule, Statement, StatementError, parse};
