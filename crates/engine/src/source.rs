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
//! A mark stands before the first packet that brings time to the next multiple of the tick, in every
//! list, so its place depends on the packets alone. What time it is, the [`Timeline`] says. Where it
//! is set back, there are two marks: the first has the time before, the second the time after, and
//! marks go on from there.
//!
//! Loads are made once and circulate: one can be filled again when no queue holds it. So memory is
//! bounded, and who reads cannot run ahead of a queue that is behind: it finds no load free. Nobody
//! ever waits for the lock. No deadlock: a queue is idle when another one has the lock, which lets go
//! of it in the same step (or waits for the source, as any reader does), or when no load is free. Then
//! some queue holds loads, so it has packets to hand out and needs no lock for that; once it has, they
//! are free. A ring has room for all loads, so it is never full.

use std::sync::{Arc, Mutex};

use ringtap_io::capture::{Chunk, Files, Place};
use ringtap_ring::{Consumer, Kind, Producer, ring};
use ringtap_skeleton::ShardMap;
use ringtap_stage::Mark;
use ringtap_wire::{HashKey, REGIONS, pair_hash};

use crate::Watch;
use crate::timeline::{Moved, Timeline};

// Queues take whole regions, so their decoders remember together what a single one would.
const _: () = assert!(REGIONS == ringtap_skeleton::MOST_QUEUES);

/// Packets and marks of a load that there is room for from the start: rarely are there more.
const USUAL_PLACES: usize = 4_096;
const USUAL_MARKS: usize = 16;

/// Tag of a place that stands in all lists.
pub(crate) const SHARED: u16 = 1;

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
    timeline: Timeline,
    /// Time at which the next mark is due; `None` before the first packet.
    due_ns: Option<u64>,
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
            ticks: Ticks::new(tick_ns.max(1)),
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

    /// Lets somebody look at the files, and at the time by their packets.
    pub(crate) fn with_files<T>(&self, look: impl FnOnce(&mut Files, &Timeline) -> T) -> T {
        let mut reader = self.0.lock().unwrap_or_else(|poison| poison.into_inner());
        let Reader { files, ticks, .. } = &mut *reader;
        look(files, &ticks.timeline)
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
            let mark = Mark::End { time_ns: self.ticks.timeline.end_ns() };
            load.lists.iter_mut().for_each(|list| list.marks.push((0, mark)));
        } else if let [only] = load.lists.as_mut_slice() {
            std::mem::swap(&mut only.places, &mut load.chunk.places);
            self.ticks.mark(&only.places, &load.chunk, &mut only.marks);
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
    fn new(tick_ns: u64) -> Self {
        Self { tick_ns, timeline: Timeline::new(tick_ns), due_ns: None, number: 0 }
    }

    /// Takes a packet; the marks before it.
    fn before(&mut self, ts_ns: u64) -> impl Iterator<Item = Mark> + use<> {
        let moved = self.timeline.see(ts_ns);
        let mut marks = [None; 2];
        if let Some(now_ns) = self.timeline.now_ns() {
            let tick_ns = self.tick_ns;
            let due_ns = *self.due_ns.get_or_insert_with(|| Self::due_after(now_ns, tick_ns));
            if let Moved::Back { from_ns } = moved {
                marks =
                    [Some(self.mark_at(from_ns)), Some(self.mark_at(now_ns / tick_ns * tick_ns))];
                self.due_ns = Some(Self::due_after(now_ns, tick_ns));
            } else if Self::reached(now_ns, due_ns) {
                marks[0] = Some(self.mark_at(now_ns / tick_ns * tick_ns));
                self.due_ns = Some(Self::due_after(now_ns, tick_ns));
            }
        }
        marks.into_iter().flatten()
    }

    fn due_after(now_ns: u64, tick_ns: u64) -> u64 {
        (now_ns / tick_ns * tick_ns).saturating_add(tick_ns)
    }

    /// Whether a mark is due. The end of all time never is: no mark would get past a packet that stands there.
    fn reached(now_ns: u64, due_ns: u64) -> bool {
        now_ns >= due_ns && due_ns < u64::MAX
    }

    fn mark_at(&mut self, time_ns: u64) -> Mark {
        let number = self.number;
        self.number += 1;
        Mark::Tick { number, time_ns }
    }

    /// Takes all packets of a chunk at once, as nearly all chunks can be: none has a mark before it.
    fn pass(&mut self, chunk: &Chunk) -> bool {
        let Some(due_ns) = self.due_ns else { return false };
        !Self::reached(chunk.high_ns(), due_ns)
            && self.timeline.see_all(chunk.low_ns(), chunk.high_ns())
    }

    /// The marks of a single queue, whose places these are.
    fn mark(&mut self, places: &[Place], chunk: &Chunk, marks: &mut Vec<(usize, Mark)>) {
        if self.pass(chunk) {
            return;
        }
        for (at, place) in places.iter().enumerate() {
            marks.extend(self.before(place.ts_ns).map(|mark| (at, mark)));
        }
    }

    /// Sorts the places of a load into its lists, with marks.
    fn sort(&mut self, load: &mut Load, key: &HashKey, shards: &ShardMap) {
        let Load { chunk, lists } = load;
        let watch = !self.pass(chunk);
        for place in &chunk.places {
            if watch {
                for mark in self.before(place.ts_ns) {
                    lists.iter_mut().for_each(|list| list.marks.push((list.places.len(), mark)));
                }
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
