//! Vernier: a fine index that moves with every push beside a coarse one that moves once a batch.
//!
//! ```text
//!  written by the producer                 by the consumer
//!  │ fine: each push │ coarse: a batch │   │ taken: a run │      a group of cache lines each
//!
//!  slots  │ . │ . │ a │ b │ c │ d │ e │ f │ g │ . │ . │
//!            taken ▲   ▲ head  ▲ end   ▲      ▲ tail
//!                      └─ run ─┘       └ coarse
//! ```
//!
//! MCRingBuffer's batches make it fast and leave a lone item invisible until the producer flushes.
//! Here the producer also stores its exact index, on a line that the consumer does not read while
//! it finds items by the coarse one; a store to a line that is not read is nearly free. A consumer
//! that has used up the coarse index reads the fine one after a number of empty polls, its
//! *poll limit*: it doubles, up to [`POLL_LIMIT_MAX`], while such reads find several items (both sides are
//! busy, and frequent reads would move the lines between cores), and halves while they find none
//! (the ring is idle, and the next item should be seen at once). So a lone item is seen after 64
//! polls at the latest. A producer that flushes after each item moves only the coarse index: the
//! first push after a flush moves it, and the next flush has nothing to do. Two indices would be
//! two cache lines that move for one item.
//!
//! The other half is runs: each side processes its own `slot..end`, and does everything except the
//! item itself once a run. The producer prefetches lines ahead, for writing, so it does not wait for
//! each of them to leave the other core.
//!
//! In a run of single pushes the fine index is also the position of the producer: a push writes the
//! item and one word. A second word, its private position, would cost a sixth of the speed of items of
//! a cache line. After a flush or a burst the position is private (`Tail::place`), so that these leave
//! the fine index alone.
//!
//! The slow paths get a side's state by reference. A copy would be read with wide loads just after narrow
//! stores, and such a load waits until all stores before it have left the core.
//!
//! Invariant: taken ≤ head ≤ seen ≤ tail ≤ taken_seen + capacity, counted in items since the start.
//! Slots from head up to tail hold items; the consumer's are those up to `seen`, of which a run is
//! a part. The other slots up to taken_seen + capacity are vacant and the producer's. Either index
//! may be behind the other: single pushes leave the coarse one behind, bursts the fine one.

use super::flavor::{Flavor, Make, RawConsumer, RawProducer, Shape};
use crate::{
    slots::{InvalidCapacity, Slots},
    sync::{Arc, AtomicUsize, CacheLine, Edge, Ordering::Relaxed, observe, publish},
};

/// Items after which the coarse index moves.
const BATCH: usize = 256;
/// Octets of a consumer's run, at most: prefetched at its beginning, and freed at its end.
const RUN: usize = 16 << 10;
/// Most empty polls between two reads of the fine index.
const POLL_LIMIT_MAX: u32 = 63;

/// How lines are prefetched. The values are measured (docs/RINGS.md, "Vernier").
struct Tuning {
    /// Octets between the slot being filled and the one being prefetched, at most.
    ahead: usize,
    /// Octets that the producer prefetches at once, at most.
    group: usize,
    /// Octets of the largest ring in which lines are prefetched before bursts. In a larger one they have
    /// left the consumer's cache by then.
    small: usize,
    /// Whether such bursts are made in pieces of a group, so that no line is prefetched long before its use.
    pieces: bool,
    /// Whether lines are prefetched before single pushes into a larger ring, too.
    large: bool,
    /// Whether the consumer prefetches the runs that it processes in place.
    in_place: bool,
}

impl Tuning {
    /// For processors by AMD, measured on Zen 4; `small` is its second-level cache. They load a run that is
    /// processed in place in time without a prefetch, and are slower with it.
    const AMD: Self = Self {
        ahead: 16 << 10,
        group: 2048,
        small: 1 << 20,
        pieces: true,
        large: false,
        in_place: false,
    };
    /// For others, measured on an Intel Xeon.
    const OTHER: Self = Self {
        ahead: 1024,
        group: 512,
        small: 64 << 10,
        pieces: false,
        large: true,
        in_place: true,
    };

    /// `ahead` in slots, at most a batch and a quarter of the ring. With more, small items and small rings
    /// are slower.
    fn slots_ahead(&self, size: usize, capacity: usize) -> usize {
        (self.ahead / size).min(BATCH).min(capacity / 4)
    }

    /// `group` in slots: half of it in a ring that fits into the first-level cache, and at most a quarter of
    /// the ring.
    fn slots_of_group(&self, size: usize, capacity: usize) -> usize {
        let octets = size * capacity;
        ((octets / 16).clamp(self.group / 2, self.group) / size).min(capacity / 4).max(1)
    }
}

