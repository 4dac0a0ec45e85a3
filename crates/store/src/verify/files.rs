//! The files of a store: whether they are there, and as they were written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ringtap_export::sums::Sums;
use ringtap_program::retention::{Own, walk};
use ringtap_terminal::numbers::count;

use super::chain::Place;
use super::gap::{Gap, GapKind};
use super::probe::Probe;
use crate::layout::{Kind, Layout};
use crate::manifest::{FileLine, Line, What, each_line};
use crate::measure::measure;
use crate::names::Names;

/// Folders below that of a store in which files are.
const DEPTH: usize = 4;

/// The number of a name that the manifests remove.
const GONE: u64 = u64::MAX;

/// Digits of a line's number in its manifest, in bits.
const LINE_BITS: u32 = 32;

/// The files of the manifests. Of each only a key is kept; its line is read again when all are known.
pub(super) struct Files<'a> {
    root: PathBuf,
    /// The probe, if only one is verified.
    only: Option<&'a str>,
    /// By probe.
    manifests: &'a BTreeMap<String, Vec<PathBuf>>,
    /// Where the last line of each file is, or [`GONE`] for those that were removed, or will be by the next start.
    names: Names,
    removed: HashMap<String, u64>,
}

impl<'a> Files<'a> {
    pub(super) fn new(
        root: &Path,
        only: Option<&'a str>,
        manifests: &'a BTreeMap<String, Vec<PathBuf>>,
    ) -> Self {
        let (names, removed) = (Names::default(), HashMap::new());
        Self { root: root.to_owned(), only, manifests, names, removed }
    }

    /// A line of a manifest.
    pub(super) fn take(&mut self, probe: &str, line: &Line, place: Place, gaps: &mut Vec<Gap>) {
        match &line.what {
            What::File(own) if !is_own(own, probe) => {
                if self.names.get(&own.file) == Some(GONE) {
                    self.names.remove(&own.file);
                }
                let text = format!("line {} names a file that is not one of the probe", line.n);
                gaps.push(Gap::new(probe, GapKind::LineDamaged, text).file(&own.file));
            }
            What::File(own) => {
                let before = self.names.insert(&own.file, number(place));
                if before.is_some_and(|before| before != GONE) {
                    let text = "the manifest has it twice";
                    gaps.push(Gap::new(probe, GapKind::FileTwice, text).file(&own.file));
                }
            }
            What::Removed { file } => {
                let before = self.names.insert(file, GONE);
                if before.is_some_and(|before| before != GONE) {
                    *self.removed.entry(probe.to_owned()).or_default() += 1;
                }
            }
            What::Start(_) | What::End(_) => {}
        }
    }

    /// Reads the last line of each file that is listed again. Lines that were written since are passed over.
    fn each(&self, mut found: impl FnMut(&str, FileLine) -> io::Result<()>) -> io::Result<()> {
        for (probe, paths) in self.manifests {
            for (at, path) in paths.iter().enumerate() {
                let mut read = Ok(());
                let lines = each_line(path, |number_in_file, _, line| {
                    let Ok(Line { what: What::File(line), .. }) = line else { return };
                    let is_last = is_own(&line, probe)
                        && self.names.get(&line.file) == Some(number((at, number_in_file)));
                    if is_last && read.is_ok() {
                        read = found(probe, *line);
                    }
                });
                match lines {
                    // Retention has removed it meanwhile, after its files.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    lines => drop(lines?),
                }
                read?;
            }
        }
        Ok(())
    }

    /// Compares the manifests with the folder.
    pub(super) fn check(self, probes: &mut [Probe], gaps: &mut Vec<Gap>) -> io::Result<()> {
        for probe in &mut *probes {
            probe.removed = self.removed.get(&probe.name).copied().unwrap_or(0);
        }
        let (mut cut, mut missing, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        self.each(|name, line| {
            if let Some(probe) = probes.iter_mut().find(|probe| probe.name == *name) {
                probe.files += 1;
                probe.octets = probe.octets.saturating_add(line.octets);
                let records = if line.of == Kind::Flows { line.rows } else { 0 };
                probe.flow_records = probe.flow_records.saturating_add(records);
            }
            if let Some(octets) = line.cut_octets.filter(|octets| *octets > 0) {
                let text = format!("{} bytes at its end were no whole record", count(octets));
                cut.push(gap(name, &line, GapKind::RunEndedEarly, text));
            }
            match self.compare(&line.file, &line)? {
                Found::Same => {}
                Found::Missing => {
                    let text = format!("it is missing: {} {}", count(line.rows), rows(&line));
                    let gap = gap(name, &line, GapKind::FileMissing, text).count(line.rows);
                    missing.push((gap, line.octets, line.sha256));
                }
                Found::Other { why, sha256 } => {
                    let gap = gap(name, &line, GapKind::FileChanged, why).count(line.rows);
                    changed.push((gap, sha256));
                }
            }
            Ok(())
        })?;
        cut.sort_by(|one, other| one.file.cmp(&other.file));
        missing.sort_by(|(one, ..), (other, ..)| one.file.cmp(&other.file));
        changed.sort_by(|(one, _), (other, _)| one.file.cmp(&other.file));
        gaps.extend(cut);
        let lengths = missing.iter().map(|(_, octets, _)| *octets).collect();
        let mut unlisted = self.unlisted(&lengths)?;
        for (mut gap, _, sha256) in missing {
            // A file with its contents and another name.
            let other = unlisted.iter().position(|one| one.2.as_ref() == Some(&sha256));
            if let Some(at) = other {
                gap.text = format!("it was renamed to {}", unlisted.remove(at).0);
                (gap.kind, gap.count) = (GapKind::FileRenamed, None);
            }
            gaps.push(gap);
        }
        let contents = self.contents(changed.iter().map(|(_, sha256)| sha256))?;
        for (mut gap, sha256) in changed {
            if let Some(other) =
                contents.get(&sha256).filter(|other| Some(*other) != gap.file.as_ref())
            {
                gap.text = format!("it has the contents of {other}");
            }
            gaps.push(gap);
        }
        for (file, probe, _) in unlisted {
            let text = "the manifest does not have it";
            gaps.push(Gap::new(&probe, GapKind::FileUnlisted, text).file(file));
        }
        Ok(())
    }

    /// The last file by name that has contents with each of these hashes, by the manifests.
    fn contents<'b>(
        &self,
        hashes: impl Iterator<Item = &'b String>,
    ) -> io::Result<HashMap<String, String>> {
        let hashes: HashSet<_> = hashes.collect();
        let mut contents = HashMap::<String, String>::new();
        if !hashes.is_empty() {
            self.each(|_, line| {
                if hashes.contains(&line.sha256) {
                    let last = contents.entry(line.sha256).or_default();
                    if line.file > *last {
                        *last = line.file;
                    }
                }
                Ok(())
            })?;
        }
        Ok(contents)
    }

