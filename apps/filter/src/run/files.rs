//! The filter over captures: passed packets to one file, others to another, in the order of the
//! input.
//!
//! ```text
//! reference   read ─▶ judge ─▶ write                          one thread
//! farm        read ═▶ judge × n ═▶ write in order             a chunk carries its rules
//! ```
//!
//! Invariant: both write the same bytes and count the same.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::RuleSet;
use ringtap_base::Usage;
use ringtap_io::capture::Files;
use ringtap_skeleton::Skeleton;
use ringtap_skeleton::stream::{Options, Policy, Stream};
use ringtap_wire::LinkType;
use sha2::{Digest, Sha256};

use super::control::ControlAuth;
use super::counters::{Changes, PacketCounters};
use super::judge::Judge;
use super::load::{Free, JudgedChunk, Reader};
use super::report::{FilterPlan, FilterReport, Handed};
use super::sink::{FilterError, Sink};
use ringtap_engine::Watch;

/// Destinations of frames, if any.
#[derive(Default)]
pub struct Outputs {
    /// For passed packets.
    pub passed: Option<Box<dyn Write + Send>>,
    /// For dropped packets.
    pub drops: Option<Box<dyn Write + Send>>,
}

/// Inputs of a run over captures.
pub struct FilterFiles {
    /// The captures.
    pub files: Files,
    /// The initial rules.
    pub rules: RuleSet,
    /// The authentication of control packets, if they are used.
    pub auth: Option<ControlAuth>,
    /// Destinations of frames.
    pub outputs: Outputs,
}

/// Runs the plan over captures.
pub fn filter_files(
    plan: FilterPlan,
    given: FilterFiles,
    watch: &Watch,
) -> Result<FilterReport, FilterError> {
    let before = Usage::now();
    let FilterFiles { mut files, rules, auth, outputs } = given;
    let (rules, free) = (Arc::new(rules), Free::default());
    let mut writer = Writer {
        passed: outputs.passed.map(|out| Sink::new(out, "what passed")),
        drops: outputs.drops.map(|out| Sink::new(out, "the drops")),
        counters: PacketCounters::new(Arc::clone(&rules)),
        link: None,
        other_link: 0,
        digest: plan.digest.then(Sha256::new),
        failure: None,
    };
    let changes = Changes::default();
    let mut reader = Reader {
        files: &mut files,
        rules,
        auth,
        changes,
        free: free.clone(),
        watch,
        interrupted: false,
    };
    if plan.skeleton == Skeleton::Reference {
        let mut judge = Judge::new(plan.not_ip);
        for mut load in reader.by_ref() {
            load.judge(&mut judge);
            if !writer.take(&load) {
                break;
            }
            free.give_back(load);
        }
    } else {
        let judge = |_worker| {
            let mut judge = Judge::new(plan.not_ip);
            move |mut load: JudgedChunk| {
                load.judge(&mut judge);
                load
            }
        };
        let options = Options { capacity: LOADS, batch: 1, ..Options::default() };
        Stream::from_iter(&mut reader)
            .farm_ordered(plan.workers, Policy::OnDemand, judge)
            .for_each(|load| {
                let well = writer.take(&load);
                free.give_back(load);
                if well { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .run(&options)?;
    }
    let (changes, interrupted) = (reader.changes, reader.interrupted);
    writer.close()?;
    let handed = Handed {
        written: writer.counters.passed() - writer.other_link,
        lost: [("other_link_type", writer.other_link)].into(),
    };
    let mut report = FilterReport::new(plan, &writer.counters, changes, handed, &before);
    report.interrupted = interrupted;
    report.add_source(files.damaged(), files.take_notices());
    report.verdicts_sha256 = writer
        .digest
        .map(|digest| digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
    Ok(report)
}

/// Chunks in flight to a judge, and from it.
const LOADS: usize = 4;

/// Writes passed and dropped packets, and counts.
struct Writer {
    passed: Option<Sink>,
    drops: Option<Sink>,
    counters: PacketCounters,
    /// Of the first packet: a capture of the classic format has only one.
    link: Option<LinkType>,
    /// Passed packets of another link type.
    other_link: u64,
    digest: Option<Sha256>,
    failure: Option<FilterError>,
}

impl Writer {
    /// Returns whether to continue.
    fn take(&mut self, load: &JudgedChunk) -> bool {
        let written = self.write(load);
        self.failure = written.err();
        self.failure.is_none()
    }

    fn write(&mut self, load: &JudgedChunk) -> Result<(), FilterError> {
        let Self { passed, drops, counters, link, other_link, digest, .. } = self;
        if let Some(digest) = digest {
            let verdicts: Vec<u8> = load.judged.iter().map(|one| u8::from(one.passed())).collect();
            digest.update(verdicts);
        }
        let mut start = 0;
        for (end, rules) in &load.parts {
            counters.change(rules);
            for (place, judged) in load.chunk.places[start..*end].iter().zip(&load.judged[start..])
            {
                counters.count(judged, place.original_len);
                let link = *link.get_or_insert(place.link);
                let sink = if judged.passed() { &mut *passed } else { &mut *drops };
                if place.link != link && sink.is_some() {
                    let lost = if judged.passed() {
                        &mut *other_link
                    } else {
                        &mut counters.drops_not_written
                    };
                    *lost += 1;
                } else if let Some(sink) = sink {
                    sink.write(link, place.ts_ns, place.original_len, load.chunk.data(place))?;
                }
            }
            start = *end;
        }
        Ok(())
    }

    /// Flushes; also writes the header of a file without packets.
    fn close(&mut self) -> Result<(), FilterError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let link = self.link.unwrap_or(LinkType::ETHERNET);
        let sinks = self.passed.iter_mut().chain(&mut self.drops);
        sinks.into_iter().try_for_each(|sink| sink.close(link))
    }
}
