//! A chunk of a capture, with the rules of each part of it.
//!
//! ```text
//! places   │ 0 1 2 3 │ control │ 5 6 7 8 9 │        a control packet in the middle
//! parts    │ rev. 7 ───────────│ rev. 8 ───│        a part ends with a control packet
//! ```
//!
//! The rules travel with the packets. So a change takes effect at its position, independent of the
//! thread and the time at which a chunk is judged. Chunks are allocated once and circulate.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use crate::RuleSet;
use ringtap_io::capture::{Chunk, Files};

use super::control::{ControlAuth, ControlFrame};
use super::counters::Changes;
use super::judge::{Judge, Judged};
use ringtap_engine::Watch;

/// Tag of a control packet's place.
const CONTROL: u16 = 1;

#[derive(Default)]
pub(super) struct JudgedChunk {
    pub(super) chunk: Chunk,
    /// End of each part, and its rules.
    pub(super) parts: Vec<(usize, Arc<RuleSet>)>,
    /// The result for each packet.
    pub(super) judged: Vec<Judged>,
}

impl JudgedChunk {
    /// Judges all packets.
    pub(super) fn judge(&mut self, judge: &mut Judge) {
        let Self { chunk, parts, judged } = self;
        judged.clear();
        judged.reserve(chunk.places.len());
        let mut start = 0;
        for (end, rules) in parts {
            judged.extend(chunk.places[start..*end].iter().map(|place| {
                if place.tag == CONTROL {
                    return Judged::Control;
                }
                judge.judge(rules, place.link, chunk.data(place), place.original_len)
            }));
            start = *end;
        }
    }
}

/// Unused chunks.
#[derive(Clone, Default)]
pub(super) struct Free(Arc<Mutex<Vec<JudgedChunk>>>);

impl Free {
    pub(super) fn give_back(&self, load: JudgedChunk) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(load);
    }

    fn take(&self) -> JudgedChunk {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
}

/// Reads chunks, and executes the changes in control packets.
pub(super) struct Reader<'a> {
    pub(super) files: &'a mut Files,
    pub(super) rules: Arc<RuleSet>,
    pub(super) auth: Option<ControlAuth>,
    pub(super) changes: Changes,
    pub(super) free: Free,
    pub(super) watch: &'a Watch,
    /// Whether a stop ended the reading.
    pub(super) interrupted: bool,
}

impl Reader<'_> {
    fn cut(&mut self, load: &mut JudgedChunk) {
        load.parts.clear();
        let JudgedChunk { chunk, parts, .. } = load;
        let mut places = mem::take(&mut chunk.places);
        if let Some(auth) = &self.auth {
            for (at, place) in places.iter_mut().enumerate() {
                match auth.check(chunk.data(place)) {
                    ControlFrame::No => {}
                    ControlFrame::Forged => self.changes.forged += 1,
                    ControlFrame::Statements(text) => {
                        place.tag = CONTROL;
                        let next = self.rules.transact(text);
                        if let Some(next) = self.changes.note(next) {
                            parts.push((at + 1, mem::replace(&mut self.rules, Arc::new(next))));
                        }
                    }
                }
            }
        }
        parts.push((places.len(), Arc::clone(&self.rules)));
        chunk.places = places;
    }
}

impl Iterator for Reader<'_> {
    type Item = JudgedChunk;

    fn next(&mut self) -> Option<JudgedChunk> {
        let mut load = self.free.take();
        if self.watch.stopped() || self.files.read(&mut load.chunk) == 0 {
            self.interrupted = self.watch.stopped();
            return None;
        }
        self.cut(&mut load);
        self.watch.packets.add(0, load.chunk.places.len() as u64);
        Some(load)
    }
}
