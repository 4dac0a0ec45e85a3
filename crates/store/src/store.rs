//! The store of a run: the lock of its probe, its manifest, its files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, lchown};
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
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::clock;
use crate::layout::{Kind, Layout, MANIFEST};
use crate::manifest::{
    Counts, FileLine, Line, Manifest, Start, What, each_line, files, seconds_of,
};
use crate::measure::measure;
use crate::record_file::FileNames;

/// How often the lock of a probe is tried again, and the pause between.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

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
    /// Held until the process ends; its time is that of the last [`Self::beat`].
    lock: File,
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

/// Creates the folders of a store that do not exist, for a user.
///
/// # Errors
/// That of the system; a folder of the store is a symbolic link.
pub fn create(root: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    if !root.is_dir() {
        for folder in missing(root) {
            create_one(&folder, owner)?;
        }
    }
    for name in Kind::ALL.map(Kind::folder).into_iter().chain([MANIFEST]) {
        let folder = root.join(name);
        match fs::symlink_metadata(&folder) {
            Ok(data) if data.is_dir() => {}
            Ok(_) => {
                let text = format!("{} is not a folder, or is a symbolic link", folder.display());
                return Err(io::Error::other(text));
            }
            Err(_) => create_one(&folder, owner)?,
        }
    }
    File::open(root)?.sync_all()
}

/// The folders of a path that do not exist, the first one first.
fn missing(path: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = path
        .ancestors()
        .take_while(|folder| *folder != Path::new("") && fs::symlink_metadata(folder).is_err())
        .map(Path::to_owned)
        .collect();
    all.reverse();
    all
}

/// Creates a folder, which did not exist, for a user.
fn create_one(folder: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    fs::create_dir(folder)?;
    match owner {
        Some((user, group)) => lchown(folder, Some(user), Some(group)),
        None => Ok(()),
    }
}

impl Store {
    /// Opens a store: takes the lock of the probe, completes what an earlier process left, and begins a run in the manifest.
    ///
    /// # Errors
    /// Another process writes the probe's files; that of the system.
    pub fn open(options: StoreOptions) -> io::Result<Arc<Self>> {
        let StoreOptions { layout, keep, mut start } = options;
        let (lock, beat) = lock(&layout)?;
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
        let store = Self {
            layout,
            keep,
            patterns,
            written: Mutex::new(Written(opened.manifest)),
            counting: OnceLock::new(),
            live: start.live,
            removed: AtomicU64::new(0),
            lock,
        };
        let mut until = opened.last.as_ref().map(|line| line.time.max(beat));
        start.ended = opened.last.map(|line| matches!(line.what, What::End(_)));
        for line in store.unlisted(store.complete()?)? {
            let path = store.layout.root.join(&line.file);
            let written = fs::metadata(path)?.modified().map(seconds_of)?;
            until = until.max(Some(written));
            store.append(What::File(Box::new(line)))?;
        }
        start.until = until;
        store.append(What::Start(start))?;
        Ok(Arc::new(store))
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
        // The time only says until when the run was there.
        let _ = self.lock.set_modified(clock::now());
    }
}

/// The time by the clock, in seconds since 1970.
pub(crate) fn now() -> u64 {
    seconds_of(clock::now())
}

/// Takes the lock of a probe. Returns the time of the last beat of the process before, too.
fn lock(layout: &Layout) -> io::Result<(File, u64)> {
    let path = layout.lock();
    let mut options = File::options();
    options.read(true).write(true).create(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(path)?;
    // A process that only asks whether another has the lock has it for a moment.
    let mut locked = file.try_lock();
    for _ in 0..TRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(PAUSE);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut process = String::new();
            file.take(20).read_to_string(&mut process)?;
            return Err(io::Error::other(format!(
                "process {} writes the files of the probe {}: use another --probe NAME, or end that process",
                process.trim_end(),
                layout.probe
            )));
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let beat = seconds_of(file.metadata()?.modified()?);
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok((file, beat))
}

/// A few bytes instead of a name.
fn short_hash(name: &str) -> u64 {
    let hash: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    hash[..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn open(root: &Path) -> io::Result<Arc<Store>> {
        let layout = Layout::new(root, "edge", 300).unwrap();
        let (keep, start) = (Retention::default(), Start::default());
        Store::open(StoreOptions { layout, keep, start })
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
    fn folders_are_created_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a/b");
        let user = rustix::process::geteuid().as_raw();
        let own = (user, rustix::process::getegid().as_raw());
        create(&root, Some(own)).unwrap();
        create(&root, Some(own)).unwrap();
        assert_eq!(root.join("flows").metadata().unwrap().uid(), user);
        let victim = folder.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::remove_dir(root.join("alerts")).unwrap();
        symlink(&victim, root.join("alerts")).unwrap();
        let error = create(&root, Some(own)).unwrap_err().to_string();
        assert!(error.contains("alerts is not a folder, or is a symbolic link"), "{error}");
    }

    #[test]
    fn a_run_was_there_until_its_last_beat() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap();
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
        create(folder.path(), None).unwrap();
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
