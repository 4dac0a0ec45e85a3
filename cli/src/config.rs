//! The configuration file of `--config`: each key becomes a flag `--key=value` before those of the
//! command line. Later flags have priority, and one parser checks all.
//!
//! ```toml
//! read = ["a.pcap", "b.pcap.gz"]
//! workers = 3
//! idle-timeout = "15s"
//! digest = true
//! ```

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, CommandFactory, FromArgMatches};
use toml::{Table, Value};

use crate::args::{Cli, Command};
use ringtap_terminal::Usage;

/// Parses the command line, with the flags of the configuration file if one is given.
pub(crate) fn command_line() -> anyhow::Result<Cli> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let matches = Cli::command().try_get_matches_from(&words)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let path = match &cli.command {
        Some(Command::Monitor(args)) => args.config.as_deref(),
        _ => None,
    };
    let (Some(path), Some((name, given))) = (path, matches.subcommand()) else { return Ok(cli) };

    let flags = flags(path, name, given)?;
    let before = [words[0].clone(), name.into()].into_iter().chain(flags);
    // Parsed alone first, so that an error is attributed to the file.
    if let Err(error) = Cli::command().try_get_matches_from(before.clone()) {
        let message = error.render().to_string();
        let first = message.lines().next().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        return Err(Usage::of(format!("the configuration {}: {first}", path.display())));
    }
    let all = before.chain(words.into_iter().skip(2));
    Ok(Cli::from_arg_matches(&Cli::command().try_get_matches_from(all)?)?)
}

/// The file's keys as flags of the subcommand `name`. Lists that the command line also gives are
/// omitted.
fn flags(path: &Path, name: &str, given: &ArgMatches) -> anyhow::Result<Vec<OsString>> {
    let shown = path.display();
    let wrong = |what: String| Usage::of(format!("the configuration {shown}: {what}"));
    let text = std::fs::read_to_string(path)
        .map_err(Usage::of)
        .with_context(|| format!("reading the configuration {shown}"))?;
    let table: Table = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let command = Cli::command();
    let command = command.find_subcommand(name).context("unknown command")?;
    let known = || {
        let with_long = command.get_arguments().filter(|arg| arg.get_long() != Some("config"));
        with_long.filter_map(|arg| Some((arg.get_long()?, arg)))
    };

    let mut flags = Vec::new();
    for (key, value) in &table {
        let Some((_, arg)) = known().find(|(long, _)| long == key) else {
            let keys: Vec<_> = known().map(|(long, _)| long).collect();
            return Err(wrong(format!("unknown key {key:?}: use {}", keys.join(", "))));
        };
        let collects = matches!(arg.get_action(), ArgAction::Append);
        // A filter on the command line replaces that of the file.
        let words = given.try_get_many::<String>("words").ok().flatten();
        if key == "filter" && words.is_some_and(|words| words.len() > 0) {
            continue;
        }
        if collects && given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        match (arg.get_action(), value) {
            (ArgAction::SetTrue, Value::Boolean(true)) => flags.push(format!("--{key}").into()),
            (ArgAction::SetTrue, Value::Boolean(false)) => {}
            (ArgAction::SetTrue, _) => {
                return Err(wrong(format!("invalid {key}: use true or false")));
            }
            (_, Value::Array(values)) if collects => {
                for value in values {
                    let word = word(value)
                        .ok_or_else(|| wrong(format!("invalid {key}: use a list of words")))?;
                    flags.push(format!("--{key}={word}").into());
                }
            }
            (_, value) => {
                let word = match value {
                    Value::Array(values) => {
                        values.iter().map(word).collect::<Option<Vec<_>>>().map(|all| all.join(","))
                    }
                    value => word(value),
                };
                let word =
                    word.ok_or_else(|| wrong(format!("invalid {key}: use a number or a word")))?;
                flags.push(format!("--{key}={word}").into());
            }
        }
    }
    Ok(flags)
}

/// A TOML scalar as the value of a flag.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}