/// The flavour of [`crate::spsc`].
pub struct Vernier;

struct Shared<T> {
    /// Items filled in so far; written by the producer with every single push, rarely by bursts.
    fine: CacheLine<AtomicUsize>,
    /// Items filled in so far; written by the producer once a burst or batch of pushes. The larger one counts.
    coarse: CacheLine<AtomicUsize>,
    /// Items taken out and freed so far; written by the consumer.
    taken: CacheLine<AtomicUsize>,
    /// The slot of `taken`, once the consumer is dropped.
    taken_slot: AtomicUsize,
    /// Slots between the one being filled and the one being prefetched; at most a quarter of the ring.
    ahead: usize,
    /// Slots of a producer's run of single pushes.
    group: usize,
    /// Slots of a piece of a burst, at most.
    piece: usize,
    /// Whether lines are prefetched before each piece of a burst.
    prefetches_bursts: bool,
    /// Whether lines are prefetched before each run of single pushes.
    prefetches_pushes: bool,
    /// Whether the consumer prefetches the runs that it processes in place.
    prefetches_in_place: bool,
    slots: Slots<T>,
}

/// The position of a side. Counts are items since the start and may wrap.
#[derive(Clone, Copy)]
struct Place {
    /// Next slot; equal to `end` when the run is used up.
    slot: usize,
    /// End of the run, at most the capacity.
    end: usize,
    /// The count at slot 0 of this lap.
    lap: usize,
}

impl Place {
    const START: Self = Self { slot: 0, end: 0, lap: 0 };

    #[inline(always)]
    fn count(&self) -> usize {
        self.lap.wrapping_add(self.slot)
    }

    /// Advances by `n` slots of the same lap; a run that this exceeds ends there.
    #[inline(always)]
    fn advance(&mut self, n: usize) {
        self.slot += n;
        self.end = self.end.max(self.slot);
    }

    /// Starts the next lap at the end of one.
    #[inline(always)]
    fn wrap(&mut self, capacity: usize) {
        if self.slot == capacity {
            *self = Self { slot: 0, end: 0, lap: self.lap.wrapping_add(capacity) };
        }
    }
}

/// The producer's state.
struct Tail {
    /// `place.slot` is out of date while `single`.
    place: Place,
    /// In a run of single pushes: the fine index is the position.
    single: bool,
    /// The fine index at which a push takes the slow path: while `single`, the count at `place.end`; else the
    /// fine index as it is.
    stop: usize,
    /// The last `taken` seen.
    taken_seen: usize,
    /// The last `coarse` published.
    published: usize,
    /// Nothing was pushed singly since the last flush.
    flushed: bool,
}

/// What a push does.
enum Next {
    /// Moves the fine index, which is the position.
    Fine,
    /// Moves the coarse index.
    Coarse,
    /// The ring is full.
    Full,
}

/// The consumer's state.
struct Head {
    place: Place,
    /// Number of items known to be filled in.
    seen: usize,
    /// The last `taken` published.
    given: usize,
    /// Empty polls since the last read of the fine index.
    empty: u32,
    /// Empty polls before the next one.
    poll_limit: u32,
}

#[repr(align(128))]
pub struct Producer<T> {
    tail: Tail,
    shared: Arc<Shared<T>>,
}

#[repr(align(128))]
pub struct Consumer<T> {
    head: Head,
    shared: Arc<Shared<T>>,
}

impl<T: Send> Flavor<T> for Vernier {
    type Producer = Producer<T>;
    type Consumer = Consumer<T>;
}

impl<T: Send> Make<T> for Vernier {
    fn ring(Shape { capacity, .. }: Shape) -> Result<(Producer<T>, Consumer<T>), InvalidCapacity> {
        let size = size_of::<T>().max(1);
        let slots = Slots::new(capacity)?;
        let tuning = if is_amd() { Tuning::AMD } else { Tuning::OTHER };
        let group = tuning.slots_of_group(size, capacity);
        let prefetches_bursts = size * capacity <= tuning.small;
        let shared = Arc::new(Shared {
            ahead: tuning.slots_ahead(size, capacity),
            group,
            piece: if prefetches_bursts && tuning.pieces { group } else { capacity },
            prefetches_bursts,
            prefetches_pushes: prefetches_bursts || tuning.large,
            fine: CacheLine::default(),
            coarse: CacheLine::default(),
            taken: CacheLine::default(),
            taken_slot: AtomicUsize::new(0),
            prefetches_in_place: tuning.in_place,
            slots,
        });
        let tail = Tail {
            place: Place::START,
            single: false,
            stop: 0,
            taken_seen: 0,
            published: 0,
            flushed: true,
        };
        let head = Head { place: Place::START, seen: 0, given: 0, empty: 0, poll_limit: 0 };
        Ok((Producer { tail, shared: Arc::clone(&shared) }, Consumer { head, shared }))
    }
}

