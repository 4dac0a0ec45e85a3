//! The form of a report, the same flag in all commands.

use clap::{Args, ValueEnum};

/// The flag.
#[derive(Args, Debug)]
pub struct Output {
    /// The report on stdout: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub report: Form,
}

/// How a report is printed: for people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The form of a report that can be a page, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportForm {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// One self-contained page with charts.
    Html,
}
