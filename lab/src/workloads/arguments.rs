//! The words of a workload: `key=value`.

use std::collections::BTreeMap;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{LabError, template};

/// What nobody asked for is a mistake.
#[derive(Debug)]
pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    pub fn parse(words: &[String]) -> Result<Self, LabError> {
        let pair = |word: &String| {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| LabError::Trial(format!("{word:?}: write KEY=VALUE")))?;
            Ok((key.to_owned(), value.to_owned()))
        };
        words.iter().map(pair).collect::<Result<_, _>>().map(Self)
    }

    /// The value of `key`, if it was given.
    pub(super) fn optional<T: FromStr>(&mut self, key: &str) -> Result<Option<T>, LabError> {
        let Some(text) = self.0.remove(key) else { return Ok(None) };
        let wrong = || LabError::Trial(format!("{key}={text}: that is no {key}"));
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// The value of `key`, which must be there.
    pub(super) fn text(&mut self, key: &str) -> Result<String, LabError> {
        self.0.remove(key).ok_or_else(|| LabError::Trial(format!("{key}=… is missing")))
    }

    /// A number, from 1 to `most`, with k, M or G for thousands.
    pub(super) fn count(&mut self, key: &str, most: u64) -> Result<u64, LabError> {
        let text = self.text(key)?;
        let number =
            template::number(&text).filter(|n| n.fract() == 0.0 && *n >= 1.0 && *n <= most as f64);
        let wrong = || LabError::Trial(format!("{key}={text}: from 1 to {most} is possible"));
        number.map(|n| n as u64).ok_or_else(wrong)
    }

    /// The cores to run on, in turn; empty leaves it to the kernel.
    pub(super) fn cores(&mut self) -> Result<Vec<usize>, LabError> {
        let text = self.text("cores")?;
        let wrong = || LabError::Trial(format!("cores={text}: write them as 0,1"));
        let cores = text.split(',').filter(|word| !word.is_empty());
        cores
            .map(|word| word.parse().ok().filter(|&core| core < CpuSet::MAX_CPU))
            .collect::<Option<_>>()
            .ok_or_else(wrong)
    }

    pub(super) fn all_used(&self) -> Result<(), LabError> {
        match self.0.keys().next() {
            Some(key) => Err(LabError::Trial(format!("{key}: this workload has no such word"))),
            None => Ok(()),
        }
    }
}

/// Binds the calling thread to the core for thread number `thread`, if there are any.
pub(super) fn bind(cores: &[usize], thread: usize) {
    if let Some(&core) = cores.get(thread % cores.len().max(1)) {
        let mut set = CpuSet::new();
        set.set(core);
        // A core that is not ours is no reason to give up: then the kernel chooses.
        let _ = sched_setaffinity(None, &set);
    }
}
