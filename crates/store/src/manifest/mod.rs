//! The manifest of a probe: a line for each file that is complete, in a file a day.
//!
//! ```text
//! 2026-11-25-PROBE.jsonl   … │ n 7 before #6 │ n 8 before #7 │
//! 2026-11-26-PROBE.jsonl   n 9 before #8 │ n 10 before #9 │ …
//! ```
//!
//! Invariants: lines are appended whole, and are on the disk before [`Manifest::append`] returns; a day is never before
//! that of the last line, also if the clock is set back, so files in the order of their names are lines in order.

mod line;
mod read;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use ringtap_base::civil;
use rustix::fs::OFlags;

pub use line::{Counts, FileLine, Flows, Line, Packets, Records, Start, What};
pub(crate) use read::{Manifests, count_lines, each_line, files, hash, hex};

use crate::layout::Layout;

/// Appends lines.
pub(crate) struct Manifest {
    layout: Layout,
    /// The number and the hash of the last line.
    n: u64,
    before: String,
    /// The day of the current file, since 1970.
    day: u64,
    file: Option<File>,
    /// Whole lines end there, if what follows could not be removed.
    torn_at: Option<u64>,
}

/// What the manifest of a probe has at the begin of a run.
pub(crate) struct Opened {
    pub(crate) manifest: Manifest,
    /// The last line, if there is one.
    pub(crate) last: Option<Line>,
    /// Bytes of a torn line that were removed.
    pub(crate) torn: u64,
    /// Why the last line is none.
    pub(crate) damaged: Option<String>,
}

impl Manifest {
    /// Opens the manifest of a probe, whose lock the caller has. A torn line at its end is removed.
    ///
    /// # Errors
    /// That of the system.
    pub(crate) fn open(layout: &Layout) -> io::Result<Opened> {
        let mut manifest = Self {
            layout: layout.clone(),
            n: 0,
            before: String::new(),
            day: 0,
            file: None,
            torn_at: None,
        };
        let (mut last, mut torn, mut damaged) = (None, 0, None);
        // Files without a whole line are passed over.
        for (day, path) in files(layout)?.into_iter().rev() {
            manifest.day = manifest.day.max(day);
            let mut file = options().read(true).open(&path)?;
            torn += cut_torn(&mut file)?;
            let Some(text) = last_line(&mut file)? else { continue };
            manifest.before = hash(&text);
            match serde_json::from_str::<Line>(&text) {
                Ok(line) => {
                    manifest.n = line.n;
                    last = Some(line);
                }
                Err(error) => {
                    damaged = Some(format!("{}: {error}", path.display()));
                    each_line(&path, |_, _, line| {
                        manifest.n = line.map_or(manifest.n.saturating_add(1), |line| line.n);
                    })?;
                }
            }
            break;
        }
        Ok(Opened { manifest, last, torn, damaged })
    }

    /// Appends a line, which is on the disk then. `time` is that of the clock, in seconds since 1970.
    ///
    /// # Errors
    /// That of the system; nothing of the line remains, and no file without lines.
    pub(crate) fn append(&mut self, what: What, time: u64) -> io::Result<()> {
        let appended = self.try_append(what, time);
        if appended.is_err() {
            let path = self.path();
            let is_empty =
                fs::symlink_metadata(&path).is_ok_and(|data| data.is_file() && data.len() == 0);
            if is_empty && fs::remove_file(path).is_ok() {
                (self.file, self.torn_at) = (None, None);
            }
        }
        appended
    }

    fn try_append(&mut self, what: What, time: u64) -> io::Result<()> {
        if let (Some(len), Some(file)) = (self.torn_at, &self.file) {
            file.set_len(len)?;
            self.torn_at = None;
        }
        let day = time / 86_400;
        let file = match &mut self.file {
            Some(file) if day <= self.day => file,
            none => {
                self.day = self.day.max(day);
                *none = None;
                let path = self.path();
                let file = options().create(true).open(&path)?;
                if let Some(folder) = path.parent() {
                    File::open(folder)?.sync_all()?;
                }
                self.file.insert(file)
            }
        };
        let line = Line { n: self.n + 1, time, what, before: self.before.clone() };
        let text = serde_json::to_string(&line)?;
        let len = file.seek(SeekFrom::End(0))?;
        let written =
            file.write_all(format!("{text}\n").as_bytes()).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // If that fails, too, it is tried again before the next line.
            self.torn_at = file.set_len(len).is_err().then_some(len);
            return Err(error);
        }
        (self.n, self.before) = (line.n, hash(&text));
        Ok(())
    }

    /// The path of the current file.
    fn path(&self) -> PathBuf {
        let (year, month, day) = civil(self.day);
        self.layout.manifest(&format!("{year:04}-{month:02}-{day:02}"))
    }
}

