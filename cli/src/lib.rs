//! Line-rate traffic monitoring, as a library and as the command `ringtap`.
//!
//! A program gives a [`Monitor`] its packets, functions that watch them, and analyses of its own: an [`Analysis`] runs on any
//! arrangement of cores, is inside the memory and the ledger of the run, has its section in the report, and merges over runs
//! and probes. [`main!`] makes a program with the whole command line of `ringtap` and further analyses.
//!
//! ```
//! use ringtap::{Analysis, Flow, Monitor, Room};
//!
//! /// Octets of flows without an answer.
//! #[derive(Default)]
//! struct Unanswered(u64);
//!
//! impl Analysis for Unanswered {
//!     const NAME: &'static str = "unanswered";
//!     type Report = u64;
//!
//!     fn new(_: &Room) -> Self {
//!         Self::default()
//!     }
//!
//!     fn record(&mut self, flow: &Flow) {
//!         if flow.packets[1] == 0 {
//!             self.0 += flow.octets[0];
//!         }
//!     }
//!
//!     fn merge(&mut self, other: Self) {
//!         self.0 += other.0;
//!     }
//!
//!     fn report(self) -> u64 {
//!         self.0
//!     }
//! }
//!
//! let report = Monitor::builder().files(["../examples/office.pcap"]).analysis::<Unanswered>().run()?;
//! assert!(report.of::<Unanswered>().is_some_and(|octets| *octets > 0));
//! # Ok::<(), ringtap::Failure>(())
//! ```
//!
//! Invariant: this crate computes nothing of the report and the records. Flags become options, the engine runs the plan, and the
//! results are printed: records to files, the report to stdout, everything else to stderr.
#![forbid(unsafe_code)]

mod alert_packets;
mod alerts;
mod args;
mod cards;
mod charts;
mod check;
mod config;
mod console;
mod doctor;
#[cfg(feature = "embedded")]
pub mod embedded;
mod exit;
mod extract;
mod filter;
mod generate;
mod helper;
mod library;
mod links;
mod live;
mod loads;
mod measure;
mod merge;
mod metrics;
mod monitor;
mod output_reporter;
mod outputs;
mod query;
mod resume;
#[cfg(feature = "tui")]
mod screen;
#[cfg(not(feature = "tui"))]
#[path = "no_screen.rs"]
mod screen;
mod secrets;
mod signals;
mod source;
mod states;
mod text;
mod units;
mod verify;
mod web;

use std::process::ExitCode;

use args::Command;
use ringtap_program::{notify, pages};
use ringtap_terminal::Usage;

pub use args::definition;
pub use library::{Analysis, Failure, Monitor, Registrar, Report, Room, Stop, Table, testing};
#[doc(hidden)]
pub use ringtap_base::Allocator;
pub use ringtap_extract::Kind as Fact;
pub use ringtap_flow::{Event as Message, Facts, FlowKey, FlowRecord as Flow};
pub use ringtap_state as state;
pub use ringtap_terminal::{page, table as cells};
pub use ringtap_wire::{Flags, PacketRecord as Packet};
pub use toml::Value;

/// Makes `main` of a program: the command line of `ringtap`, with these types as further analyses, which run by default.
///
/// ```ignore
/// ringtap::main![Networks, Latency];
/// ```
#[macro_export]
macro_rules! main {
    ($($analysis:ty),* $(,)?) => {
        #[global_allocator]
        static ALLOCATOR: $crate::Allocator = $crate::Allocator;

        fn main() -> ::std::process::ExitCode {
            $crate::main_with(|_registrar| {
                $(_registrar.add::<$analysis>();)*
            })
        }
    };
}

/// The program: parses the command line, runs the subcommand and returns its exit code. `add` adds analyses; [`main!`]
/// does both.
pub fn main_with(add: impl FnOnce(&mut Registrar)) -> ExitCode {
    let mut registrar = Registrar::default();
    add(&mut registrar);
    let added = registrar.finish().map_err(Usage::of);
    added.and_then(|()| run()).unwrap_or_else(|error| ringtap_terminal::exit_code(&error))
}

fn run() -> anyhow::Result<ExitCode> {
    let command_line = config::command_line()?;
    ringtap_terminal::console::read_level();
    notify::connect();
    match command_line.command {
        None => pages::help(definition()),
        Some(Command::Monitor(args)) => monitor::run(&args),
        Some(Command::Filter(args)) => filter::run(&args),
        Some(Command::Generate(args)) => generate::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Measure(args)) => measure::run(&args),
        Some(Command::CheckConfig(args)) => monitor::check_config(&args.file),
        Some(Command::Merge(args)) => merge::run(&args),
        Some(Command::Query(args)) => query::run(&args),
        Some(Command::Extract(args)) => extract::run(&args),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::RunForAlerts(args)) => alerts::run_helper(&args),
        Some(Command::AnswerForPage(args)) => query::helper::run(&args),
        Some(Command::SetUpCards(args)) => cards::run_helper(&args),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Pages(pages)) => pages.run(definition()),
        Some(Command::Forward(words)) => Err(words.moved("ringtap-ndn forward")),
        Some(Command::Ndn(words)) => Err(words.moved("ringtap-ndn")),
    }
}
