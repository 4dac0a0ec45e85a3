//! Keyword arguments as flags of the command: `top=5` is `--top 5`, `digest=True` is `--digest`, and a list is repeated
//! or joined, as the flag requires.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use ringtap::embedded::{Table, Value};

use crate::Error;

/// Why some flags cannot be used.
const REFUSED: [(&[&str], &str); 5] = [
    (&["user", "interface"], "the interfaces are the first argument of ringtap.stream"),
    (
        &["tui", "stats", "metrics", "web", "web-token", "quiet"],
        "a run in Python shows no progress",
    ),
    (&["read"], "the captures are the first argument"),
    (&["state"], "it is in run.state"),
    (
        &["config", "dry-run", "report", "help"],
        "it is of the command alone; the report is in run.report",
    ),
];

/// The text of the command with its flags as arguments: `--idle-timeout <TIME>` is `idle_timeout`.
pub(crate) fn by_arguments(text: &str) -> String {
    static FLAGS: LazyLock<Vec<String>> = LazyLock::new(flags);
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, flag) = rest.split_at(at);
        let end = flag.find(|letter| !is_of_name(letter)).unwrap_or(flag.len());
        let (name, after) = (flag[2..end].trim_end_matches('-'), &flag[end..]);
        let begins = before.chars().next_back().is_none_or(|letter| !is_of_name(letter));
        shown.push_str(before);
        // The parser quotes flags, also unknown ones.
        let is_quoted = before.ends_with('\'') && after.starts_with('\'');
        if begins && (is_quoted || FLAGS.iter().any(|known| known == name)) {
            shown.push_str(&name.replace('-', "_"));
            // The parser names the kind of value.
            let kind = after.strip_prefix(" <").and_then(|kind| kind.split_once('>'));
            rest = kind.map_or(after, |(_, after)| after);
        } else {
            shown.push_str(&flag[..end]);
            rest = after;
        }
    }
    shown + rest
}

/// The long names of all flags that a function has.
fn flags() -> Vec<String> {
    let definition = ringtap::definition();
    let commands =
        ["monitor", "merge"].into_iter().filter_map(|name| definition.find_subcommand(name));
    let names =
        commands.flat_map(|command| command.get_arguments()).filter_map(|arg| arg.get_long());
    names.map(str::to_owned).collect()
}

/// The flags of runs over interfaces.
const LIVE: [&str; 5] = ["capture", "dpdk-args", "duration", "shed", "no-promiscuous"];

/// One path or several.
pub(crate) fn files(source: &Bound<'_, PyAny>) -> PyResult<Vec<OsString>> {
    if let Ok(path) = source.extract::<PathBuf>() {
        return Ok(vec![path.into()]);
    }
    let path = |one: PyResult<Bound<'_, PyAny>>| Ok(one?.extract::<PathBuf>()?.into());
    source.try_iter()?.map(path).collect()
}

/// Whether text is of the type `string_view`.
pub(crate) fn has_views(strings: &str) -> PyResult<bool> {
    match strings {
        "plain" => Ok(false),
        "view" => Ok(true),
        _ => {
            let message = format!("invalid strings {strings:?}: use \"plain\" or \"view\"");
            Err(Error::new_err(message))
        }
    }
}

/// The arguments as flags by their long names. `None` and empty lists are omitted.
pub(crate) fn table(arguments: Option<&Bound<'_, PyDict>>, live: bool) -> PyResult<Table> {
    let mut table = Table::new();
    for (name, given) in arguments.into_iter().flatten() {
        let name: String = name.extract()?;
        let flag = name.replace('_', "-");
        if let Some((_, why)) = REFUSED.iter().find(|(flags, _)| flags.contains(&&*flag)) {
            return Err(Error::new_err(format!("{name} cannot be used in Python: {why}")));
        }
        if !live && LIVE.contains(&&*flag) {
            let why = "interfaces are read by ringtap.stream alone";
            return Err(Error::new_err(format!("{name} cannot be used in Python: {why}")));
        }
        if given.is_none() {
            continue;
        }
        let value = value(&given)?.ok_or_else(|| {
            let kind = given.get_type();
            Error::new_err(format!(
                "invalid {name}, a {kind}: use a word, a number, a list, True or False"
            ))
        })?;
        table.insert(flag, value);
    }
    Ok(table)
}

/// The value of a flag; `None` if its type is none of a flag.
fn value(given: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let values: PyResult<Option<Vec<_>>> = given.try_iter()?.map(|one| scalar(&one?)).collect();
        return Ok(values?.map(Value::Array));
    }
    scalar(given)
}

fn scalar(given: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if given.is_instance_of::<PyBool>() {
        return Ok(Some(Value::Boolean(given.extract()?)));
    }
    if given.is_instance_of::<PyString>() {
        return Ok(Some(Value::String(given.extract()?)));
    }
    // Whole numbers beyond 64 bits are words, too: the parser rejects them.
    if given.is_instance_of::<PyInt>() || given.is_instance_of::<PyFloat>() {
        return Ok(Some(Value::String(given.str()?.extract()?)));
    }
    let Ok(path) = given.extract::<PathBuf>() else { return Ok(None) };
    let word = path.into_os_string().into_string();
    let word =
        word.map_err(|path| Error::new_err(format!("{path:?} is not UTF-8: use another path")))?;
    Ok(Some(Value::String(word)))
}
