//! The program `ringtap-ndn`: the forwarder and the tools for NDN. Parses the command line and runs a subcommand.
//!
//! Invariant: packets, tables and faces are those of `crates/ndn`; this crate has flags, the configuration file, printing,
//! and the consumers and the producer of the tools.
#![forbid(unsafe_code)]

mod args;
mod forward;
mod keys;
mod link;
mod run;
mod tools;

use std::process::ExitCode;

use args::{Command, KeyAction};
use clap::{CommandFactory, Parser};
use ringtap_program::{notify, pages};
use run::stoppable;
use tools::{generate_key, load, ping, server};

/// The definition of the command line, from which help, man pages and completions are made.
pub fn definition() -> clap::Command {
    args::Cli::command()
}

/// The program: parses the command line, runs the subcommand and returns its exit code.
pub fn main() -> ExitCode {
    run().unwrap_or_else(|error| ringtap_terminal::exit_code(&error))
}

fn run() -> anyhow::Result<ExitCode> {
    let command_line = args::Cli::try_parse()?;
    ringtap_terminal::console::read_level();
    notify::connect();
    match command_line.command {
        None => pages::help(definition()),
        Some(Command::Forward(args)) => forward::run(&args),
        Some(Command::Ping(args)) => stoppable(None, || ping::run(&args)),
        Some(Command::Server(args)) => stoppable(args.duration, || server::run(&args)),
        Some(Command::Load(args)) => stoppable(None, || load::run(&args)),
        Some(Command::Key(args)) => match &args.action {
            KeyAction::Generate(args) => generate_key::run(args),
        },
        Some(Command::Pages(pages)) => pages.run(definition()),
    }
}
