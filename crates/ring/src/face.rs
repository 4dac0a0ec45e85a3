//! The two ends of a ring, the same for every kind, and its orderly end.
//!
//! ```text
//! Producer ── flavour's own shared memory ──▶ Consumer
//!     └─ closed ──▶    ◀── abandoned ─┘          on cache lines of their own, written once
//! ```
//!
//! Invariant: `closed` is set after everything was published, so a consumer that saw it set sees
//! every item that ever comes.

#[cfg(feature = "std")]
use crate::park::Bell;
use crate::{
    flavors::{Any, Flavor, Kind, RawConsumer, RawProducer, Shape, Vernier},
    slots::InvalidCapacity,
    sync::{Arc, AtomicBool, CacheLine, Edge, Ordering::Relaxed, observe, publish},
};

#[cfg(feature = "std")]
use core::time::Duration;

/// The two ends of a ring.
pub type Ring<T, F = Any> = (Producer<T, F>, Consumer<T, F>);

/// Makes the fastest ring there is here, of `capacity` items, and returns its two ends.
///
/// It is [`Kind::Vernier`], without the choice at run time: so a caller's loop over
/// [`push`](Producer::push) or [`pop`](Consumer::pop) compiles to a few instructions an item.
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
    ends(Shape { kind: Kind::Vernier, capacity, batch: 1 })
}

/// Makes a ring of a kind chosen at run time, of `capacity` items, and returns its two ends.
///
/// `batch` matters to [`Kind::McRing`] only: an index is published when so many items have come
/// together. It is clamped to 1 ..= half of the capacity, rounded up. With that, at least one slot
/// is always visibly full to the consumer or visibly free to the producer, whatever both hold back.
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
    ends(Shape { kind, capacity, batch })
}

fn ends<T: Send, F: Flavor<T>>(shape: Shape) -> Result<Ring<T, F>, InvalidCapacity> {
    let Shape { capacity, .. } = shape;
    let (producer, consumer) = F::ring(shape)?;
    let ends = Arc::new(Ends::default());
    Ok((
        Producer { raw: producer, ends: Arc::clone(&ends), capacity, closed: false },
        Consumer { raw: consumer, ends, capacity, peeked: 0 },
    ))
}

/// What each end tells the other when it goes.
#[derive(Default)]
struct Ends {
    /// Written by the producer, once.
    closed: CacheLine<AtomicBool>,
    /// Written by the consumer, once.
    abandoned: CacheLine<AtomicBool>,
    /// Where the consumer sleeps.
    #[cfg(feature = "std")]
    items: Bell,
    /// Where the producer sleeps.
    #[cfg(feature = "std")]
    slots: Bell,
}

/// The end where items go in.
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
    /// Appends an item; a full or closed ring gives it back.
    ///
    /// # Errors
    /// The value itself, if the ring is full (then everything pending is published) or closed.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.closed { Err(value) } else { self.raw.push(value) }
    }

    /// Appends copies of as many values as fit, from the first on, and returns how many.
    #[inline]
    pub fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy,
    {
        if self.closed { 0 } else { self.raw.push_burst(values) }
    }

    /// Appends up to `max` items made in place, `make(0)`, `make(1)`, …, and returns how many.
    /// `make` is called for free slots only. If it panics, the items before are in the ring.
    #[inline]
    pub fn fill(&mut self, max: usize, make: impl FnMut(usize) -> T) -> usize {
        if self.closed { 0 } else { self.raw.fill(max, make) }
    }

    /// So many slots are free now, at least: the next so many pushes succeed. Looks at what the
    /// consumer gave back; 0 on a closed ring.
    #[inline]
    pub fn free(&mut self) -> usize {
        if self.closed { 0 } else { self.raw.free(self.capacity) }
    }

    /// Publishes everything pushed so far.
    #[inline]
    pub fn flush(&mut self) {
        self.raw.flush();
    }

    /// Publishes everything and says that nothing follows. Later pushes are refused.
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

    /// True once the consumer is gone: nobody will take what is pushed.
    #[inline]
    pub fn is_abandoned(&self) -> bool {
        // Relaxed: nothing is handed over by it.
        self.ends.abandoned.0.load(Relaxed)
    }

    /// Publishes everything and wakes the consumer, if it [parks](Consumer::park). Costs a fence: call
    /// it when there is nothing more to push for now, not after each item.
    #[cfg(feature = "std")]
    #[inline]
    pub fn wake(&mut self) {
        self.raw.flush();
        self.ends.items.wake();
    }

    /// Publishes everything and sleeps until the consumer [wakes](Consumer::wake) it or is gone, for
    /// `timeout` at the most; not at all if there is a free slot.
    #[cfg(feature = "std")]
    pub fn park(&mut self, timeout: Duration) {
        let Self { raw, ends, .. } = self;
        raw.flush();
        ends.slots.sleep(timeout, || ends.abandoned.0.load(Relaxed) || raw.free(1) > 0);
    }

    /// How many items the ring holds at most.
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

/// The end where items come out.
///
/// Emptied slots may stay invisible to the producer until a batch is complete. They are given back
/// at the latest by [`flush`](Self::flush), by `Drop`, and by any call that finds the ring empty.
pub struct Consumer<T: Send, F: Flavor<T> = Any> {
    raw: F::Consumer,
    ends: Arc<Ends>,
    capacity: usize,
    /// Items that the last peek showed, less those released since.
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
    /// [`Kind::FastForward`] shows one at a time. Ask again after [`release`](Self::release).
    #[inline]
    pub fn peek(&mut self, max: usize) -> &[T] {
        let items = self.raw.peek(max);
        self.peeked = items.len();
        items
    }

    /// Drops the first `n` items, which a [`peek`](Self::peek) showed, and gives their slots back. If
    /// an item panics when it is dropped, none is dropped twice.
    ///
    /// # Panics
    /// If `n` is more than the last peek showed, less what was released since.
    #[inline]
    pub fn release(&mut self, n: usize) {
        assert!(n <= self.peeked, "release of {n} items, but {} were peeked", self.peeked);
        self.peeked -= n;
        self.raw.release(n);
    }

    /// Gives back all slots emptied so far.
    #[inline]
    pub fn flush(&mut self) {
        self.raw.flush();
    }

    /// True once the producer has closed the ring or is gone. Items may still be in it. The order of
    /// checks matters: if a call of this *before* a [`pop`](Self::pop) or [`peek`](Self::peek) was
    /// true and that found nothing, the ring is drained for ever. The other way round, items may
    /// have come between the two.
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

    /// Gives back all slots and sleeps until the producer [wakes](Producer::wake) it or closes the
    /// ring, for `timeout` at the most; not at all if there is an item or the ring is closed.
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

    /// How many items the ring holds at most.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Send, F: Flavor<T>> Drop for Consumer<T, F> {
    /// Gives everything back and tells the producer. Items left in the ring are dropped when both
    /// ends are gone.
    fn drop(&mut self) {
        self.raw.flush();
        // Relaxed: nothing is handed over by it.
        self.ends.abandoned.0.store(true, Relaxed);
        #[cfg(feature = "std")]
        self.ends.slots.wake();
    }
}
