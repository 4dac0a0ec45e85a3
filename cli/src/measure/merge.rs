//! `ringtap merge`: merges the measurements of several machines.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use ringtap_engine::Watch;
use ringtap_measure::Image;
use ringtap_measure::run::merge;

use super::{text, write};
use crate::args::{MergeArgs, ReportForm};
use ringtap_terminal::console;

use crate::source;
use ringtap_program::atomic_file::Existing;
use ringtap_program::roles::Roles;
use ringtap_program::sandbox;

/// The largest measurement file, in bytes.
const MOST_BYTES: u64 = 4 << 30;

pub(crate) fn run(args: &MergeArgs, watch: &'static Watch) -> anyhow::Result<ExitCode> {
    let existing = Existing::of(args.force, false);
    let mut roles = Roles::default();
    roles
        .reads("the input", &args.files)
        .writes("--write", args.write.iter().map(|file| &file.path));
    roles.check(existing)?;
    sandbox::enter(args.write.iter().map(|file| file.path.as_path()), false)?;
    let claimed = write::claim(&args.write, existing)?;
    let mut images =
        args.files.iter().map(|path| read(path, watch)).collect::<anyhow::Result<Vec<_>>>()?;
    if args.threshold.is_some() || args.top.is_some() {
        let listing = |image: Image| image.listing(args.threshold, args.top);
        images = images.into_iter().map(listing).collect();
    }
    let merged = merge(&images).context("merging")?;
    console::print_plain(&match args.report.unwrap_or(ReportForm::Text) {
        ReportForm::Text => text::merged(&merged, images.len()),
        ReportForm::Html => unreachable!("refused before"),
        ReportForm::Json => merged.to_json(env!("CARGO_PKG_VERSION"))? + "\n",
    })?;
    write::write(&args.write, claimed, &merged)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a measurement.
fn read(path: &Path, watch: &'static Watch) -> anyhow::Result<Image> {
    let doing = || format!("reading {}", path.display());
    let mut bytes = Vec::new();
    source::open(path, watch)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .with_context(doing)?;
    if bytes.len() as u64 > MOST_BYTES {
        bail!("{}: not a measurement: the file exceeds 4 GiB", path.display());
    }
    Image::read(&bytes).with_context(doing)
}
