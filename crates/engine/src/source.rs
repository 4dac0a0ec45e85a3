//! The source of a run and its queues: frames are read and walked once, and sorted by the hash of
//! their address pair, as a network card with several queues (RSS) does, but by the readers
//! themselves.
//!
//! ```text
//!           ┌ a queue without work takes the lock ──────────┐
//!  files ──▶│ read a chunk, walk its headers, sort them     │──▶ ring ──▶ PacketFeed of queue 0
//!           └───────────────────────────────────────────────┘──▶ ring ──▶ PacketFeed of queue 1
//!
//!  chunk   │ bytes │ list 0: places, marks │ list 1: places, marks │      (one Arc)
//! ```
//!
//! A *sorted chunk* is a chunk of the capture with a list for each queue: the places of its packets
//! and the marks between them. Queues share the bytes, never a packet: each packet is decoded by
//! its owner. A frame whose owner is unknown before decoding ([`pair_hash`]: tunnels, broken
//! headers) is in all lists, tagged, and each queue keeps its own part.
//!
//! A mark precedes the first packet that brings time to the next multiple of the tick, in every
//! list, so its place depends on the packets alone. [`Timeline`] defines the time. Where it is set
//! back, there are two marks: the first with the time before, the second with the time after, and
//! marks continue from there. *Turns* for the tables of readers have their places in the same way.
//!
//! A queue that takes its last chunk reads the next one before it works on it, so the others need
//! not wait for it.
//!
//! Chunks are allocated once and circulate: one can be filled again when no queue holds it. So
//! memory is bounded, and a reader cannot run ahead of a slow queue: it finds no free chunk. No
//! thread waits for the lock. There is no deadlock: a queue is idle when another one has the lock,
//! which releases it in the same step (or waits for the source, as any reader does), or when no
//! chunk is free. Then some queue holds chunks, so it has packets to hand out and needs no lock;
//! afterwards they are free. A ring has room for all chunks, so it is never full.

use std::sync::{Arc, Mutex};

use ringtap_io::capture::{Chunk, Files, Place};
use ringtap_ring::{Consumer, Kind, Producer, ring};
use ringtap_skeleton::ShardMap;
use ringtap_stage::Mark;
use ringtap_wire::{HashKey, REGIONS, TunnelPorts, pair_hash};

use crate::Watch;
use crate::timeline::{Moved, Timeline, Turns};

// Queues own whole regions, so their decoders together store what a single one would.
const _: () = assert!(REGIONS == ringtap_skeleton::MOST_QUEUES);

/// Initial room for the packets and marks of a chunk; more are rare.
const USUAL_PLACES: usize = 4_096;
const USUAL_MARKS: usize = 16;

/// Shortest time between two turns, nanoseconds: each costs every queue a little.
const LEAST_PERIOD_NS: u64 = 1_000_000;

/// Tag of a place that is in all lists.
pub(crate) const SHARED: u16 = 1;

pub(crate) struct SortedChunk {
    pub(crate) chunk: Chunk,
    /// One list for each queue.
    pub(crate) lists: Vec<List>,
}

/// A queue's part of a chunk.
pub(crate) struct List {
    pub(crate) places: Vec<Place>,
    /// Marks and turns, each with the number of places before it.
    pub(crate) marks: Vec<(usize, Sign)>,
}

/// What stands between packets.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sign {
    /// For the workers.
    Mark(Mark),
    /// For a kind of table at the reader.
    Turn(Table),
}

/// Tables at the reader whose entries expire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Table {
    /// [`ringtap_extract::Payloads`].
    Payloads,
    /// [`Duplicates`](crate::duplicates::Duplicates).
    Duplicates,
}

impl List {
    fn new(places: usize) -> Self {
        Self { places: Vec::with_capacity(places), marks: Vec::with_capacity(USUAL_MARKS) }
    }
}

