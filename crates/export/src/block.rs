//! Blocks of encoded records, which workers pass to the writer of an output.
//!
//! ```text
//! worker 0: record ─▶ encoder ─▶ block ─ ring ─▶ ┐
//!             ▲                   (128 KiB)      ├─▶ writer ─▶ file, collector
//! worker 1: record ─▶ encoder ─▶ block ─ ring ─▶ ┘
//!             └───────── empty blocks ◀─ ring ────┘
//! ```
//!
//! A block is allocated when it is first needed, and used again from then on, so a fast output needs few, and the
//! number is limited. Without an empty block, a worker drops records and counts them (live), or waits (files).

use std::sync::Arc;
use std::time::Duration;

use ringtap_flow::RecordSink;
use ringtap_ring::{Consumer, InvalidCapacity, Producer, Vernier};

use crate::periods::{Period, Progress};
use crate::shared::{Shared, now};
use crate::{Reason, RecordTotals};

/// Bytes after which a block is handed over; less if memory is short.
pub(crate) const BLOCK: usize = 128 << 10;

/// Least bytes of a block: a message of any protocol fits.
pub(crate) const LEAST_BLOCK: usize = 16 << 10;

/// Least blocks of a worker: one in use, one in the ring, one being written, one in reserve.
const LEAST_BLOCKS: usize = 4;

/// Most time that a worker may spend waiting for a collector, in all.
const WAIT_BUDGET: Duration = Duration::from_secs(10);

/// Added to the remaining waiting time for each record that is taken.
const REGAIN: Duration = Duration::from_millis(1);

/// Longest single wait for an empty block.
const STEP: Duration = Duration::from_millis(5);

/// The contents of a block: encoded records of one output.
pub(crate) trait Payload: Send + 'static {
    /// Approximate size in bytes.
    fn len(&self) -> usize;

    /// Removes the contents and keeps the memory.
    fn clear(&mut self);
}

/// Encodes the items of one worker: flow records or events.
pub(crate) trait Encode: Send + 'static {
    /// The type of the items.
    type Item;

    /// The buffer for encoded records.
    type Payload: Payload;

    /// An empty payload that is full at `bytes`.
    fn payload(&self, bytes: usize) -> Self::Payload;

    /// Appends an item, and adds its counts to `flows`.
    ///
    /// # Errors
    /// The reason why the output cannot represent it.
    fn add(
        &mut self,
        item: &Self::Item,
        payload: &mut Self::Payload,
        flows: &mut RecordTotals,
    ) -> Result<(), Reason>;

    /// Completes the payload: nothing is appended after it.
    fn seal(&mut self, _payload: &mut Self::Payload) {}

    /// The counts of an item in this output, also if it is not appended.
    fn counts_of(&self, item: &Self::Item) -> RecordTotals;
}

/// Encoded records, and their counts.
pub(crate) struct Block<P> {
    pub(crate) payload: P,
    pub(crate) flows: RecordTotals,
    /// The period in which it was handed over.
    period: Period,
    /// Size in bytes when it was handed over.
    bytes: usize,
}

/// The sizes of blocks, and the behaviour without an empty block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes of a block.
    pub(crate) block: usize,
    /// Blocks of each worker.
    pub(crate) blocks: usize,
    /// True if a worker waits for an empty block.
    pub(crate) waits: bool,
    /// True if a worker hands over its block at every mark, unless the writer is behind.
    pub(crate) prompt: bool,
    /// The length of the periods in which blocks are written, if there are some.
    pub(crate) period_ns: Option<u64>,
}

impl Room {
    /// Divides `bytes` of memory among `workers`.
    pub(crate) fn new(bytes: usize, workers: usize, waits: bool, prompt: bool) -> Self {
        let each = bytes / workers.max(1);
        let block = (each / LEAST_BLOCKS).clamp(LEAST_BLOCK, BLOCK);
        let blocks = (each / block).max(LEAST_BLOCKS);
        Self { block, blocks, waits, prompt, period_ns: None }
    }
}

type BoxedBlock<E> = Box<Block<<E as Encode>::Payload>>;

/// The worker's end.
pub(crate) struct Sender<E: Encode> {
    encoder: E,
    block: Option<BoxedBlock<E>>,
    full: Producer<BoxedBlock<E>, Vernier>,
    empty: Consumer<BoxedBlock<E>, Vernier>,
    /// Blocks that may still be allocated.
    unmade: usize,
    room: Room,
    wait_left: Duration,
    round: u32,
    period: Period,
    progress: Arc<Progress>,
    shared: Arc<Shared>,
}

