//! The numbers of a run that a state has besides its tables.

use std::collections::BTreeMap;

use crate::report::Report;

/// Where the packets of a run went, and what their payloads were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets received, including damaged and lost ones.
    pub received: u64,
    /// Captured bytes.
    pub captured_octets: u64,
    /// First fragments forgotten for lack of memory.
    pub fragments_forgotten: u64,
    /// Packets not handled, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Packets that are not IP, by reason.
    pub non_ip: BTreeMap<String, u64>,
    /// Messages in payloads, by extractor.
    pub payload_messages: BTreeMap<String, u64>,
    /// Payloads that could not be read, by extractor and reason.
    pub unread_payloads: BTreeMap<String, u64>,
}

impl Counts {
    /// Returns the counts of a run.
    pub fn of(run: &ringtap_engine::Outcome<Report>) -> Self {
        let owned = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(&name, &count)| (name.to_owned(), count)).collect()
        };
        Self {
            received: run.received,
            captured_octets: run.counts.captured_octets,
            fragments_forgotten: run.counts.fragments_forgotten,
            dropped: owned(&run.ledger.dropped()),
            non_ip: run.non_ip(),
            payload_messages: owned(run.payload_messages()),
            unread_payloads: run.unread_payloads(),
        }
    }

    /// The place of a sum.
    pub(super) fn place(&mut self, first: &str, rest: &str) -> Option<&mut u64> {
        let map = match first {
            "received" => return Some(&mut self.received),
            "captured" => return Some(&mut self.captured_octets),
            "forgotten" => return Some(&mut self.fragments_forgotten),
            "dropped" => &mut self.dropped,
            "non_ip" => &mut self.non_ip,
            "messages" => &mut self.payload_messages,
            "unread" => &mut self.unread_payloads,
            _ => return None,
        };
        Some(map.entry(rest.to_owned()).or_default())
    }

    /// All by the names of [`Self::place`].
    pub(super) fn named(&self) -> Vec<(String, u64)> {
        let mut all = vec![
            ("received".to_owned(), self.received),
            ("captured".to_owned(), self.captured_octets),
            ("forgotten".to_owned(), self.fragments_forgotten),
        ];
        let maps = [
            ("dropped", &self.dropped),
            ("non_ip", &self.non_ip),
            ("messages", &self.payload_messages),
            ("unread", &self.unread_payloads),
        ];
        for (name, map) in maps {
            all.extend(map.iter().map(|(rest, &number)| (format!("{name} {rest}"), number)));
        }
        all
    }
}

/// What the states before have of the numbers that are counted over the whole run.
#[derive(Debug, Default)]
pub struct Earlier {
    sums: BTreeMap<String, u64>,
    lacks: BTreeMap<String, u64>,
}

/// The rise of each number since `before`, which becomes `now`; without those that did not rise.
fn since<K: Into<String>>(
    before: &mut BTreeMap<String, u64>,
    now: impl IntoIterator<Item = (K, u64)>,
) -> BTreeMap<String, u64> {
    let rise = |(name, number): (K, u64)| {
        let name = name.into();
        let more = number.saturating_sub(before.insert(name.clone(), number).unwrap_or(0));
        (more > 0).then_some((name, more))
    };
    now.into_iter().filter_map(rise).collect()
}

impl Earlier {
    /// A sum in the states before.
    pub(super) fn sum(&self, name: &str) -> u64 {
        self.sums.get(name).copied().unwrap_or(0)
    }

    /// The sums that are new in these counts.
    pub(super) fn sums(&mut self, counts: &Counts) -> BTreeMap<String, u64> {
        since(&mut self.sums, counts.named())
    }

    /// The losses that are new.
    pub(super) fn lacks(&mut self, lacks: BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
        since(&mut self.lacks, lacks)
    }
}
