//! The packet filter: rules by source and destination, bans, and changes while packets pass.
//!
//! ```text
//! text ─▶ statements ─▶ RuleSet (immutable) ─▶ RulePublisher ─▶ workers, each between two bursts
//!         line numbers   next revision, or nothing
//! ```
//!
//! A packet passes if its source is not banned and the last rule that matches its source and
//! destination allows it; without a matching rule the default decides.
//!
//! Invariants: a [`RuleSet`] is immutable, so a packet is judged by exactly one revision. A
//! transaction makes the next revision, or nothing. A look-up allocates nothing and takes no lock.
//! No threads, rings, clocks or I/O outside [`run`], which applies the filter to captures and
//! interfaces.
#![forbid(unsafe_code)]

mod bans;
mod blocks;
mod counters;
mod levels;
mod overlaps;
mod plane;
mod policy;
mod publisher;
mod ruleset;
pub mod run;
mod span;
mod statement;
mod steps;

pub use bans::Banned;
pub use counters::{Counters, Row};
pub use levels::Entry;
pub use policy::Policy;
pub use publisher::{Reader, RulePublisher};
pub use ruleset::{BanCounts, Limits, RULES_MOST, Reason, RuleSet, TransactionError, Verdict};
pub use span::{Span, SpanError};
pub use statement::{LineError, Rule, Statement, StatementError, parse};
