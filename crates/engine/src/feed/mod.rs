//! The feed of capture files: the decoded packets of a queue, with the marks between them.
//!
//! The packet within a tunnel follows the tunnel's packet; the two may belong to different queues.
//!
//! Invariant: the order of packets and marks depends on the capture alone, never on bursts, chunks
//! or threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ringtap_io::capture::{Files, Place};
use ringtap_skeleton::{MARKS_AHEAD, ShardMap};
use ringtap_stage::{Burst, Fed, Feed};
use ringtap_wire::{Decoder, PacketRecord, Paths};

use crate::frames::{Frame, Frames, Slots};
use crate::packet_source::{ClockChanges, Closed, FeedCounts, PacketSource};
use crate::recent::Keeper;
use crate::source::{Asked, Hashing, Inbox, List, SHARED, Sign, SortedChunk, Source, Ticks};
use crate::timeline::Timeline;
use crate::{AppOptions, Plan, Watch};

/// Packets prefetched ahead.
const AHEAD: usize = 8;

/// The decoded packets of one queue of a capture, with marks.
pub struct PacketFeed<'a> {
    source: Source<'a>,
    inbox: Inbox,
    queue: usize,
    shards: ShardMap,
    watch: &'a Watch,
    /// The current chunk, and how many of its positions and marks are done.
    load: Option<Arc<SortedChunk>>,
    places: usize,
    marks: usize,
    /// Marks that each queue has handed out.
    passed: Arc<[AtomicU64]>,
    frames: Frames,
    keeper: Option<Keeper>,
}

impl<'a> PacketFeed<'a> {
    /// Makes the feeds of a plan over `files`, one a queue.
    pub fn all<A: AppOptions>(
        plan: &Plan<A>,
        paths: &Arc<Paths>,
        files: Files,
        watch: &'a Watch,
    ) -> Vec<Self> {
        let shards = plan.shards();
        let app = &plan.app;
        let ticks = Ticks::new(app.tick_ns(), app.begins_with_mark(), plan.options.dedup_ns);
        let hashing = Hashing { key: plan.hash_key(), ports: plan.options.tunnel_ports.clone() };
        let (source, inboxes) = Source::new(files, hashing, shards.clone(), ticks, watch);
        let decoder = |queue| {
            let (datagrams, regions) = plan.fragments(queue);
            Decoder::new(plan.hash_key(), Arc::clone(paths))
                .with_tunnels(plan.options.tunnels)
                .with_tunnel_ports(plan.options.tunnel_ports.clone())
                .with_segments(plan.app.segments())
                .with_fragments(datagrams, regions)
        };
        let passed: Arc<[_]> = inboxes.iter().map(|_| AtomicU64::new(0)).collect();
        let feed = |(queue, inbox)| Self {
            source: source.clone(),
            inbox,
            queue,
            shards: shards.clone(),
            watch,
            frames: Frames::new(plan, decoder(queue)),
            keeper: plan.keeper(),
            load: None,
            places: 0,
            marks: 0,
            passed: Arc::clone(&passed),
        };
        inboxes.into_iter().enumerate().map(feed).collect()
    }

    /// The counters so far.
    pub fn counts(&self) -> &FeedCounts {
        &self.frames.counts
    }

    /// Appends the next packets or the next mark of the chunk; `None` at its end.
    fn hand_out(&mut self, load: &SortedChunk, burst: &mut Burst<PacketRecord>) -> Option<Fed> {
        let List { places, marks } = &load.lists[self.queue];
        loop {
            let mark = marks.get(self.marks);
            let upto = mark.map_or(places.len(), |&(before, _)| before);
            if self.places < upto {
                self.places += self.decode(load, &places[self.places..upto], burst);
            }
            // Empty if all packets belonged to other queues.
            if !burst.is_empty() {
                return Some(Fed::Items);
            }
            if self.places == upto {
                let (_, sign) = mark?;
                if matches!(sign, Sign::Mark(_)) && !self.may_pass() {
                    return Some(Fed::Idle);
                }
                self.marks += 1;
                match sign {
                    Sign::Mark(mark) => return Some(Fed::Mark(*mark)),
                    Sign::Turn(table) => self.frames.turn(*table),
                }
            }
        }
    }

