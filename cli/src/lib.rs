//! The `ringtap` command: parses the command line and runs a subcommand, one module each. With the
//! feature `embedded`, other programs run `monitor` by the same flags.
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

/// The definition of the command line, from which help, man pages and completions are made.
pub fn definition() -> clap::Command {
    <args::Cli as clap::CommandFactory>::command()
}

/// The program: parses the command line, runs the subcommand and returns its exit code.
pub fn main() -> ExitCode {
    run().unwrap_or_else(|error| ringtap_terminal::exit_code(&error))
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