/// No symbolic link is followed.
fn options() -> fs::OpenOptions {
    let mut options = File::options();
    options.append(true).read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    options
}

/// Removes what follows the last end of a line. Returns the number of bytes.
fn cut_torn(file: &mut File) -> io::Result<u64> {
    let len = file.metadata()?.len();
    let end = ringtap_export::Cut::Line.finish(file)?;
    Ok(len - end)
}

/// The last line of a file of whole lines, without its end.
fn last_line(file: &mut File) -> io::Result<Option<String>> {
    const MOST: u64 = 1 << 20;
    let len = file.metadata()?.len();
    let from = len.saturating_sub(MOST);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next_back().map(str::to_owned))
}

/// Seconds since 1970.
pub(crate) fn seconds_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::verify::{GapKind, Request, verify};

    const DAY: u64 = 86_400;

    fn layout(root: &Path) -> Layout {
        fs::create_dir_all(root.join(crate::layout::MANIFEST)).unwrap();
        Layout::new(root, "edge", 300).unwrap()
    }

    fn removed(number: u64) -> What {
        What::Removed { file: format!("{number}.jsonl") }
    }

    fn lines(layout: &Layout) -> Vec<Line> {
        let mut all = Vec::new();
        for (_, path) in files(layout).unwrap() {
            each_line(&path, |_, _, line| all.push(line.unwrap())).unwrap();
        }
        all
    }

    #[test]
    fn lines_are_a_chain_over_days_also_if_the_clock_is_set_back() {
        let root = tempfile::tempdir().unwrap();
        let layout = layout(root.path());
        let mut manifest = Manifest::open(&layout).unwrap().manifest;
        // A leap back at boot, too: the clock begins in 1970 before it is set.
        for (number, time) in [(1, 10), (2, 7 * DAY), (3, 5 * DAY), (4, 8 * DAY)] {
            manifest.append(removed(number), time).unwrap();
        }
        let days: Vec<_> = files(&layout).unwrap().into_iter().map(|(day, _)| day).collect();
        assert_eq!(days, [0, 7, 8]);
        let opened = Manifest::open(&layout).unwrap();
        assert_eq!((opened.manifest.n, opened.torn), (4, 0));
        let mut manifest = opened.manifest;
        manifest.append(removed(5), 2 * DAY).unwrap();
        let lines = lines(&layout);
        assert_eq!(lines.iter().map(|line| line.n).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        let request =
            Request { store: root.path().to_owned(), against: Vec::new(), expected: Vec::new() };
        let kinds: Vec<_> = verify(&request).unwrap().gaps.iter().map(|gap| gap.kind).collect();
        assert_eq!(kinds, [GapKind::Clock, GapKind::Clock]);
    }

    #[test]
    fn a_torn_line_is_removed_and_a_damaged_one_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let layout = layout(root.path());
        let mut manifest = Manifest::open(&layout).unwrap().manifest;
        manifest.append(removed(1), 0).unwrap();
        manifest.append(removed(2), 0).unwrap();
        let path = layout.manifest("1970-01-01");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let opened = Manifest::open(&layout).unwrap();
        assert_eq!(opened.manifest.n, 1);
        assert!(opened.torn > 100, "{}", opened.torn);
        fs::write(&path, [&whole[..], b"{}\n"].concat()).unwrap();
        let opened = Manifest::open(&layout).unwrap();
        assert!(opened.damaged.is_some());
        assert_eq!((opened.manifest.n, opened.manifest.before), (3, hash("{}")));
        // A process that ended between the creation of a file and its first line.
        fs::write(&path, &whole).unwrap();
        fs::write(layout.manifest("1970-01-02"), "{\"n").unwrap();
        assert_eq!(Manifest::open(&layout).unwrap().manifest.n, 2);
    }

    #[test]
    fn no_link_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let layout = layout(root.path());
        let victim = root.path().join("victim");
        std::os::unix::fs::symlink(&victim, layout.manifest("1970-01-01")).unwrap();
        let mut manifest = Manifest::open(&layout).unwrap().manifest;
        assert!(manifest.append(removed(1), 0).is_err());
        assert!(!victim.exists());
    }
}