    /// Counts a mark, unless this queue is too far ahead of another one. The slowest queue never waits, because it has every
    /// chunk that another one is in.
    fn may_pass(&self) -> bool {
        // Relaxed: they order no other data.
        let of = |queue: &AtomicU64| queue.load(Ordering::Relaxed);
        let own = of(&self.passed[self.queue]);
        let may = self.passed.iter().all(|other| own < of(other) + MARKS_AHEAD);
        if may {
            self.passed[self.queue].store(own + 1, Ordering::Relaxed);
        }
        may
    }

    /// Appends the packets at `places` that belong to this queue and are selected and sampled,
    /// while there is room. Returns the number of positions done.
    fn decode(
        &mut self,
        load: &SortedChunk,
        places: &[Place],
        burst: &mut Burst<PacketRecord>,
    ) -> usize {
        let Self { frames, shards, queue, keeper, .. } = self;
        let owns = |hash| shards.queue(hash) == *queue;
        // One more than packets, for the inner packet of the last one; at least two.
        let room = (burst.capacity() - burst.len()).max(2);
        let mut slots = Slots::new(burst, room.min(places.len() + 1));
        let mut done = 0;
        for place in places {
            if !slots.has_room() {
                break;
            }
            // Another queue may have read the chunk, so its bytes may be in another core's cache.
            if let Some(ahead) = places.get(done + AHEAD) {
                load.chunk.prefetch(ahead);
            }
            done += 1;
            let frame = frame_at(load, place);
            let shared = place.tag == SHARED;
            // The first queue counts frames that all queues have.
            if !frames.leaves_out(&frame, !shared || *queue == 0) {
                frames.take(&frame, if shared { Some(&owns) } else { None }, &mut slots);
            }
        }
        if let Some(keeper) = keeper {
            let mut kept = keeper.begin();
            // The first queue keeps those of all, too.
            let own = places[..done].iter().filter(|place| place.tag != SHARED || *queue == 0);
            let own = own.map(|place| frame_at(load, place));
            own.filter(|frame| frames.selects(frame))
                .for_each(|frame| kept.keep(0, &frame.captured()));
        }
        let len = frames.finish(&slots);
        burst.truncate(len);
        done
    }
}

/// The frame at a place of a chunk.
#[inline(always)]
fn frame_at<'a>(load: &'a SortedChunk, place: &Place) -> Frame<'a> {
    let &Place { link, ts_ns, original_len, .. } = place;
    Frame { link, ts_ns, data: load.chunk.data(place), original_len }
}

impl Feed for PacketFeed<'_> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        loop {
            if let Some(load) = self.load.take()
                && let Some(fed) = self.hand_out(&load, burst)
            {
                let List { places, marks } = &load.lists[self.queue];
                // Release the chunk as soon as it is used up.
                if (self.places, self.marks) < (places.len(), marks.len()) {
                    self.load = Some(load);
                }
                return fed;
            }
            self.frames.publish(self.watch, self.queue);
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
    fn close(mut feeds: Vec<Self>) -> Closed {
        let mut counts = FeedCounts::default();
        for feed in &mut feeds {
            counts.add(&feed.frames.close());
        }
        let look = |files: &mut Files, timeline: &Timeline| {
            let clock = ClockChanges {
                set: timeline.steps_back(),
                last_ns: 0_i64.saturating_sub_unsigned(timeline.last_step_ns()),
                strays: timeline.strays(),
            };
            (files.packets(), files.damaged(), files.take_notices(), clock)
        };
        let interrupted = feeds.first().is_some_and(|feed| feed.source.is_interrupted());
        let seen = feeds.first().map(|feed| feed.source.with_files(look));
        let (packets, damaged, notices, clock) = seen.unwrap_or_default();
        Closed { counts, packets, damaged, notices, interrupted, clock, ..Closed::default() }
    }
}

#[cfg(test)]
mod tests;