/// The writer's end of one worker.
pub(crate) struct Inbox<P: Send> {
    full: Consumer<Box<Block<P>>, Vernier>,
    empty: Producer<Box<Block<P>>, Vernier>,
    /// A block of a later period than that which is written.
    held: Option<Box<Block<P>>>,
    progress: Arc<Progress>,
}

/// Creates the two ends between a worker and the writer.
pub(crate) fn lane<E: Encode>(
    encoder: E,
    room: Room,
    shared: Arc<Shared>,
) -> Result<(Sender<E>, Inbox<E::Payload>), InvalidCapacity> {
    let (full_in, full_out) = ringtap_ring::spsc(room.blocks)?;
    let (empty_in, empty_out) = ringtap_ring::spsc(room.blocks)?;
    let progress = Arc::<Progress>::default();
    let sender = Sender {
        encoder,
        block: None,
        full: full_in,
        empty: empty_out,
        unmade: room.blocks,
        room,
        wait_left: WAIT_BUDGET,
        round: 0,
        period: Period::NONE,
        progress: Arc::clone(&progress),
        shared,
    };
    Ok((sender, Inbox { full: full_out, empty: empty_in, held: None, progress }))
}

impl<E: Encode> Sender<E> {
    /// Gets an empty block. The error is the reason why there is none.
    fn begin(&mut self) -> Result<(), Reason> {
        self.block = self.empty.pop();
        if self.block.is_none() && self.unmade > 0 {
            self.unmade -= 1;
            let payload = self.encoder.payload(self.room.block);
            let (flows, period) = (RecordTotals::default(), Period::NONE);
            self.block = Some(Box::new(Block { payload, flows, period, bytes: 0 }));
        }
        if self.block.is_some() {
            return Ok(());
        }
        self.progress.set_starved(true);
        let waited = self.wait();
        self.progress.set_starved(false);
        waited
    }

    /// Waits for an empty block, while the output may still take one.
    #[cold]
    fn wait(&mut self) -> Result<(), Reason> {
        if !self.room.waits {
            return Err(Reason::NoRoom);
        }
        self.shared.wake_writer();
        loop {
            if self.shared.over() {
                return Err(Reason::TooLate);
            }
            // A collector may come back soon; a full disk is not waited for.
            let collector = self.shared.is_collector();
            if self.full.is_abandoned() || (!collector && self.shared.is_failing()) {
                return Err(Reason::Failed);
            }
            if collector && self.wait_left.is_zero() {
                return Err(Reason::NoRoom);
            }
            let before = now();
            self.empty.park(STEP);
            self.wait_left = self.wait_left.saturating_sub(before.elapsed());
            self.block = self.empty.pop();
            if self.block.is_some() {
                return Ok(());
            }
        }
    }

    fn hand_over(&mut self) {
        let Some(mut block) = self.block.take() else { return };
        if block.flows.records == 0 {
            self.block = Some(block);
            return;
        }
        self.encoder.seal(&mut block.payload);
        let regained =
            REGAIN.saturating_mul(u32::try_from(block.flows.records).unwrap_or(u32::MAX));
        self.wait_left = self.wait_left.saturating_add(regained).min(WAIT_BUDGET);
        block.bytes = block.payload.len();
        block.period = self.period;
        self.shared.hand_over(block.flows, block.bytes);
        // The ring has room for all blocks. If the writer has ended, the blocks in the ring are counted as lost at the
        // end of the run.
        let _ = self.full.push(block);
        self.full.flush();
    }
}

impl<E: Encode> RecordSink<E::Item> for Sender<E> {
    fn take(&mut self, item: &E::Item) {
        if self.block.is_none()
            && let Err(reason) = self.begin()
        {
            return self.shared.drop_made(reason, self.encoder.counts_of(item));
        }
        let Some(block) = &mut self.block else { return };
        let Block { payload, flows, .. } = &mut **block;
        match self.encoder.add(item, payload, flows) {
            Ok(()) => {
                if block.payload.len() >= self.room.block {
                    self.hand_over();
                }
            }
            Err(reason) => self.shared.drop_made(reason, self.encoder.counts_of(item)),
        }
    }

    fn time(&mut self, time_ns: u64) {
        let Some(every_ns) = self.room.period_ns else { return };
        let period = self.period.at(time_ns, every_ns);
        if period != self.period {
            self.hand_over();
            self.period = period;
            self.progress.reach(period);
        }
    }

