//! The command `ringtap`: one file per command, one match here.
//!
//! Invariant: nothing is computed in this crate. Flags become a request, the plan runs it, and
//! what comes back is printed: records to files, the report to stdout, all else to stderr.
#![forbid(unsafe_code)]

mod args;
mod generate;
mod monitor;
mod text;
mod units;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Cli, Command, Usage};

#[global_allocator]
static ALLOCATOR: ringtap_memory::Allocator = ringtap_memory::Allocator;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        None => Ok(Cli::command().print_help().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)),
        Some(Command::Monitor(args)) => monitor::run(args),
        Some(Command::Generate(args)) => generate::run(args),
    };
    result.unwrap_or_else(|error| {
        args::complain("error", &format!("{error:#}"));
        if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}
