//! The flags of a run as they were given, to compare two configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Id};
use ringtap_base::without_secrets;

/// The flags of a command line and its configuration file, with their values as they were given.
#[derive(Clone, Default)]
pub(crate) struct Given {
    words: Vec<OsString>,
    flags: BTreeMap<String, Vec<OsString>>,
}

impl Given {
    pub(crate) fn of(words: &[OsString], matches: &ArgMatches) -> Self {
        let given = |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        let values = |id: &Id| {
            let values = matches.try_get_raw(id.as_str()).ok()??;
            Some((id.to_string(), values.map(OsString::from).collect()))
        };
        Self {
            words: words.to_vec(),
            flags: matches.ids().filter(given).filter_map(values).collect(),
        }
    }

    /// The command line.
    pub(crate) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Whether a flag is given.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.flags.contains_key(id)
    }

    /// The values of a flag as they are shown, without secrets.
    pub(crate) fn shown(&self, id: &str) -> String {
        let Some(values) = self.flags.get(id) else { return "not set".into() };
        let values: Vec<_> = values.iter().map(|value| value.to_string_lossy()).collect();
        let text = if values.is_empty() { "true".into() } else { values.join(", ") };
        without_secrets(&text).into_owned()
    }

    /// The flags with other values, in alphabetical order.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let keys: BTreeSet<_> = self.flags.keys().chain(other.flags.keys()).collect();
        let differs = |key: &&String| self.flags.get(*key) != other.flags.get(*key);
        keys.into_iter().filter(differs).cloned().collect()
    }
}
