//! The store of a run: the lock of its probe, its manifest, its files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use ringtap_export::Cut;
use ringtap_program::leftovers;
use ringtap_program::pattern::Pattern;
use ringtap_program::retention::{Own, Retention, walk};
use ringtap_terminal::console::{note, print_message};
use ringtap_terminal::numbers::{bytes, count};
use sha2::{Digest as _, Sha256};

use crate::clock;
use crate::layout::{Kind, Layout};
use crate::lock::Lock;
use crate::manifest::{
    Counts, FileLine, Line, Manifest, Start, What, each_line, files, seconds_of,
};
use crate::measure::measure;
use crate::record_file::FileNames;

/// Reads the counts of a run.
pub type Counting = Box<dyn Fn() -> Counts + Send + Sync>;

/// What is written to a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Where.
    pub layout: Layout,
    /// What remains of the probe's files.
    pub keep: Retention,
    /// About the run.
    pub start: Start,
}

/// A store, open for the files of a probe.
pub struct Store {
    pub(crate) layout: Layout,
    keep: Retention,
    patterns: [Pattern; Kind::ALL.len()],
    written: Mutex<Written>,
    counting: OnceLock<Counting>,
    /// Whether packets come from an interface.
    live: bool,
    /// Files that retention has removed.
    removed: AtomicU64,
    /// Held until the process ends.
    lock: Lock,
    /// The begin of the run.
    start: Start,
}

/// The manifest, which one thread at a time writes.
struct Written(Manifest);

impl Written {
    /// Appends a line.
    fn append(&mut self, what: What) -> io::Result<()> {
        self.0.append(what, now())
    }

    /// Appends a line for a file that will be removed.
    fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.append(What::Removed { file: path.display().to_string() })
    }
}

impl Store {
    /// Opens a store: takes the lock of the probe, and completes what an earlier process left.
    ///
    /// # Errors
    /// Another process writes the probe's files; that of the system.
    pub fn open(options: StoreOptions) -> io::Result<Arc<Self>> {
        let StoreOptions { layout, keep, mut start } = options;
        let (lock, beat) = Lock::take(&layout)?;
        let opened = Manifest::open(&layout)?;
        let warn = |text: &str| {
            print_message("warning", &format!("the manifest of {}: {text}", layout.probe))
        };
        if opened.torn > 0 {
            warn("removed a torn line");
        }
        if let Some(why) = &opened.damaged {
            warn(&format!("the last line is damaged: {why}"));
        }
        let patterns = Kind::ALL.map(|kind| layout.names(kind));
        let mut store = Self {
            layout,
            keep,
            patterns,
            written: Mutex::new(Written(opened.manifest)),
            counting: OnceLock::new(),
            live: start.live,
            removed: AtomicU64::new(0),
            lock,
            start: Start::default(),
        };
        let mut until = opened.last.as_ref().map(|line| line.time.max(beat));
        start.ended = opened.last.map(|line| matches!(line.what, What::End(_)));
        for line in store.unlisted(store.complete()?)? {
            let path = store.layout.root.join(&line.file);
            let written = fs::metadata(path)?.modified().map(seconds_of)?;
            until = until.max(Some(written));
            store.append(What::File(Box::new(line)))?;
        }
        store.start = Start { until, ..start };
        Ok(Arc::new(store))
    }

    /// Begins the run in the manifest.
    ///
    /// # Errors
    /// That of the system.
    pub fn begin(&self) -> io::Result<()> {
        self.append(What::Start(self.start.clone()))?;
        self.lock.keep();
        Ok(())
    }

    /// Sets where the counts of the run are read.
    pub fn count_by(&self, counting: Counting) {
        // Once a run.
        let _ = self.counting.set(counting);
    }

