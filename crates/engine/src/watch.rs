//! The progress of a run, readable from outside, and requests to it: to stop, to select other packets.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ringtap_base::Counter;
use ringtap_extract::Unread;
use ringtap_io::bpf::Expression;
use ringtap_skeleton::MOST_QUEUES;

/// Which packets a run handles.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The packets that this selects; `None`: all.
    pub filter: Option<Arc<Expression>>,
    /// One in `sample` of them; at least 1.
    pub sample: u32,
}

/// Progress, written by the feeds, changes of interfaces, written by the attendant thread, and the
/// request to stop.
#[derive(Debug, Default)]
pub struct Watch {
    /// Packets read so far.
    pub packets: Gauge,
    /// Bytes read so far: of files as stored, of frames as captured.
    pub bytes: Gauge,
    /// Packets lost so far before they could be read.
    pub dropped: Gauge,
    /// Packets shed so far under overload.
    pub shed: Gauge,
    /// Packets that arrived in another queue than earlier packets of the same address pair.
    pub split: Gauge,
    /// Address pairs of which both directions arrived in one queue; one pair in 64 is checked.
    pub pairs_checked: Gauge,
    /// Gauges of each interface.
    pub interfaces: InterfaceGauges,
    /// First fragments evicted so far for lack of room; their later fragments may lack ports.
    pub fragments_forgotten: Gauge,
    /// Packets left out so far because they were seen before.
    pub duplicates: Gauge,
    /// Packets evicted so far before their duplicates could come.
    pub duplicates_evicted: Gauge,
    /// Messages read from payloads so far.
    pub messages: Gauge,
    /// Payloads that could not be read so far, by [`Unread`].
    pub unread_payloads: [Gauge; Unread::ALL.len()],
    /// Rounds of each queue's reader. They grow while the reader makes progress, with or without
    /// packets.
    pub beats: Gauge,
    /// How often the time of packets was set, and by how much the last time.
    set: AtomicU64,
    set_by_ns: AtomicI64,
    stop: AtomicBool,
    /// The latest selection of a run over interfaces, and how many there were.
    selection: Mutex<Option<Selection>>,
    selections: AtomicU32,
}

impl Watch {
    /// As [`Watch::new`], on the heap. The counters take half a megabyte, and without optimisation their copies on the
    /// caller's stack would be several of that.
    #[inline(never)]
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::new())
    }

    /// All counters zero.
    pub const fn new() -> Self {
        Self {
            packets: Gauge::new(),
            bytes: Gauge::new(),
            dropped: Gauge::new(),
            shed: Gauge::new(),
            split: Gauge::new(),
            pairs_checked: Gauge::new(),
            interfaces: InterfaceGauges::new(),
            fragments_forgotten: Gauge::new(),
            duplicates: Gauge::new(),
            duplicates_evicted: Gauge::new(),
            messages: Gauge::new(),
            unread_payloads: [const { Gauge::new() }; Unread::ALL.len()],
            beats: Gauge::new(),
            set: AtomicU64::new(0),
            set_by_ns: AtomicI64::new(0),
            stop: AtomicBool::new(false),
            selection: Mutex::new(None),
            selections: AtomicU32::new(0),
        }
    }

    /// Packet time was set `count` times, by `last_ns` the last time.
    pub(crate) fn clock_set(&self, count: u64, last_ns: i64) {
        if self.set.load(Ordering::Relaxed) < count {
            self.set_by_ns.store(last_ns, Ordering::Relaxed);
            // Pairs with the Acquire load in `clock`: a thread that sees the count sees the step.
            self.set.fetch_max(count, Ordering::Release);
        }
    }

    /// How often the time of packets was set, and by how many nanoseconds the last time.
    pub fn clock(&self) -> (u64, i64) {
        let count = self.set.load(Ordering::Acquire);
        (count, self.set_by_ns.load(Ordering::Relaxed))
    }

    /// Requests that the readers of interfaces handle these packets from now on.
    pub fn select(&self, selection: Selection) {
        let mut latest = self.selection.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some(selection);
        // Relaxed: the lock orders the selection.
        self.selections.fetch_add(1, Ordering::Relaxed);
    }

    /// The latest selection, if any was requested.
    pub fn selection(&self) -> Option<Selection> {
        self.selection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The latest selection, unless it was the one of this number, which is updated.
    #[inline]
    pub(crate) fn selection_since(&self, number: &mut u32) -> Option<Selection> {
        let now = self.selections.load(Ordering::Relaxed);
        if now == *number {
            return None;
        }
        *number = now;
        self.selection()
    }

    /// Requests that the run reads no further: all flows are flushed and the report is made.
    pub fn stop(&self) {
        // Relaxed: it carries no data; the feed reads it once a burst.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested. A source that waits for bytes should check it regularly.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The most interfaces that are read as one stream.
pub const MOST_INTERFACES: usize = 16;

const _: () = assert!(MOST_INTERFACES <= u32::BITS as usize, "a bit of `gone` and `down` for each");

/// Counters by interface and queue; interfaces by their place in the list.
#[derive(Debug)]
pub struct InterfaceGauges {
    parts: [[InterfacePart; MOST_QUEUES]; MOST_INTERFACES],
    /// A bit for each interface.
    gone: AtomicU32,
    /// A bit for each interface that is down or without a carrier.
    down: AtomicU32,
    changes: [[Counter; LinkChange::ALL.len()]; MOST_INTERFACES],
}

/// A change of an interface during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// The interface went down or lost its carrier.
    Down,
    /// The interface got another MTU.
    Mtu,
    /// The interface got another name.
    Name,
}

impl LinkChange {
    /// All changes.
    pub const ALL: [Self; 3] = [Self::Down, Self::Mtu, Self::Name];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Mtu => "mtu",
            Self::Name => "name",
        }
    }
}

