//! The files of a store: whether they are there, and as they were written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use ringtap_export::sums::Sums;
use ringtap_program::retention::{Own, walk};
use ringtap_terminal::numbers::count;

use super::gap::{Gap, GapKind};
use super::probe::Probe;
use crate::layout::{Kind, Layout};
use crate::manifest::{FileLine, Line, What};
use crate::measure::measure;

/// Folders below that of a store in which files are.
const DEPTH: usize = 4;

/// The files of the manifests.
pub(super) struct Files {
    root: PathBuf,
    /// The probe, if only one is verified.
    only: Option<String>,
    /// By path, with the probe.
    listed: BTreeMap<String, (String, FileLine)>,
    removed: HashMap<String, u64>,
    /// Files that were removed, or will be by the next start.
    gone: HashSet<String>,
}

impl Files {
    pub(super) fn new(root: &Path, only: Option<&str>) -> Self {
        Self {
            root: root.to_owned(),
            only: only.map(str::to_owned),
            listed: BTreeMap::new(),
            removed: HashMap::new(),
            gone: HashSet::new(),
        }
    }

    /// A line of a manifest.
    pub(super) fn take(&mut self, probe: &str, line: &Line, gaps: &mut Vec<Gap>) {
        match &line.what {
            What::File(own) => {
                self.gone.remove(&own.file);
                // So that no path leads out of the store.
                let is_own = Layout::parse(Path::new(&own.file))
                    .is_some_and(|(kind, of)| kind == own.of && of == probe);
                if !is_own {
                    let text = format!("line {} names a file that is not one of the probe", line.n);
                    gaps.push(Gap::new(probe, GapKind::LineDamaged, text).file(&own.file));
                } else if self
                    .listed
                    .insert(
                        own.file.clone(),
                        (probe.to_owned(), FileLine { so_far: None, ..(**own).clone() }),
                    )
                    .is_some()
                {
                    let text = "the manifest has it twice";
                    gaps.push(Gap::new(probe, GapKind::FileTwice, text).file(&own.file));
                }
            }
            What::Removed { file } => {
                self.gone.insert(file.clone());
                if self.listed.remove(file).is_some() {
                    *self.removed.entry(probe.to_owned()).or_default() += 1;
                }
            }
            What::Start(_) | What::End(_) => {}
        }
    }

    /// Compares the manifests with the folder.
    pub(super) fn check(mut self, probes: &mut [Probe], gaps: &mut Vec<Gap>) -> io::Result<()> {
        for probe in &mut *probes {
            probe.removed = self.removed.get(&probe.name).copied().unwrap_or(0);
        }
        let (mut missing, mut changed) = (Vec::new(), Vec::new());
        let listed = std::mem::take(&mut self.listed);
        for (file, (name, line)) in &listed {
            if let Some(probe) = probes.iter_mut().find(|probe| probe.name == *name) {
                probe.files += 1;
                probe.octets = probe.octets.saturating_add(line.octets);
                let records = if line.of == Kind::Flows { line.rows } else { 0 };
                probe.flow_records = probe.flow_records.saturating_add(records);
            }
            if let Some(cut) = line.cut_octets.filter(|cut| *cut > 0) {
                let text = format!("{} bytes at its end were no whole record", count(cut));
                let gap = Gap::new(name, GapKind::RunEndedEarly, text).file(file);
                gaps.push(gap.interval(extent(line)).output(line.of.folder()));
            }
            match self.compare(file, line)? {
                Found::Same => {}
                Found::Missing => missing.push((file, name, line)),
                Found::Other { why, sha256 } => changed.push((file, name, line, why, sha256)),
            }
        }
        let lengths = missing.iter().map(|(_, _, line)| line.octets).collect();
        let mut unlisted = self.unlisted(&listed, &lengths)?;
        for (file, name, line) in missing {
            // A file with its contents and another name.
            let other = unlisted.iter().position(|one| one.2.as_ref() == Some(&line.sha256));
            let gap = match other {
                Some(at) => {
                    let text = format!("it was renamed to {}", unlisted.remove(at).0);
                    Gap::new(name, GapKind::FileRenamed, text)
                }
                None => {
                    let text = format!("it is missing: {} {}", count(line.rows), rows(line));
                    Gap::new(name, GapKind::FileMissing, text).count(line.rows)
                }
            };
            gaps.push(gap.file(file).interval(extent(line)).output(line.of.folder()));
        }
        let contents: HashMap<_, _> =
            listed.iter().map(|(file, (_, line))| (&line.sha256, file)).collect();
        for (file, name, line, why, sha256) in changed {
            let text = match contents.get(&sha256) {
                Some(other) if *other != file => format!("it has the contents of {other}"),
                _ => why,
            };
            let gap = Gap::new(name, GapKind::FileChanged, text).file(file);
            gaps.push(gap.interval(extent(line)).output(line.of.folder()).count(line.rows));
        }
        for (file, probe, _) in unlisted {
            let text = "the manifest does not have it";
            gaps.push(Gap::new(&probe, GapKind::FileUnlisted, text).file(file));
        }
        Ok(())
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
        listed: &BTreeMap<String, (String, FileLine)>,
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
            if is_part || listed.contains_key(&file) || self.gone.contains(&file) {
                return;
            }
            let probe = Layout::parse(&path).map_or("", |(_, probe)| probe);
            if self.only.as_ref().is_some_and(|only| probe != only) {
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
