//! The states of a run: a file at the end, or a state for each interval in a folder; and the same for topics of Kafka.
//!
//! ```text
//! merger ─ a part ──────────────▶ thread: sorts, compresses ─┬▶ FOLDER/PROBE-RUN-000000.state, 000001, …
//! end of the run ─ the last part ──────────────────────────────▶┴▶ topics
//! ```

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, JoinHandle};

use anyhow::Context;
use ringtap_engine::{Plan, Watch};
use ringtap_export::{StatePart as Exported, States as Topics};
use ringtap_monitor::state::{Earlier, Identity, OnPart, StatePart};
use ringtap_monitor::{Options, Outcome};
use ringtap_terminal::Usage;
use ringtap_terminal::console::print_message;

use ringtap_program::atomic_file::{AtomicFile, Existing};

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

/// Checks that a state can be written to a file, as far as that is known before the run.
pub(crate) fn check_path(path: &Path) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        return Err(Usage::of("a state cannot be written to stdout: use a file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let found = folder.map(std::fs::metadata).transpose();
    found.map(drop).with_context(|| format!("writing {}", path.display()))
}

/// A path in the folder that the states are written to; none if they are not.
pub(crate) fn written_path(path: &Path) -> PathBuf {
    if is_folder(path) { path.join("state") } else { path.to_owned() }
}

/// Bytes of a state that are read or written at once.
pub(crate) const BUFFER: usize = 128 << 10;

/// Writes a state to a file, which is renamed when complete.
pub(crate) fn write_state(
    mut file: AtomicFile,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let path = file.path().to_owned();
    let doing = || format!("writing {}", path.display());
    let mut out = BufWriter::with_capacity(BUFFER, file.begin().with_context(doing)?);
    write(&mut out).with_context(doing)?;
    out.flush().with_context(doing)?;
    drop(out);
    file.finish().with_context(doing).map(drop)
}

/// The states of a run while it runs.
pub(crate) struct States(Kind);

enum Kind {
    /// One state at the end.
    Whole(Destinations),
    /// A thread writes the parts before the last.
    Parts(JoinHandle<Parts>),
}

/// Where states go.
struct Destinations {
    /// The file of the whole state, from the start, so that no other process takes its name.
    file: Option<AtomicFile>,
    /// The folder of parts.
    folder: Option<PathBuf>,
    topics: Topics,
}

/// The parts so far.
struct Parts {
    destinations: Destinations,
    earlier: Earlier,
    failed: u64,
}

/// The place of a part in its run.
struct Place {
    number: u64,
    is_last: bool,
    times_ns: [u64; 2],
}

impl States {
    /// Starts the thread that writes the parts, if there are any, which the returned function receives.
    ///
    /// # Errors
    /// If the file or the thread cannot be started.
    pub(crate) fn start(
        path: Option<&Path>,
        existing: Existing,
        topics: Topics,
        plan: &Plan<Options>,
        watch: &'static Watch,
    ) -> anyhow::Result<(Self, Option<OnPart>)> {
        let mut destinations = Destinations { file: None, folder: None, topics };
        if plan.app.state.as_ref().is_none_or(|identity| !identity.in_parts) {
            let claim = |path: &Path| {
                let claimed = AtomicFile::claim(path.to_owned(), existing);
                claimed.with_context(|| format!("writing {}", path.display()))
            };
            destinations.file = path.map(claim).transpose()?;
            return Ok((Self(Kind::Whole(destinations)), None));
        }
        destinations.folder = path.map(Path::to_owned);
        // A part that is ready waits for the one before: then the run waits, too.
        let (to, parts) = sync_channel(0);
        let plan = plan.clone();
        let write = move || write_parts(destinations, &plan, watch, &parts);
        let thread = Builder::new().name("states".into()).spawn(write).context("a thread")?;
        let on_part: OnPart = Box::new(move |part| {
            // The thread lives as long as this function.
            let _ = to.send(part);
        });
        Ok((Self(Kind::Parts(thread)), Some(on_part)))
    }

    /// Writes the state at the end. The run has dropped the function that receives its parts.
    ///
    /// # Errors
    /// If a state could not be written.
    pub(crate) fn finish(self, outcome: &Outcome) -> anyhow::Result<()> {
        let mut all = match self.0 {
            Kind::Whole(destinations) => {
                Parts { destinations, earlier: Earlier::default(), failed: 0 }
            }
            Kind::Parts(thread) => {
                thread.join().map_err(|_| anyhow::anyhow!("the thread of the states panicked"))?
            }
        };
        let (Some(identity), Some(state)) = (&outcome.plan.app.state, &outcome.report().state)
        else {
            return Ok(());
        };
        let place = Place { number: state.part(), is_last: true, times_ns: state.times_ns() };
        let result = all.destinations.put(identity, &place, |out| {
            Ok(outcome.write_state(&mut all.earlier, out).map(drop)?)
        });
        if all.failed == 0 {
            return result;
        }
        if let Err(error) = result {
            all.failed += 1;
            print_message("error", &format!("{error:#}"));
        }
        Err(anyhow::anyhow!("{} states could not be written", all.failed))
    }
}

fn write_parts(
    destinations: Destinations,
    plan: &Plan<Options>,
    watch: &Watch,
    parts: &Receiver<StatePart>,
) -> Parts {
    let mut all = Parts { destinations, earlier: Earlier::default(), failed: 0 };
    while let (Ok(part), Some(identity)) = (parts.recv(), &plan.app.state) {
        let dropped = watch.dropped.get() + watch.shed.get();
        let times_ns = [part.from_ns, part.until_ns];
        let place = Place { number: part.number, is_last: false, times_ns };
        let result = all.destinations.put(identity, &place, |out| {
            Ok(part.write(plan, dropped, &mut all.earlier, out).map(drop)?)
        });
        if let Err(error) = result {
            all.failed += 1;
            print_message("error", &format!("{error:#}"));
        }
    }
    all
}

impl Destinations {
    /// Writes a state to all destinations.
    fn put(
        &mut self,
        identity: &Identity,
        place: &Place,
        content: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let part = |folder: &PathBuf| {
            AtomicFile::new(folder.join(file_name(identity, place.number)), Existing::Next)
        };
        let file = self.file.take().or(self.folder.as_ref().map(part));
        if self.topics.is_empty() {
            return file.map_or(Ok(()), |file| write_state(file, content));
        }
        let mut bytes = Vec::new();
        content(&mut bytes)?;
        let [from_ns, until_ns] = place.times_ns;
        let bytes: Arc<[u8]> = bytes.into();
        self.topics.send(&Exported {
            probe: identity.probe.clone(),
            run: identity.run,
            part: place.number,
            is_last: place.is_last,
            from_ns,
            until_ns,
            bytes: Arc::clone(&bytes),
        });
        file.map_or(Ok(()), |file| write_state(file, |out| Ok(out.write_all(&bytes)?)))
    }
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