    fn compare(&self, file: &str, line: &FileLine) -> io::Result<Found> {
        let path = self.root.join(file);
        match fs::symlink_metadata(&path) {
            // What has another length need not be read.
            Ok(data) if data.is_file() && data.len() != line.octets => {
                let (found, written) = (count(data.len()), count(line.octets));
                return Ok(Found::other(&format!("it has {found} bytes instead of {written}")));
            }
            Ok(data) if data.is_file() => {}
            Ok(_) => return Ok(Found::other("it is not a regular file")),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Missing),
            Err(error) => return Err(error),
        }
        let found = match measure(line.of, &path, line.interval) {
            Ok(found) => found,
            // Removed meanwhile.
            Err(_) if !path.exists() => return Ok(Found::Missing),
            Err(error) => return Ok(Found::other(&format!("it cannot be read: {error}"))),
        };
        let why = if found.sha256 != line.sha256 {
            "its contents were changed".to_owned()
        } else if found.rows != line.rows {
            format!("it has {} {} instead of {}", count(found.rows), rows(line), count(line.rows))
        } else if found.sums != line.sums {
            "the sums of its records are others".to_owned()
        } else {
            return Ok(Found::Same);
        };
        Ok(Found::Other { why, sha256: found.sha256 })
    }

    /// The files that the manifests do not have, with their probe, and their hash if a missing file has their length.
    fn unlisted(
        &self,
        lengths: &HashSet<u64>,
    ) -> io::Result<Vec<(String, String, Option<String>)>> {
        let mut all = Vec::new();
        let is_own = |path: &Path| {
            // A file below the right folder with any name: hidden ones are written.
            let folder = path.components().next().map(|part| part.as_os_str());
            Kind::ALL.into_iter().any(|kind| folder.is_some_and(|folder| folder == kind.folder()))
        };
        walk(&Own { folder: &self.root, depth: DEPTH, is_own: &is_own }, |path, data| {
            let is_part =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            let file = path.to_string_lossy().into_owned();
            if is_part || self.names.get(&file).is_some() {
                return;
            }
            let probe = Layout::parse(&path).map_or("", |(_, probe)| probe);
            if self.only.is_some_and(|only| probe != only) {
                return;
            }
            let hash = lengths.contains(&data.len()).then(|| {
                measure(Kind::Events, &self.root.join(&path), 1).ok().map(|found| found.sha256)
            });
            let hash = hash.flatten();
            all.push((file, probe.to_owned(), hash));
        })?;
        all.sort();
        Ok(all)
    }
}

/// Whether a file is one of a probe, so that no path leads out of the store.
fn is_own(line: &FileLine, probe: &str) -> bool {
    let parsed = Layout::parse(Path::new(&line.file));
    parsed.is_some_and(|(kind, of)| kind == line.of && of == probe)
}

/// A place as a number.
fn number((manifest, line): Place) -> u64 {
    (manifest as u64) << LINE_BITS | line
}

/// A gap of a file.
fn gap(probe: &str, line: &FileLine, kind: GapKind, text: String) -> Gap {
    let gap = Gap::new(probe, kind, text).file(&line.file).interval(extent(line));
    gap.output(line.of.folder())
}

/// How a file is.
enum Found {
    Same,
    Missing,
    Other { why: String, sha256: String },
}

impl Found {
    fn other(why: &str) -> Self {
        Self::Other { why: why.to_owned(), sha256: String::new() }
    }
}

/// What the rows of a file are.
fn rows(line: &FileLine) -> &'static str {
    match (line.of, line.rows) {
        (Kind::Flows, 1) => "flow record",
        (Kind::Flows, _) => "flow records",
        (_, 1) => "line",
        (..) => "lines",
    }
}

/// The begin and the end of a file's records.
fn extent(line: &FileLine) -> Option<[u64; 2]> {
    let starts = line.sums.as_ref().map(Sums::intervals)?;
    let (first, last) = (starts.first_key_value()?.0, starts.last_key_value()?.0);
    Some([*first, last.saturating_add(line.interval)])
}
