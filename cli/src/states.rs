//! The states of a run: a file at the end, or a file in a folder for each interval.
//!
//! ```text
//! merger ─ a part ─▶ queue of one ─▶ thread: sorts, compresses, writes ─▶ FOLDER/PROBE-RUN-000000.state
//! end of the run ─ the last part ──────────────────────────────────────▶ FOLDER/PROBE-RUN-000001.state
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, JoinHandle};

use anyhow::Context;
use ringtap_engine::{Plan, Watch};
use ringtap_monitor::state::{Earlier, Identity, OnPart, StatePart};
use ringtap_monitor::{Options, Outcome};
use ringtap_terminal::Usage;
use ringtap_terminal::console::print_message;

use crate::merge::{check_path, write_state};

/// The extension of states in a folder.
pub(crate) const EXTENSION: &str = "state";

/// Whether a path is that of a folder.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Checks that states can be written to a file or folder, as far as that is known before the run.
pub(crate) fn check(path: &Path, has_intervals: bool) -> anyhow::Result<()> {
    if !is_folder(path) {
        return check_path(path);
    }
    if !has_intervals {
        return Err(Usage::of("--state FOLDER writes a state for each interval: add --interval"));
    }
    std::fs::metadata(path).map(drop).with_context(|| format!("writing {}", path.display()))
}

/// A path in the folder that the states are written to; none if they are not.
pub(crate) fn written_path(path: &Path) -> PathBuf {
    if is_folder(path) { path.join("state") } else { path.to_owned() }
}

/// The states of a run while it runs.
pub(crate) struct States {
    path: PathBuf,
    /// Writes the parts before the last.
    thread: Option<JoinHandle<Parts>>,
}

/// The parts in a folder.
struct Parts {
    earlier: Earlier,
    failed: u64,
}

impl States {
    /// Starts the thread that writes the parts, if there are any, which the returned function receives.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(
        path: &Path,
        plan: &Plan<Options>,
        watch: &'static Watch,
    ) -> anyhow::Result<(Self, Option<OnPart>)> {
        let path = path.to_owned();
        if !is_folder(&path) {
            return Ok((Self { path, thread: None }, None));
        }
        // A part that is ready waits for the one before: then the run waits, too.
        let (to, parts) = sync_channel(1);
        let (folder, plan) = (path.clone(), plan.clone());
        let write = move || write_parts(&folder, &plan, watch, &parts);
        let thread = Builder::new().name("states".into()).spawn(write).context("a thread")?;
        let on_part: OnPart = Box::new(move |part| {
            // The thread lives as long as this function.
            let _ = to.send(part);
        });
        Ok((Self { path, thread: Some(thread) }, Some(on_part)))
    }

    /// Writes the state at the end. The run has dropped the function that receives its parts.
    ///
    /// # Errors
    /// If a state could not be written.
    pub(crate) fn finish(self, outcome: &Outcome) -> anyhow::Result<()> {
        let Self { path, thread } = self;
        let Some(thread) = thread else {
            return write_state(&path, |out| {
                Ok(outcome.write_state(&mut Earlier::default(), out).map(drop)?)
            });
        };
        let Ok(Parts { mut earlier, failed }) = thread.join() else {
            return Err(anyhow::anyhow!("the thread that writes states panicked"));
        };
        let number = outcome.report().state.as_ref().map_or(0, |state| state.part());
        write(&path, &outcome.plan, number, |out| {
            Ok(outcome.write_state(&mut earlier, out).map(drop)?)
        })?;
        anyhow::ensure!(failed == 0, "{failed} states could not be written");
        Ok(())
    }
}

fn write_parts(
    folder: &Path,
    plan: &Plan<Options>,
    watch: &Watch,
    parts: &Receiver<StatePart>,
) -> Parts {
    let mut all = Parts { earlier: Earlier::default(), failed: 0 };
    while let Ok(part) = parts.recv() {
        let dropped = watch.dropped.get() + watch.shed.get();
        let result = write(folder, plan, part.number, |out| {
            Ok(part.write(plan, dropped, &mut all.earlier, out).map(drop)?)
        });
        if let Err(error) = result {
            all.failed += 1;
            print_message("error", &format!("{error:#}"));
        }
    }
    all
}

/// Writes the file of a part.
fn write(
    folder: &Path,
    plan: &Plan<Options>,
    number: u64,
    content: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(identity) = &plan.app.state else { return Ok(()) };
    write_state(&folder.join(file_name(identity, number)), content)
}

/// The name of the file of a part; names sort in the order of parts.
fn file_name(identity: &Identity, number: u64) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let plain = |letter| if is_plain(letter) { letter } else { '_' };
    let probe: String = identity.probe.chars().map(plain).take(64).collect();
    format!("{probe}-{:016x}-{number:06}.{EXTENSION}", identity.run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_in_order() {
        let name = |probe: &str, number| {
            let identity = Identity { run: 255, probe: probe.into(), in_parts: true };
            file_name(&identity, number)
        };
        assert_eq!(name("a.b-c", 7), "a.b-c-00000000000000ff-000007.state");
        assert_eq!(name("../x y", 0), ".._x_y-00000000000000ff-000000.state");
        assert!(name("a", 9) < name("a", 10));
        assert!(name(&"é".repeat(300), 0).len() < 100);
    }
}
