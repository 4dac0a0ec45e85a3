//! Whether a store is whole: from the interface, by the manifest, to the files, and to a copy elsewhere.
//!
//! ```text
//! manifests ─▶ chain: lines ─┬▶ files: length, hash, rows, sums
//!                            ├▶ runs: packets, records, times without data
//!                            └▶ against: sums by interval ◀─ records elsewhere
//! ```

mod against;
mod chain;
mod files;
mod gap;
mod probe;
mod runs;

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::Serialize;

pub use against::Arrived;
pub use gap::{Gap, GapKind};
pub use probe::Probe;

use crate::layout::{Layout, MANIFEST};
use crate::manifest::{Manifests, What, each_line};
use files::Files;
use runs::Runs;

/// What to verify.
#[derive(Clone, Debug)]
pub struct Request {
    /// The store, or one of its manifests.
    pub store: PathBuf,
    /// Where records arrived.
    pub against: Vec<PathBuf>,
    /// Hashes of lines, in hexadecimal digits, that were the last ones of a probe before.
    pub expected: Vec<String>,
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Verified {
    /// By name.
    pub probes: Vec<Probe>,
    /// What arrived elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrived: Option<Arrived>,
    /// In the order of probes and of time.
    pub gaps: Vec<Gap>,
}

/// Verifies a store.
///
/// # Errors
/// It is no store; that of the system; what arrived cannot be read.
pub fn verify(request: &Request) -> io::Result<Verified> {
    let (root, only) = root_of(&fs::canonicalize(&request.store)?)?;
    let mut manifests = Manifests::of(&root)?.0;
    if let Some(only) = &only {
        manifests.retain(|probe, _| probe == only);
    }
    let mut verified = Verified { probes: Vec::new(), arrived: None, gaps: Vec::new() };
    let mut files = Files::new(&root, only.as_deref(), &manifests);
    let mut made = against::Made::default();
    let mut expected: BTreeSet<_> = request.expected.iter().collect();
    for (name, paths) in &manifests {
        let is_running = || is_locked(&root, name);
        // Before and after: a run may end or begin meanwhile.
        let mut running = is_running();
        let mut probe = Probe { name: name.clone(), ..Probe::default() };
        let gaps = &mut verified.gaps;
        let mut runs = Runs::new(name);
        chain::read(name, paths, running, gaps, |line, place, hash, gaps| {
            probe.lines += 1;
            hash.clone_into(&mut probe.head);
            expected.remove(&probe.head);
            let first = probe.times.map_or(line.time, |[first, _]| first);
            probe.times = Some([first, line.time]);
            files.take(name, &line, place, gaps);
            if !request.against.is_empty() {
                made.take(&line);
            }
            runs.take(&line, gaps);
        })?;
        running |= is_running();
        probe.running = running;
        probe.runs = runs.end(running, gaps);
        verified.probes.push(probe);
    }
    verified.gaps.extend(expected.into_iter().map(|hash| {
        let text = format!(
            "no line has the hash {hash}: lines were removed or changed since, also by --keep"
        );
        Gap::new("", GapKind::LineMissing, text)
    }));
    if verified.probes.iter().all(|probe| probe.lines == 0) && verified.gaps.is_empty() {
        let folder = root.join(MANIFEST);
        let text = format!("no line in {}: nothing was written yet", folder.display());
        return Err(io::Error::other(text));
    }
    files.check(&mut verified.probes, &mut verified.gaps)?;
    for probe in verified.probes.iter().filter(|probe| probe.running) {
        leave_changes(&root, &probe.name, &mut verified.gaps)?;
    }
    if !request.against.is_empty() {
        let arrived = against::compare(&made, &request.against, &mut verified.gaps)?;
        verified.arrived = Some(arrived);
    }
    verified.gaps.sort_by(|one, other| one.probe.cmp(&other.probe));
    Ok(verified)
}

/// Leaves out gaps that are none: files that a running process has finished or removed since its manifest was read.
fn leave_changes(root: &Path, probe: &str, gaps: &mut Vec<Gap>) -> io::Result<()> {
    let is_change = |gap: &Gap| {
        gap.probe == probe && matches!(gap.kind, GapKind::FileMissing | GapKind::FileUnlisted)
    };
    let of_change = |gap: &Gap| gap.file.clone().filter(|_| is_change(gap));
    let changes: HashSet<_> = gaps.iter().filter_map(of_change).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let (mut listed, mut removed) = (HashSet::new(), HashSet::new());
    for path in Manifests::of(root)?.0.get(probe).into_iter().flatten() {
        each_line(path, |_, _, line| match line.map(|line| line.what) {
            Ok(What::File(line)) if changes.contains(&line.file) => drop(listed.insert(line.file)),
            Ok(What::Removed { file }) if changes.contains(&file) => drop(removed.insert(file)),
            Ok(_) | Err(_) => {}
        })?;
    }
    gaps.retain(|gap| {
        let Some(file) = gap.file.as_ref().filter(|_| is_change(gap)) else { return true };
        match gap.kind {
            GapKind::FileMissing => !removed.contains(file),
            _ => !listed.contains(file) && !is_new(&root.join(file)),
        }
    });
    Ok(())
}

/// Whether a file got its name a moment ago, so that its line may be written now.
fn is_new(path: &Path) -> bool {
    const MOMENT_S: u64 = 30;
    let now = crate::manifest::seconds_of(crate::clock::now()).cast_signed();
    fs::symlink_metadata(path).is_ok_and(|data| now.abs_diff(data.ctime()) <= MOMENT_S)
}

/// The folder of a store, and the probe if only one of its manifests is given.
fn root_of(path: &Path) -> io::Result<(PathBuf, Option<String>)> {
    let no_store = || {
        io::Error::other(format!(
            "{} is not a store: it has no folder {MANIFEST}; use that of --store",
            path.display()
        ))
    };
    let path = match path.parent() {
        Some(root) if path.is_dir() && path.file_name().is_some_and(|name| name == MANIFEST) => {
            root
        }
        _ => path,
    };
    if path.is_dir() {
        return if path.join(MANIFEST).is_dir() {
            Ok((path.to_owned(), None))
        } else {
            Err(no_store())
        };
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let probe = Manifests::probe(name).ok_or_else(no_store)?;
    let folder =
        path.parent().filter(|folder| folder.file_name().is_some_and(|name| name == MANIFEST));
    let root = folder.and_then(Path::parent).ok_or_else(no_store)?;
    Ok((root.to_owned(), Some(probe.to_owned())))
}

/// Whether a process has the lock of a probe.
fn is_locked(root: &Path, probe: &str) -> bool {
    let Ok(layout) = Layout::new(root, probe, 1) else { return false };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let Ok(file) = File::options().read(true).custom_flags(flags).open(layout.lock()) else {
        return false;
    };
    let is_file = file.metadata().is_ok_and(|data| data.is_file());
    is_file && matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;
    use crate::manifest::{Counts, FileLine, Manifest, Packets, Records, Start};
    use crate::{Kind, create};

    const MOST: u64 = u64::MAX;

    /// A line of a file with the largest numbers.
    fn file(name: &str) -> What {
        What::File(Box::new(FileLine {
            of: Kind::Flows,
            file: format!("flows/2026/11/26/{name}-edge.parquet"),
            rows: MOST,
            octets: MOST,
            sha256: String::new(),
            interval: MOST,
            sums: serde_json::from_str(
                r#"{"intervals":[{"start":18446744073709551615,"rows":18446744073709551615,
                "directions":18446744073709551615,"packets":1,"octets":1,"all":"ffffffffffffffffffffffffffffffff",
                "core":"ffffffffffffffffffffffffffffffff"}]}"#,
            )
            .ok(),
            cut_octets: None,
            so_far: None,
        }))
    }

    #[test]
    fn numbers_of_a_manifest_may_be_any() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        let layout = Layout::new(folder.path(), "edge", 300).unwrap();
        let mut manifest = Manifest::open(&layout).unwrap().manifest;
        let both = || BTreeMap::from(["a", "b"].map(|reason| (reason.to_owned(), MOST)));
        let records = Records { made: MOST, sent: MOST, lost: both() };
        let counts = Counts {
            packets: Packets { received: 0, handled: MOST, dropped: both() },
            clock_steps: MOST,
            outputs: BTreeMap::from([("flows".to_owned(), records)]),
            ..Counts::default()
        };
        let start = Start { live: true, ..Start::default() };
        for what in [What::Start(start), file("1005"), file("1010"), What::End(counts)] {
            manifest.append(what, 1).unwrap();
            manifest.append(What::Removed { file: "x".into() }, 0).unwrap();
        }
        let copy = folder.path().join("copy.json");
        fs::write(&copy, "{}\n").unwrap();
        let request =
            Request { store: folder.path().to_owned(), against: vec![copy], expected: Vec::new() };
        let verified = verify(&request).unwrap();
        let has = |kind| verified.gaps.iter().any(|gap| gap.kind == kind);
        assert!(has(GapKind::FileMissing) && has(GapKind::ArrivedInvalid), "{:?}", verified.gaps);
    }

    #[test]
    fn a_pipe_is_not_waited_for_and_many_damaged_lines_are_few_gaps() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        let lock = folder.path().join(".edge.lock");
        mknodat(CWD, &lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let manifest = folder.path().join("manifest/2026-11-26-edge.jsonl");
        fs::write(&manifest, "x\n".repeat(100_000)).unwrap();
        let request = Request { store: manifest, against: Vec::new(), expected: Vec::new() };
        let verified = verify(&request).unwrap();
        assert_eq!(verified.gaps.len(), 101);
        assert_eq!(verified.gaps[100].count, Some(99_900));
    }

    /// Who may write a manifest can make a chain without its last lines.
    #[test]
    fn a_new_end_of_the_chain_is_found_by_a_hash_kept_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        let layout = Layout::new(folder.path(), "edge", 300).unwrap();
        let check = |expected: &[&str]| {
            let expected = expected.iter().map(|&hash| hash.to_owned()).collect();
            let store = folder.path().to_owned();
            let verified = verify(&Request { store, against: Vec::new(), expected }).unwrap();
            let gaps: Vec<_> = verified.gaps.into_iter().map(|gap| (gap.kind, gap.text)).collect();
            (verified.probes.into_iter().next().unwrap().head, gaps)
        };
        let append = |what| {
            let mut manifest = Manifest::open(&layout).unwrap().manifest;
            manifest.append(what, 1).unwrap();
        };
        let removed = |name: &str| What::Removed { file: name.into() };
        append(removed("a"));
        let (first, _) = check(&[]);
        append(removed("b"));
        let (second, gaps) = check(&[&first]);
        assert_eq!(gaps, []);
        // Further lines are no change.
        append(removed("c"));
        let (third, gaps) = check(&[&first, &second]);
        assert_eq!(gaps, []);
        let path = layout.manifest("1970-01-01");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.split_inclusive('\n').take(2).collect::<String>()).unwrap();
        append(removed("d"));
        assert_eq!(check(&[&first, &second]).1, []);
        let (_, gaps) = check(&[&first, &third]);
        assert!(matches!(&gaps[..], [(GapKind::LineMissing, text)] if text.contains(&third)));
    }

    #[test]
    fn a_store_without_lines_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), None).unwrap().keep();
        let request =
            Request { store: folder.path().to_owned(), against: Vec::new(), expected: Vec::new() };
        let error = verify(&request).unwrap_err().to_string();
        assert!(error.contains("nothing was written yet"), "{error}");
    }
}