/// The answer to a request for a chunk.
pub(crate) enum Asked {
    /// The next chunk.
    Given(Arc<SortedChunk>),
    /// A chunk was read, but it has nothing for this queue.
    Moved,
    /// Another queue is reading, no chunk is free, or the source is at its end.
    Nothing,
}

/// The source, shared by all its queues.
#[derive(Clone)]
pub(crate) struct Source<'a>(Arc<Mutex<Reader<'a>>>);

/// A queue's end of the source.
pub(crate) struct Inbox(Consumer<Arc<SortedChunk>>);

impl Inbox {
    fn take(&mut self) -> Option<Arc<SortedChunk>> {
        let load = self.0.pop();
        // The slot is freed before the chunk, so a free chunk always finds one.
        self.0.flush();
        load
    }

    fn is_empty(&mut self) -> bool {
        self.0.peek(1).is_empty()
    }
}

/// How frames are hashed before they are decoded, as the decoder does it.
pub(crate) struct Hashing {
    pub(crate) key: HashKey,
    /// The ports of tunnels.
    pub(crate) ports: TunnelPorts,
}

struct Reader<'a> {
    files: Files,
    watch: &'a Watch,
    hashing: Hashing,
    shards: ShardMap,
    ticks: Ticks,
    /// All chunks.
    loads: Vec<Arc<SortedChunk>>,
    /// One for each queue.
    outlets: Vec<Producer<Arc<SortedChunk>>>,
    /// Whether reading never blocks for long, and there is another queue to read for.
    ahead: bool,
    ended: bool,
    /// Whether a stop ended the reading.
    interrupted: bool,
}

/// The state of marks.
pub(crate) struct Ticks {
    tick_ns: u64,
    /// Whether a mark precedes the first packet, too.
    begins_with_mark: bool,
    timeline: Timeline,
    /// Time at which the next mark is due; `None` before the first packet.
    due_ns: Option<u64>,
    number: u64,
    turns: [(Table, Turns); 2],
}

impl<'a> Source<'a> {
    /// Makes a source with the queues of `shards`, and their ends.
    pub(crate) fn new(
        files: Files,
        hashing: Hashing,
        shards: ShardMap,
        ticks: Ticks,
        watch: &'a Watch,
    ) -> (Self, Vec<Inbox>) {
        let queues = shards.queues();
        // One is enough for a single queue; otherwise each queue has one in use and one waiting.
        let count = if queues == 1 { 1 } else { 2 * queues + 2 };
        let load = || SortedChunk {
            chunk: Chunk::new(),
            lists: (0..queues).map(|_| List::new(2 * USUAL_PLACES / queues)).collect(),
        };
        let (outlets, inboxes) = (0..queues)
            .map(|_| ring(Kind::default(), count, 1).expect("a ring of a few slots"))
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let reader = Reader {
            ahead: queues > 1 && files.position().bytes_total.is_some(),
            files,
            watch,
            hashing,
            shards,
            ticks,
            loads: (0..count).map(|_| Arc::new(load())).collect(),
            outlets,
            ended: false,
            interrupted: false,
        };
        (Self(Arc::new(Mutex::new(reader))), inboxes.into_iter().map(Inbox).collect())
    }

    /// Returns the next chunk for the queue of this inbox; reads more, unless another queue does.
    pub(crate) fn ask(&self, inbox: &mut Inbox) -> Asked {
        if let Some(load) = inbox.take() {
            if inbox.is_empty() {
                self.read_ahead();
            }
            return Asked::Given(load);
        }
        let Ok(mut reader) = self.0.try_lock() else {
            // A queue that panicked has reported it.
            return Asked::Nothing;
        };
        // Reading may wait for the source, so take what another queue has read in the meantime
        // first. While this thread holds the lock, no other can read.
        let read = match inbox.take() {
            Some(load) => return Asked::Given(load),
            None => reader.read(),
        };
        match inbox.take() {
            Some(load) => Asked::Given(load),
            None if read => Asked::Moved,
            None => Asked::Nothing,
        }
    }

