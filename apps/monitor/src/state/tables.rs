//! The tables of a state that belong to no analysis: volumes, conversations, sums, live flows.

use ringtap_flow::{FactCounts, FlowKey, Kind};
use ringtap_state::{Op, Row, Rows, Schema};

use super::counts::Counts;
use super::live::ends;
use crate::analyses::volumes::{INTERVALS, PROTOCOLS};
use crate::counts::FlowCounts;
use crate::digest::RecordDigest;

/// Sums by name.
pub(crate) static SUMS: Schema = Schema::new("sums", 0, &[Op::Add]);

/// Bytes of both ends and the protocol.
const ENDS: usize = 38;
/// TCP and UDP conversations: both ends, the interval.
pub(crate) static CONVERSATIONS: Schema = Schema::new("conversations", ENDS + 8, &[]);

/// The tables before those of the analyses. An interval is made by its protocols and conversations, and gets its times
/// from the last.
pub(super) static FIRST: [&Schema; 4] = [&SUMS, &CONVERSATIONS, &PROTOCOLS, &INTERVALS];

/// Memory of a flow for a state: its conversation, in a list that doubles.
pub(crate) const STATE_FLOW_BYTES: u64 = 2 * size_of::<Key>() as u64;

/// The loss of conversations.
pub(crate) const CONVERSATIONS_LOST: &str = "conversations without room in the state";

/// Most bytes of a name in [`SUMS`], and most names.
const MOST_NAME: usize = 256;
const MOST_NAMES: usize = 4096;

/// A conversation in an interval, as a key of [`CONVERSATIONS`].
type Key = [u8; ENDS + 8];

/// The key of a conversation.
pub(crate) fn conversation_key(key: &FlowKey, interval: u64) -> Key {
    let mut out = [0; ENDS + 8];
    out[..ENDS].copy_from_slice(&ends(key).0);
    out[ENDS..].copy_from_slice(&interval.to_be_bytes());
    out
}

/// The conversations of a worker.
pub(super) struct Conversed {
    all: Vec<Key>,
    /// With this number of keys, equal ones become one.
    full: usize,
    most: usize,
    pub(super) lost: u64,
}

impl Conversed {
    /// Room for `most` keys.
    pub(super) fn new(most: usize) -> Self {
        Self { all: Vec::new(), full: most.min(1024), most, lost: 0 }
    }

    pub(super) fn add(&mut self, key: &FlowKey, interval: u64) {
        if self.all.len() == self.full {
            self.settle();
        }
        if self.all.len() < self.most {
            self.all.push(conversation_key(key, interval));
        } else {
            self.lost += 1;
        }
    }

    #[cold]
    fn settle(&mut self) {
        self.all.sort_unstable();
        self.all.dedup();
        // Almost full of different keys: no more sorting.
        let is_full = self.all.len() > self.most / 4 * 3;
        self.full =
            if is_full { usize::MAX } else { (2 * self.all.len()).max(1024).min(self.most) };
    }

    /// Drops all, except the number of those without room.
    pub(super) fn clear(&mut self) {
        (self.all, self.full) = (Vec::new(), self.most.min(1024));
    }

    pub(super) fn save(&self, rows: &mut Rows) {
        self.all.iter().for_each(|key| rows.push(&[key], &[], &[]));
    }
}

/// The sums of a worker's flow records by name.
pub(super) fn sums(flows: &FlowCounts, facts: &FactCounts) -> Vec<(String, u64)> {
    let ended = ringtap_flow::EndReason::ALL.into_iter().zip(flows.ended);
    let mut all: Vec<_> =
        ended.map(|(reason, ended)| (format!("ended {}", reason.name()), ended)).collect();
    let words = flows.digest.iter().flat_map(RecordDigest::words).enumerate();
    all.extend(words.map(|(at, word)| (format!("digest {at}"), word)));
    let kept = Kind::ALL.into_iter().zip(facts.kept);
    all.extend(kept.map(|(kind, kept)| (format!("fact {}", kind.name()), kept)));
    all.push(("facts beyond".into(), facts.beyond));
    all.push(("facts without room".into(), facts.no_room));
    all
}

/// The sums of states.
pub(super) struct Sums {
    /// Of the flow records.
    pub(super) flows: FlowCounts,
    /// Where the packets went: the other names.
    pub(super) counts: Counts,
    /// Number of rows.
    names: usize,
}

impl Sums {
    pub(super) fn new() -> Self {
        let flows = FlowCounts { digest: Some(RecordDigest::default()), ..FlowCounts::default() };
        Self { flows, counts: Counts::default(), names: 0 }
    }

    /// Whether a row is a word of the digest, which is a sum modulo 2^64.
    pub(super) fn is_digest(row: &Row<'_>) -> bool {
        row.tail.starts_with(b"digest ")
    }

    /// Adds a row; `None` if its name is unknown.
    pub(super) fn load(&mut self, row: &Row<'_>) -> Option<()> {
        let [number] = row.numbers();
        self.names += 1;
        if row.tail.len() > MOST_NAME || self.names > MOST_NAMES {
            return None;
        }
        let name = std::str::from_utf8(row.tail).ok()?;
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        let place = match (first, rest) {
            ("ended", reason) => {
                let at =
                    ringtap_flow::EndReason::ALL.iter().position(|own| own.name() == reason)?;
                &mut self.flows.ended[at]
            }
            ("digest", at) => self.flows.digest.as_mut()?.word_mut(at.parse().ok()?)?,
            ("fact", kind) => {
                let at = Kind::ALL.iter().position(|own| own.name() == kind)?;
                &mut self.flows.facts.kept[at]
            }
            ("facts", "beyond") => &mut self.flows.facts.beyond,
            ("facts", "without room") => &mut self.flows.facts.no_room,
            _ => self.counts.place(first, rest)?,
        };
        *place = number;
        Some(())
    }
}
