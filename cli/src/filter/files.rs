//! The files of a filter: rules, keys and captures.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use ringtap_filter::run::ControlKey;

use crate::args::FilterArgs;
use ringtap_program::atomic_file::{AtomicFile, Existing};
use ringtap_terminal::Usage;

/// The longest rule file, in bytes.
const RULES_MOST: u64 = 512 << 20;

/// What becomes of files that exist.
pub(super) fn existing(args: &FilterArgs) -> Existing {
    Existing::of(args.force, !args.interface.is_empty())
}

/// A capture file that is renamed when complete.
pub(super) struct Output(Option<AtomicFile>);

impl Output {
    pub(super) fn open(
        path: Option<&PathBuf>,
        existing: Existing,
    ) -> anyhow::Result<(Self, Option<Box<dyn Write + Send>>)> {
        let Some(path) = path else { return Ok((Self(None), None)) };
        let doing = || format!("opening {}", path.display());
        let mut file = AtomicFile::claim(path.clone(), existing).with_context(doing)?;
        let out = file.begin().with_context(doing)?;
        Ok((Self(Some(file)), Some(out)))
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        if let Some(mut file) = self.0 {
            file.finish().context("renaming a capture")?;
        }
        Ok(())
    }
}

/// Reads a rule file; `-` is stdin.
pub(super) fn read_rules(path: &Path) -> anyhow::Result<String> {
    let doing = || format!("reading the rules {}", path.display());
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).with_context(doing)?),
    };
    let mut text = String::new();
    let read = source.take(RULES_MOST + 1).read_to_string(&mut text).with_context(doing)?;
    if read as u64 > RULES_MOST {
        return Err(Usage::of(format!("{}: the rule file exceeds 512 MiB", path.display())));
    }
    Ok(text)
}

/// Reads the key of control packets.
pub(super) fn key(path: &Path) -> anyhow::Result<ControlKey> {
    let doing = || format!("reading the key {}", path.display());
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(1 << 16).read_to_end(&mut bytes))
        .with_context(doing)?;
    ControlKey::new(&bytes).map_err(|error| Usage::of(format!("{}: {error}", path.display())))
}
