//! The store of a run: the lock of its probe, its manifest, its files.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use ringtap_export::Cut;
use ringtap_program::leftovers;
use ringtap_program::pattern::Pattern;
use ringtap_program::retention::{Own, Retention, walk};
use ringtap_terminal::console::{note, print_message};
use ringtap_terminal::numbers::{bytes, count};

use crate::clock;
use crate::layout::{Kind, Layout};
use crate::lock::Lock;
use crate::manifest::{
    Counts, FileLine, Line, Manifest, Start, What, count_lines, each_line, files, seconds_of,
};
use crate::measure::measure;
use crate::names::{Names, part};
use crate::record_file::FileNames;

/// How often the last line is tried again, and the pause between.
const LAST_TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// The number of a name that a manifest lists. Others have the time when they were removed.
const LISTED: u64 = u64::MAX;

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
    /// Most bytes for the names of files while the store is opened.
    pub names_bytes: u64,
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
        let StoreOptions { layout, keep, mut start, names_bytes } = options;
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
        for line in store.unlisted(store.complete()?, names_bytes)? {
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

    /// Ends the run in the manifest. If that fails, tries it again: a disk may fail once.
    ///
    /// # Errors
    /// That of the system.
    pub fn end(&self, counts: Counts) -> io::Result<()> {
        let end = What::End(counts);
        let mut ended = self.append(end.clone());
        for _ in 0..LAST_TRIES {
            if ended.is_err() {
                std::thread::sleep(PAUSE);
                ended = self.append(end.clone());
            }
        }
        ended
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

    /// Lines for files of the probe that the manifest does not have: their process ended before it wrote them. Names take
    /// at most `names_bytes` at a time: of more, one part after another is compared.
    fn unlisted(
        &self,
        completed: Vec<leftovers::Completed>,
        names_bytes: u64,
    ) -> io::Result<Vec<FileLine>> {
        let written = files(&self.layout)?;
        let mut most_names = 0;
        for (_, path) in &written {
            most_names += count_lines(path)?;
        }
        // Parts are not quite equal.
        let most = Names::most(names_bytes) / 8 * 7;
        let parts = most_names.div_ceil(most).max(1);
        let mut lines = Vec::new();
        for at in 0..parts {
            let is_here = |name: &str| part(name, parts) == at;
            let mut names = Names::with_room(&self.layout.probe, most_names.min(most));
            for (_, path) in &written {
                each_line(path, |_, _, line| match line {
                    Ok(Line { what: What::File(line), .. }) if is_here(&line.file) => {
                        names.insert(&line.file, LISTED);
                    }
                    Ok(Line { what: What::Removed { file }, time, .. }) if is_here(&file) => {
                        names.insert(&file, time.min(LISTED - 1));
                    }
                    _ => {}
                })?;
            }
            for (kind, pattern) in Kind::ALL.into_iter().zip(&self.patterns) {
                self.walk(pattern, |path, data| {
                    let file = path.to_string_lossy().into_owned();
                    if !is_here(&file) {
                        return;
                    }
                    let path = self.layout.root.join(path);
                    let number = names.get(&file);
                    // Its process ended between the line and the removal.
                    let is_left = number.is_some_and(|time| {
                        time != LISTED
                            && data.modified().is_ok_and(|at| seconds_of(at) <= time)
                            && !completed.iter().any(|one| one.path == path)
                    });
                    if is_left {
                        // If that fails, the next start tries it again.
                        let _ = fs::remove_file(path);
                    } else if number != Some(LISTED) {
                        lines.push((kind, file));
                    }
                })?;
            }
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::create;

    fn open(root: &Path) -> io::Result<Arc<Store>> {
        let layout = Layout::new(root, "edge", 300).unwrap();
        let (keep, start) = (Retention::default(), Start::default());
        let store = Store::open(StoreOptions { layout, keep, start, names_bytes: 1 << 20 })?;
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

    #[test]
    fn names_without_room_are_compared_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        let layout = Layout::new(folder.path(), "edge", 60).unwrap();
        let events = folder.path().join("events/2026/11/26");
        fs::create_dir_all(&events).unwrap();
        let path =
            |minute: u32| events.join(format!("{:04}-edge.json", minute / 60 * 100 + minute % 60));
        for minute in 0..100 {
            fs::write(path(minute), "{}\n".repeat(minute as usize + 1)).unwrap();
        }
        let rows = |names_bytes| {
            let (keep, start) = (Retention::default(), Start::default());
            let options = StoreOptions { layout: layout.clone(), keep, start, names_bytes };
            drop(Store::open(options).unwrap());
            let mut rows = Vec::new();
            for (_, path) in files(&layout).unwrap() {
                each_line(&path, |_, _, line| {
                    if let What::File(line) = line.unwrap().what {
                        rows.push(line.rows);
                    }
                })
                .unwrap();
            }
            rows
        };
        // The manifest lists all, in the order of their names.
        let all: Vec<_> = (1..=100).collect();
        assert_eq!(rows(1 << 20), all);
        // Then some are not in it, and one was to be removed.
        let manifest = files(&layout).unwrap().remove(0).1;
        let text = fs::read_to_string(&manifest).unwrap();
        let kept: Vec<_> = text.lines().filter(|line| !line.contains("7-edge.json")).collect();
        fs::write(&manifest, kept.join("\n") + "\n").unwrap();
        let removed = What::Removed { file: "events/2026/11/26/0042-edge.json".into() };
        Manifest::open(&layout).unwrap().manifest.append(removed, now() + 60).unwrap();
        let found = rows(1);
        let last: Vec<_> = (1..=10).map(|at| at * 10 - 2).collect();
        assert_eq!(
            found[..90],
            all.iter().copied().filter(|row| row % 10 != 8).collect::<Vec<_>>()
        );
        assert_eq!(found[90..], last);
        assert!(!path(42).exists() && path(41).exists());
    }
}
