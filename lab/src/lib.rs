//! The lab: every quantitative claim of the papers, measured on this machine and judged.
//!
//! ```text
//!  experiments/PAPER/*.toml ─▶ settings ─▶ trials ────────▶ rows ─▶ verdicts ─▶ page, plots
//!  catalogue                   settings    runner, trial    rows    judge       report, plot
//!                                          a process each   CSV
//! ```
//!
//! An experiment is data: which commands, over which parameters, what is read from their reports, what
//! the paper says, and when that counts as reproduced. A trial is a process of its own, mostly a
//! `ringtap` command with its report as JSON, so every row can be repeated by pasting its command.
//! What no command measures is a [`workloads`] of the lab, behind `ringtap-lab trial`, or a published design:
//! [`filter`], [`exclusion`].
//!
//! Invariants: no number without its provenance (commit, machine, seed, trial, command). Nothing is
//! judged when the spread reaches over the line that decides. What needs more cores than there are
//! is labelled, never plotted as scaling and never judged.
#![forbid(unsafe_code)]

pub mod catalogue;
mod clock;
pub mod compare;
mod error;
pub mod exclusion;
mod experiment;
mod files;
pub mod filter;
pub mod judge;
pub mod machine;
mod model;
mod plot;
mod programs;
pub mod report;
mod rows;
mod run_folder;
mod runner;
mod settings;
pub mod statistics;
mod template;
mod traffic;
mod trial;
pub mod workloads;

pub use error::LabError;
pub use experiment::{ClaimKind, Effort, Experiment, Paper, PlotKind};
pub use programs::Programs;
pub use rows::{Row, State};
pub use run_folder::RunFolder;
pub use runner::{Progress, Runner};
pub use settings::Setting;
pub use trial::UNAVAILABLE;

/// The commit that this program was built from; with `-changed` if files differed from it.
pub const COMMIT: &str = env!("RINGTAP_COMMIT");
