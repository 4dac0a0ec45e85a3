//! Measures every quantitative claim of the papers on this machine and judges it.
//!
//! ```text
//!  experiments/PAPER/*.toml ─▶ settings ─▶ trials ────────▶ rows ─▶ verdicts ─▶ page, plots
//!  catalogue                   settings,   runner, trial    rows    judge,      report, plot
//!                              prediction  quiet            CSV     bounds
//! ```
//!
//! An experiment is a data file: the commands, their parameters, the values to read from the
//! reports, the paper's claims, and the bounds within which these count as reproduced. A trial is a
//! separate process, usually a `ringtap` command with a JSON report, so pasting its command repeats
//! a row. Other measurements are [`workloads`] of the lab, run by `ringtap-lab trial`, or published
//! designs: [`filter`], [`exclusion`].
//!
//! Invariants: each number has its provenance (commit, machine, seed, trial, command). A claim
//! whose interval crosses a bound is not decided. Settings with more threads than cores are
//! labelled; they are neither plotted as scaling nor judged.
#![forbid(unsafe_code)]

pub mod agreement;
mod bounds;
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
mod plot;
pub mod prediction;
mod programs;
pub mod quiet;
pub mod report;
mod rows;
mod run_folder;
mod runner;
mod settings;
pub mod statistics;
mod template;
mod traffic;
mod trial;
mod verdict;
pub mod workloads;

pub use error::LabError;
pub use experiment::{ClaimKind, Effort, Experiment, Paper, PlotKind};
pub use programs::{Build, Programs};
pub use rows::{Row, State};
pub use run_folder::RunFolder;
pub use runner::{Progress, Runner};
pub use settings::{Setting, settings};
pub use trial::UNAVAILABLE;
pub use verdict::Verdict;

/// The commit that this program was built from, with `-changed` if tracked files differed from it.
pub const COMMIT: &str = env!("RINGTAP_COMMIT");

/// Version, commit, profile, features, target and compiler, a line each; `--version` prints them.
pub const BUILD: &str = ringtap_program::build!();
