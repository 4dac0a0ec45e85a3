//! The filter for real addresses: rules that say who may send to whom, bans, and their changes.
//!
//! ```text
//! text ─▶ statements ─▶ RuleSet (never changes) ─▶ Board ─▶ ticks in the stream ─▶ workers
//!         line numbers   next revision, or nothing          each takes the next set at its tick
//! ```
//!
//! A packet passes if its source is not banned and the last rule about its source and destination
//! allows it; if there is none, the default decides.
//!
//! Invariants: a [`RuleSet`] is never changed, so a packet is judged by one revision and no other. A
//! transaction makes the next revision, or nothing. A look-up allocates nothing and takes no lock.

mod bans;
mod blocks;
mod board;
mod counters;
mod plane;
mod ruleset;
mod span;
mod statement;
mod steps;

pub use board::{Announced, Board, Reader};
pub use counters::{Counters, Row};
pub use ruleset::{BanCounts, Banned, Entry, Limits, Reason, RuleSet, TransactionError, Verdict};
pub use span::{Span, SpanError};
pub use statement::{LineError, Rule, Statement, StatementError, parse};