/// Whether this is a processor by AMD.
#[cfg(all(target_arch = "x86_64", not(any(miri, loom))))]
fn is_amd() -> bool {
    let vendor = core::arch::x86_64::__cpuid(0);
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    name.as_flattened() == b"AuthenticAMD"
}

#[cfg(not(all(target_arch = "x86_64", not(any(miri, loom)))))]
fn is_amd() -> bool {
    false
}

impl<T> Shared<T> {
    #[inline(always)]
    fn capacity(&self) -> usize {
        self.slots.space().capacity
    }

    /// Slots known to be vacant; reads `taken` if they are fewer than `wanted`.
    #[inline(always)]
    fn vacant(&self, tail: &mut Tail, wanted: usize) -> usize {
        let held = |tail: &Tail| tail.place.count().wrapping_sub(tail.taken_seen);
        if self.capacity() - held(tail) < wanted {
            // Pairs with the publication in `publish_freed`.
            tail.taken_seen = observe(Edge::Slots, &self.taken.0);
        }
        self.capacity() - held(tail)
    }

    /// Moves the fine index to the items filled in.
    #[inline(always)]
    fn publish_fine(&self, tail: &mut Tail) {
        let count = tail.place.count();
        // Pairs with the observation in `look`.
        publish(Edge::Items, &self.fine.0, count);
        if !tail.single {
            tail.stop = count;
        }
    }

    /// The fine index; only the producer may call this.
    #[inline(always)]
    fn fine(&self) -> usize {
        // Relaxed: the producer reads what it alone writes.
        self.fine.0.load(Relaxed)
    }

    /// Brings `place` up to date.
    #[inline(always)]
    fn locate(&self, tail: &mut Tail) {
        if tail.single {
            tail.place.slot = self.fine().wrapping_sub(tail.place.lap);
        }
    }

    /// Ends a run of single pushes: the position is `place`, and the fine index may stay behind it.
    #[inline(always)]
    fn leave_fine(&self, tail: &mut Tail) {
        if tail.single {
            self.locate(tail);
            tail.single = false;
            tail.stop = self.fine();
        }
    }

    /// Moves the coarse index to the items filled in.
    #[inline(always)]
    fn publish_coarse(&self, tail: &mut Tail) {
        let count = tail.place.count();
        // Bursts leave the fine index behind. Behind by half of all counts (2³¹ items with 32-bit
        // words) it would look newer than the coarse one, so it follows once a quarter.
        if (count ^ tail.published) >> (usize::BITS - 2) != 0 {
            self.publish_fine(tail);
        }
        tail.published = count;
        // Pairs with the observation in `look`.
        publish(Edge::Items, &self.coarse.0, tail.published);
    }

    /// Prefetches the lines of `n` slots ahead of `slot`, for writing.
    #[inline(always)]
    fn fetch_ahead(&self, slot: usize, n: usize) {
        self.slots.prefetch_for_write(self.slots.space().slot(slot + self.ahead), n);
    }

    /// Prepares a push that takes the slow path: the first of a run, the first after a burst, and the first
    /// two after a flush. It does not get the item, which would be copied.
    #[cold]
    #[inline(never)]
    fn next_push(&self, tail: &mut Tail) -> Next {
        self.locate(tail);
        if tail.place.slot == tail.place.end {
            self.producers_run(tail);
            if tail.place.slot == tail.place.end {
                return Next::Full;
            }
        }
        if tail.flushed {
            self.leave_fine(tail);
            tail.flushed = false;
            return Next::Coarse;
        }
        if !tail.single {
            self.publish_fine(tail);
            tail.single = true;
        }
        tail.stop = tail.place.lap.wrapping_add(tail.place.end);
        Next::Fine
    }

