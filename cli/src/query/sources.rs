//! The files of a question.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ringtap_query::Source;
use ringtap_store::arrived::column_names;
use ringtap_store::{Found, Kind};

type Window = [Option<i64>; 2];

/// Finds the files: of stores those of the time, and all others that were named.
pub(super) fn find(
    paths: &[PathBuf],
    probe: Option<&str>,
    window: Window,
    window_before: Option<Window>,
    needs_lines: bool,
) -> anyhow::Result<Source> {
    let mut source = Source::default();
    let (mut flows, mut before) = (Vec::new(), Vec::new());
    for path in paths {
        let about =
            std::fs::metadata(path).with_context(|| format!("opening {}", path.display()))?;
        if !about.is_dir() {
            let found = Found { path: path.clone(), run: None };
            before.extend(window_before.map(|_| found.clone()));
            flows.push(found);
            continue;
        }
        if !Kind::ALL.iter().any(|kind| path.join(kind.folder()).is_dir()) {
            bail!("{} is no store: it has no folder flows", path.display());
        }
        let find = |kind, window: Window| {
            ringtap_store::find(path, kind, probe, seconds(window))
                .with_context(|| format!("reading the store {}", path.display()))
        };
        flows.extend(find(Kind::Flows, window)?);
        if let Some(window) = window_before {
            before.extend(find(Kind::Flows, window)?);
        }
        if needs_lines {
            let paths = |kind| anyhow::Ok(find(kind, window)?.into_iter().map(|found| found.path));
            source.events.extend(paths(Kind::Events)?);
            source.alerts.extend(paths(Kind::Alerts)?);
            source.totals.extend(paths(Kind::Totals)?);
        }
    }
    source.flows = grouped(flows)?;
    source.flows_before = grouped(before)?;
    Ok(source)
}

/// The first and the last file of flow records in each of these paths that is a store.
pub(super) fn ends(
    paths: &[PathBuf],
    probe: Option<&str>,
) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    let mut ends = Vec::new();
    for store in paths.iter().filter(|path| path.is_dir()) {
        let found = ringtap_store::find(store, Kind::Flows, probe, [0, u64::MAX])
            .with_context(|| format!("reading the store {}", store.display()))?;
        if let (Some(first), Some(last)) = (found.first(), found.last()) {
            ends.push((first.path.clone(), last.path.clone()));
        }
    }
    Ok(ends)
}

/// The first and the last second.
fn seconds([from, to]: Window) -> [u64; 2] {
    let second = |ms: i64| ms.max(0).cast_unsigned() / 1_000;
    [from.map_or(0, second), to.map_or(u64::MAX, second)]
}

/// Files with the same columns together. One file of a run is looked into for all of it.
fn grouped(found: Vec<Found>) -> anyhow::Result<Vec<(Vec<PathBuf>, Vec<String>)>> {
    let mut groups = BTreeMap::<Vec<String>, Vec<PathBuf>>::new();
    let mut runs = BTreeMap::<(String, u64), Vec<String>>::new();
    let names =
        |path: &Path| column_names(path).with_context(|| format!("reading {}", path.display()));
    for Found { path, run } in found {
        let columns = match run {
            None => names(&path)?,
            Some(run) => match runs.get(&run) {
                Some(known) => known.clone(),
                None => {
                    let columns = names(&path)?;
                    runs.insert(run, columns.clone());
                    columns
                }
            },
        };
        groups.entry(columns).or_default().push(path);
    }
    Ok(groups.into_iter().map(|(columns, files)| (files, columns)).collect())
}