    fn mark(&mut self) {
        let round = self.shared.round();
        // While the writer is behind, blocks should be full, because their number is limited.
        let prompt = self.room.prompt && self.full.free() * 2 >= self.full.capacity();
        if prompt || round != self.round {
            self.round = round;
            self.hand_over();
        }
    }

    fn ending(&mut self) {
        // No more packets arrive, so waiting loses none.
        self.room.waits = true;
        self.shared.end();
    }

    fn finish(&mut self) {
        self.hand_over();
        self.full.close();
        self.shared.wake_writer();
    }
}

impl<P: Payload> Inbox<P> {
    /// A full block, if there is one of this period or an earlier one. A later one is held until its period, or until
    /// its worker waits for it.
    pub(crate) fn take(&mut self, now: Period) -> Option<Box<Block<P>>> {
        let block = self.held.take().or_else(|| {
            let block = self.full.pop();
            self.full.flush();
            block
        })?;
        if block.period > now && !self.progress.is_starved() {
            self.held = Some(block);
            return None;
        }
        Some(block)
    }

    /// The period that the worker has reached: all blocks of earlier ones are in the ring.
    pub(crate) fn reached(&self) -> Period {
        self.progress.reached()
    }

    /// The period of the block that is held.
    pub(crate) fn held(&self) -> Option<Period> {
        self.held.as_ref().map(|block| block.period)
    }

    /// Most blocks that can wait.
    pub(crate) fn capacity(&self) -> usize {
        self.empty.capacity()
    }

    /// Returns true if the worker has finished. Blocks may still wait: check before [`take`](Self::take).
    pub(crate) fn is_closed(&self) -> bool {
        self.full.is_closed()
    }

