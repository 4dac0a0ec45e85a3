//! The two ends of a ring, the same for every kind, and how a ring is closed.
//!
//! ```text
//! Producer ── flavour's own shared memory ──▶ Consumer
//!     └─ closed ──▶    ◀── abandoned ─┘          on cache lines of their own, written once
//! ```
//!
//! Invariant: `closed` is set after everything was published, so a consumer that reads it as set
//! sees every item there will be.

#[cfg(feature = "std")]
use crate::park::Parker;
use crate::{
    flavors::{self, Any, Flavor, Kind, Make, RawConsumer, RawProducer, Shape, Vernier},
    slots::InvalidCapacity,
    sync::{Arc, AtomicBool, CacheLine, Edge, Ordering::Relaxed, observe, publish},
};

#[cfg(feature = "std")]
use core::time::Duration;

/// The two ends of a ring.
pub type Ring<T, F = Any> = (Producer<T, F>, Consumer<T, F>);

/// Makes the fastest ring, of `capacity` items, and returns its two ends.
///
/// It is [`Kind::Vernier`], chosen at compile time: a caller's loop over [`push`](Producer::push)
/// or [`pop`](Consumer::pop) compiles to a few instructions an item.
///
/// # Errors
/// [`InvalidCapacity`] if the capacity is 0 or the slots do not fit in memory.
///
/// ```
/// let (mut producer, mut consumer) = ringtap_ring::spsc(1000)?;
/// std::thread::scope(|scope| {
///     scope.spawn(move || {
///         for number in 0..10_000u64 {
///             while producer.push(number).is_err() {
///                 std::thread::yield_now();
///             }
///         }
///     });
///     let mut sum = 0;
///     loop {
///         let closed = consumer.is_closed();
///         match consumer.pop() {
///             Some(number) => sum += number,
///             None if closed => break,
///             None => std::thread::yield_now(),
///         }
///     }
///     assert_eq!(sum, 10_000 * 9_999 / 2);
/// });
/// # Ok::<(), ringtap_ring::InvalidCapacity>(())
/// ```
pub fn spsc<T: Send>(capacity: usize) -> Result<Ring<T, Vernier>, InvalidCapacity> {
    Ok(ends(Vernier::ring(Shape { capacity, batch: 1 })?, capacity))
}

/// Makes a ring of a kind chosen at run time, of `capacity` items, and returns its two ends.
///
/// `batch` matters to [`Kind::McRing`] only: an index is published when that many items have
/// accumulated. It is clamped to 1 ..= half of the capacity, rounded up. So at least one slot is
/// always visibly full to the consumer or visibly free to the producer, whatever both hold back.
///
/// # Errors
/// [`InvalidCapacity`] if the capacity is 0 or the slots do not fit in memory.
///
/// ```
/// let (mut producer, mut consumer) = ringtap_ring::ring(ringtap_ring::Kind::McRing, 1000, 50)?;
/// assert_eq!(producer.push_burst(&[1, 2, 3]), 3);
/// producer.flush();
/// let items = consumer.peek(256);
/// assert_eq!(items, [1, 2, 3]);
/// let n = items.len();
/// consumer.release(n);
/// producer.close();
/// assert!(consumer.is_closed() && consumer.pop().is_none());
/// # Ok::<(), ringtap_ring::InvalidCapacity>(())
/// ```
pub fn ring<T: Send>(
    kind: Kind,
    capacity: usize,
    batch: usize,
) -> Result<Ring<T>, InvalidCapacity> {
    let batch = batch.min(capacity.div_ceil(2)).max(1);
    Ok(ends(flavors::any(kind, Shape { capacity, batch })?, capacity))
}

fn ends<T: Send, F: Flavor<T>>(
    (producer, consumer): (F::Producer, F::Consumer),
    capacity: usize,
) -> Ring<T, F> {
    let ends = Arc::new(Ends::default());
    (
        Producer { raw: producer, ends: Arc::clone(&ends), capacity, closed: false },
        Consumer { raw: consumer, ends, capacity, peeked: 0 },
    )
}

/// The state that the ends share beside the ring.
#[derive(Default)]
struct Ends {
    /// Written by the producer, once.
    closed: CacheLine<AtomicBool>,
    /// Written by the consumer, once.
    abandoned: CacheLine<AtomicBool>,
    /// The consumer's parker.
    #[cfg(feature = "std")]
    items: Parker,
    /// The producer's parker.
    #[cfg(feature = "std")]
    slots: Parker,
}

/// The producer's end.
///
/// Items may stay invisible to the consumer until a batch is complete. They are published at the
/// latest by [`flush`](Self::flush), by [`close`](Self::close) and `Drop`, and by any call that
/// finds the ring full.
pub struct Producer<T: Send, F: Flavor<T> = Any> {
    raw: F::Producer,
    ends: Arc<Ends>,
    capacity: usize,
    closed: bool,
}