    /// The next run of a producer that pushes singly; empty if the ring is full.
    fn producers_run(&self, tail: &mut Tail) {
        let capacity = self.capacity();
        tail.place.wrap(capacity);
        // A quarter: a producer that keeps up with its consumer rarely reads the index.
        let vacant = self.vacant(tail, capacity / 4 + 1);
        let pending = tail.place.count().wrapping_sub(tail.published);
        if pending >= BATCH.min(capacity.div_ceil(4)) || (vacant == 0 && pending > 0) {
            self.publish_coarse(tail);
        }
        let slot = tail.place.slot;
        let run = vacant.min(capacity - slot).min(self.group);
        if run > 0 && self.prefetches_pushes {
            self.fetch_ahead(slot, run);
        }
        tail.place.end = slot + run;
    }

    /// The next run of a consumer; empty if nothing is visible. Frees the slots of the last one.
    #[inline]
    fn consumers_run(&self, head: &mut Head, prefetch: bool) {
        let capacity = self.capacity();
        head.place.wrap(capacity);
        self.publish_freed(head);
        let known = |head: &Head| head.seen.wrapping_sub(head.place.count());
        if known(head) == 0 {
            self.look(head);
        }
        let size = size_of::<T>().max(1);
        let most = (RUN / size).clamp(1, capacity.div_ceil(2));
        let run = known(head).min(capacity - head.place.slot).min(most);
        // Smaller items arrive in time without it: many of them share a line.
        if prefetch && size >= 64 {
            self.slots.prefetch_for_read(head.place.slot, run);
        }
        head.place.end = head.place.slot + run;
    }

    /// The next run of a consumer that takes single items; empty if nothing is visible.
    #[cold]
    #[inline(never)]
    fn consumers_next_run(&self, head: &mut Head) {
        self.consumers_run(head, true);
    }

    /// Searches for items after the head, none of which is known.
    fn look(&self, head: &mut Head) {
        let newer = |head: &Head, index: usize| (index.wrapping_sub(head.seen) as isize) > 0;
        // Pairs with the publication in `publish_coarse`.
        let coarse = observe(Edge::Items, &self.coarse.0);
        if newer(head, coarse) {
            (head.seen, head.empty) = (coarse, 0);
            return;
        }
        head.empty += 1;
        if head.empty <= head.poll_limit {
            return;
        }
        head.empty = 0;
        // Pairs with the publication in `publish_fine`.
        let fine = observe(Edge::Items, &self.fine.0);
        if newer(head, fine) {
            // One item is not a stream: a side that answers each item must not wait.
            if fine.wrapping_sub(head.seen) > 1 {
                head.poll_limit = (2 * head.poll_limit + 1).min(POLL_LIMIT_MAX);
            }
            head.seen = fine;
        } else {
            head.poll_limit /= 2;
        }
    }

    /// Publishes emptied slots. Without new ones it stores nothing, because the producer reads that
    /// line.
    #[inline(always)]
    fn publish_freed(&self, head: &mut Head) {
        let count = head.place.count();
        if head.given != count {
            head.given = count;
            // Pairs with the observation in `vacant`.
            publish(Edge::Slots, &self.taken.0, count);
        }
    }
}

impl<T> Producer<T> {
    /// The next slot, and how many of the `n` slots from there on are filled next: up to the wrap-around,
    /// and in a small ring a group, ahead of which it prefetches.
    #[inline(always)]
    fn piece(&mut self, n: usize) -> (usize, usize) {
        let capacity = self.shared.capacity();
        self.tail.place.wrap(capacity);
        let slot = self.tail.place.slot;
        let piece = n.min(capacity - slot).min(self.shared.piece);
        if self.shared.prefetches_bursts {
            self.shared.fetch_ahead(slot, piece);
        }
        (slot, piece)
    }

    /// Publishes what is pending: after a burst, and on flush.
    #[inline(always)]
    fn publish(&mut self) {
        if self.tail.published != self.tail.place.count() {
            self.shared.publish_coarse(&mut self.tail);
        }
    }
}

impl<T: Send> RawProducer<T> for Producer<T> {
    #[inline]
    fn push(&mut self, value: T) -> Result<(), T> {
        let Self { tail, shared } = self;
        if shared.fine() == tail.stop {
            match shared.next_push(tail) {
                Next::Fine => {}
                Next::Coarse => {
                    // SAFETY: the slots of the run are vacant and the producer's, and `place` is up to date.
                    unsafe { shared.slots.write(tail.place.slot, value) };
                    tail.place.slot += 1;
                    shared.publish_coarse(tail);
                    return Ok(());
                }
                Next::Full => return Err(value),
            }
        }
        let count = shared.fine();
        // SAFETY: the slots of the run are vacant and the producer's, and the fine index is the position.
        unsafe { shared.slots.write(count.wrapping_sub(tail.place.lap), value) };
        // Pairs with the observation in `look`.
        publish(Edge::Items, &shared.fine.0, count.wrapping_add(1));
        Ok(())
    }

