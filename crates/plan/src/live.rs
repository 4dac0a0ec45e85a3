//! The feed of a live interface: a queue's frames, decoded, with marks as time goes on.
//!
//! ```text
//! Receiver ─ burst ─▶ decode ─▶ records        a mark behind the burst that reaches its time,
//!     └─ nothing ─▶ clock ─▶ mark              or when the queue has been quiet for so long
//! ```
//!
//! Queues have no source in common, so each makes its marks of its own time. A mark's number is its time in ticks, which
//! says of the marks of all queues which belong together. While nothing comes, time goes on by the clock, counted from
//! the last packet: so it does not matter whose clock stamped that.
//!
//! At the end the interface is shut first, and then read empty, so every frame that came is accounted for. A queue that
//! is empty waits for the others, for the time of the end is the latest of all.
//!
//! With shedding, a queue that falls behind leaves out the packets of more and more pairs of addresses, and of fewer
//! again when it has caught up: rather some flows not at all than all of them with holes. What is shed is counted.
//!
//! Invariant: nothing waits here. A frame that the kernel dropped is counted under its reason.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ringtap_bpf::Expression;
use ringtap_live::{Counters, Drain, Receiver, State, now_ns};
use ringtap_stage::{Fed, Feed, Mark};
use ringtap_wire::{Decoded, Decoder, Flags, HashKey, PacketRecord, Paths, pair_hash};

use crate::packet_source::{Closed, FeedCounts, PacketSource, selected};
use crate::sharding::Sharding;
use crate::{Plan, Watch};

/// How far time by the clock stays behind, so that no packet still under way is too old for it.
const BEHIND_NS: u64 = 1_000_000_000;

/// How often a quiet queue looks at its counters, and whether its interface is still there.
const LOOK_NS: u64 = 100_000_000;

/// Bursts after which a busy queue looks at its counters.
const LOOK_BURSTS: u32 = 4_096;

/// Bursts after which it is seen how much waits, and whether to shed more or less.
const SHED_BURSTS: u32 = 64;

/// From so many sixteenths of the room for waiting frames on, one sixteenth more of the flows is shed; below the other,
/// one less.
const FULL: u32 = 8;
const EASY: u32 = 2;

/// See the module.
pub(crate) struct LiveFeed<'a> {
    receiver: Receiver,
    queue: usize,
    watch: &'a Watch,
    decoder: Decoder,
    filter: Option<Arc<Expression>>,
    sample: u32,
    key: HashKey,
    /// Sixteenths of the pairs of addresses whose packets are shed; `None`: never any.
    shed: Option<u32>,
    tick_ns: u64,
    /// The tick that was told last, or that the first packet fell in; `None` before there is any.
    tick: Option<u64>,
    /// Latest packet.
    high_ns: u64,
    /// Since when, by the clock, nothing has come.
    quiet_since_ns: Option<u64>,
    looked_ns: u64,
    bursts: u32,
    /// Once it was shut.
    drain: Option<Drain>,
    /// Nothing is left.
    drained: bool,
    ended: bool,
    ending: Arc<Ending>,
    /// None, if there is one queue.
    sharding: Option<Arc<Sharding>>,
    /// Frames handed on or left out, to compare with what the receiver counts.
    frames: u64,
    gone: bool,
    counts: FeedCounts,
}

/// What the queues of an interface know of one another's end.
struct Ending {
    /// Queues that are not empty yet.
    open: AtomicUsize,
    high_ns: AtomicU64,
}

