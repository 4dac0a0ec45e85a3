//! The program `ringtap-lab`: measures and judges the papers' claims, and runs the papers' designs.
#![forbid(unsafe_code)]

mod args;
mod experiments;
mod filter;
mod ndn;

use std::process::ExitCode;

use args::{Action, CommandLine};
use clap::Parser;
use ringtap_terminal::console;

#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

fn main() -> ExitCode {
    run().unwrap_or_else(|error| ringtap_terminal::exit_code(&error))
}

fn run() -> anyhow::Result<ExitCode> {
    let command_line = CommandLine::try_parse()?;
    console::read_level();
    match command_line.action {
        Action::List => experiments::list(),
        Action::Run(args) => experiments::measure(&args),
        Action::Report(args) => experiments::write_report(&args),
        Action::Check(args) => experiments::check(&args),
        Action::Compare(args) => experiments::compare_with(&args),
        Action::Filter(args) => filter::run(&args),
        Action::Ndn { action } => ndn::run(&action),
        Action::Trial { name, words } => experiments::trial(&name, &words),
    }
}
