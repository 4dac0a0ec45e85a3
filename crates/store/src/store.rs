//! The store of a run: the lock of its probe, its manifest, its files.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, chown};
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
    /// Held until the process ends.
    _lock: File,
}

/// The manifest, and the lines that could not be appended yet.
struct Written {
    manifest: Manifest,
    waiting: Vec<What>,
}

impl Written {
    /// Appends lines for files that were removed.
    fn append_removed<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) {
        let lines = paths.into_iter();
        let lines = lines.map(|path| What::Removed { file: path.display().to_string() });
        self.waiting.extend(lines);
        let Self { manifest, waiting } = self;
        let failed = waiting.iter().position(|what| manifest.append(what.clone(), now()).is_err());
        // The next line tries the others again.
        waiting.drain(..failed.unwrap_or(waiting.len()));
    }
}

/// Creates the folders of a store that do not exist, for a user.
///
/// # Errors
/// That of the system.
pub fn create(root: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    let folders = Kind::ALL.map(Kind::folder).into_iter().chain([MANIFEST]);
    let folders = folders.map(|folder| root.join(folder));
    for folder in [root.to_owned()].into_iter().chain(folders) {
        match fs::create_dir_all(&folder) {
            Ok(()) if owner.is_some() && fs::read_dir(&folder)?.next().is_none() => {
                let (user, group) = owner.unzip();
                chown(&folder, user, group)?;
            }
            done => done?,
        }
    }
    File::open(root)?.sync_all()
}

impl Store {
    /// Opens a store: takes the lock of the probe, completes what an earlier process left, and begins a run in the manifest.
    ///
    /// # Errors
    /// Another process writes the probe's files; that of the system.
    pub fn open(options: StoreOptions) -> io::Result<Arc<Self>> {
        let StoreOptions { layout, keep, mut start } = options;
        let lock = lock(&layout)?;
        let opened = Manifest::open(&layout)?;
        if opened.torn > 0 {
            print_message(
                "warning",
                &format!("the manifest of {}: removed a torn line", layout.probe),
            );
        }
        let patterns = Kind::ALL.map(|kind| layout.names(kind));
        let (manifest, waiting) = (opened.manifest, Vec::new());
        let store = Self {
            layout,
            keep,
            patterns,
            written: Mutex::new(Written { manifest, waiting }),
            counting: OnceLock::new(),
            live: start.live,
            removed: AtomicU64::new(0),
            _lock: lock,
        };
        let mut until = opened.last.as_ref().map(|line| line.time);
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
        let mut written = self.lock();
        let Written { manifest, waiting } = &mut *written;
        while let Some(first) = waiting.first() {
            manifest.append(first.clone(), now())?;
            waiting.remove(0);
        }
        manifest.append(what, now())
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
        let mut listed = HashSet::new();
        for (_, path) in files(&self.layout)? {
            each_line(&path, |_, _, line| {
                if let Ok(Line { what: What::File(line), .. }) = line {
                    listed.insert(short_hash(&line.file));
                }
            })?;
        }
        let mut lines = Vec::new();
        for (kind, pattern) in Kind::ALL.into_iter().zip(&self.patterns) {
            self.walk(pattern, |path| {
                let file = path.to_string_lossy().into_owned();
                if !listed.contains(&short_hash(&file)) {
                    lines.push((kind, file));
                }
            })?;
        }
        lines.sort();
        let rotate_s = self.layout.rotate_s;
        let line = |(of, file): (Kind, String)| {
            let path = self.layout.root.join(&file);
            let cut = completed.iter().find(|one| one.path == path).map_or(0, |one| one.cut);
            let found = measure(of, &path, rotate_s)?;
            Ok(FileLine {
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
        lines.into_iter().map(line).collect()
    }

    /// Calls `found` with the path, in the store, of each file with a name of the pattern.
    fn walk(&self, pattern: &Pattern, mut found: impl FnMut(PathBuf)) -> io::Result<()> {
        let is_own = |path: &Path| pattern.names(path);
        let root = self.layout.root.join(pattern.root());
        let own = Own { folder: &root, depth: pattern.depth(), is_own: &is_own };
        walk(&own, |path, _| found(pattern.root().join(path)))
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
        let mut gone = Vec::new();
        let mut removed = self.keep.apply(&own, clock::now(), |path| gone.push(path.to_owned()));
        self.retain_manifests(&mut gone);
        let name = root.display();
        if let Some(error) = removed.error.take() {
            print_message("warning", &format!("removing old files of {name}: {error}"));
        }
        if gone.is_empty() {
            return;
        }
        let (files, size) = (count(removed.files), bytes(removed.bytes));
        let noun = if removed.files == 1 { "file" } else { "files" };
        note(&format!("{name}: removed {files} old {noun}, {size}"));
        self.removed.fetch_add(removed.files, Ordering::Relaxed);
        written.append_removed(gone.iter().map(PathBuf::as_path));
    }

    /// A file was removed for the sake of free space.
    pub(crate) fn gone(&self, path: &Path) {
        let path = path.strip_prefix(&self.layout.root).unwrap_or(path);
        self.lock().append_removed([path]);
    }

    /// Removes manifests all of whose files are older than what is kept.
    fn retain_manifests(&self, gone: &mut Vec<PathBuf>) {
        let Some(age) = self.keep.age else { return };
        let now = now();
        let Ok(mut all) = files(&self.layout) else { return };
        // The last one is written.
        all.pop();
        for (day, path) in all {
            let is_old = (day + 1) * 86_400 + age.as_secs() < now;
            if is_old
                && fs::remove_file(&path).is_ok()
                && let Ok(path) = path.strip_prefix(&self.layout.root)
            {
                gone.push(path.to_owned());
            }
        }
    }
}

/// The time by the clock, in seconds since 1970.
pub(crate) fn now() -> u64 {
    seconds_of(clock::now())
}

/// Takes the lock of a probe.
fn lock(layout: &Layout) -> io::Result<File> {
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
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(file)
}

/// A few bytes instead of a name.
fn short_hash(name: &str) -> u64 {
    let hash: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    hash[..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}