impl<'a> LiveFeed<'a> {
    /// The feeds of a plan, one for each receiver.
    pub(crate) fn all(
        plan: &Plan,
        paths: &Arc<Paths>,
        receivers: Vec<Receiver>,
        watch: &'a Watch,
    ) -> Vec<Self> {
        let open = AtomicUsize::new(receivers.len());
        let ending = Arc::new(Ending { open, high_ns: AtomicU64::new(0) });
        let sharding = (receivers.len() > 1).then(|| Arc::new(Sharding::new()));
        let feed = |(queue, receiver)| Self {
            receiver,
            queue,
            watch,
            decoder: Decoder::new(plan.hash_key(), Arc::clone(paths)).with_tunnels(plan.tunnels),
            filter: plan.filter.clone(),
            sample: plan.sample,
            key: plan.hash_key(),
            shed: plan.shed.then_some(0),
            tick_ns: tick_ns(plan),
            tick: None,
            high_ns: 0,
            quiet_since_ns: None,
            looked_ns: 0,
            bursts: 0,
            drain: None,
            drained: false,
            ended: false,
            ending: Arc::clone(&ending),
            sharding: sharding.clone(),
            frames: 0,
            gone: false,
            counts: FeedCounts::default(),
        };
        receivers.into_iter().enumerate().map(feed).collect()
    }

    /// Takes what waits, as far as there is room for it with all that tunnels carry; how many frames.
    fn take(&mut self, burst: &mut Vec<PacketRecord>) -> usize {
        let Self { receiver, decoder, counts, high_ns, filter, sample, key, .. } = self;
        let shed = self.shed.unwrap_or(0);
        let room = (burst.capacity() - burst.len()) / 2;
        let (taken, octets_before) = (burst.len(), counts.captured_octets);
        let frames = receiver.burst(room.max(1), |frame| {
            *high_ns = (*high_ns).max(frame.ts_ns);
            // Before anything else: what is not selected is as though it were not there.
            if let Some(filter) = filter
                && counts.leaves_out(filter, frame.link, frame.data, frame.original_len, true)
            {
                return;
            }
            // Whole pairs of addresses, so that flows are whole or not there. By other bits than workers are chosen by.
            if shed > 0
                && pair_hash(key, frame.link, frame.data).is_some_and(|hash| hash % 16 < shed)
            {
                counts.shed += 1;
                return;
            }
            // Decoded where it stays.
            let at = burst.len();
            burst.push(PacketRecord::EMPTY);
            let (link, len) = (frame.link, frame.original_len);
            let decoded = decoder.decode(link, frame.ts_ns, frame.data, len, &mut burst[at]);
            let inner = decoder.inner(&burst[at]).copied();
            // Not before it is decoded: a fragment left out may have the ports of another.
            if *sample > 1 && !selected(link, frame.data, *sample) {
                counts.not_sampled += 1;
                burst.truncate(at);
                return;
            }
            if let Decoded::NonIp(reason) = decoded {
                *counts.non_ip.entry(reason).or_default() += 1;
            }
            counts.captured_octets += frame.data.len() as u64;
            counts.packets += 1;
            if let Some(inner) = inner {
                counts.inner += 1;
                burst.push(inner);
            }
        });
        if let Some(sharding) = &self.sharding {
            let outermost =
                burst[taken..].iter().filter(|packet| !packet.flags.contains(Flags::INNER));
            let split = outermost.filter(|packet| sharding.splits(packet, self.queue)).count();
            self.watch.split.add(self.queue, split as u64);
        }
        self.frames += frames as u64;
        self.watch.packets.add(self.queue, frames as u64);
        self.watch.bytes.add(self.queue, self.counts.captured_octets - octets_before);
        frames
    }

    /// The mark that is due at this time, if one is.
    fn mark(&mut self, time_ns: u64) -> Option<Mark> {
        let tick = time_ns / self.tick_ns;
        let last = *self.tick.get_or_insert(tick);
        if tick <= last {
            return None;
        }
        self.tick = Some(tick);
        Some(Mark::Tick { number: tick, time_ns: tick * self.tick_ns })
    }

    /// Nothing came: time goes on by the clock.
    fn quiet(&mut self) -> Fed {
        let now_ns = now_ns();
        let since_ns = *self.quiet_since_ns.get_or_insert(now_ns);
        let quiet_ns = now_ns.saturating_sub(since_ns);
        if now_ns.abs_diff(self.looked_ns) >= LOOK_NS {
            self.looked_ns = now_ns;
            self.look();
            self.adapt();
            self.gone |= self.receiver.state() == State::Gone;
        }
        if self.gone || self.drained {
            return self.end();
        }
        let from_ns = if self.high_ns > 0 { self.high_ns } else { since_ns };
        let time_ns = from_ns.saturating_add(quiet_ns).saturating_sub(BEHIND_NS);
        self.mark(time_ns).map_or(Fed::Idle, Fed::Mark)
    }

