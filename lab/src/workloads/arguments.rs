//! The arguments of a workload: `key=value`.

use std::collections::BTreeMap;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{LabError, template};

/// Arguments by key. Each method removes the argument that it returns.
#[derive(Debug)]
pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Parses words of the form `KEY=VALUE`.
    pub fn parse(words: &[String]) -> Result<Self, LabError> {
        let pair = |word: &String| {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| LabError::Trial(format!("{word:?}: write KEY=VALUE")))?;
            Ok((key.to_owned(), value.to_owned()))
        };
        words.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// The value of `key`, if there is one.
    pub(super) fn optional<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, LabError> {
        let Some(text) = self.0.remove(key) else { return Ok(None) };
        let wrong = || LabError::Trial(format!("invalid {key}: {text}"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// The value of `key`; an error if it is missing.
    pub(super) fn text(&mut self, key: &str) -> Result<String, LabError> {
        self.0.remove(key).ok_or_else(|| LabError::Trial(format!("missing argument {key}=…")))
    }

    /// A number from 1 to `max`, with an optional suffix k, M or G.
    pub(super) fn count(&mut self, key: &str, max: u64) -> Result<u64, LabError> {
        let text = self.text(key)?;
        let number =
            template::number(&text).filter(|n| n.fract() == 0.0 && *n >= 1.0 && *n <= max as f64);
        let wrong = || LabError::Trial(format!("invalid {key}={text}: use 1 to {max}"));
        number.map(|n| n as u64).ok_or_else(wrong)
    }

    /// The cores to pin threads to, in turn; if empty, threads are not pinned.
    pub(super) fn cores(&mut self) -> Result<Vec<usize>, LabError> {
        let text = self.text("cores")?;
        let wrong = || LabError::Trial(format!("invalid cores={text}: use a list like 0,1"));
        let cores = text.split(',').filter(|word| !word.is_empty());
        cores
            .map(|word| word.parse().ok().filter(|&core| core < CpuSet::MAX_CPU))
            .collect::<Option<_>>()
            .ok_or_else(wrong)
    }

    /// An error if an argument was not used.
    pub(super) fn all_used(&self) -> Result<(), LabError> {
        match self.0.keys().next() {
            Some(key) => Err(LabError::Trial(format!("unknown argument {key}: omit it"))),
            None => Ok(()),
        }
    }
}

/// Pins the calling thread to the core for thread number `thread`, if `cores` is not empty.
pub(super) fn bind(cores: &[usize], thread: usize) {
    if let Some(&core) = cores.get(thread % cores.len().max(1)) {
        let mut set = CpuSet::new();
        set.set(core);
        // If the process may not use the core, the thread is not pinned.
        let _ = sched_setaffinity(None, &set);
    }
}
