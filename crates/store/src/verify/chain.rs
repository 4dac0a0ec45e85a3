//! The chain of a probe's manifests: each line has the number and the hash of the one before.

use std::io;
use std::path::PathBuf;

use ringtap_terminal::numbers::count;

use super::gap::{Gap, GapKind};
use crate::manifest::{Line, What, each_line, hash};

/// Most lines of a file that cannot be read and are gaps of their own.
const MOST_DAMAGED: u64 = 100;

/// Where a line is: the number of its manifest among those of a probe, and its number there.
pub(super) type Place = (usize, u64);

/// Reads the lines of a probe in order, and adds gaps of the chain. `found` gets each line that can be read, with its
/// place and its hash. `running`: a process may be writing the last line.
pub(super) fn read(
    probe: &str,
    paths: &[PathBuf],
    running: bool,
    gaps: &mut Vec<Gap>,
    mut found: impl FnMut(Line, Place, &str, &mut Vec<Gap>),
) -> io::Result<()> {
    let mut last: Option<(u64, String)> = None;
    let mut removed_manifests = false;
    // The number of the first line, if it is not 1.
    let mut begins_at = None;
    for (at, path) in paths.iter().enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut damaged = 0;
        let torn = each_line(path, |number, text, line| {
            let line = match line {
                Ok(line) => line,
                Err(why) => {
                    damaged += 1;
                    if damaged > MOST_DAMAGED {
                        return;
                    }
                    let text = format!("line {number} cannot be read: {why}");
                    gaps.push(Gap::new(probe, GapKind::LineDamaged, text).file(&name));
                    return;
                }
            };
            let own = hash(text);
            match &last {
                None if line.n > 1 => begins_at = Some((line.n, name.clone())),
                None => {}
                Some((n, _)) if line.n != n.saturating_add(1) => {
                    let (from, until) = (n.saturating_add(1), line.n);
                    let (text, missing) = match until.checked_sub(from) {
                        Some(1) => (format!("line {from} of the manifest is missing"), 1),
                        Some(missing) => {
                            let last = until - 1;
                            (format!("lines {from} to {last} of the manifest are missing"), missing)
                        }
                        None => (format!("line {until} of the manifest is not in its place"), 1),
                    };
                    let gap = Gap::new(probe, GapKind::LineMissing, text);
                    gaps.push(gap.file(&name).count(missing));
                }
                Some((n, before)) if *before != line.before => {
                    let text = format!("line {n} of the manifest was changed, or line {}", line.n);
                    gaps.push(Gap::new(probe, GapKind::LineChanged, text).file(&name).count(1));
                }
                Some(_) => {}
            }
            removed_manifests |=
                matches!(&line.what, What::Removed { file } if file.ends_with(".jsonl"));
            last = Some((line.n, own.clone()));
            found(line, (at, number), &own, gaps);
        })?;
        if let Some(more) = u64::checked_sub(damaged, MOST_DAMAGED + 1) {
            let text = format!("{} more lines cannot be read", count(more + 1));
            gaps.push(Gap::new(probe, GapKind::LineDamaged, text).file(&name).count(more + 1));
        }
        if torn && !running {
            let text = "the last line is torn";
            gaps.push(Gap::new(probe, GapKind::LineDamaged, text).file(&name));
        }
    }
    if let (Some((n, name)), false) = (begins_at, removed_manifests) {
        let text = format!("lines 1 to {} of the manifest are missing", n - 1);
        gaps.push(Gap::new(probe, GapKind::LineMissing, text).file(name).count(n - 1));
    }
    Ok(())
}