    /// Reads the next chunk while there is still work, so that no queue waits for a reader. Not
    /// from a source that may block: the chunk in hand would wait for it.
    fn read_ahead(&self) {
        if let Ok(mut reader) = self.0.try_lock()
            && reader.ahead
        {
            reader.read();
        }
    }

    /// Whether a stop ended the reading.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.0.lock().unwrap_or_else(|poison| poison.into_inner()).interrupted
    }

    /// Calls `look` with the files and the packet time.
    pub(crate) fn with_files<T>(&self, look: impl FnOnce(&mut Files, &Timeline) -> T) -> T {
        let mut reader = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        let Reader { files, ticks, .. } = &mut *reader;
        look(files, &ticks.timeline)
    }
}

impl Reader<'_> {
    /// Reads a chunk, for all queues that have packets in it; false at the end or if no chunk is free.
    fn read(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let free = |(at, load)| Arc::get_mut(load).map(|load| (at, load));
        let Some((at, load)) = self.loads.iter_mut().enumerate().find_map(free) else {
            return false;
        };
        for list in &mut load.lists {
            list.places.clear();
            list.marks.clear();
        }
        let frames = if self.watch.stopped() { 0 } else { self.files.read(&mut load.chunk) };
        self.watch.packets.add(0, frames as u64);
        let bytes = self.files.position().bytes_read;
        self.watch.bytes.set(0, bytes);
        if frames == 0 {
            self.ended = true;
            self.interrupted = self.watch.stopped();
            let mark = Sign::Mark(Mark::End { time_ns: self.ticks.timeline.end_ns() });
            load.lists.iter_mut().for_each(|list| list.marks.push((0, mark)));
        } else if let [only] = load.lists.as_mut_slice() {
            std::mem::swap(&mut only.places, &mut load.chunk.places);
            self.ticks.mark(&only.places, &load.chunk, &mut only.marks);
        } else {
            self.ticks.sort(load, &self.hashing, &self.shards);
        }
        let load = &self.loads[at];
        for (outlet, list) in self.outlets.iter_mut().zip(&load.lists) {
            if !list.places.is_empty() || !list.marks.is_empty() {
                let pushed = outlet.push(Arc::clone(load));
                assert!(pushed.is_ok(), "a ring with room for all loads was full");
                outlet.flush();
            }
        }
        true
    }
}

impl Table {
    /// The turns of each kind; `window_ns` is the window of duplicates.
    pub(crate) fn turns(window_ns: Option<u64>) -> [(Self, Turns); 2] {
        let window_ns = window_ns.map_or(u64::MAX, |window_ns| window_ns.max(LEAST_PERIOD_NS));
        [
            (Self::Payloads, Turns::new(ringtap_extract::LIFETIME_NS)),
            (Self::Duplicates, Turns::new(window_ns)),
        ]
    }
}

impl Ticks {
    /// Marks `tick_ns` apart; `window_ns` is the window of duplicates.
    pub(crate) fn new(tick_ns: u64, begins_with_mark: bool, window_ns: Option<u64>) -> Self {
        let tick_ns = tick_ns.max(1);
        let timeline = Timeline::new(tick_ns);
        let turns = Table::turns(window_ns);
        Self { tick_ns, begins_with_mark, timeline, due_ns: None, number: 0, turns }
    }

