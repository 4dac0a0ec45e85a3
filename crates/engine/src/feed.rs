//! The feed of the monitor: a queue's frames, decoded, with the marks between them.
//!
//! What a tunnel carries is a packet of its own, right behind the tunnel's; the two may belong to different queues.
//!
//! Invariant: what comes when depends on the capture alone, never on bursts, chunks or threads.

use std::sync::Arc;

use ringtap_extract::Extractors;
use ringtap_io::bpf::Expression;
use ringtap_io::capture::{Files, Place};
use ringtap_skeleton::ShardMap;
use ringtap_stage::{Burst, Fed, Feed};
use ringtap_wire::{Decoded, Decoder, PacketRecord, Paths};

use crate::packet_source::{ClockChanges, Closed, FeedCounts, PacketSource, selected};
use crate::source::{Asked, Inbox, List, Load, SHARED, Source};
use crate::timeline::Timeline;
use crate::{Plan, Watch};

/// The packets of one queue of a capture, decoded, with marks.
pub struct PacketFeed<'a> {
    source: Source<'a>,
    inbox: Inbox,
    queue: usize,
    shards: ShardMap,
    decoder: Decoder,
    watch: &'a Watch,
    filter: Option<Arc<Expression>>,
    sample: u32,
    /// What is being handed out, and how many of its places and marks have been.
    load: Option<Arc<Load>>,
    places: usize,
    marks: usize,
    /// What the last packet of a full burst carried.
    waiting: Burst<PacketRecord>,
    extract: Extractors,
    counts: FeedCounts,
}

impl<'a> PacketFeed<'a> {
    /// The feeds of a plan over `files`, one a queue.
    pub fn all(plan: &Plan, paths: &Arc<Paths>, files: Files, watch: &'a Watch) -> Vec<Self> {
        let shards = plan.options().shards;
        let tick_ns = plan.metering.timeouts.tick_ns();
        let (source, inboxes) = Source::new(files, plan.hash_key(), shards.clone(), tick_ns, watch);
        let decoder = |queue| {
            let (datagrams, regions) = plan.fragments(queue, false);
            Decoder::new(plan.hash_key(), Arc::clone(paths))
                .with_tunnels(plan.tunnels)
                .with_fragments(datagrams, regions)
        };
        let feed = |(queue, inbox)| Self {
            source: source.clone(),
            inbox,
            queue,
            shards: shards.clone(),
            decoder: decoder(queue),
            watch,
            filter: plan.filter.clone(),
            sample: plan.sample,
            load: None,
            places: 0,
            marks: 0,
            waiting: Burst::with_capacity(1),
            extract: plan.extract,
            counts: FeedCounts::default(),
        };
        inboxes.into_iter().enumerate().map(feed).collect()
    }

    /// What was counted so far.
    pub fn counts(&self) -> &FeedCounts {
        &self.counts
    }

    /// Appends what comes next of the load; `None` if the load has nothing more.
    fn hand_out(&mut self, load: &Load, burst: &mut Burst<PacketRecord>) -> Option<Fed> {
        let List { places, marks } = &load.lists[self.queue];
        loop {
            let mark = marks.get(self.marks);
            let upto = mark.map_or(places.len(), |&(before, _)| before);
            if self.places < upto {
                self.places += self.decode(load, &places[self.places..upto], burst);
            }
            // None, if all were other queues'.
            if !burst.is_empty() {
                return Some(Fed::Items);
            }
            if self.places == upto {
                let (_, mark) = mark?;
                self.marks += 1;
                return Some(Fed::Mark(*mark));
            }
        }
    }

