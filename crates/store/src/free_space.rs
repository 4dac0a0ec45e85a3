//! Free space of the file systems of outputs (`--keep-free`).
//!
//! ```text
//! a file begins, ends or finds the disk full; each second ─▶ less than the limit is free
//!     ─▶ the oldest finished files of all outputs there are removed, as many as are needed
//!     ─▶ none is left: the space is low, which the program reports
//! ```
//!
//! A pass removes files of as many bytes as are missing, and no more, because some file systems free space later.
//!
//! Invariants: those of [`retention`]: only finished files of these outputs are removed.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ringtap_export::sums::Sums;
use ringtap_export::{Space, Store};
use ringtap_program::retention::{self, Removed};
use rustix::fs::statvfs;

use crate::keep_free::KeepFree;
use crate::record_file::FileNames;
use crate::store::Store as Stored;

/// Without a limit of the user, space is low with less than this share (1 in N), and less than these bytes.
const LOW_SHARE: u64 = 20;
const LOW_BYTES: u64 = 10_000_000_000;

/// Space that was low is low until a part of the limit (1 in N) is free beyond it.
const HYSTERESIS: u64 = 8;

/// Most outputs whose files are removed: over these, the first are left alone.
const MOST_OUTPUTS: usize = 1_024;

/// Shares have this as a whole.
const WHOLE: u64 = 1_000_000;

/// The space of the file systems of a run's outputs.
pub struct FreeSpace {
    keep: Option<KeepFree>,
    /// The outputs of the run, also those that have ended.
    outputs: RwLock<Vec<Arc<OutputFiles>>>,
    /// File systems on which the last pass found no file to remove.
    exhausted: Mutex<Vec<u64>>,
}

/// The files of an output.
pub struct OutputFiles {
    names: FileNames,
    /// Whether it has old files.
    has_old: bool,
    /// Its store, whose manifest has what is removed.
    store: Option<Arc<Stored>>,
    /// Its folder, without links.
    folder: Arc<Path>,
    /// Its file system; 0 if it is unknown.
    device: u64,
    is_low: AtomicBool,
    /// Old files that were removed.
    removed: AtomicU64,
}

/// Why space is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// A second has passed.
    Tick,
    /// A file begins or ends, or cannot be written.
    Change,
}

/// The names of an output's files, whether there are old ones, and its store.
pub type NamedFiles = (FileNames, bool, Option<Arc<Stored>>);

impl FreeSpace {
    /// Without outputs.
    pub fn new(keep: Option<KeepFree>) -> Self {
        Self { keep, outputs: RwLock::default(), exhausted: Mutex::default() }
    }

