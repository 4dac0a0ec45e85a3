//! The feed of a live interface: the decoded packets of a queue, with marks as time passes.
//!
//! ```text
//! Receiver ─ burst ─▶ decode ─▶ records        a mark behind the burst that reaches its time,
//!     └─ nothing ─▶ clock ─▶ mark              or when the queue has been quiet for so long
//! ```
//!
//! Queues have no source in common, so each makes its marks from its own time ([`LiveClock`]). A
//! mark's number is its time in ticks, by which the marks of all queues are matched. A queue of
//! several interfaces has one time, that of its latest packet. While no packet arrives, time
//! advances by the clock, counted from the last packet, so any clock may have stamped it. If that
//! clock is set, all queues follow.
//!
//! At the end, and when the interface is gone, it is closed first and then read until empty, so
//! every received frame is accounted for. An empty queue waits for the others, because the time of
//! the end is the latest of all.
//!
//! With shedding, a queue that falls behind drops the packets of more and more address pairs, and
//! of fewer again when it has caught up: some flows are missing instead of all having gaps. Shed
//! packets are counted.
//!
//! Invariant: nothing blocks here. A frame that the kernel dropped is counted under its reason.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ringtap_io::live::{Counters, Drain, Lost, MergedReceiver};
use ringtap_stage::{Burst, Fed, Feed, Mark};
use ringtap_wire::{Decoder, Flags, HashKey, PacketRecord, Paths, TunnelPorts, pair_hash};

use crate::frames::{Frame, Frames, Slots};
use crate::interfaces::{BurstCounts, InterfaceCounts};
use crate::live_clock::{Clock, LiveClock, Now, Sets};
use crate::packet_source::{ClockChanges, Closed, PacketSource};
use crate::recent::Keeper;
use crate::sharding::{Seen, Sharding};
use crate::source::Table;
use crate::timeline::Turns;
use crate::{AppOptions, Plan, Watch};

/// Interval at which an idle queue reads its counters and checks its interface, nanoseconds.
const LOOK_NS: u64 = 100_000_000;

/// Bursts after which a busy queue reads its counters.
const LOOK_BURSTS: u32 = 4_096;

/// Bursts after which the fill level is checked and shedding adapted.
const SHED_BURSTS: u32 = 64;

/// Sixteenths of the buffer for waiting frames: above `FULL` one more sixteenth of the flows is
/// shed, below `EASY` one less.
const FULL: u32 = 8;
const EASY: u32 = 2;

pub(crate) struct LiveFeed<'a> {
    receiver: MergedReceiver,
    /// Counters of each interface.
    counts: BurstCounts,
    queue: usize,
    watch: &'a Watch,
    frames: Frames,
    keeper: Option<Keeper>,
    turns: [(Table, Turns); 2],
    key: HashKey,
    ports: TunnelPorts,
    /// Sixteenths of the address pairs that are shed; `None`: shedding is off.
    shed: Option<u32>,
    clock: LiveClock,
    sets: Arc<Sets>,
    /// The last look at the counters, by the monotonic clock.
    looked_ns: u64,
    pace: Pace,
    bursts: u32,
    /// Present once the interface was closed.
    drain: Option<Drain>,
    /// What the interface had lost when it was closed.
    lost: Vec<Lost>,
    /// Whether everything was read.
    drained: bool,
    ended: bool,
    ending: Arc<Ending>,
    /// `None` with one queue.
    sharding: Option<Arc<Sharding>>,
    /// Frames handed on or left out, to compare with the receiver's counter.
    handed: u64,
    gone: bool,
}

/// The rate of frames, and the room for them.
#[derive(Debug)]
struct Pace {
    /// Frames that fit the buffer, at least.
    room: u64,
    /// The last measurement: time by the monotonic clock, and frames so far.
    since: (u64, u64),
    is_slow: bool,
}

impl Pace {
    /// An upper bound of a frame with its descriptor, except for jumbo frames.
    const FRAME: usize = 2 << 10;
    const WINDOW_NS: u64 = 1_000_000;

    fn new(memory: usize) -> Self {
        Self { room: (memory / Self::FRAME) as u64, since: (0, 0), is_slow: true }
    }

    /// Updates the rate. A queue is slow if its buffer takes more than a millisecond to fill: a
    /// sleep is a small part of that.
    fn look(&mut self, steady_ns: u64, frames: u64) {
        let (before_ns, before) = self.since;
        let passed_ns = steady_ns.saturating_sub(before_ns);
        if passed_ns >= Self::WINDOW_NS {
            let came = u128::from(frames - before) * u128::from(Self::WINDOW_NS);
            self.is_slow = came <= u128::from(self.room) * u128::from(passed_ns);
            self.since = (steady_ns, frames);
        }
    }
}

/// The end of the queues of an interface, which they share.
struct Ending {
    /// Queues that are not empty yet.
    open: AtomicUsize,
    high_ns: AtomicU64,
}

