//! The source of a run and its queues: frames are read and walked once, and sorted by the hash of
//! their address pair, as a network card with several queues does it (RSS), but by the readers
//! themselves.
//!
//! ```text
//!           ┌ whoever has nothing left to do takes the lock ┐
//!  files ──▶│ read a chunk, walk its headers, sort them     │──▶ ring ──▶ PacketFeed of queue 0
//!           └───────────────────────────────────────────────┘──▶ ring ──▶ PacketFeed of queue 1
//!
//!  load    │ chunk: bytes │ list 0: places, marks │ list 1: places, marks │      (one Arc)
//! ```
//!
//! A *load* is a chunk of the capture with a list for each queue, which says where its packets lie
//! and before which of them a mark stands. Queues share the bytes, never a packet: each is decoded
//! by its owner. But a frame whose owner cannot be told without decoding it ([`pair_hash`]: tunnels,
//! broken headers) stands in all lists, tagged, and each queue keeps what is its own.
//!
//! A mark stands before the first packet whose time reaches the next multiple of the tick, in every
//! list, so its place depends on the packets alone.
//!
//! Loads are made once and circulate: one can be filled again when no queue holds it. So memory is
//! bounded, and who reads cannot run ahead of a queue that is behind: it finds no load free. Nobody
//! ever waits for the lock. No deadlock: a queue is idle when another one has the lock, which lets go
//! of it in the same step (or waits for the source, as any reader does), or when no load is free. Then
//! some queue holds loads, so it has packets to hand out and needs no lock for that; once it has, they
//! are free. A ring has room for all loads, so it is never full.

use std::sync::{Arc, Mutex};

use ringtap_capture::{Chunk, Files, Place};
use ringtap_ring::{Consumer, Kind, Producer, ring};
use ringtap_skeleton::ShardMap;
use ringtap_stage::Mark;
use ringtap_wire::{HashKey, REGIONS, pair_hash};

use crate::Watch;

// Queues take whole regions, so their decoders remember together what a single one would.
const _: () = assert!(REGIONS == ringtap_skeleton::MOST_QUEUES);

/// Packets and marks of a load that there is room for from the start: rarely are there more.
const USUAL_PLACES: usize = 4_096;
const USUAL_MARKS: usize = 16;

/// Tag of a place that stands in all lists.
pub(crate) const SHARED: u16 = 1;

/// See the module.
pub(crate) struct Load {
    pub(crate) chunk: Chunk,
    /// One for each queue.
    pub(crate) lists: Vec<List>,
}

/// A queue's part of a load.
pub(crate) struct List {
    pub(crate) places: Vec<Place>,
    /// Marks, each with the number of places before it.
    pub(crate) marks: Vec<(usize, Mark)>,
}

impl List {
    fn new(places: usize) -> Self {
        Self { places: Vec::with_capacity(places), marks: Vec::with_capacity(USUAL_MARKS) }
    }
}

/// What became of the wish for more.
pub(crate) enum Asked {
    /// Here it is.
    Given(Arc<Load>),
    /// Something was read, but nothing for this queue.
    Moved,
    /// Another queue is reading, no load is free, or all has been read.
    Nothing,
}

/// The source, as all its queues share it.
#[derive(Clone)]
pub(crate) struct Source<'a>(Arc<Mutex<Reader<'a>>>);

/// A queue's end of the source.
pub(crate) struct Inbox(Consumer<Arc<Load>>);

impl Inbox {
    fn take(&mut self) -> Option<Arc<Load>> {
        let load = self.0.pop();
        // The slot goes back before the load does, so there is always one for a load that is free.
        self.0.flush();
        load
    }
}

struct Reader<'a> {
    files: Files,
    watch: &'a Watch,
    key: HashKey,
    shards: ShardMap,
    ticks: Ticks,
    /// All loads there are.
    loads: Vec<Arc<Load>>,
    /// One for each queue.
    outlets: Vec<Producer<Arc<Load>>>,
    ended: bool,
}

/// Where marks stand.
struct Ticks {
    tick_ns: u64,
    /// Packet time at which the next mark is due; `None` before the first packet.
    due_ns: Option<u64>,
    /// Highest packet time so far.
    high_ns: u64,
    number: u64,
}

