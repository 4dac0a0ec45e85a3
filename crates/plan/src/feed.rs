//! The feed of the monitor: a queue's frames, decoded, with the marks between them.
//!
//! What a tunnel carries is a packet of its own, right behind the tunnel's; the two may belong to different queues.
//!
//! Invariant: what comes when depends on the capture alone, never on bursts, chunks or threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_capture::{Files, Place};
use ringtap_skeleton::ShardMap;
use ringtap_stage::{Fed, Feed};
use ringtap_wire::{Decoded, Decoder, LinkType, NonIp, PacketRecord, Paths, selection_hash};

use crate::source::{Asked, Inbox, List, Load, SHARED, Source};
use crate::{Plan, Watch};

/// See the module.
pub struct PacketFeed<'a> {
    source: Source<'a>,
    inbox: Inbox,
    queue: usize,
    shards: ShardMap,
    decoder: Decoder,
    sample: u32,
    /// What is being handed out, and how many of its places and marks have been.
    load: Option<Arc<Load>>,
    places: usize,
    marks: usize,
    /// What the last packet of a full burst carried.
    waiting: Option<PacketRecord>,
    counts: FeedCounts,
}

/// What feeds counted, each frame in the queue that owns its outermost packet.
#[derive(Clone, Debug, Default)]
pub struct FeedCounts {
    /// Packets handed out, without those within tunnels.
    pub packets: u64,
    /// Packets handed out that others carried.
    pub inner: u64,
    /// Bytes captured of them.
    pub captured_octets: u64,
    /// Packets that are not IP, by reason.
    pub non_ip: BTreeMap<NonIp, u64>,
    /// Packets that are no part of the sample.
    pub not_sampled: u64,
}

impl FeedCounts {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.inner += other.inner;
        self.captured_octets += other.captured_octets;
        self.not_sampled += other.not_sampled;
        for (&reason, &packets) in &other.non_ip {
            *self.non_ip.entry(reason).or_default() += packets;
        }
    }
}

/// What is left when the feeds of a run are closed.
pub(crate) struct Closed {
    pub(crate) counts: FeedCounts,
    /// Packets read.
    pub(crate) packets: u64,
    /// Packets that could not be.
    pub(crate) damaged: u64,
    pub(crate) notices: Vec<ringtap_capture::Notice>,
}

impl<'a> PacketFeed<'a> {
    /// The feeds of a plan over `files`, one a queue.
    pub fn all(plan: &Plan, paths: &Arc<Paths>, files: Files, watch: &'a Watch) -> Vec<Self> {
        let shards = plan.options().shards;
        let tick_ns = plan.metering.timeouts.tick_ns();
        let (source, inboxes) = Source::new(files, plan.hash_key(), shards.clone(), tick_ns, watch);
        let feed = |(queue, inbox)| Self {
            source: source.clone(),
            inbox,
            queue,
            shards: shards.clone(),
            decoder: Decoder::new(plan.hash_key(), Arc::clone(paths)).with_tunnels(plan.tunnels),
            sample: plan.sample,
            load: None,
            places: 0,
            marks: 0,
            waiting: None,
            counts: FeedCounts::default(),
        };
        inboxes.into_iter().enumerate().map(feed).collect()
    }

    /// What was counted so far.
    pub fn counts(&self) -> &FeedCounts {
        &self.counts
    }

    /// What all feeds of a run counted, and what their source has to say.
    pub(crate) fn close(feeds: Vec<Self>) -> Closed {
        let mut counts = FeedCounts::default();
        feeds.iter().for_each(|feed| counts.add(&feed.counts));
        let look = |files: &mut Files| (files.packets(), files.damaged(), files.take_notices());
        let seen = feeds.first().map(|feed| feed.source.with_files(look));
        let (packets, damaged, notices) = seen.unwrap_or_default();
        Closed { counts, packets, damaged, notices }
    }

    /// Appends what comes next of the load; `None` if the load has nothing more.
    fn hand_out(&mut self, load: &Load, burst: &mut Vec<PacketRecord>) -> Option<Fed> {
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

    /// Appends the packets at `places` that are this queue's, and part of the sample, until the burst is full. Returns
    /// how many places are done.
    fn decode(&mut self, load: &Load, places: &[Place], burst: &mut Vec<PacketRecord>) -> usize {
        let counts = &mut self.counts;
        let room = burst.capacity();
        for (done, place) in places.iter().enumerate() {
            if burst.len() == room {
                return done;
            }
            let frame = load.chunk.data(place);
            // Decoded where it will stay: a record is not copied.
            burst.push(PacketRecord::EMPTY);
            let Some(record) = burst.last_mut() else { return done };
            let decoded =
                self.decoder.decode(place.link, place.ts_ns, frame, place.original_len, record);
            let inner = self.decoder.inner(record).copied();
            // Only a frame that every queue has may hold another queue's packets.
            let owns = |hash| place.tag != SHARED || self.shards.queue(hash) == self.queue;
            let own = owns(record.pair_hash);
            let inner = inner.filter(|inner| owns(inner.pair_hash));
            if !own && inner.is_none() {
                burst.pop();
                continue;
            }
            // Not before it is decoded: a fragment that is left out may have the ports of another.
            if self.sample > 1 && !selected(place.link, frame, self.sample) {
                counts.not_sampled += u64::from(own);
                burst.pop();
                continue;
            }
            if own {
                if let Decoded::NonIp(reason) = decoded {
                    *counts.non_ip.entry(reason).or_default() += 1;
                }
                counts.captured_octets += frame.len() as u64;
                counts.packets += 1;
            } else {
                burst.pop();
            }
            if let Some(inner) = inner {
                counts.inner += 1;
                if burst.len() == room { self.waiting = Some(inner) } else { burst.push(inner) }
            }
        }
        places.len()
    }
}

/// Whether a frame belongs to the one in `sample` that count.
fn selected(link: LinkType, frame: &[u8], sample: u32) -> bool {
    (u64::from(selection_hash(link, frame)) * u64::from(sample)) >> 32 == 0
}

impl Feed for PacketFeed<'_> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Vec<PacketRecord>) -> Fed {
        if let Some(inner) = self.waiting.take() {
            burst.push(inner);
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
            self.load = self.inbox.take();
            if self.load.is_none() {
                match self.source.ask() {
                    Asked::Read => self.load = self.inbox.take(),
                    Asked::Taken | Asked::Nothing => return Fed::Idle,
                }
            }
            (self.places, self.marks) = (0, 0);
            if self.load.is_none() {
                return Fed::Moved;
            }
        }
    }
}

#[cfg(test)]
mod tests;
