//! What a flavour is.

use crate::slots::InvalidCapacity;

/// An algorithm: [`Any`](crate::Any), chosen at run time, or one chosen at compile time. Sealed.
pub trait Flavor<T: Send> {
    /// The producer's end.
    type Producer: RawProducer<T> + Send;
    /// The consumer's end.
    type Consumer: RawConsumer<T> + Send;
}

/// An algorithm that is chosen at compile time.
pub(crate) trait Make<T: Send>: Flavor<T> {
    fn ring(shape: Shape) -> Result<(Self::Producer, Self::Consumer), InvalidCapacity>;
}

/// The requested properties. A flavour uses those that concern it.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// In items.
    pub(crate) capacity: usize,
    /// At least 1 and at most half of the capacity, rounded up.
    pub(crate) batch: usize,
}

/// The producer's end. [`crate::Producer`] adds closing: it calls `flush` before it is dropped, and
/// nothing after it is closed.
pub trait RawProducer<T> {
    fn push(&mut self, value: T) -> Result<(), T>;

    fn push_burst(&mut self, values: &[T]) -> usize
    where
        T: Copy;

    /// Slots that are free now, at least. Reads the slots freed by the consumer if fewer than
    /// `wanted` are known to be free; if none is, publishes all items.
    fn free(&mut self, wanted: usize) -> usize;

    fn fill(&mut self, max: usize, mut make: impl FnMut(usize) -> T) -> usize {
        let n = self.free(max).min(max);
        for i in 0..n {
            // Only the consumer could change the result of `free`, and only upwards.
            assert!(self.push(make(i)).is_ok(), "a free slot was refused");
        }
        n
    }

    fn flush(&mut self);
}

/// The consumer's end. [`crate::Consumer`] calls `flush` before it is dropped.
pub trait RawConsumer<T> {
    fn pop(&mut self) -> Option<T>;

    /// Published items at the front, in one piece; at least one, if there is any and `max` > 0.
    fn peek(&mut self, max: usize) -> &[T];

    /// Drops `n` items and frees their slots. Panics if there are fewer.
    fn release(&mut self, n: usize);

    fn flush(&mut self);
}