    #[inline]
    fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        self.shared.leave_fine(&mut self.tail);
        let n = self.shared.vacant(&mut self.tail, values.len()).min(values.len());
        let mut copied = 0;
        while copied < n {
            let (slot, piece) = self.piece(n - copied);
            // SAFETY: `vacant` found n slots from the tail on; a piece ends at the wrap-around.
            unsafe { self.shared.slots.copy_in(slot, &values[copied..copied + piece]) };
            self.tail.place.advance(piece);
            copied += piece;
        }
        self.publish();
        n
    }

    fn free(&mut self, wanted: usize) -> usize {
        self.shared.locate(&mut self.tail);
        let free = self.shared.vacant(&mut self.tail, wanted);
        if free == 0 {
            self.flush();
        }
        free
    }

    #[inline]
    fn fill(&mut self, max: usize, mut make: impl FnMut(usize) -> T) -> usize {
        self.shared.leave_fine(&mut self.tail);
        let n = self.shared.vacant(&mut self.tail, max).min(max);
        let mut made = 0;
        while made < n {
            let (slot, piece) = self.piece(n - made);
            // Counted on drop, also after a panic in `make`: the items before are in the ring.
            let mut filled = Filled { producer: self, n: 0 };
            let slots = &filled.producer.shared.slots;
            // SAFETY: `vacant` found n slots from the tail on; a piece ends at the wrap-around.
            unsafe { slots.fill(slot, piece, &mut filled.n, |i| make(made + i)) };
            drop(filled);
            made += piece;
        }
        self.publish();
        n
    }

    #[inline]
    fn flush(&mut self) {
        self.shared.leave_fine(&mut self.tail);
        self.tail.flushed = true;
        self.publish();
    }
}

/// Counts the slots that were filled, however the filling ended.
struct Filled<'a, T> {
    producer: &'a mut Producer<T>,
    n: usize,
}

impl<T> Drop for Filled<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.producer.tail.place.advance(self.n);
    }
}

impl<T: Send> RawConsumer<T> for Consumer<T> {
    #[inline]
    fn pop(&mut self) -> Option<T> {
        if self.head.place.slot == self.head.place.end {
            self.shared.consumers_next_run(&mut self.head);
            if self.head.place.slot == self.head.place.end {
                return None;
            }
        }
        // SAFETY: the slots of the run hold items and are the consumer's.
        let value = unsafe { self.shared.slots.take(self.head.place.slot) };
        self.head.place.slot += 1;
        Some(value)
    }

    #[inline]
    fn peek(&mut self, max: usize) -> &[T] {
        if self.head.place.slot == self.head.place.end {
            self.shared.consumers_run(&mut self.head, self.shared.prefetches_in_place);
        }
        let Place { slot, end, .. } = self.head.place;
        // SAFETY: the slots of the run hold items and are the consumer's, which is borrowed as long
        // as the slice.
        unsafe { self.shared.slots.items(slot, (end - slot).min(max)) }
    }

    #[inline]
    fn release(&mut self, n: usize) {
        let Place { slot, end, .. } = self.head.place;
        assert!(n <= end - slot, "release of {n} items, but {} were peeked", end - slot);
        // Counted before the drops, so an item whose drop panics is not dropped again. The slots are
        // published after the drops.
        self.head.place.slot += n;
        // SAFETY: these slots hold items, are the consumer's, and are counted as vacant.
        unsafe { self.shared.slots.drop_items(slot, n) };
        let held = self.head.place.count().wrapping_sub(self.head.given);
        if self.head.place.slot == end || held >= BATCH.min(self.shared.capacity() / 8) {
            self.shared.publish_freed(&mut self.head);
        }
    }

    /// Also makes the next poll read the fine index.
    #[inline]
    fn flush(&mut self) {
        self.head.empty = self.head.poll_limit;
        self.shared.publish_freed(&mut self.head);
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        // Relaxed: the drop of the last handle orders it before the drop of what they share.
        self.shared.taken_slot.store(self.head.place.slot, Relaxed);
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let space = self.slots.space();
        let filled = observe(Edge::Items, &self.coarse.0);
        let taken = observe(Edge::Slots, &self.taken.0);
        let slot = space.slot(self.taken_slot.load(Relaxed));
        // SAFETY: both handles are gone and published where they stood, so these slots hold items
        // and no other reference exists.
        unsafe { self.slots.drop_between(slot, space.forward(slot, filled.wrapping_sub(taken))) }
    }
}