    /// Appends the packets at `places` that are this queue's, selected and part of the sample, as far as there is room.
    /// Returns how many places are done.
    fn decode(&mut self, load: &Load, places: &[Place], burst: &mut Burst<PacketRecord>) -> usize {
        let counts = &mut self.counts;
        let chooses = self.sample > 1;
        let before = burst.len();
        // Records are decoded where they will stay; who is not kept is overwritten by the next.
        let room = places.len().min(burst.capacity() - before);
        let (items, attachments) = burst.parts_mut();
        items.resize(before + room, PacketRecord::EMPTY);
        let records = &mut items[before..];
        let (mut done, mut kept, mut packets, mut octets) = (0, 0, 0, 0);
        for place in places {
            let Some(record) = records.get_mut(kept) else { break };
            done += 1;
            let frame = load.chunk.data(place);
            // Before it is decoded: what is not selected is as though it were not there. Of those that all queues have,
            // the first one keeps the books.
            if let Some(filter) = &self.filter {
                let own = place.tag != SHARED || self.queue == 0;
                if counts.leaves_out(filter, place.link, frame, place.original_len, own) {
                    continue;
                }
            }
            let decoded =
                self.decoder.decode(place.link, place.ts_ns, frame, place.original_len, record);
            let mut inner = self.decoder.inner(record).copied();
            if (place.tag == SHARED) | chooses {
                // Only a frame that every queue has may hold another queue's packets.
                let owns = |hash| place.tag != SHARED || self.shards.queue(hash) == self.queue;
                let own = owns(record.pair_hash);
                inner = inner.filter(|inner| owns(inner.pair_hash));
                // Not before it is decoded: a fragment left out may have the ports of another.
                if chooses && !selected(place.link, frame, self.sample) {
                    counts.not_sampled += u64::from(own);
                    continue;
                }
                if !own {
                    if let Some(inner) = inner {
                        *record = inner;
                        if self.extract.wants(record) {
                            let to = (before + kept, &mut *attachments);
                            counts.extract(
                                self.extract,
                                &self.decoder,
                                (place.link, frame),
                                record,
                                to,
                            );
                        }
                        kept += 1;
                        counts.inner += 1;
                    }
                    continue;
                }
            }
            if let Decoded::NonIp(reason) = decoded {
                *counts.non_ip.entry(reason).or_default() += 1;
            }
            octets += frame.len() as u64;
            packets += 1;
            if self.extract.wants(record) {
                let to = (before + kept, &mut *attachments);
                counts.extract(self.extract, &self.decoder, (place.link, frame), record, to);
            }
            kept += 1;
            if let Some(inner) = inner {
                counts.inner += 1;
                let mut to = (before + kept, &mut *attachments);
                match records.get_mut(kept) {
                    Some(record) => {
                        *record = inner;
                        kept += 1;
                    }
                    None => {
                        let (items, attachments) = self.waiting.parts_mut();
                        items.push(inner);
                        to = (0, attachments);
                    }
                }
                if self.extract.wants(&inner) {
                    counts.extract(self.extract, &self.decoder, (place.link, frame), &inner, to);
                }
            }
        }
        counts.captured_octets += octets;
        counts.packets += packets;
        items.truncate(before + kept);
        done
    }
}

impl Feed for PacketFeed<'_> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        if !self.waiting.is_empty() {
            self.waiting.share_out(&mut [burst], |_| 0, |burst| burst);
            self.waiting.clear();
            return Fed::Items;
        }
        loop {
            if let Some(load) = self.load.take()
                && let Some(fed) = self.hand_out(&load, burst)
            {
                let List { places, marks } = &load.lists[self.queue];
                // Free at once when nothing of it is left.
                if (self.places, self.marks) < (places.len(), marks.len()) {
                    self.load = Some(load);
                }
                return fed;
            }
            self.watch.fragments_forgotten.set(self.queue, self.decoder.fragments_forgotten());
            match self.source.ask(&mut self.inbox) {
                Asked::Given(load) => self.load = Some(load),
                Asked::Moved => return Fed::Moved,
                Asked::Nothing => return Fed::Idle,
            }
            (self.places, self.marks) = (0, 0);
        }
    }
}

impl PacketSource for PacketFeed<'_> {
    fn close(feeds: Vec<Self>) -> Closed {
        let mut counts = FeedCounts::default();
        for feed in &feeds {
            counts.add(&feed.counts);
            counts.fragments_forgotten += feed.decoder.fragments_forgotten();
        }
        let look = |files: &mut Files, timeline: &Timeline| {
            let clock = ClockChanges {
                set: timeline.steps_back(),
                last_ns: 0_i64.saturating_sub_unsigned(timeline.last_step_ns()),
                strays: timeline.strays(),
            };
            (files.packets(), files.damaged(), files.take_notices(), clock)
        };
        let seen = feeds.first().map(|feed| feed.source.with_files(look));
        let (packets, damaged, notices, clock) = seen.unwrap_or_default();
        Closed { counts, packets, damaged, notices, clock, ..Closed::default() }
    }
}

#[cfg(test)]
mod tests;
