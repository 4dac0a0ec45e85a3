//! A load: a stretch of a capture, with the rules that each part of it is judged by.
//!
//! ```text
//! places   │ 0 1 2 3 │ control │ 5 6 7 8 9 │        a control packet in the middle
//! parts    │ rev. 7 ───────────│ rev. 8 ───│        ends with the control packet
//! ```
//!
//! The rules travel with the packets. So a change takes effect at its place, whoever judges a load and whenever. Loads
//! are made once and circulate.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use crate::RuleSet;
use ringtap_io::capture::{Chunk, Files};

use super::control::{Heard, Knock};
use super::judge::{Judge, Judged};
use super::tally::Changes;
use ringtap_engine::Watch;

/// The note at a control packet's place.
const CONTROL: u16 = 1;

#[derive(Default)]
pub(super) struct Load {
    pub(super) chunk: Chunk,
    /// Up to which place, and by which rules.
    pub(super) parts: Vec<(usize, Arc<RuleSet>)>,
    /// What became of each packet.
    pub(super) judged: Vec<Judged>,
}

impl Load {
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

/// Loads that nobody uses at the moment.
#[derive(Clone, Default)]
pub(super) struct Free(Arc<Mutex<Vec<Load>>>);

impl Free {
    pub(super) fn give_back(&self, load: Load) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(load);
    }

    fn take(&self) -> Load {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
}

/// Reads loads, and makes the changes that control packets ask for.
pub(super) struct Reader<'a> {
    pub(super) files: &'a mut Files,
    pub(super) rules: Arc<RuleSet>,
    pub(super) knock: Option<Knock>,
    pub(super) changes: Changes,
    pub(super) free: Free,
    pub(super) watch: &'a Watch,
}

impl Reader<'_> {
    fn cut(&mut self, load: &mut Load) {
        load.parts.clear();
        let Load { chunk, parts, .. } = load;
        let mut places = mem::take(&mut chunk.places);
        if let Some(knock) = &self.knock {
            for (at, place) in places.iter_mut().enumerate() {
                match knock.hear(chunk.data(place)) {
                    Heard::Nothing => {}
                    Heard::Forged => self.changes.forged += 1,
                    Heard::Statements(text) => {
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
    type Item = Load;

    fn next(&mut self) -> Option<Load> {
        let mut load = self.free.take();
        if self.watch.stopped() || self.files.read(&mut load.chunk) == 0 {
            return None;
        }
        self.cut(&mut load);
        self.watch.packets.add(0, load.chunk.places.len() as u64);
        Some(load)
    }
}