impl<'a> LiveFeed<'a> {
    /// Makes the feeds of a plan, one for each receiver.
    pub(crate) fn all<A: AppOptions>(
        plan: &Plan<A>,
        paths: &Arc<Paths>,
        receivers: Vec<impl Into<MergedReceiver>>,
        watch: &'a Watch,
    ) -> Vec<Self> {
        let open = AtomicUsize::new(receivers.len());
        let ending = Arc::new(Ending { open, high_ns: AtomicU64::new(0) });
        let clock: Clock = Arc::new(Now::read);
        let sets = Arc::new(Sets::default());
        let sharding = (receivers.len() > 1).then(|| Arc::new(Sharding::new()));
        let decoder = |queue, receiver: &MergedReceiver| {
            let (datagrams, regions) = plan.fragments(queue);
            let interfaces: Vec<_> = receiver.interfaces().iter().map(|one| one.1).collect();
            Decoder::new(plan.hash_key(), Arc::clone(paths))
                .with_tunnels(plan.options.tunnels)
                .with_tunnel_ports(plan.options.tunnel_ports.clone())
                .with_segments(plan.app.segments())
                .with_interfaces(&interfaces)
                .with_fragments(datagrams, regions)
        };
        let feed = |(queue, receiver): (usize, MergedReceiver)| Self {
            counts: BurstCounts::new(receiver.interfaces().len()),
            frames: Frames::new(plan, decoder(queue, &receiver)),
            keeper: plan.keeper(),
            turns: Table::turns(plan.options.dedup_ns),
            pace: Pace::new(receiver.least_memory()),
            receiver,
            queue,
            watch,
            key: plan.hash_key(),
            ports: plan.options.tunnel_ports.clone(),
            shed: plan.options.shed.then_some(0),
            clock: LiveClock::new(Arc::clone(&clock), Arc::clone(&sets), plan.app.live_tick_ns()),
            sets: Arc::clone(&sets),
            looked_ns: 0,
            bursts: 0,
            drain: None,
            lost: Vec::new(),
            drained: false,
            ended: false,
            ending: Arc::clone(&ending),
            sharding: sharding.clone(),
            handed: 0,
            gone: false,
        };
        receivers.into_iter().map(Into::into).enumerate().map(feed).collect()
    }

    /// Takes waiting frames while there is room for them and their inner packets, and keeps them if that is wanted;
    /// returns their number.
    fn take(&mut self, burst: &mut Burst<PacketRecord>) -> usize {
        // Asked once a burst.
        let Some(mut keeper) = self.keeper.take() else { return self.take_each(burst, |_, _| {}) };
        let mut kept = keeper.begin();
        let handed =
            self.take_each(burst, |interface, frame| kept.keep(interface, &frame.captured()));
        drop(kept);
        self.keeper = Some(keeper);
        handed
    }

