//! The files of a store that may have records of a time, so that others are not opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ringtap_base::civil;

use crate::layout::{Kind, Layout};
use crate::manifest::{Manifests, What, each_line};

const DAY: u64 = 86_400;

/// A file that may have records of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its path.
    pub path: PathBuf,
    /// The run that wrote it: its probe, and the number of its first line in the manifest; `None` if no manifest has the file. Files of a run have
    /// the same columns.
    pub run: Option<(String, u64)>,
}

/// Finds files of a kind, in the order of their names. `window` has the first and the last second since 1970.
///
/// A record is in a file of the time at which it was made: not before its last packet, and at most a day after it. Where a
/// manifest says in which intervals the flows of a file end, that decides.
///
/// # Errors
/// A folder or a manifest cannot be read.
pub fn find(
    root: &Path,
    kind: Kind,
    probe: Option<&str>,
    [first, last]: [u64; 2],
) -> io::Result<Vec<Found>> {
    let days = [(first / DAY).saturating_sub(1), (last / DAY).saturating_add(1)];
    let mut found = Vec::new();
    let folder = root.join(kind.folder());
    for year in numbers(&folder)? {
        for month in numbers(&folder.join(&year))? {
            for day in numbers(&folder.join(&year).join(&month))? {
                let (name, [begin, end]) = (format!("{year}-{month}-{day}"), days.map(date));
                if name < begin || name > end {
                    continue;
                }
                let path = folder.join(&year).join(&month).join(&day);
                for entry in fs::read_dir(path)? {
                    let path = entry?.path();
                    let own = path.strip_prefix(root).ok().and_then(Layout::parse);
                    if own.is_some_and(|(own, name)| {
                        own == kind && probe.is_none_or(|probe| probe == name)
                    }) {
                        found.push(path);
                    }
                }
            }
        }
    }
    found.sort();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let listed = listed(root, kind, probe, days)?;
    let found = found.into_iter().filter_map(|path| {
        let name = path.strip_prefix(root).ok()?.to_str()?;
        match listed.get(name) {
            None => Some(Found { path, run: None }),
            Some((_, Some([begin, end]))) if *end <= first || *begin > last => None,
            Some((run, _)) => Some(Found { run: Some(run.clone()), path }),
        }
    });
    Ok(found.collect())
}

/// Files by path in the store: the run that wrote them, and when their flows end.
type Listed = BTreeMap<String, ((String, u64), Option<[u64; 2]>)>;

/// What the manifests say. Files that were imported are in manifests of other days; all are read if few are there.
fn listed(
    root: &Path,
    kind: Kind,
    probe: Option<&str>,
    [begin, end]: [u64; 2],
) -> io::Result<Listed> {
    let mut listed = Listed::new();
    let manifests = match Manifests::of(root) {
        Ok(manifests) => manifests.0,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
        Err(error) => return Err(error),
    };
    for (name, paths) in manifests {
        if probe.is_some_and(|probe| probe != name) {
            continue;
        }
        let of_day = |path: &Path, day: u64| {
            path.file_name().is_some_and(|own| own.to_string_lossy().as_ref() >= &*date(day))
        };
        // A file is listed when it is complete, at most a day later.
        let (from, to) = (
            paths.partition_point(|path| !of_day(path, begin)),
            paths.partition_point(|path| !of_day(path, end.saturating_add(2))),
        );
        let chosen = if paths.len() <= FEW { &paths[..] } else { &paths[from..to] };
        let mut run = (name, 0);
        for path in chosen {
            each_line(path, |_, _, line| {
                let Ok(line) = line else { return };
                match line.what {
                    What::Start(_) => run.1 = line.n,
                    What::File(file) if file.of == kind => {
                        let interval = file.interval;
                        let times = file.sums.as_ref().and_then(|sums| sums.span(interval));
                        listed.insert(file.file, (run.clone(), times));
                    }
                    _ => {}
                }
            })?;
        }
    }
    Ok(listed)
}

/// Manifests that are all read.
const FEW: usize = 8;

/// Folders whose names are numbers, in order; none if there is no such folder.
fn numbers(folder: &Path) -> io::Result<BTreeSet<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let mut all = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        all.extend(
            name.to_str()
                .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
                .map(str::to_owned),
        );
    }
    Ok(all)
}

/// The date of a day since 1970, at most in the year 9999.
fn date(day: u64) -> String {
    let (year, month, day) = civil(day.min(2_932_896));
    format!("{year:04}-{month:02}-{day:02}")
}