    /// Handles a packet; returns the marks and turns before it.
    fn before(&mut self, ts_ns: u64) -> impl Iterator<Item = Sign> + use<> {
        let moved = self.timeline.see(ts_ns);
        let mut marks = [None; 2];
        let mut turns = [None; 2];
        if let Some(now_ns) = self.timeline.now_ns() {
            let tick_ns = self.tick_ns;
            let due_ns = match self.due_ns {
                Some(due_ns) => due_ns,
                None if self.begins_with_mark => now_ns,
                None => Self::due_after(now_ns, tick_ns),
            };
            self.due_ns = Some(due_ns);
            if let Moved::Back { from_ns } = moved {
                marks =
                    [Some(self.mark_at(from_ns)), Some(self.mark_at(now_ns / tick_ns * tick_ns))];
                self.due_ns = Some(Self::due_after(now_ns, tick_ns));
            } else if Self::reached(now_ns, due_ns) {
                marks[0] = Some(self.mark_at(now_ns / tick_ns * tick_ns));
                self.due_ns = Some(Self::due_after(now_ns, tick_ns));
            }
            turns = self
                .turns
                .each_mut()
                .map(|(table, turns)| turns.begins_at(now_ns).then_some(Sign::Turn(*table)));
        }
        marks.into_iter().flatten().map(Sign::Mark).chain(turns.into_iter().flatten())
    }

    fn due_after(now_ns: u64, tick_ns: u64) -> u64 {
        (now_ns / tick_ns * tick_ns).saturating_add(tick_ns)
    }

    /// Whether a mark is due. The largest time is never due, because no mark could follow it.
    fn reached(now_ns: u64, due_ns: u64) -> bool {
        now_ns >= due_ns && due_ns < u64::MAX
    }

    fn mark_at(&mut self, time_ns: u64) -> Mark {
        let number = self.number;
        self.number += 1;
        Mark::Tick { number, time_ns }
    }

    /// Handles all packets of a chunk at once, if none has a mark before it, as in nearly all
    /// chunks.
    fn pass(&mut self, chunk: &Chunk) -> bool {
        let Some(due_ns) = self.due_ns else { return false };
        !Self::reached(chunk.high_ns(), due_ns)
            && !self.turns.iter().any(|(_, turns)| turns.is_due(chunk.high_ns()))
            && self.timeline.see_all(chunk.low_ns(), chunk.high_ns())
    }

    /// Makes the marks of a single queue.
    fn mark(&mut self, places: &[Place], chunk: &Chunk, marks: &mut Vec<(usize, Sign)>) {
        if self.pass(chunk) {
            return;
        }
        for (at, place) in places.iter().enumerate() {
            marks.extend(self.before(place.ts_ns).map(|mark| (at, mark)));
        }
    }

    /// Sorts the places of a chunk into its lists, with marks.
    fn sort(&mut self, load: &mut SortedChunk, hashing: &Hashing, shards: &ShardMap) {
        let SortedChunk { chunk, lists } = load;
        let watch = !self.pass(chunk);
        for place in &chunk.places {
            if watch {
                for mark in self.before(place.ts_ns) {
                    lists.iter_mut().for_each(|list| list.marks.push((list.places.len(), mark)));
                }
            }
            let Hashing { key, ports } = hashing;
            match pair_hash(key, ports, place.link, chunk.data(place), place.original_len) {
                Some(hash) => lists[shards.queue(hash)].places.push(*place),
                None => {
                    let mut shared = *place;
                    shared.tag = SHARED;
                    lists.iter_mut().for_each(|list| list.places.push(shared));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_precedes_the_first_packet_if_an_application_needs_one() {
        const SECOND: u64 = 1_000_000_000;
        let times = [54, 59, 61].map(|tenths| tenths * SECOND / 10);
        let marks = |begins_with_mark| {
            let mut ticks = Ticks::new(SECOND, begins_with_mark, None);
            let mut marks = Vec::new();
            for (at, ts_ns) in times.into_iter().enumerate() {
                marks.extend(ticks.before(ts_ns).map(|sign| match sign {
                    Sign::Mark(Mark::Tick { number, time_ns }) => (at, number, time_ns / SECOND),
                    other => panic!("{other:?}"),
                }));
            }
            marks
        };
        assert_eq!(marks(false), [(2, 0, 6)]);
        assert_eq!(marks(true), [(0, 0, 5), (2, 1, 6)]);
    }
}
