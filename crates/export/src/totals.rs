//! Totals of intervals, as JSON lines in files of a store.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::alerts::{ALERT_BYTES, FileTarget, start_lines};
use crate::launch::Ready;
use crate::place::Place;
use crate::settings::Settings;
use crate::summary::Items;

/// An output for totals: a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TotalsOutput {
    /// Its path.
    pub path: PathBuf,
}

impl fmt::Display for TotalsOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "totals in {}", self.path.display())
    }
}

impl Place for TotalsOutput {
    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn fixed_bytes(&self) -> u64 {
        ALERT_BYTES
    }

    fn items(&self) -> Items {
        Items::Totals
    }

    fn prepare(&self, _: &Settings) -> io::Result<Ready> {
        let path = self.path.clone();
        Ok(Box::new(move |launch| {
            let (store, wait_policy) = launch.store(&path)?;
            let target = FileTarget::new(store, launch.file_period(wait_policy));
            let (sender, started) = start_lines(target, wait_policy, Items::Totals, launch)?;
            let waits = !launch.settings.live;
            let sender = if waits { sender.waiting() } else { sender };
            launch.sinks.totals.push((launch.number, sender));
            Ok(started)
        }))
    }
}