    /// The kind of the store's files with this path, which has fields.
    pub fn kind_of(&self, path: &Path) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| self.layout.pattern(*kind) == path)
    }

    /// Ends the run in the manifest.
    ///
    /// # Errors
    /// That of the system.
    pub fn end(&self, counts: Counts) -> io::Result<()> {
        self.append(What::End(counts))
    }

    /// Whether packets have the time of the clock.
    pub(crate) fn is_live(&self) -> bool {
        self.live
    }

    /// Files that retention has removed.
    pub(crate) fn removed(&self) -> u64 {
        // Relaxed: a statistic.
        self.removed.load(Ordering::Relaxed)
    }

    /// Lists a file that is complete, and removes old ones.
    pub(crate) fn list(&self, line: FileLine) -> io::Result<()> {
        let so_far = self.counting.get().map(|counts| counts());
        self.append(What::File(Box::new(FileLine { so_far, ..line })))?;
        self.retain();
        Ok(())
    }

    fn append(&self, what: What) -> io::Result<()> {
        self.lock().append(what)
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// Completes files that a process left.
    fn complete(&self) -> io::Result<Vec<leftovers::Completed>> {
        let mut all = Vec::new();
        for kind in Kind::ALL {
            let names = self.file_names(kind)?;
            let cut = match kind {
                #[cfg(feature = "parquet")]
                Kind::Flows => Cut::RowGroup,
                _ => Cut::Line,
            };
            all.extend(leftovers::finish(
                names.path(),
                |file| cut.finish(file),
                |time| names.at_clock(time),
            ));
        }
        Ok(all)
    }

    /// The names of files of a kind.
    ///
    /// # Errors
    /// None: their fields are valid.
    pub fn file_names(&self, kind: Kind) -> io::Result<FileNames> {
        let rotate_ns = Some(self.layout.rotate_s * 1_000_000_000);
        FileNames::new(&self.layout.pattern(kind), rotate_ns).map_err(io::Error::other)
    }

    /// Lines for files of the probe that the manifest does not have: their process ended before it wrote them.
    fn unlisted(&self, completed: Vec<leftovers::Completed>) -> io::Result<Vec<FileLine>> {
        let (mut listed, mut removed) = (HashSet::new(), HashMap::new());
        for (_, path) in files(&self.layout)? {
            each_line(&path, |_, _, line| match line {
                Ok(Line { what: What::File(line), .. }) => {
                    removed.remove(&line.file);
                    listed.insert(short_hash(&line.file));
                }
                Ok(Line { what: What::Removed { file }, time, .. }) => {
                    listed.remove(&short_hash(&file));
                    removed.insert(file, time);
                }
                _ => {}
            })?;
        }
        let mut lines = Vec::new();
        for (kind, pattern) in Kind::ALL.into_iter().zip(&self.patterns) {
            self.walk(pattern, |path, data| {
                let file = path.to_string_lossy().into_owned();
                let path = self.layout.root.join(path);
                // Its process ended between the line and the removal.
                let is_left = removed.get(&file).is_some_and(|time| {
                    data.modified().is_ok_and(|at| seconds_of(at) <= *time)
                        && !completed.iter().any(|one| one.path == path)
                });
                if is_left {
                    // If that fails, the next start tries it again.
                    let _ = fs::remove_file(path);
                } else if !listed.contains(&short_hash(&file)) {
                    lines.push((kind, file));
                }
            })?;
        }
        lines.sort();
        let rotate_s = self.layout.rotate_s;
        let line = |(of, file): (Kind, String)| {
            let path = self.layout.root.join(&file);
            let cut = completed.iter().find(|one| one.path == path).map_or(0, |one| one.cut);
            let found = match measure(of, &path, rotate_s) {
                Ok(found) => found,
                Err(error) => {
                    let text = "it is not in the manifest, and cannot be read";
                    print_message("warning", &format!("{}: {text}: {error}", path.display()));
                    return None;
                }
            };
            Some(FileLine {
                of,
                file,
                rows: found.rows,
                octets: found.octets,
                sha256: found.sha256,
                sums: found.sums,
                interval: rotate_s,
                cut_octets: Some(cut),
                so_far: None,
            })
        };
        Ok(lines.into_iter().filter_map(line).collect())
    }

    /// Calls `found` with the path, in the store, and the metadata of each file with a name of the pattern.
    fn walk(&self, pattern: &Pattern, mut found: impl FnMut(PathBuf, Metadata)) -> io::Result<()> {
        let is_own = |path: &Path| pattern.names(path);
        let root = self.layout.root.join(pattern.root());
        let own = Own { folder: &root, depth: pattern.depth(), is_own: &is_own };
        walk(&own, |path, data| found(pattern.root().join(path), data))
    }

    /// Removes old files.
    fn retain(&self) {
        // One writer at a time.
        let mut written = self.lock();
        let root = &self.layout.root;
        let is_own = |path: &Path| {
            let of = |pattern: &Pattern| {
                path.strip_prefix(pattern.root()).is_ok_and(|name| pattern.names(name))
            };
            self.patterns.iter().any(of)
        };
        let own = Own { folder: root, depth: 4, is_own: &is_own };
        // The line comes first: if the process ends between both, the next one removes the file.
        let mut removed = self.keep.apply(&own, clock::now(), |path| written.remove(path));
        let manifests = self.retain_manifests(&mut written);
        removed.error = removed.error.or(manifests.err());
        let name = root.display();
        if let Some(error) = &removed.error {
            print_message("warning", &format!("removing old files of {name}: {error}"));
        }
        if removed.files > 0 {
            let (files, size) = (count(removed.files), bytes(removed.bytes));
            let noun = if removed.files == 1 { "file" } else { "files" };
            note(&format!("{name}: removed {files} old {noun}, {size}"));
            self.removed.fetch_add(removed.files, Ordering::Relaxed);
        }
    }

    /// A file will be removed for the sake of free space.
    ///
    /// # Errors
    /// That of the system; then it must not be.
    pub(crate) fn will_remove(&self, path: &Path) -> io::Result<()> {
        self.lock().remove(path.strip_prefix(&self.layout.root).unwrap_or(path))
    }

    /// Removes manifests all of whose files are older than what is kept.
    fn retain_manifests(&self, written: &mut Written) -> io::Result<()> {
        let Some(age) = self.keep.age else { return Ok(()) };
        let now = now();
        let mut all = files(&self.layout)?;
        // The last one is written.
        all.pop();
        for (day, path) in all {
            if (day + 1) * 86_400 + age.as_secs() < now {
                written.remove(path.strip_prefix(&self.layout.root).unwrap_or(&path))?;
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// The process lives: called each second by files of lines.
    pub(crate) fn beat(&self) {
        self.lock.beat();
    }
}

/// The time by the clock, in seconds since 1970.
pub(crate) fn now() -> u64 {
    seconds_of(clock::now())
}

/// A few bytes instead of a name.
fn short_hash(name: &str) -> u64 {
    let hash: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    hash[..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::create;

    fn open(root: &Path) -> io::Result<Arc<Store>> {
        let layout = Layout::new(root, "edge", 300).unwrap();
        let (keep, start) = (Retention::default(), Start::default());
        let store = Store::open(StoreOptions { layout, keep, start })?;
        store.begin()?;
        Ok(store)
    }

    /// The last begin of a run in the manifest.
    fn start(root: &Path) -> Start {
        let mut last = None;
        for (_, path) in files(&Layout::new(root, "edge", 300).unwrap()).unwrap() {
            each_line(&path, |_, _, line| {
                if let What::Start(start) = line.unwrap().what {
                    last = Some(start);
                }
            })
            .unwrap();
        }
        last.unwrap()
    }

    #[test]
    fn a_run_was_there_until_its_last_beat() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        drop(open(folder.path()).unwrap());
        assert_eq!((start(folder.path()).ended, start(folder.path()).until), (None, None));
        let lock = File::options().write(true).open(folder.path().join(".edge.lock")).unwrap();
        let beat = now() + 3_600;
        lock.set_modified(UNIX_EPOCH + Duration::from_secs(beat)).unwrap();
        drop(open(folder.path()).unwrap());
        assert_eq!(
            (start(folder.path()).ended, start(folder.path()).until),
            (Some(false), Some(beat))
        );
    }

    #[test]
    fn what_cannot_be_read_does_not_stop_a_start_and_what_was_to_be_removed_is() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        let day = folder.path().join("flows/2026/11/26");
        fs::create_dir_all(&day).unwrap();
        fs::write(day.join("1005-edge.parquet"), "garbage").unwrap();
        let store = open(folder.path()).unwrap();
        let events = folder.path().join("events/2026/11/26");
        fs::create_dir_all(&events).unwrap();
        fs::write(events.join("1005-edge.json"), "{}\n").unwrap();
        // A line is no reason to remove what is not the store's.
        let (victim, removed) = (folder.path().join("victim"), events.join("1005-edge.json"));
        fs::write(&victim, "").unwrap();
        // Its process ended between the lines and the removal.
        for path in [&victim, &events.join("../../../../victim"), &removed] {
            store.will_remove(path).unwrap();
        }
        drop(store);
        for path in [&victim, &removed] {
            let old = UNIX_EPOCH + Duration::from_secs(now() - 60);
            File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        }
        drop(open(folder.path()).unwrap());
        assert!(!removed.exists() && victim.exists());
        assert!(day.join("1005-edge.parquet").exists());
    }
}
