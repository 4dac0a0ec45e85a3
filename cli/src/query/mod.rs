//! `ringtap query`: a question to stored records, answered by DuckDB.

mod engine;
pub(crate) mod helper;
mod sources;
mod table;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use ringtap_query::moment::{self, Zone};
use ringtap_query::{Format, Question, Script};
use ringtap_terminal::{Usage, console};

use crate::args::{QueryArgs, Rows};

/// Words that questions begin with.
const FIRST: [&str; 11] = [
    "top", "compare", "flows", "failed", "long", "alerts", "scans", "who", "names", "servers",
    "timeline",
];

/// Rows of `flows` in a table.
const FLOWS_IN_TABLE: u64 = 100;

pub(crate) fn run(args: &QueryArgs) -> anyhow::Result<ExitCode> {
    let (paths, words) = split(&args.words);
    let question = match (&args.sql, words.is_empty()) {
        (Some(_), false) => {
            return usage(format!("a question and --sql: omit --sql, or the question '{words}'"));
        }
        (Some(_), true) => None,
        (None, true) => return usage("no question: add one, such as 'top hosts', or --sql".into()),
        (None, false) => Some(Question::new(&words).or_else(|error| usage(error.to_string()))?),
    };
    if paths.is_empty() {
        return usage(format!("no store or file before the question: {words}"));
    }
    let zone = if args.local { Zone::Local } else { Zone::Utc };
    let now = moment::now();
    let time = |text: &Option<String>, flag: &str| match text {
        None => Ok(None),
        Some(text) => match moment::parse(text, now, zone) {
            Ok(ms) => Ok(Some(ms)),
            Err(error) => usage(format!("--{flag}: {error}")),
        },
    };
    let window = [time(&args.from, "from")?, time(&args.to, "to")?];
    if let [Some(from), Some(to)] = window
        && from >= to
    {
        return usage("--from is not before --to".into());
    }
    if window[0].is_some_and(|from| from > now) {
        return usage(
            "--from is in the future: of another day it needs the date, 2026-11-26T10:02".into(),
        );
    }
    let compares = question.as_ref().is_some_and(Question::compares);
    let window_before = match (args.with, window) {
        (None, _) if compares => return usage("compare needs --with, such as --with -1d".into()),
        (None, _) => None,
        (Some(_), _) if question.is_some() && !compares => {
            return usage("--with is for comparisons: use it with compare or --sql".into());
        }
        (Some(_), [None, _]) => {
            return usage("--with needs --from, the begin of the later period".into());
        }
        (Some(ms), [from, to]) => {
            let earlier = |at: i64| at.saturating_sub_unsigned(ms).max(0);
            // The periods do not overlap.
            let end = earlier(to.unwrap_or(now)).min(from.unwrap_or(i64::MAX));
            Some([from.map(earlier), Some(end)])
        }
    };
    let is_table = args.output == Rows::Table;
    let rows = args.limit.or(is_table
        .then_some(FLOWS_IN_TABLE)
        .filter(|_| words == "flows" || words.starts_with("flows ")));
    let sql = match (&question, &args.sql) {
        (Some(question), _) => question.sql(rows, is_table),
        (None, sql) => sql.clone().unwrap_or_default(),
    };
    if args.explain {
        console::print(&format!("{sql}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.output == Rows::Parquet && std::io::stdout().is_terminal() {
        return usage("Parquet is not for a terminal: redirect stdout to a file".into());
    }
    let needs_lines = args.sql.is_some() || question.as_ref().is_some_and(Question::needs_store);
    let source = sources::find(&paths, args.probe.as_deref(), window, window_before, needs_lines)?;
    // Most often the zone or the day is another one than that which was meant.
    if source.flows.is_empty() && window != [None; 2] {
        for (first, last) in sources::ends(&paths, args.probe.as_deref())? {
            let [first, last] = [first.display(), last.display()];
            console::note(&format!("no file of this time; the first is {first}, the last {last}"));
        }
    }
    let script =
        Script { sql, source, window, window_before: window_before.unwrap_or_default(), zone };
    let format = match args.output {
        Rows::Csv => Format::Csv,
        Rows::Table | Rows::Json => Format::Json,
        Rows::Parquet => Format::Parquet,
    };
    if !is_table {
        engine::run(&script, format, args.memory, None, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut answer = Vec::new();
    engine::run(&script, format, args.memory, Some(&mut answer), None)?;
    let text = table::of(&answer).context("reading the answer of the engine")?;
    console::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn usage<T>(message: String) -> anyhow::Result<T> {
    Err(Usage::of(message))
}

/// The paths, and the question that follows them.
fn split(words: &[String]) -> (Vec<PathBuf>, String) {
    let is_question = |word: &String| {
        let first = word.split_whitespace().next().unwrap_or_default();
        FIRST.iter().any(|own| own.eq_ignore_ascii_case(first))
    };
    let at = words.iter().position(is_question).unwrap_or(words.len());
    let paths = words[..at].iter().map(PathBuf::from).collect();
    (paths, words[at..].join(" "))
}
