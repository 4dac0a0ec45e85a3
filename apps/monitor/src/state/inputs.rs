//! States that are merged: opened, checked against each other, and merged row by row.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use ringtap_engine::Plan;
use ringtap_state::{Reader, Row, Schema, Writer, merge};

use super::counts::{Counts, Earlier};
use super::header::{Header, MergeError, RunEnd, Span};
use super::image::{image, known_tables};
use super::live::{Live, is_live};
use super::saved::SavedParts;
use super::tables::SUMS;
use crate::options::Options;

/// States with the same settings, of different parts of runs.
pub(super) struct Inputs<R> {
    pub(super) header: Header,
    pub(super) tables: Vec<&'static Schema>,
    images: Vec<Reader<R>>,
    /// For each image the names of its probes.
    probes: Vec<String>,
    /// For each image the runs of which another has a later part, sorted: their live flows are taken from that one.
    superseded: Vec<Vec<u64>>,
}

impl<R: Read> Inputs<R> {
    /// Opens states, and merges their headers.
    pub(super) fn open(inputs: Vec<R>) -> Result<Self, MergeError> {
        let known = known_tables();
        let mut merged: Option<Header> = None;
        let (mut images, mut headers) = (Vec::new(), Vec::new());
        let mut probes = Vec::new();
        for (number, input) in inputs.into_iter().enumerate() {
            let opened = Self::image(input, &known).map_err(|error| error.of(number))?;
            let (image, header) = opened;
            probes.push(header.probes());
            let joined = match &mut merged {
                Some(merged) => merged.merge(&header),
                none => {
                    *none = Some(header.clone());
                    Ok(())
                }
            };
            joined.map_err(|error| with_probe(error.of(number), &probes))?;
            images.push(image);
            headers.push(header);
        }
        let header = merged.ok_or(MergeError::Damaged("there is none"))?;
        let superseded = headers.iter().map(|own| own.superseded(&header)).collect();
        Ok(Self { tables: header.settings.tables()?, header, images, probes, superseded })
    }

    /// Opens a state.
    fn image(input: R, known: &[&'static Schema]) -> Result<(Reader<R>, Header), MergeError> {
        let image = Reader::open(input, known)?;
        let header = Header::read(image.header())?;
        if header.settings.tables().ok().as_deref() != Some(image.tables()) {
            return Err(MergeError::Damaged("its tables are not those of its analyses"));
        }
        Ok((image, header))
    }

    /// Calls `each` with the rows of a table, merged.
    pub(super) fn merge(
        &mut self,
        at: usize,
        mut each: impl FnMut(&Row<'_>) -> Result<(), MergeError>,
    ) -> Result<(), MergeError> {
        let Self { images, superseded, probes, .. } = self;
        let is_live = is_live(self.tables[at]);
        let merged = merge(images, at, |image, row| {
            let of = |error: MergeError| error.of(image);
            if is_live {
                let run = Live::run_of(row).ok_or(MergeError::Damaged("a row is impossible"));
                if superseded[image].binary_search(&run.map_err(of)?).is_ok() {
                    return Ok(());
                }
            }
            each(row).map_err(of)
        });
        merged.map_err(|error| with_probe(error, probes))
    }

    fn write<W: Write>(mut self, out: W) -> Result<(Header, W), MergeError> {
        let text =
            serde_json::to_vec(&self.header).map_err(|_| MergeError::Damaged("its header"))?;
        let mut writer = Writer::new(out, &text, self.tables.iter().copied())?;
        for at in 0..self.tables.len() {
            self.merge(at, |row| Ok(writer.push(row)?))?;
            writer.end_table()?;
        }
        Ok((self.header, writer.finish()?))
    }
}

/// An error with the names of the probes of its state.
fn with_probe(error: MergeError, probes: &[String]) -> MergeError {
    match error {
        MergeError::Input { input, error, .. } => MergeError::Input {
            input,
            probe: probes.get(input).cloned().unwrap_or_default(),
            error,
        },
        other => other,
    }
}

/// Merges states to one, without loading them. Returns its header.
///
/// # Errors
/// If a state is damaged or does not belong to the others, or if reading or writing fails.
pub fn merge_states<R: Read, W: Write>(inputs: Vec<R>, out: W) -> Result<Header, MergeError> {
    Ok(Inputs::open(inputs)?.write(out)?.0)
}

/// Writes the last state of a run.
///
/// # Errors
/// If the run has none, or writing fails.
pub(crate) fn write_state<W: Write>(
    plan: &Plan<Options>,
    saved: &SavedParts,
    counts: &Counts,
    lacks: BTreeMap<&'static str, u64>,
    end: RunEnd,
    earlier: &mut Earlier,
    out: W,
) -> Result<W, MergeError> {
    let &SavedParts { part, from_ns, until_ns, .. } = saved;
    let span = Span { first: part, last: part, from_ns, until_ns };
    let header = Header::of(plan, span, Some(end), until_ns, earlier.lacks(lacks))?;
    let image = |image: &Result<Vec<u8>, String>| {
        image.clone().map_err(|_| MergeError::Damaged("a row is too long"))
    };
    let images: Vec<Vec<u8>> = saved.images.iter().map(image).collect::<Result<_, _>>()?;
    write_images(header, &images, &earlier.sums(counts), out)
}

/// Writes a state: the images of workers, and further sums.
pub(super) fn write_images<W: Write>(
    header: Header,
    images: &[Vec<u8>],
    sums: &BTreeMap<String, u64>,
    out: W,
) -> Result<W, MergeError> {
    let tables = header.settings.tables()?;
    let own = image(&[], &tables, |table, rows| {
        if *table == SUMS {
            sums.iter().for_each(|(name, &sum)| rows.push(&[], &[sum], name.as_bytes()));
        }
    })?;
    let all = std::iter::once(&own).chain(images);
    let images: Vec<_> =
        all.map(|image| Reader::open(&image[..], &tables)).collect::<Result<_, _>>()?;
    let superseded = vec![Vec::new(); images.len()];
    let probes = Vec::new();
    Ok(Inputs { header, tables, images, probes, superseded }.write(out)?.1)
}
