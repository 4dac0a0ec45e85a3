//! The merger: joins the structures of all workers.
//!
//! Invariant: they are merged in the order of their shards, not of arrival, so equal parts give equal answers.

use std::sync::Arc;

use ringtap_stage::{Mark, Merger, Shard};

use crate::findings::Findings;
use crate::keys::{Keys, PacketKey};
use crate::settings::Settings;
use crate::worker::{Found, Side};

const ALIKE: &str = "all parts of a run have the same settings";

/// Merges the findings of the workers, in the order of their shards.
pub struct MeasureMerger<V: Keys> {
    settings: Settings,
    found: Vec<(usize, Box<Found<V>>)>,
}

impl<V: Keys> MeasureMerger<V> {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { settings: *settings, found: Vec::new() }
    }
}

impl<V: Keys> Merger for MeasureMerger<V> {
    type Message = ();
    type Partial = Option<Box<Found<V>>>;
    type Report = Findings<V>;

    fn on_message(&mut self, (): ()) {}

    fn on_partial(&mut self, shard: Shard, _mark: &Mark, partial: Self::Partial) {
        self.found.extend(partial.map(|found| (shard.index, found)));
    }

    fn finish(mut self) -> Findings<V> {
        self.found.sort_by_key(|(shard, _)| *shard);
        let mut findings = Findings::new(&self.settings);
        let mut common = None;
        for (_, mut found) in self.found {
            findings.packets.add(&found.packets);
            let (v4, v6) = (held(&found.v4), held(&found.v6));
            findings.memory_bytes += v4 + v6;
            findings.v4.merge(found.v4).expect(ALIKE);
            findings.v6.merge(found.v6).expect(ALIKE);
            common = found.common.take();
        }
        // All workers have handed it over, so this is the last reference.
        if let Some(both) = common.and_then(Arc::into_inner) {
            let (v4, v6) = (both.v4.into_inner(), both.v6.into_inner());
            let bytes = v4.as_ref().map_or(0, |v4| v4.memory_bytes());
            findings.memory_bytes += bytes + v6.as_ref().map_or(0, |v6| v6.memory_bytes());
            findings.v4.structure = v4.map(|common| common.into_separate());
            findings.v6.structure = v6.map(|common| common.into_separate());
        }
        findings
    }
}

fn held<K: PacketKey>(side: &Side<K>) -> usize {
    side.structure.as_ref().map_or(0, |structure| structure.memory_bytes())
}
