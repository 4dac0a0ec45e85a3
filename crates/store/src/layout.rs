//! Where the files of a store are.
//!
//! ```text
//! flows/2026/11/26/1005-PROBE.parquet    flow records that were made from 10:05 on
//! events/, alerts/, totals/              likewise, lines of JSON
//! manifest/2026-11-26-PROBE.jsonl        a line for each file that is complete
//! .PROBE.lock                            held by the process that writes the probe's files
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use ringtap_program::pattern::Pattern;
use serde::{Deserialize, Serialize};

/// Most bytes of a probe's name.
const MOST_PROBE: usize = 64;

/// What files of a store have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Flow records.
    Flows,
    /// Messages of payloads.
    Events,
    /// Alerts.
    Alerts,
    /// Totals of intervals.
    Totals,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Flows, Self::Events, Self::Alerts, Self::Totals];

    /// The folder of its files.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Events => "events",
            Self::Alerts => "alerts",
            Self::Totals => "totals",
        }
    }

    /// The extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Flows => "parquet",
            Self::Events | Self::Alerts | Self::Totals => "json",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.folder())
    }
}

/// The folder of manifests.
pub(crate) const MANIFEST: &str = "manifest";

/// An invalid name of a probe in a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the probe {0:?} cannot be in the names of files: use --probe NAME with at most {MOST_PROBE} letters, digits, - and _"
)]
pub struct InvalidProbe(String);

/// The places of a probe's files.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The folder of the store.
    pub root: PathBuf,
    /// The name of the probe.
    pub probe: String,
    /// Seconds of a file.
    pub rotate_s: u64,
}

impl Layout {
    /// # Errors
    /// The name of the probe cannot be in names of files.
    pub fn new(root: &Path, probe: &str, rotate_s: u64) -> Result<Self, InvalidProbe> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_probe = (1..=MOST_PROBE).contains(&probe.len())
            && probe.bytes().all(is_plain)
            && !probe.starts_with('.')
            && numbered(probe).is_none();
        if !is_probe {
            return Err(InvalidProbe(probe.to_owned()));
        }
        Ok(Self { root: root.to_owned(), probe: probe.to_owned(), rotate_s })
    }

    /// The path of files of this kind, with fields of strftime.
    pub fn pattern(&self, kind: Kind) -> PathBuf {
        self.in_root(&self.root.to_string_lossy().replace('%', "%%"), kind)
    }

    /// The pattern of a kind's names in the store.
    pub(crate) fn names(&self, kind: Kind) -> Pattern {
        // The fields are valid.
        Pattern::new(&self.in_root("", kind)).unwrap_or_else(|_| unreachable!("fields are valid"))
    }

    fn in_root(&self, root: &str, kind: Kind) -> PathBuf {
        let time = if self.rotate_s.is_multiple_of(60) { "%H%M" } else { "%H%M%S" };
        let (folder, extension) = (kind.folder(), kind.extension());
        Path::new(root).join(format!("{folder}/%Y/%m/%d/{time}-{}.{extension}", self.probe))
    }

    /// The kind and the probe of a file, by its path in a store; `None` for other files.
    pub(crate) fn parse(path: &Path) -> Option<(Kind, &str)> {
        let mut parts = path.components().map(|part| part.as_os_str().to_str());
        let folder = parts.next()??;
        let kind = Kind::ALL.into_iter().find(|kind| kind.folder() == folder)?;
        let is_number = |part: Option<&str>, digits: usize| {
            part.is_some_and(|part| {
                part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        if ![4, 2, 2].into_iter().all(|digits| is_number(parts.next().flatten(), digits)) {
            return None;
        }
        let name = parts.next()??.strip_suffix(kind.extension())?.strip_suffix('.')?;
        let (time, rest) = name.split_once('-')?;
        // A number before the extension.
        let probe = numbered(rest).unwrap_or(rest);
        let is_own = (is_number(Some(time), 4) || is_number(Some(time), 6))
            && !probe.is_empty()
            && parts.next().is_none();
        is_own.then_some((kind, probe))
    }

    /// The manifest of a day, `2026-11-26`.
    pub(crate) fn manifest(&self, day: &str) -> PathBuf {
        self.root.join(MANIFEST).join(format!("{day}-{}.jsonl", self.probe))
    }

    /// The lock of the probe.
    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join(format!(".{}.lock", self.probe))
    }
}

/// What comes before a number at the end of a name.
pub(crate) fn numbered(name: &str) -> Option<&str> {
    let (name, number) = name.rsplit_once('.')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_layout_and_no_others() {
        let layout = Layout::new(Path::new("s%x"), "edge-1", 300).unwrap();
        let at = |kind| Pattern::new(&layout.pattern(kind)).unwrap().at(1_795_687_509);
        assert_eq!(at(Kind::Flows), Path::new("s%x/flows/2026/11/26/1005-edge-1.parquet"));
        assert_eq!(at(Kind::Totals), Path::new("s%x/totals/2026/11/26/1005-edge-1.json"));
        let parse = |path: &'static str| Layout::parse(Path::new(path));
        assert_eq!(parse("flows/2026/11/26/1005-edge-1.parquet"), Some((Kind::Flows, "edge-1")));
        assert_eq!(parse("flows/2026/11/26/1005-a.b.7.parquet"), Some((Kind::Flows, "a.b")));
        assert_eq!(parse("events/2026/11/26/100500-a.json"), Some((Kind::Events, "a")));
        for other in [
            "flows/2026/11/26/1005-.parquet",
            "flows/2026/11/26/1005-a.json",
            "flows/2026/11/26/105-a.parquet",
            "flows/2026/11/26/x/1005-a.parquet",
            "flows/2026/11/1005-a.parquet",
            "other/2026/11/26/1005-a.parquet",
            "flows/.%Y-%m-%d-%H%M-a.parquet.7-x.part",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
        for kind in Kind::ALL {
            let path = at(kind);
            let (path, names) = (path.strip_prefix("s%x").unwrap(), layout.names(kind));
            assert_eq!(Layout::parse(path), Some((kind, "edge-1")));
            assert!(names.names(path.strip_prefix(names.root()).unwrap()), "{}", path.display());
        }
    }

    #[test]
    fn a_probe_has_a_name_for_files() {
        for name in ["a", "edge1.example", "A_b-c"] {
            assert!(Layout::new(Path::new("s"), name, 60).is_ok(), "{name}");
        }
        for name in ["", "a/b", "..", ".a", "a.7", "a b", "ä", "a%b", &"x".repeat(65)] {
            let error = Layout::new(Path::new("s"), name, 60).unwrap_err().to_string();
            assert!(error.contains("--probe NAME"), "{error}");
        }
    }
}