    /// Sheds more if much waits, and less if little does.
    fn adapt(&mut self) {
        let backlog = self.receiver.backlog();
        if let Some(shed) = &mut self.shed {
            if backlog >= FULL {
                *shed = (*shed + 1).min(15);
            } else if backlog < EASY {
                *shed = shed.saturating_sub(1);
            }
        }
    }

    /// Tells the watch what the kernel counts, and what is shed.
    fn look(&mut self) {
        self.watch.shed.set(self.queue, self.counts.shed);
        let dropped = self.receiver.counters().dropped.total();
        self.watch.dropped.set(self.queue, dropped);
    }

    fn end(&mut self) -> Fed {
        let Ending { open, high_ns } = &*self.ending;
        if !std::mem::replace(&mut self.ended, true) {
            let told_ns = self.tick.unwrap_or(0) * self.tick_ns;
            high_ns.fetch_max(self.high_ns.max(told_ns), Ordering::Relaxed);
            // Release: whoever sees all queues at their end (Acquire below) sees their times.
            open.fetch_sub(1, Ordering::Release);
        }
        if open.load(Ordering::Acquire) > 0 {
            return Fed::Idle;
        }
        Fed::Mark(Mark::End { time_ns: high_ns.load(Ordering::Relaxed) })
    }
}

impl Feed for LiveFeed<'_> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Vec<PacketRecord>) -> Fed {
        if self.ended {
            return self.end();
        }
        // A mark stands behind the burst that reached it.
        if self.high_ns > 0
            && let Some(mark) = self.mark(self.high_ns)
        {
            return Fed::Mark(mark);
        }
        if self.drained {
            return self.end();
        }
        if self.drain.is_none() && self.watch.stopped() {
            self.drain = Some(Drain::begin(&mut self.receiver));
            self.quiet_since_ns = None;
        }
        if let Some(drain) = &mut self.drain {
            drain.look();
        }
        let taken = self.take(burst);
        if let Some(drain) = &mut self.drain {
            self.drained = drain.is_over(taken, &mut self.receiver);
        }
        if taken == 0 {
            return self.quiet();
        }
        self.quiet_since_ns = None;
        self.bursts = self.bursts.wrapping_add(1);
        if self.shed.is_some() && self.bursts.is_multiple_of(SHED_BURSTS) {
            self.adapt();
        }
        if self.bursts.is_multiple_of(LOOK_BURSTS) {
            self.look();
        }
        if burst.is_empty() { Fed::Moved } else { Fed::Items }
    }
}

impl PacketSource for LiveFeed<'_> {
    fn close(feeds: Vec<Self>) -> Closed {
        let mut closed = Closed::default();
        let mut lost = BTreeMap::new();
        // Of the whole interface, so any queue may tell.
        let missed = feeds.first().and_then(|feed| feed.receiver.missed()).unwrap_or(0);
        lost.insert("missed", missed);
        closed.split = feeds.first().map_or(0, |feed| feed.watch.split.get());
        for mut feed in feeds {
            let Counters { dropped, .. } = feed.receiver.counters();
            for (reason, frames) in dropped.by_reason() {
                *lost.entry(reason).or_default() += frames;
            }
            closed.counts.add(&feed.counts);
            closed.packets += feed.frames;
            if feed.gone {
                let interface = feed.receiver.describe().interface;
                closed.failure = Some(format!("the interface {interface} is gone"));
            }
        }
        lost.retain(|_, frames| *frames > 0);
        closed.lost = Some(lost);
        closed
    }
}

/// As often as timeouts want it, and an interval that is shorter; a sweep over all flows more often than every second is
/// dear.
fn tick_ns(plan: &Plan) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let interval_ns = plan.interval_ns.unwrap_or(u64::MAX);
    plan.metering.timeouts.tick_ns().min(interval_ns).max(SECOND_NS)
}