    /// Returns a block to its worker.
    pub(crate) fn give_back(&mut self, mut block: Box<Block<P>>, shared: &Shared) {
        shared.taken(block.bytes);
        block.payload.clear();
        block.flows = RecordTotals::default();
        // The worker may have ended.
        let _ = self.empty.push(block);
        self.empty.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::WaitPolicy;
    use ringtap_flow::{FlowKey, FlowRecord, IpVersion};

    #[derive(Default)]
    struct Ports(Vec<u16>);

    impl Payload for Ports {
        fn len(&self) -> usize {
            2 * self.0.len()
        }

        fn clear(&mut self) {
            self.0.clear();
        }
    }

    struct PortEncoder;

    impl Encode for PortEncoder {
        type Item = FlowRecord;
        type Payload = Ports;

        fn payload(&self, _: usize) -> Ports {
            Ports::default()
        }

        fn add(
            &mut self,
            record: &FlowRecord,
            payload: &mut Ports,
            flows: &mut RecordTotals,
        ) -> Result<(), Reason> {
            payload.0.push(record.key.src_port);
            *flows += self.counts_of(record);
            Ok(())
        }

        fn counts_of(&self, _record: &FlowRecord) -> RecordTotals {
            RecordTotals { records: 1, packets: 1, octets: 1 }
        }
    }

    fn record(number: u16) -> FlowRecord {
        FlowRecord::new(FlowKey {
            version: IpVersion::V4,
            src: [0; 16],
            dst: [0; 16],
            src_port: number,
            dst_port: 0,
            protocol: 17,
        })
    }

    fn shared() -> Arc<Shared> {
        Arc::new(Shared::new("test".into(), WaitPolicy::Pipe, false))
    }

    fn room(waits: bool) -> Room {
        Room { block: 8, blocks: 3, waits, prompt: false, period_ns: None }
    }

    #[test]
    fn memory_is_divided_and_never_too_little() {
        let room = Room::new(32 << 20, 2, false, false);
        assert_eq!((room.block, room.blocks), (BLOCK, 128));
        let room = Room::new(1 << 20, 16, false, false);
        assert_eq!((room.block, room.blocks), (LEAST_BLOCK, 4));
        let room = Room::new(0, 512, false, false);
        assert_eq!((room.block, room.blocks), (LEAST_BLOCK, 4));
    }

    #[test]
    fn a_live_run_drops_and_counts_records_without_room() {
        let shared = shared();
        let (mut sender, mut inbox) = lane(PortEncoder, room(false), Arc::clone(&shared)).unwrap();
        (0..20).for_each(|number| sender.take(&record(number)));
        let status = shared.status();
        assert_eq!((status.made, status.lost(Reason::NoRoom)), (20, 8), "three blocks of four");
        assert_eq!(status.queued_bytes, 24);
        let block = inbox.take(Period::NONE).unwrap();
        assert_eq!(block.payload.0, [0, 1, 2, 3]);
        inbox.give_back(block, &shared);
        (20..24).for_each(|number| sender.take(&record(number)));
        assert_eq!(shared.status().lost(Reason::NoRoom), 8);
        let mut rest = Vec::new();
        sender.finish();
        while let Some(block) = inbox.take(Period::NONE) {
            rest.extend_from_slice(&block.payload.0);
            inbox.give_back(block, &shared);
        }
        assert_eq!(rest, [4, 5, 6, 7, 8, 9, 10, 11, 20, 21, 22, 23]);
        assert!(inbox.is_closed());
        assert_eq!(shared.status().queued_bytes, 0);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test with two threads")]
    fn a_run_over_files_waits_and_loses_nothing() {
        let shared = shared();
        let (mut sender, mut inbox) = lane(PortEncoder, room(true), Arc::clone(&shared)).unwrap();
        let worker = std::thread::spawn(move || {
            (0..1000).for_each(|number| sender.take(&record(number)));
            sender.finish();
        });
        let mut all = Vec::new();
        loop {
            let closed = inbox.is_closed();
            match inbox.take(Period::NONE) {
                Some(block) => {
                    all.extend_from_slice(&block.payload.0);
                    inbox.give_back(block, &shared);
                }
                None if closed => break,
                None => std::thread::yield_now(),
            }
        }
        worker.join().unwrap();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn an_interrupt_ends_a_wait() {
        let shared = shared();
        let (mut sender, _inbox) = lane(PortEncoder, room(true), Arc::clone(&shared)).unwrap();
        shared.interrupt();
        (0..20).for_each(|number| sender.take(&record(number)));
        assert_eq!(shared.status().lost(Reason::TooLate), 8);
    }

    #[test]
    fn a_failing_file_or_an_ended_writer_is_not_waited_for() {
        let shared = shared();
        let (mut sender, inbox) = lane(PortEncoder, room(true), Arc::clone(&shared)).unwrap();
        shared.fails(&"disk full");
        (0..20).for_each(|number| sender.take(&record(number)));
        assert_eq!(shared.status().lost(Reason::Failed), 8);
        shared.works();
        drop(inbox);
        (0..20).for_each(|number| sender.take(&record(number)));
        assert!(shared.status().lost(Reason::Failed) >= 20);
    }

    #[test]
    fn a_later_period_is_held_until_it_begins_or_its_worker_has_no_other_block() {
        let shared = shared();
        let room = Room { period_ns: Some(10), ..room(true) };
        let (mut sender, mut inbox) = lane(PortEncoder, room, Arc::clone(&shared)).unwrap();
        sender.time(15);
        let first = inbox.reached();
        sender.take(&record(1));
        sender.time(19);
        assert!(inbox.take(first).is_none(), "the period goes on");
        sender.time(20);
        let second = inbox.reached();
        assert!(second > first);
        sender.take(&record(2));
        sender.time(30);
        assert_eq!(inbox.take(first).unwrap().payload.0, [1]);
        assert!(inbox.take(first).is_none());
        assert_eq!(inbox.held(), Some(second));
        inbox.progress.set_starved(true);
        assert_eq!(inbox.take(first).unwrap().payload.0, [2]);
        inbox.progress.set_starved(false);
        sender.take(&record(3));
        sender.finish();
        assert!(inbox.take(second).is_none());
        assert_eq!(inbox.take(inbox.reached()).unwrap().payload.0, [3]);
    }

    #[test]
    fn a_mark_hands_over_only_on_request() {
        let shared = shared();
        let (mut sender, mut inbox) = lane(PortEncoder, room(true), Arc::clone(&shared)).unwrap();
        sender.take(&record(1));
        sender.mark();
        assert_eq!(inbox.take(Period::NONE).unwrap().payload.0, [1], "the first mark");
        sender.take(&record(2));
        sender.mark();
        assert!(inbox.take(Period::NONE).is_none());
        shared.next_round();
        sender.mark();
        assert_eq!(inbox.take(Period::NONE).unwrap().payload.0, [2]);
        shared.next_round();
        sender.mark();
        assert!(inbox.take(Period::NONE).is_none(), "an empty block stays");
    }
}