/// On its own cache line, written by the queue's thread alone.
#[derive(Debug)]
#[repr(align(64))]
struct InterfacePart {
    packets: Counter,
    bytes: Counter,
    dropped: Counter,
}

impl InterfacePart {
    const fn new() -> Self {
        Self { packets: Counter::new(), bytes: Counter::new(), dropped: Counter::new() }
    }
}

impl InterfaceGauges {
    const fn new() -> Self {
        let parts = [const { [const { InterfacePart::new() }; MOST_QUEUES] }; MOST_INTERFACES];
        let changes =
            [const { [const { Counter::new() }; LinkChange::ALL.len()] }; MOST_INTERFACES];
        Self { parts, gone: AtomicU32::new(0), down: AtomicU32::new(0), changes }
    }

    pub(crate) fn add(&self, interface: usize, queue: usize, packets: u64, bytes: u64) {
        let own = &self.parts[interface][queue];
        own.packets.add(packets);
        own.bytes.add(bytes);
    }

    pub(crate) fn set_dropped(&self, interface: usize, queue: usize, dropped: u64) {
        let own = &self.parts[interface][queue].dropped;
        own.add(dropped.saturating_sub(own.get()));
    }

    pub(crate) fn set_gone(&self, interface: usize) {
        // Relaxed: it carries no data.
        self.gone.fetch_or(1 << interface, Ordering::Relaxed);
    }

    /// Sets whether an interface is up with a carrier. Only one thread may call this and `add_changes`.
    pub fn set_up(&self, interface: usize, is_up: bool) {
        let bit = 1 << interface;
        // Relaxed: it carries no data.
        if is_up {
            self.down.fetch_and(!bit, Ordering::Relaxed);
        } else {
            self.down.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Counts further changes of an interface.
    pub fn add_changes(&self, interface: usize, change: LinkChange, more: u64) {
        self.changes[interface][change as usize].add(more);
    }

    /// Whether an interface is up with a carrier.
    pub fn is_up(&self, interface: usize) -> bool {
        self.down.load(Ordering::Relaxed) >> interface & 1 == 0
    }

    /// Changes of an interface so far.
    pub fn changes(&self, interface: usize, change: LinkChange) -> u64 {
        self.changes[interface][change as usize].get()
    }

    /// Packets read so far by an interface.
    pub fn packets(&self, interface: usize) -> u64 {
        self.parts[interface].iter().map(|part| part.packets.get()).sum()
    }

    /// Packets so far of an interface, in each of its first queues.
    pub fn queue_packets(&self, interface: usize, queues: usize) -> Vec<u64> {
        self.parts[interface].iter().take(queues).map(|part| part.packets.get()).collect()
    }

    /// Bytes captured so far by an interface.
    pub fn bytes(&self, interface: usize) -> u64 {
        self.parts[interface].iter().map(|part| part.bytes.get()).sum()
    }

    /// Packets of an interface lost so far before they could be read.
    pub fn dropped(&self, interface: usize) -> u64 {
        self.parts[interface].iter().map(|part| part.dropped.get()).sum()
    }

    /// Whether an interface has disappeared.
    pub fn is_gone(&self, interface: usize) -> bool {
        self.gone.load(Ordering::Relaxed) >> interface & 1 == 1
    }
}

impl Default for InterfaceGauges {
    fn default() -> Self {
        Self::new()
    }
}

/// A number to which each queue contributes a part.
#[derive(Debug)]
pub struct Gauge([Part; MOST_QUEUES]);

/// On its own cache line, because queues write often.
#[derive(Debug)]
#[repr(align(64))]
struct Part(Counter);

impl Gauge {
    const fn new() -> Self {
        Self([const { Part(Counter::new()) }; MOST_QUEUES])
    }

    /// Adds to the part of a queue. Only its thread may call it.
    pub fn add(&self, queue: usize, more: u64) {
        self.0[queue].0.add(more);
    }

    /// Sets the part of a queue, which never decreases. Only its thread may call it.
    pub fn set(&self, queue: usize, to: u64) {
        let own = &self.0[queue].0;
        own.add(to.saturating_sub(own.get()));
    }

    /// The sum of all parts.
    pub fn get(&self) -> u64 {
        self.0.iter().map(|part| part.0.get()).sum()
    }

    /// The parts of the first queues.
    pub fn parts(&self, queues: usize) -> Vec<u64> {
        self.0.iter().take(queues).map(|part| part.0.get()).collect()
    }
}

impl Default for Gauge {
    fn default() -> Self {
        Self::new()
    }
}
