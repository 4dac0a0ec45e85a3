//! All flags of all commands of a program, from the definition of its command line: each with 0, numbers that are too
//! large, nothing, and twice, and on lines where it has no effect. A new flag is in the table by itself; what is special
//! is in the lists below.

use std::path::Path;

use clap::builder::ValueRange;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::output_of;

/// Values without a meaning, unless [`MEANT`] has them, and their letters there.
const NONSENSE: [(char, &str); 4] =
    [('0', "0"), ('M', "18446744073709551615"), ('B', "18446744073709551616"), ('-', "")];

/// Values with a meaning, by the kind of value or by the flag, and why. A flag has priority.
const MEANT: &[(&str, &str, &str)] = &[
    ("FILE", "0MB", "the name of a file, which the run opens"),
    ("PATH", "0MB", "the same"),
    ("DIR", "0MB", "the name of a folder, which the run creates"),
    ("KEYFILE", "0MB", "the same"),
    ("PREFIX", "0MB", "the beginning of such names"),
    ("NAME|FILE", "0MB", "the same, if it is not the name of a profile"),
    ("IFACE", "0MB", "the name of an interface, which the run opens"),
    ("EXPR", "0MB", "an expression, which libpcap compiles when the run begins"),
    ("ARGS", "0MB-", "arguments of DPDK, perhaps none"),
    ("ADDR", "0", "a port that the system selects; the run prints it"),
    ("TEXT", "0MB-", "any text, which the engine reads"),
    ("--user", "0MB", "the name of a user, which the run looks up"),
    ("--probe", "0MB", "any name"),
    ("--key-name", "0MB", "any name"),
    ("--cores", "0", "core 0"),
    ("--seed", "0M", "any number"),
    ("--cost", "0M", "any number"),
    ("--observation-domain", "0", "any number of 32 bits"),
    ("--queue", "0", "the first queue"),
    ("--loop", "0M", "0 is without end"),
    ("--top", "0", "no rows"),
    ("--statistics-packets", "0", "no list of first packets"),
    ("--scan-threshold", "0", "one failed attempt is a scan"),
    ("--udp-scan-threshold", "0", "one failed attempt is a scan"),
    ("--active-timeout", "0", "never"),
    ("--dedup", "0", "the default: no packet is left out"),
    ("--freshness", "0", "Data that is never fresh"),
    ("--payload", "0", "Data without content"),
    ("--zipf", "0", "all flows are equal"),
    ("--flows", "0", "no background traffic"),
    ("--count", "M", "more than ever come"),
    ("--packets", "M", "the same"),
    ("--population", "M", "any number of names"),
    ("--rate", "M", "as fast as possible"),
];

/// Lines with commands: with `|` where further flags are put, and the flags that have no effect there.
pub type Lines = &'static [(&'static str, &'static str)];