    /// Adds outputs with these files. Those before stay, so the old files of an output that has ended are removed, too.
    pub fn add(&self, outputs: impl IntoIterator<Item = NamedFiles>) -> Vec<Arc<OutputFiles>> {
        let output = |(names, has_old, store): NamedFiles| {
            let folder = names.folder();
            let device = folder.metadata().map_or(0, |data| data.dev());
            let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).into();
            let (is_low, removed) = (AtomicBool::new(false), AtomicU64::new(0));
            Arc::new(OutputFiles { names, has_old, store, folder, device, is_low, removed })
        };
        let added: Vec<_> = outputs.into_iter().map(output).collect();
        let mut all = self.outputs.write().unwrap_or_else(PoisonError::into_inner);
        all.extend(added.iter().cloned());
        let beyond = all.len().saturating_sub(MOST_OUTPUTS);
        all.drain(..beyond);
        added
    }

    /// Takes back outputs that were added and do not begin.
    pub fn take_back(&self, added: &[Arc<OutputFiles>]) {
        let mut all = self.outputs.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|output| !added.iter().any(|own| Arc::ptr_eq(own, output)));
    }

    /// The store of one of the `outputs` with this path, watched.
    pub fn watch(
        self: &Arc<Self>,
        outputs: &[Arc<OutputFiles>],
        path: &Path,
        store: Box<dyn Store>,
    ) -> Box<dyn Store> {
        let own = outputs.iter().find(|output| output.names.path() == path);
        let is_file = path.metadata().is_ok_and(|data| data.is_file()) || !path.exists();
        match own.filter(|_| is_file) {
            None => store,
            Some(own) => {
                let space = self.check(own, Occasion::Change);
                let (all, own) = (Arc::clone(self), Arc::clone(own));
                Box::new(WatchedStore { store, all, own, space, begins: false })
            }
        }
    }

    /// The space of an output. Removes old files, if it is needed.
    fn check(&self, own: &OutputFiles, occasion: Occasion) -> Option<Space> {
        let now = || space(own.names.folder()).ok();
        let (mut free, total) = now()?;
        let limit = self.limit(total);
        let mut is_low = free < limit;
        if is_low && self.keep.is_some() {
            // One thread at a time, which sees what others have removed.
            let mut exhausted = self.exhausted.lock().unwrap_or_else(PoisonError::into_inner);
            let missing = limit.saturating_sub(now()?.0);
            let is_searched = occasion == Occasion::Change || !exhausted.contains(&own.device);
            let freed = if is_searched { self.remove(own.device, missing) } else { 0 };
            exhausted.retain(|other| *other != own.device);
            if freed < missing {
                exhausted.push(own.device);
            }
            free = now()?.0;
            is_low = freed < missing && free < limit;
        }
        let was_low = own.is_low.load(Ordering::Relaxed);
        is_low |= was_low && free < limit.saturating_add(limit / HYSTERESIS);
        own.is_low.store(is_low, Ordering::Relaxed);
        let removes = self.keep.is_some();
        let folder = Arc::clone(&own.folder);
        Some(Space { folder, device: own.device, free, total, is_low, removes })
    }

    fn limit(&self, total: u64) -> u64 {
        match self.keep {
            Some(KeepFree::Share(millionths)) => {
                (u128::from(total) * u128::from(millionths)).div_ceil(WHOLE.into()) as u64
            }
            Some(KeepFree::Bytes(bytes)) => bytes,
            None => (total / LOW_SHARE).min(LOW_BYTES),
        }
    }

    /// Removes the oldest files on a file system, up to these bytes. Returns how many were removed.
    fn remove(&self, device: u64, bytes: u64) -> u64 {
        // Not locked while files are removed. An output that ended and began again is there twice.
        let all = self.outputs.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut paths = HashSet::new();
        let here = all.iter().rev().filter(|output| output.device == device && output.has_old);
        let outputs: Vec<_> = here.filter(|output| paths.insert(output.names.path())).collect();
        let mut all: Vec<_> = outputs.iter().map(|_| Removed::default()).collect();
        let mut files = Vec::new();
        for (at, output) in outputs.iter().enumerate() {
            match output.names.with_own(retention::oldest_of) {
                Ok(found) => {
                    files.extend(found.into_iter().map(|(modified, path)| (modified, path, at)));
                }
                Err(error) => all[at].error = Some(error),
            }
        }
        files.sort_unstable();
        let freed = |all: &[Removed]| all.iter().map(|removed| removed.bytes).sum::<u64>();
        for (_, path, at) in files {
            if freed(&all) >= bytes {
                break;
            }
            let (output, root) = (&outputs[at], outputs[at].names.root());
            if let Some(store) = &output.store
                && let Err(error) = store.will_remove(&root.join(&path))
            {
                all[at].error = Some(error);
                continue;
            }
            retention::remove_one(root, &path, &mut all[at]);
        }
        for (output, removed) in outputs.iter().zip(&all) {
            output.removed.fetch_add(output.names.report(removed), Ordering::Relaxed);
        }
        freed(&all)
    }
}

/// Free bytes for this user, and all that files can have, as `df` shows them.
fn space(folder: &Path) -> io::Result<(u64, u64)> {
    let found = statvfs(folder)?;
    let unit = found.f_frsize.max(1);
    let used = found.f_blocks.saturating_sub(found.f_bfree);
    let free = found.f_bavail.saturating_mul(unit);
    Ok((free, used.saturating_mul(unit).saturating_add(free)))
}

/// A store that checks the space of its file system.
struct WatchedStore {
    store: Box<dyn Store>,
    all: Arc<FreeSpace>,
    own: Arc<OutputFiles>,
    space: Option<Space>,
    /// The next write begins a file.
    begins: bool,
}

impl WatchedStore {
    fn check(&mut self, occasion: Occasion) {
        self.space = self.all.check(&self.own, occasion);
    }

    fn removed_for_space(&self) -> u64 {
        self.own.removed.load(Ordering::Relaxed)
    }
}