impl<T: Send, F: Flavor<T>> Producer<T, F> {
    /// Appends an item; a full or closed ring returns it.
    ///
    /// # Errors
    /// The value itself, if the ring is full (then everything pending is published) or closed.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.closed { Err(value) } else { self.raw.push(value) }
    }

    /// Appends copies of as many values as fit, in order, and returns their number.
    #[inline]
    pub fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        if self.closed { 0 } else { self.raw.push_burst(values) }
    }

    /// Appends up to `max` items constructed in place, `make(0)`, `make(1)`, …, and returns their
    /// number. `make` is called for free slots only. If it panics, the items before are in the
    /// ring.
    #[inline]
    pub fn fill(&mut self, max: usize, make: impl FnMut(usize) -> T) -> usize {
        if self.closed { 0 } else { self.raw.fill(max, make) }
    }

    /// Number of slots that are free now, at least: as many pushes succeed. Reads the slots that
    /// the consumer has freed; 0 on a closed ring.
    #[inline]
    pub fn free(&mut self) -> usize {
        if self.closed { 0 } else { self.raw.free(self.capacity) }
    }

    /// Publishes everything pushed so far.
    #[inline]
    pub fn flush(&mut self) {
        self.raw.flush();
    }

    /// Publishes everything and ends the stream. Later pushes are refused.
    pub fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            self.raw.flush();
            // Pairs with the observation in `Consumer::is_closed`.
            publish(Edge::Close, &self.ends.closed.0, true);
            #[cfg(feature = "std")]
            self.ends.items.wake();
        }
    }

    /// True once the consumer is dropped: pushed items will not be taken.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        // Relaxed: it orders no other data.
        self.ends.abandoned.0.load(Relaxed)
    }

    /// Publishes everything and wakes the consumer, if it [parks](Consumer::park). Costs a fence:
    /// call it before a pause, not after each item.
    #[cfg(feature = "std")]
    #[inline]
    pub fn wake(&mut self) {
        self.raw.flush();
        self.ends.items.wake();
    }

    /// Publishes everything and sleeps until the consumer [wakes](Consumer::wake) it or is dropped,
    /// at most for `timeout`; not at all if there is a free slot.
    #[cfg(feature = "std")]
    pub fn park(&mut self, timeout: Duration) {
        let Self { raw, ends, .. } = self;
        raw.flush();
        ends.slots.sleep(timeout, || ends.abandoned.0.load(Relaxed) || raw.free(1) > 0);
    }

    /// The capacity in items.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Send, F: Flavor<T>> Drop for Producer<T, F> {
    /// Closes the ring.
    fn drop(&mut self) {
        self.close();
    }
}

/// The consumer's end.
///
/// Emptied slots may stay invisible to the producer until a batch is complete. They are given back
/// at the latest by [`flush`](Self::flush), by `Drop`, and by any call that finds the ring empty.
pub struct Consumer<T: Send, F: Flavor<T> = Any> {
    raw: F::Consumer,
    ends: Arc<Ends>,
    capacity: usize,
    /// Items shown by the last peek, minus those released since.
    peeked: usize,
}

impl<T: Send, F: Flavor<T>> Consumer<T, F> {
    /// Takes the item at the front, if one is published.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        self.raw.pop()
    }

    /// Published items at the front, in place: at most `max`, at least one if there is any and
    /// `max` > 0. It may be fewer than are published: items before the wrap-around come first, and
    /// [`Kind::FastForward`] shows one at a time. Call it again after [`release`](Self::release).
    #[inline]
    pub fn peek(&mut self, max: usize) -> &[T] {
        let items = self.raw.peek(max);
        self.peeked = items.len();
        items
    }

    /// Drops the first `n` items, which a [`peek`](Self::peek) showed, and frees their slots. If an
    /// item panics when it is dropped, none is dropped twice.
    ///
    /// # Panics
    /// If `n` exceeds the items shown by the last peek minus those released since.
    #[inline]
    pub fn release(&mut self, n: usize) {
        assert!(n <= self.peeked, "release of {n} items, but {} were peeked", self.peeked);
        self.peeked -= n;
        self.raw.release(n);
    }

    /// Frees all slots emptied so far.
    #[inline]
    pub fn flush(&mut self) {
        self.raw.flush();
    }

    /// True once the producer has closed the ring or is dropped. Items may still be in it. The
    /// order of calls matters: if a call *before* a [`pop`](Self::pop) or [`peek`](Self::peek)
    /// returned true and that found nothing, the ring is drained for ever. In the other order,
    /// items may have arrived in between.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Pairs with the publication in `Producer::close`.
        observe(Edge::Close, &self.ends.closed.0)
    }

    /// Gives back all slots and wakes the producer, if it [parks](Producer::park). Costs a fence.
    #[cfg(feature = "std")]
    #[inline]
    pub fn wake(&mut self) {
        self.raw.flush();
        self.ends.slots.wake();
    }

    /// Frees all slots and sleeps until the producer [wakes](Producer::wake) it or closes the ring,
    /// at most for `timeout`; not at all if there is an item or the ring is closed.
    ///
    /// ```
    /// # use std::{thread, time::Duration};
    /// let (mut producer, mut consumer) = ringtap_ring::spsc(16)?;
    /// let item = thread::scope(|scope| {
    ///     let thread = scope.spawn(move || {
    ///         loop {
    ///             match consumer.pop() {
    ///                 Some(item) => break item,
    ///                 None => consumer.park(Duration::from_secs(60)),
    ///             }
    ///         }
    ///     });
    ///     producer.push(7).expect("room");
    ///     producer.wake();
    ///     thread.join().expect("no panic")
    /// });
    /// assert_eq!(item, 7);
    /// # Ok::<(), ringtap_ring::InvalidCapacity>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn park(&mut self, timeout: Duration) {
        let Self { raw, ends, .. } = self;
        raw.flush();
        ends.items
            .sleep(timeout, || observe(Edge::Close, &ends.closed.0) || !raw.peek(1).is_empty());
    }

    /// The capacity in items.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Send, F: Flavor<T>> Drop for Consumer<T, F> {
    /// Frees all slots and marks the ring as abandoned. Items left in the ring are dropped when
    /// both ends are dropped.
    fn drop(&mut self) {
        self.raw.flush();
        // Relaxed: it orders no other data.
        self.ends.abandoned.0.store(true, Relaxed);
        #[cfg(feature = "std")]
        self.ends.slots.wake();
    }
}