impl<'a> Source<'a> {
    /// A source with as many queues as `shards` says, and their ends.
    pub(crate) fn new(
        files: Files,
        key: HashKey,
        shards: ShardMap,
        tick_ns: u64,
        watch: &'a Watch,
    ) -> (Self, Vec<Inbox>) {
        let queues = shards.queues();
        // One is enough for a single queue; otherwise each has one at work and one waiting.
        let count = if queues == 1 { 1 } else { 2 * queues + 2 };
        let load = || Load {
            chunk: Chunk::new(),
            lists: (0..queues).map(|_| List::new(2 * USUAL_PLACES / queues)).collect(),
        };
        let (outlets, inboxes) = (0..queues)
            .map(|_| ring(Kind::default(), count, 1).expect("a ring of a few slots"))
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let reader = Reader {
            files,
            watch,
            key,
            shards,
            ticks: Ticks { tick_ns: tick_ns.max(1), due_ns: None, high_ns: 0, number: 0 },
            loads: (0..count).map(|_| Arc::new(load())).collect(),
            outlets,
            ended: false,
        };
        (Self(Arc::new(Mutex::new(reader))), inboxes.into_iter().map(Inbox).collect())
    }

    /// What comes next for the queue of this inbox; reads more, unless another queue does.
    pub(crate) fn ask(&self, inbox: &mut Inbox) -> Asked {
        if let Some(load) = inbox.take() {
            return Asked::Given(load);
        }
        let Ok(mut reader) = self.0.try_lock() else {
            // A queue that panicked has said so itself.
            return Asked::Nothing;
        };
        // Reading may wait for a quiet source, so nothing may lie here that another queue has read in
        // the meantime. With the lock in hand none can.
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

    /// Lets somebody look at the files.
    pub(crate) fn with_files<T>(&self, look: impl FnOnce(&mut Files) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(|poison| poison.into_inner()).files)
    }
}

impl Reader<'_> {
    /// Reads a load, for whatever queues; false if all has been read or no load is free.
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
            let mark = Mark::End { time_ns: self.ticks.high_ns };
            load.lists.iter_mut().for_each(|list| list.marks.push((0, mark)));
        } else if let [only] = load.lists.as_mut_slice() {
            std::mem::swap(&mut only.places, &mut load.chunk.places);
            self.ticks.mark(&only.places, load.chunk.high_ns(), &mut only.marks);
        } else {
            self.ticks.sort(load, &self.key, &self.shards);
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

impl Ticks {
    /// The time due, at a packet of this time.
    fn due_ns(&mut self, ts_ns: u64) -> u64 {
        let tick_ns = self.tick_ns;
        *self.due_ns.get_or_insert_with(|| (ts_ns / tick_ns * tick_ns).saturating_add(tick_ns))
    }

    /// Whether a mark stands before a packet of this time. The end of all time is never due: no mark
    /// would get past a packet that stands there.
    fn reached(ts_ns: u64, due_ns: u64) -> bool {
        ts_ns >= due_ns && due_ns < u64::MAX
    }

    fn next(&mut self, ts_ns: u64) -> Mark {
        let time_ns = ts_ns / self.tick_ns * self.tick_ns;
        self.due_ns = Some(time_ns.saturating_add(self.tick_ns));
        let number = self.number;
        self.number += 1;
        Mark::Tick { number, time_ns }
    }

    /// The marks of a single queue.
    fn mark(&mut self, places: &[Place], high_ns: u64, marks: &mut Vec<(usize, Mark)>) {
        self.high_ns = self.high_ns.max(high_ns);
        let Some(first) = places.first() else { return };
        let mut due_ns = self.due_ns(first.ts_ns);
        let mut at = 0;
        // A chunk without a mark, as nearly all are, is not looked through.
        while Self::reached(high_ns, due_ns) {
            let reached = |place: &Place| place.ts_ns >= due_ns;
            let Some(further) = places[at..].iter().position(reached) else { return };
            at += further;
            marks.push((at, self.next(places[at].ts_ns)));
            due_ns = self.due_ns(0);
        }
    }

    /// Sorts the places of a load into its lists, with marks.
    fn sort(&mut self, load: &mut Load, key: &HashKey, shards: &ShardMap) {
        let Load { chunk, lists } = load;
        self.high_ns = self.high_ns.max(chunk.high_ns());
        let Some(first) = chunk.places.first() else { return };
        // A chunk without a mark, as nearly all are, is not watched.
        let watch = Self::reached(chunk.high_ns(), self.due_ns(first.ts_ns));
        for place in &chunk.places {
            if watch && Self::reached(place.ts_ns, self.due_ns(place.ts_ns)) {
                let mark = self.next(place.ts_ns);
                lists.iter_mut().for_each(|list| list.marks.push((list.places.len(), mark)));
            }
            match pair_hash(key, place.link, chunk.data(place)) {
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