impl Store for WatchedStore {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.begins) {
            self.check(Occasion::Change);
        }
        let written = self.store.write(octets);
        let is_full = |error: &io::Error| {
            matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        };
        if !written.as_ref().is_err_and(is_full) {
            return written;
        }
        self.check(Occasion::Change);
        let has_room = self.space.as_ref().is_some_and(|space| space.free >= octets.len() as u64);
        if self.all.keep.is_some() && has_room { self.store.write(octets) } else { written }
    }

    fn finish(&mut self) -> io::Result<()> {
        let finished = self.store.finish();
        self.begins = true;
        self.check(Occasion::Change);
        finished
    }

    fn begins(&mut self, seconds: u64) {
        self.store.begins(seconds);
        self.begins = true;
    }

    fn rows(&mut self, sums: &Sums) {
        self.store.rows(sums);
    }

    fn rewrite(&mut self, octets: &[u8]) -> io::Result<()> {
        self.store.rewrite(octets)
    }

    fn tick(&mut self) -> io::Result<()> {
        self.store.tick()
    }

    fn close(&mut self) -> io::Result<()> {
        self.store.close()
    }

    fn check_space(&mut self) {
        self.store.check_space();
        self.check(Occasion::Tick);
    }

    fn removed(&self) -> u64 {
        self.store.removed() + self.removed_for_space()
    }

    fn space(&self) -> Option<Space> {
        self.space.clone()
    }

    fn is_regular(&self) -> bool {
        self.store.is_regular()
    }

    fn may_abandon(&self) -> bool {
        self.store.may_abandon()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::OpenFile;

    /// A folder with the files of two outputs, `a-` and `b-`, in the order of age, of 100 kB each.
    fn folder_of(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (at, name) in names.iter().enumerate() {
            let path = folder.path().join(name);
            fs::write(&path, vec![1; 100_000]).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + at as u64);
            File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        }
        folder
    }

    fn left(folder: &tempfile::TempDir) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn names(folder: &tempfile::TempDir, name: &str) -> FileNames {
        FileNames::new(&folder.path().join(name), None).unwrap()
    }

    fn outputs(keep: Option<KeepFree>, folder: &tempfile::TempDir) -> FreeSpace {
        let all = FreeSpace::new(keep);
        let names = |name| names(folder, name);
        all.add([
            (names("a-%s"), true, None),
            (names("b-%s"), true, None),
            (names("c-%s"), false, None),
        ]);
        all
    }

    fn output(all: &FreeSpace, at: usize) -> Arc<OutputFiles> {
        Arc::clone(&all.outputs.read().unwrap()[at])
    }

    #[test]
    fn the_oldest_files_of_all_outputs_are_removed_up_to_what_is_missing() {
        let names = ["b-1", "a-2", "other", "c-3", "a-4", "b-5"];
        let folder = folder_of(&names);
        let all = outputs(None, &folder);
        let device = output(&all, 0).device;
        assert!(all.remove(device, 150_000) >= 150_000);
        assert_eq!(left(&folder), ["a-4", "b-5", "c-3", "other"]);
        let removed = |at: usize| output(&all, at).removed.load(Ordering::Relaxed);
        assert_eq!([removed(0), removed(1), removed(2)], [1, 1, 0]);
        // A file that is written, and those that are no output's, stay.
        let written = File::open(folder.path().join("a-4")).unwrap();
        written.try_lock().unwrap();
        assert!(all.remove(device, u64::MAX) < 1_000_000);
        assert_eq!(left(&folder), ["a-4", "c-3", "other"]);
        drop(written);
        assert!(all.remove(device, 1) > 0);
        assert_eq!(left(&folder), ["c-3", "other"]);
        assert_eq!(all.remove(device + 1, 1), 0);
    }

    #[test]
    fn after_a_search_without_result_the_next_waits_for_a_file_that_begins_or_ends() {
        let folder = folder_of(&["a-1"]);
        let all = outputs(Some(KeepFree::Bytes(u64::MAX)), &folder);
        for (occasion, expected) in
            [(Occasion::Tick, 0), (Occasion::Tick, 1), (Occasion::Change, 0)]
        {
            assert!(all.check(&output(&all, 0), occasion).unwrap().is_low);
            assert_eq!(left(&folder).len(), expected);
            fs::write(folder.path().join("a-2"), "x").unwrap();
        }
    }

    #[test]
    fn limits_are_shares_and_bytes_and_low_space_lasts_until_there_is_more() {
        let folder = folder_of(&[]);
        let limit = |keep, total| outputs(keep, &folder).limit(total);
        assert_eq!(limit(None, 1_000_000), 50_000);
        assert_eq!(limit(None, u64::MAX), LOW_BYTES);
        assert_eq!(limit(Some(KeepFree::Share(50_000)), 1_000_001), 50_001);
        assert_eq!(limit(Some(KeepFree::Bytes(7)), 1_000), 7);
        // No file system has that much.
        let all = outputs(Some(KeepFree::Bytes(u64::MAX)), &folder);
        let space = all.check(&output(&all, 0), Occasion::Change).unwrap();
        assert!(space.is_low && space.removes && space.free < space.total);
        // Free is a little more than the limit.
        let limit = space.free - space.free / 50;
        let all = outputs(Some(KeepFree::Bytes(limit)), &folder);
        assert!(!all.check(&output(&all, 0), Occasion::Change).unwrap().is_low);
        output(&all, 0).is_low.store(true, Ordering::Relaxed);
        assert!(all.check(&output(&all, 0), Occasion::Change).unwrap().is_low);
        assert!(!outputs(None, &folder).check(&output(&all, 0), Occasion::Change).unwrap().removes);
    }

    #[test]
    fn a_watched_store_removes_old_files_when_it_finishes_one() {
        let folder = folder_of(&["a-1", "b-2"]);
        let all = Arc::new(outputs(Some(KeepFree::Bytes(u64::MAX)), &folder));
        let names = FileNames::new(&folder.path().join("a-%s"), Some(1_000_000_000)).unwrap();
        let path = names.path().to_owned();
        let file = OpenFile::open(names, retention::Retention::default()).unwrap();
        let own = [output(&all, 0)];
        let mut store = all.watch(&own, &path, Box::new(file));
        // At its begin.
        assert!(left(&folder).is_empty());
        assert_eq!(store.removed(), 1);
        store.begins(77);
        store.write(b"line\n").unwrap();
        fs::write(folder.path().join("b-3"), "x").unwrap();
        store.finish().unwrap();
        // The file that was finished has its lock until the next one begins.
        assert_eq!(left(&folder), ["a-77"]);
        assert!(store.space().unwrap().is_low);
        // A device is not watched.
        let null = FileNames::new(Path::new("/dev/null"), None).unwrap();
        let all = Arc::new(FreeSpace::new(None));
        let own = all.add([(null, true, None)]);
        let names = FileNames::new(&folder.path().join("a-%s"), None).unwrap();
        let file = OpenFile::open(names, retention::Retention::default()).unwrap();
        assert!(all.watch(&own, Path::new("/dev/null"), Box::new(file)).space().is_none());
    }

    #[test]
    fn an_output_that_begins_later_removes_files_of_all_before() {
        let folder = folder_of(&["a-1", "b-2", "c-3", "d-4", "e-5"]);
        let all = Arc::new(outputs(Some(KeepFree::Bytes(u64::MAX)), &folder));
        let first = output(&all, 0);
        // An output of this name begins again.
        all.add([(names(&folder, "b-%s"), true, None)]);
        let own = all.add([(names(&folder, "d-%s"), true, None)]);
        let file = OpenFile::open(names(&folder, "d-%s"), retention::Retention::default());
        let path = own[0].names.path().to_owned();
        let store = all.watch(&own, &path, Box::new(file.unwrap()));
        assert_eq!(left(&folder), ["c-3", "e-5"]);
        assert_eq!((store.removed(), first.removed.load(Ordering::Relaxed)), (1, 1));
        // One that does not begin.
        let own = all.add([(names(&folder, "e-%s"), true, None)]);
        all.take_back(&own);
        assert!(all.remove(first.device, u64::MAX) < 1_000_000);
        assert_eq!(left(&folder), ["c-3", "e-5"]);
        let more =
            (0..MOST_OUTPUTS + 9).map(|at| (names(&folder, &format!("{at}-%s")), true, None));
        all.add(more);
        assert_eq!(all.outputs.read().unwrap().len(), MOST_OUTPUTS);
    }

    #[test]
    fn files_of_a_store_are_removed_with_a_line_in_its_manifest() {
        use crate::verify::{Request, verify};
        use crate::{Kind, Layout, Start, StoreFile, StoreOptions, create};

        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        let layout = Layout::new(folder.path(), "edge", 300).unwrap();
        let (keep, start) = (retention::Retention::default(), Start::default());
        let stored =
            Stored::open(StoreOptions { layout, keep, start, names_bytes: 1 << 20 }).unwrap();
        stored.begin().unwrap();
        let names = stored.file_names(Kind::Events).unwrap();
        let kept = KeepFree::Bytes(u64::MAX);
        let all = Arc::new(FreeSpace::new(Some(kept)));
        let own = all.add([(names.clone(), true, Some(Arc::clone(&stored)))]);
        let file = StoreFile::open(Arc::clone(&stored), Kind::Events).unwrap();
        let mut file = all.watch(&own, names.path(), Box::new(file));
        for seconds in [300, 600] {
            file.begins(seconds);
            file.write(b"{}\n").unwrap();
            file.finish().unwrap();
        }
        stored.end(crate::Counts::default()).unwrap();
        let request =
            Request { store: folder.path().to_owned(), against: Vec::new(), expected: Vec::new() };
        let verified = verify(&request).unwrap();
        assert_eq!(verified.gaps, []);
        assert_eq!((verified.probes[0].removed, verified.probes[0].files), (2, 0));
        assert_eq!(file.removed(), 2);
    }
}
