//! The configuration file of `--config`: each key becomes a flag `--key=value` before those of the
//! command line. Later flags have priority, and one parser checks all.
//!
//! ```toml
//! read = ["a.pcap", "b.pcap.gz"]
//! workers = 3
//! idle-timeout = "15s"
//! digest = true
//! export = ["ipfix+tcp://${COLLECTOR}"]
//! ```
//!
//! Strings may refer to values elsewhere ([`secrets`]).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, CommandFactory, FromArgMatches};
use toml::{Table, Value};

use crate::args::{Cli, Command, Given, definition};
use crate::secrets;
use ringtap_base::without_secrets;
use ringtap_program::config::toml_error;
use ringtap_terminal::Usage;

/// Parses the command line of this process.
pub(crate) fn command_line() -> anyhow::Result<Cli> {
    parse(&std::env::args_os().collect::<Vec<_>>())
}

/// Parses a command line, with the flags of the configuration file if one is given.
pub(crate) fn parse(words: &[OsString]) -> anyhow::Result<Cli> {
    let matches = definition().try_get_matches_from(words)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let path = match &cli.command {
        Some(Command::Monitor(args)) => args.config.as_deref(),
        _ => None,
    };
    let (Some(path), Some((name, given))) = (path, matches.subcommand()) else { return Ok(cli) };

    let text = std::fs::read_to_string(path)
        .map_err(Usage::of)
        .with_context(|| format!("reading the configuration {}", path.display()))?;
    let (flags, referring) = flags(path, &text, name, given)?;
    let before = [words[0].clone(), name.into()].into_iter().chain(flags);
    // Parsed alone first, so that an error is attributed to the file.
    if let Err(error) = Cli::command().try_get_matches_from(before.clone()) {
        let message = error.render().to_string();
        let first = message.lines().next().unwrap_or_default();
        let first = first.strip_prefix("error: ").unwrap_or(first);
        let key = invalid_key(&error);
        let line = key.as_ref().and_then(|key| line_of(&text, key)).unwrap_or_default();
        // The message of the parser may have parts of a value.
        let what = match key.filter(|key| referring.contains(key)) {
            Some(key) => {
                format!("invalid {key}: its value is invalid after its ${{…}} are replaced")
            }
            None => without_secrets(first).into_owned(),
        };
        return Err(Usage::of(format!("the configuration {}: {line}{what}", path.display())));
    }
    let all = before.chain(words.iter().skip(2).cloned());
    let matches = Cli::command().try_get_matches_from(all)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let (Some(Command::Monitor(args)), Some((_, flags))) =
        (&mut cli.command, matches.subcommand())
    {
        args.given = Given::of(words, flags);
    }
    Ok(cli)
}

/// The key of the flag that an error is about.
fn invalid_key(error: &clap::Error) -> Option<String> {
    let ContextValue::String(flag) = error.get(ContextKind::InvalidArg)? else { return None };
    let name = flag.trim_start_matches('-');
    Some(name.split([' ', '=']).next().unwrap_or(name).to_owned())
}

/// The line of a key, as in "line 7: ".
fn line_of(text: &str, key: &str) -> Option<String> {
    let is_key = |line: &str| {
        let line = line.trim_start();
        let rest = line.strip_prefix(key).or_else(|| {
            line.strip_prefix(['"', '\''])?.strip_prefix(key)?.strip_prefix(['"', '\''])
        });
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    text.lines().position(is_key).map(|at| format!("line {}: ", at + 1))
}

/// The name most similar to `word`, if one is similar enough.
fn similar<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let alike = |name: &&str| strsim::jaro_winkler(word, name);
    let best = names.iter().copied().max_by(|one, other| alike(one).total_cmp(&alike(other)))?;
    (alike(&best) > 0.85).then_some(best)
}

/// The file's keys as flags of the subcommand `name`, and those of them that refer to values elsewhere. Lists that the
/// command line also gives are omitted.
fn flags(
    path: &Path,
    text: &str,
    name: &str,
    given: &ArgMatches,
) -> anyhow::Result<(Vec<OsString>, BTreeSet<String>)> {
    let shown = path.display();
    let wrong = |what: String| Usage::of(format!("the configuration {shown}: {what}"));
    let table: Table = toml::from_str(text).map_err(|error| wrong(toml_error(&error, text)))?;
    let command = Cli::command();
    let command = command.find_subcommand(name).context("unknown command")?;
    let known = || {
        let with_long = command.get_arguments().filter(|arg| arg.get_long() != Some("config"));
        with_long.filter_map(|arg| Some((arg.get_long()?, arg)))
    };

    let (mut flags, mut referring) = (Vec::new(), BTreeSet::new());
    for (key, mut value) in table {
        let key = key.as_str();
        let line = || line_of(text, key).unwrap_or_default();
        let Some((_, arg)) = known().find(|(long, _)| *long == key) else {
            let keys: Vec<_> = known().map(|(long, _)| long).collect();
            let advice = match similar(key, &keys) {
                Some(other) => format!("a similar key is {other:?}"),
                None => format!("use {}", keys.join(", ")),
            };
            return Err(wrong(format!("{}unknown key {key:?}: {advice}", line())));
        };
        let collects = matches!(arg.get_action(), ArgAction::Append);
        // A filter on the command line replaces that of the file.
        let expression = given.try_get_many::<String>("words").ok().flatten();
        if key == "filter" && expression.is_some_and(|words| words.len() > 0) {
            continue;
        }
        if collects && given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        match replace(key, &mut value) {
            Ok(true) => drop(referring.insert(key.to_owned())),
            Ok(false) => {}
            Err(what) => return Err(wrong(format!("{}{key}: {what}", line()))),
        }
        flags.extend(words(key, arg, &value).map_err(|what| wrong(line() + &what))?);
    }
    Ok((flags, referring))
}

/// Replaces the references in the value of a key; returns whether it has some.
fn replace(key: &str, value: &mut Value) -> Result<bool, String> {
    match value {
        Value::String(text) => {
            let replaced = secrets::replaced(key, text)?;
            let has_some = replaced.is_some();
            *text = replaced.unwrap_or_else(|| std::mem::take(text));
            Ok(has_some)
        }
        Value::Array(values) => {
            values.iter_mut().try_fold(false, |has_some, one| Ok(replace(key, one)? | has_some))
        }
        _ => Ok(false),
    }
}

/// The flag `arg`, named `key`, as words of a command line: none for `false`, several for a list.
///
/// # Errors
/// A message if the value has the wrong type.
pub(crate) fn words(key: &str, arg: &Arg, value: &Value) -> Result<Vec<OsString>, String> {
    let flag = |word: String| OsString::from(format!("--{key}={word}"));
    match (arg.get_action(), value) {
        (ArgAction::SetTrue, Value::Boolean(true)) => Ok(vec![format!("--{key}").into()]),
        (ArgAction::SetTrue, Value::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, _) => Err(format!("invalid {key}: use true or false")),
        (ArgAction::Append, Value::Array(values)) => {
            let words: Option<Vec<_>> = values.iter().map(|one| word(one).map(flag)).collect();
            words.ok_or_else(|| format!("invalid {key}: use a list of words"))
        }
        (_, value) => {
            let word = match value {
                Value::Array(values) => {
                    values.iter().map(word).collect::<Option<Vec<_>>>().map(|all| all.join(","))
                }
                value => word(value),
            };
            let word = word.ok_or_else(|| format!("invalid {key}: use a number or a word"))?;
            Ok(vec![flag(word)])
        }
    }
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