/// Values of each kind. The first is taken that a flag accepts.
const SAMPLES: &[(&str, &str)] = &[
    ("N", "8"),
    ("TIME", "9s"),
    ("SIZE", "512M"),
    ("SIZE|SHARE", "5%"),
    ("1:N", "1:8"),
    ("ADDR", "9464"),
    ("ARGS", "x"),
    ("CHOICE", "uniform"),
    ("DIR", "store"),
    ("EXPR", "udp"),
    ("FILE", "file"),
    ("ID,…", "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
    ("PORT=KIND,…", "8472=vxlan"),
    ("FORMAT:PATH", "json:file sketch:file"),
    ("HASH", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("IFACE", "lo"),
    ("KEY", "source"),
    ("KEYFILE", "file"),
    ("KIND", "lamport"),
    ("LIST", "0 flows dns"),
    ("MAC", "02:00:00:00:00:01"),
    ("NAME", "farm mg rss shared name"),
    ("NAME=N", "dst-pps=8"),
    ("NAME|FILE", "mix"),
    ("MOMENT", "10:02"),
    ("N|imix", "64"),
    ("PATH", "file"),
    ("POLICY", "allow"),
    ("PORT", "8"),
    ("PREFIX", "file"),
    ("PRESET|NAME=TIME,…", "zeek"),
    ("RATE", "8"),
    ("S", "1"),
    ("SHARE", "0.1"),
    ("SOURCE", "192.0.2.1"),
    ("TEXT", "select"),
    ("TIME[,MESSAGES]", "9s"),
    ("URL", "ipfix://192.0.2.1 udp://192.0.2.1"),
    ("WEIGHT", "octets"),
    ("WHAT", "drop"),
    ("WHERE", "syslog:"),
    ("WHICH", "inner"),
    ("WINDOW", "1s"),
    ("unix:PATH", "unix:file"),
];

/// A line with the definition of its command.
struct Line<'a> {
    words: Vec<&'a str>,
    /// Where further flags are put.
    at: usize,
    command: &'a Command,
    without_effect: Vec<&'a str>,
    /// The flags that are examined; none for all.
    only: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn new(definition: &'a Command, line: &'a str, without_effect: &'a str) -> Self {
        let (before, after) = line.split_once('|').expect("a place for flags");
        let mut words: Vec<_> = before.split_whitespace().collect();
        // Other words are arguments, which may precede a subcommand.
        let command = words
            .iter()
            .fold(definition, |command, word| command.find_subcommand(word).unwrap_or(command));
        let at = words.len();
        words.extend(after.split_whitespace());
        let only = without_effect.strip_prefix("all but ");
        let without_effect = if only.is_some() { "" } else { without_effect };
        let without_effect = without_effect.split_whitespace().collect();
        Self { words, at, command, without_effect, only }
    }

    /// The line with these flags.
    fn with(&self, flags: &[String]) -> Vec<String> {
        let mut words: Vec<_> = self.words.iter().map(|&word| word.to_owned()).collect();
        words.splice(self.at..self.at, flags.iter().cloned());
        words
    }

    /// Whether the flag has an effect on the line.
    fn takes(&self, arg: &Arg) -> bool {
        !self.without_effect.contains(&name(arg)) && self.only.is_none_or(|only| only == name(arg))
    }
}

/// The long name, or an empty one.
fn name(arg: &Arg) -> &str {
    arg.get_long().unwrap_or_default()
}

/// The kind of value that the help shows; none for a switch.
fn kind(arg: &Arg) -> Option<&str> {
    let has_value = arg.get_action().takes_values();
    has_value.then(|| arg.get_value_names().map_or("", |names| names[0].as_str()))
}

/// The flag with a value, or alone, as words.
fn given(arg: &Arg, value: &str) -> Vec<String> {
    let flag = format!("--{}", name(arg));
    match arg.get_num_args() {
        _ if kind(arg).is_none() => vec![flag],
        Some(count) if count == ValueRange::from(2) => vec![flag, value.into(), value.into()],
        _ => vec![format!("{flag}={value}")],
    }
}

/// The parsed line, or the kind of the error and its text as the program prints it.
fn parsed(definition: &Command, words: &[String]) -> Result<ArgMatches, (ErrorKind, String)> {
    let words = std::iter::once("ringtap").chain(words.iter().map(String::as_str));
    let matches = definition.clone().try_get_matches_from(words);
    matches.map_err(|error| (error.kind(), ringtap_terminal::message(&error.into())))
}

/// A value that the flag accepts on the line, as words.
fn sample(definition: &Command, line: &Line<'_>, arg: &Arg) -> Option<Vec<String>> {
    let possible = arg.get_possible_values();
    let values: Vec<&str> = match kind(arg) {
        None => vec![""],
        Some(_) if !possible.is_empty() => vec![possible[0].get_name()],
        Some(kind) => {
            let (_, values) =
                SAMPLES.iter().find(|(other, _)| *other == kind).unwrap_or_else(|| {
                    panic!("--{}: SAMPLES has no value of the kind {kind:?}", name(arg))
                });
            values.split(' ').collect()
        }
    };
    let mut words = values.into_iter().map(|value| given(arg, value));
    words.find(|flags| parsed(definition, &line.with(flags)).is_ok())
}

/// Whether the value has a meaning for the flag.
fn is_meant(arg: &Arg, letter: char) -> bool {
    let flag = format!("--{}", name(arg));
    let of = |what: &str| MEANT.iter().find(|(other, _, _)| *other == what);
    let found = of(&flag).or_else(|| of(kind(arg).unwrap_or_default()));
    found.is_some_and(|(_, letters, _)| letters.contains(letter))
}

/// Whether an error has the flag, or what it sets, and a remedy.
fn helps(arg: &Arg, error: &str) -> bool {
    let flag = format!("--{}", name(arg));
    // The parser does not name a flag that lacks another one, which it names.
    let is_named = error.contains(&flag)
        || error.contains("required arguments were not provided")
        || name(arg).split('-').any(|word| word.len() > 3 && error.contains(word));
    let remedies =
        ["use ", "omit ", "needs ", "add ", "cannot be used with", "possible values", "required "];
    is_named && remedies.iter().any(|remedy| error.contains(remedy))
}

/// The commands that have flags, by their words.
fn commands<'a>(command: &'a Command, words: &str, found: &mut Vec<(String, &'a Command)>) {
    let has_flags = flags(command).next().is_some();
    if !words.is_empty() && has_flags {
        found.push((words.to_owned(), command));
    }
    for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        commands(one, format!("{words} {}", one.get_name()).trim_start(), found);
    }
}

/// The flags of a command, without those that end the program.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let ends = ["help", "version"];
    command.get_arguments().filter(move |arg| !name(arg).is_empty() && !ends.contains(&name(arg)))
}

/// The flags of a program, and lines with its commands.
pub struct FlagTable {
    definition: Command,
    lines: Lines,
    folder: tempfile::TempDir,
    program: fn() -> assert_cmd::Command,
}

impl FlagTable {
    /// `prepare` creates the files that the lines name in a folder; `program` is the program.
    pub fn new(
        mut definition: Command,
        lines: Lines,
        prepare: fn(&Path),
        program: fn() -> assert_cmd::Command,
    ) -> Self {
        definition.build();
        let folder = tempfile::tempdir().unwrap();
        prepare(folder.path());
        Self { definition, lines, folder, program }
    }