    /// Takes waiting frames, and calls `keep` with each that is selected and its interface.
    fn take_each(
        &mut self,
        burst: &mut Burst<PacketRecord>,
        mut keep: impl FnMut(usize, &Frame<'_>),
    ) -> usize {
        self.frames.select(self.watch);
        let Self { receiver, counts, frames, clock, key, ports, .. } = self;
        let shed = self.shed.unwrap_or(0);
        let room = ((burst.capacity() - burst.len()) / 2).max(1);
        let (taken, octets_before) = (burst.len(), frames.counts.captured_octets);
        let mut slots = Slots::new(burst, 2 * room);
        let handed = receiver.burst(room, |interface, frame| {
            counts.of(interface).packets += 1;
            let ringtap_io::live::Frame { link, ts_ns, data, original_len, .. } = frame;
            clock.see(ts_ns);
            let frame = Frame { link, ts_ns, data, original_len };
            // First of all: a frame that is not selected has no effect but on time.
            if frames.leaves_out(&frame, true) {
                return;
            }
            // Whole address pairs, so that flows are complete or missing. Uses other bits of the
            // hash than the choice of the worker.
            if shed > 0
                && pair_hash(key, ports, link, data, original_len)
                    .is_some_and(|hash| hash % 16 < shed)
            {
                frames.counts.shed += 1;
                return;
            }
            keep(interface, &frame);
            frames.decoder.from_interface(interface);
            if frames.take(&frame, None, &mut slots) {
                counts.of(interface).octets += data.len() as u64;
            }
        });
        let len = frames.finish(&slots);
        burst.truncate(len);
        if let Some(sharding) = &self.sharding {
            let outermost =
                burst[taken..].iter().filter(|packet| !packet.flags.contains(Flags::INNER));
            let (mut split, mut checked) = (0, 0);
            for packet in outermost {
                match sharding.check(packet, self.queue) {
                    Seen::Nothing => {}
                    Seen::BothWays => checked += 1,
                    Seen::Split => split += 1,
                }
            }
            self.watch.split.add(self.queue, split);
            self.watch.pairs_checked.add(self.queue, checked);
        }
        self.handed += handed as u64;
        self.watch.packets.add(self.queue, handed as u64);
        let octets = self.frames.counts.captured_octets - octets_before;
        self.watch.bytes.add(self.queue, octets);
        self.counts.publish(self.watch, self.queue);
        handed
    }

    /// No frame arrived: time advances by the clock.
    fn quiet(&mut self) -> Fed {
        let (Now { steady_ns, .. }, mark) = self.clock.quiet();
        if steady_ns.saturating_sub(self.looked_ns) >= LOOK_NS {
            self.looked_ns = steady_ns;
            self.look();
            self.adapt();
        }
        self.pace.look(steady_ns, self.handed);
        if self.drained {
            return self.end();
        }
        mark.map_or(Fed::Idle, Fed::Mark)
    }

    /// Sheds more if many frames wait, and less if few do.
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

    /// Publishes the kernel's counters, shed packets, those of decoding, and which interfaces are gone.
    fn look(&mut self) {
        self.frames.publish(self.watch, self.queue);
        self.watch.shed.set(self.queue, self.frames.counts.shed);
        self.receiver.update_gone();
        self.gone = self.receiver.all_gone();
        let dropped = self.counts.look(&mut self.receiver, self.watch, self.queue);
        self.watch.dropped.set(self.queue, dropped);
        self.watch.clock_set(self.sets.get().count, self.sets.get().last_ns);
    }

    fn end(&mut self) -> Fed {
        let Ending { open, high_ns } = &*self.ending;
        if !std::mem::replace(&mut self.ended, true) {
            high_ns.fetch_max(self.clock.end_ns(), Ordering::Relaxed);
            // Release: a queue that sees all queues at their end (Acquire below) sees their times.
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

    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        self.watch.beats.add(self.queue, 1);
        if self.ended {
            return self.end();
        }
        // A mark follows the burst that reached it.
        if let Some(mark) = self.clock.mark() {
            return Fed::Mark(mark);
        }
        if self.drained {
            return self.end();
        }
        if self.gone {
            self.watch.stop();
        }
        if self.drain.is_none() && self.watch.stopped() {
            // Before it is closed: later losses do not belong to the run.
            self.lost = self.receiver.lost();
            self.drain = Some(self.receiver.drain());
            self.clock.pause();
        }
        if let Some(drain) = &mut self.drain {
            drain.before_burst();
        }
        let taken = self.take(burst);
        if let Some(now_ns) = self.clock.packet_ns() {
            for (table, turns) in &mut self.turns {
                if turns.begins_at(now_ns) {
                    self.frames.turn(*table);
                }
            }
        }
        if let Some(drain) = &mut self.drain {
            self.drained = self.receiver.is_drained(drain, taken);
        }
        if taken == 0 {
            return self.quiet();
        }
        self.clock.busy();
        self.bursts = self.bursts.wrapping_add(1);
        if self.shed.is_some() && self.bursts.is_multiple_of(SHED_BURSTS) {
            self.adapt();
        }
        if self.bursts.is_multiple_of(LOOK_BURSTS) {
            self.look();
        }
        if burst.is_empty() { Fed::Moved } else { Fed::Items }
    }

    fn is_slow(&self) -> bool {
        self.pace.is_slow
    }
}

impl PacketSource for LiveFeed<'_> {
    fn close(feeds: Vec<Self>) -> Closed {
        let mut closed = Closed::default();
        if let Some(first) = feeds.first() {
            closed.split = first.watch.split.get();
            closed.pairs_checked = first.watch.pairs_checked.get();
            let lost = if first.lost.is_empty() { &first.receiver.lost() } else { &first.lost };
            closed.interfaces = InterfaceCounts::all(&first.receiver, lost, first.watch);
            let sets = first.sets.get();
            first.watch.clock_set(sets.count, sets.last_ns);
            closed.clock = ClockChanges { set: sets.count, last_ns: sets.last_ns, strays: 0 };
        }
        for mut feed in feeds {
            for (place, interface) in closed.interfaces.iter_mut().enumerate() {
                let Counters { dropped, .. } = feed.receiver.counters(place);
                interface.add(feed.counts.total(place), &dropped, feed.receiver.is_gone(place));
                interface.counted_twice(feed.receiver.counted_twice(place));
            }
            closed.counts.add(&feed.frames.close());
            closed.clock.strays += feed.clock.strays();
            closed.packets += feed.handed;
        }
        let mut lost = BTreeMap::new();
        for (reason, frames) in closed.interfaces.iter().flat_map(|one| &one.dropped) {
            *lost.entry(*reason).or_default() += frames;
        }
        closed.lost = Some(lost);
        closed.failure = InterfaceCounts::failure(&closed.interfaces);
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fills_its_room_in_a_millisecond_is_not_slow() {
        let mut pace = Pace::new(1_000 * Pace::FRAME);
        let mut slow = |us: u64, frames| {
            pace.look(us * 1_000, frames);
            pace.is_slow
        };
        assert!(slow(1_000_000, 0), "nothing came yet");
        assert!(slow(1_001_000, 1_000));
        assert!(!slow(1_002_000, 2_001));
        assert!(!slow(1_002_500, 2_002), "too soon to say");
        assert!(slow(1_004_000, 4_001));
        assert!(!slow(1_006_000, 6_002));
    }
}