    /// Values without a meaning are refused with a remedy.
    pub fn values_without_a_meaning_are_refused(&self) {
        let mut runs = 0;
        self.each(|definition, arg, lines, wrong| {
            if kind(arg).is_none() {
                return;
            }
            for (_, value) in NONSENSE.into_iter().filter(|one| !is_meant(arg, one.0)) {
                for line in lines {
                    let words = line.with(&given(arg, value));
                    let error = match parsed(definition, &words) {
                        Err((
                            ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict,
                            text,
                        )) => Err(format!("not judged: {text}")),
                        Err((_, text)) => Ok(text),
                        Ok(_) => {
                            runs += 1;
                            self.refused(&words)
                        }
                    };
                    match error {
                        Ok(error) if helps(arg, &error) => {}
                        Ok(error) => wrong.push(format!("{}: no remedy: {error}", words.join(" "))),
                        Err(end) => wrong.push(format!("{}: accepted: {end}", words.join(" "))),
                    }
                }
            }
        });
        // Most checks are made when the line is parsed.
        assert!(runs < 150, "{runs} runs of the program");
    }

    /// A flag that is given twice has its last value, or is a list.
    pub fn flags_given_twice_have_their_last_value(&self) {
        self.each(|definition, arg, lines, wrong| {
            let Some(line) = lines.first() else { return };
            let Some(once) = sample(definition, line, arg) else { return };
            let twice = [once.clone(), once].concat();
            let id = arg.get_id().as_str();
            let is_list = matches!(arg.get_action(), ArgAction::Append);
            let number = |matches: &ArgMatches| {
                // The flag is of one of the commands of the line.
                let levels =
                    std::iter::successors(Some(matches), |outer| Some(outer.subcommand()?.1));
                let mut found = levels.filter_map(|one| one.try_get_raw(id).ok());
                found.find_map(|values| values.map(Iterator::count)).unwrap_or(0)
            };
            let given_on_line =
                parsed(definition, &line.with(&[])).map_or(0, |found| number(&found));
            let of_each = arg.get_num_args().map_or(1, |range| range.min_values().max(1));
            let expected = if is_list { given_on_line + 2 * of_each } else { 1 };
            match parsed(definition, &line.with(&twice)) {
                Err((_, text)) => wrong.push(format!("{}: {text}", twice.join(" "))),
                Ok(_) if kind(arg).is_none() => {}
                Ok(found) if number(&found) != expected => {
                    wrong.push(format!("{}: {} values", twice.join(" "), number(&found)));
                }
                Ok(_) => {}
            }
        });
    }

    /// Flags without an effect on a line are refused.
    pub fn flags_without_an_effect_are_refused(&self) {
        let definition = &self.definition;
        let mut wrong = Vec::new();
        for line in self.lines() {
            for without in &line.without_effect {
                let arg = flags(line.command).find(|arg| name(arg) == *without);
                let arg = arg.unwrap_or_else(|| panic!("no flag --{without}"));
                // Any line on which the flag has a value.
                let all = self.lines();
                let mut same = all.iter().filter(|other| std::ptr::eq(other.command, line.command));
                let flags = same.find_map(|other| sample(definition, other, arg));
                let words = line.with(&flags.unwrap_or_else(|| panic!("--{without} has no value")));
                let error = match parsed(definition, &words) {
                    Err((_, text)) => Ok(text),
                    Ok(_) => self.refused(&words),
                };
                match error {
                    Ok(error) if helps(arg, &error) => {}
                    Ok(error) => wrong.push(format!("{}: no remedy: {error}", words.join(" "))),
                    Err(end) => wrong.push(format!("{}: accepted: {end}", words.join(" "))),
                }
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    fn lines(&self) -> Vec<Line<'_>> {
        self.lines
            .iter()
            .map(|(line, without)| Line::new(&self.definition, line, without))
            .collect()
    }

    /// Runs each flag of each command with the lines that take it.
    fn each(&self, mut check: impl FnMut(&Command, &Arg, &[&Line<'_>], &mut Vec<String>)) {
        let definition = &self.definition;
        let lines = self.lines();
        let (mut all, mut wrong) = (Vec::new(), Vec::new());
        commands(definition, "", &mut all);
        assert!(all.len() > 6, "{} commands", all.len());
        for (words, command) in all {
            for arg in flags(command) {
                let own = lines.iter().filter(|line| std::ptr::eq(line.command, command));
                let own: Vec<_> = own
                    .filter(|line| line.takes(arg) && sample(definition, line, arg).is_some())
                    .collect();
                if own.is_empty() && !arg.is_global_set() {
                    wrong.push(format!("{words} --{}: LINES has no line for it", name(arg)));
                }
                check(definition, arg, &own, &mut wrong);
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    /// The error with which the program refuses a line; an explanation if it does not.
    fn refused(&self, words: &[String]) -> Result<String, String> {
        let (out, errors, code) =
            output_of((self.program)().current_dir(self.folder.path()).args(words));
        if code == 2 && out.is_empty() { Ok(errors) } else { Err(format!("{code}: {errors}")) }
    }
}
