//! The streaming limit: cache lines that one core writes and another core reads.
//!
//! ```text
//! lines  │ . │ . │ r │ r │ w │ w │ w │ . │     the writer publishes once per block,
//!                  ▲ read    ▲ written         the reader releases once per block
//! ```
//!
//! It is an upper bound for a queue with a buffer of that size, because it is a queue without an
//! interface: two indices on separate cache lines, private copies of them, and blocks of lines that
//! never wrap. With `prefetch` the writer prefetches the lines of its next block for writing while
//! it writes a block.

use crate::{
    ends::{Pair, Receiver, Sender, wait_if},
    item::{Bytes64, Item},
};
use std::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
};

#[repr(align(128))]
struct Padded(AtomicU64);

struct Stream {
    written: Padded,
    read: Padded,
    lines: Box<[UnsafeCell<Bytes64>]>,
}

// SAFETY: the writer accesses a line only after `read` has passed it (release, acquire), the reader
// only after `written` has.
unsafe impl Sync for Stream {}

/// A stream through `capacity` lines, `block` lines at a time; both powers of two, `block` <
/// `capacity`.
pub fn stream(prefetch: bool, capacity: usize, block: usize) -> Pair {
    assert!(capacity.is_power_of_two() && block.is_power_of_two() && block < capacity);
    let stream = Arc::new(Stream {
        written: Padded(AtomicU64::new(0)),
        read: Padded(AtomicU64::new(0)),
        lines: (0..capacity).map(|_| UnsafeCell::new(Bytes64::new(0))).collect(),
    });
    let block = block as u64;
    (
        Box::new(Writer { stream: Arc::clone(&stream), block, prefetch, read: 0 }),
        Box::new(Reader { stream, block, written: 0 }),
    )
}

struct Writer {
    stream: Arc<Stream>,
    block: u64,
    prefetch: bool,
    /// The last loaded value of `read`.
    read: u64,
}

impl Sender for Writer {
    fn send(&mut self, from: u64, to: u64) {
        let capacity = self.stream.lines.len() as u64;
        let (mut next, mut idle) = (from, 0);
        while next < to {
            let end = next_border(next, self.block, to);
            if end - self.read > capacity {
                self.read = self.stream.read.0.load(Acquire);
                wait_if(end - self.read > capacity, &mut idle);
                continue;
            }
            let first = (next & (capacity - 1)) as usize;
            let lines = &self.stream.lines[first..first + (end - next) as usize];
            let ahead = first + self.block as usize;
            for (i, (line, number)) in lines.iter().zip(next..).enumerate() {
                if self.prefetch {
                    let ahead = &self.stream.lines[(ahead + i) & (capacity as usize - 1)];
                    prefetch_write(ahead.get());
                }
                // SAFETY: the reader has released this line and does not access it before it is
                // published.
                unsafe { line.get().write(Bytes64::new(number)) };
            }
            self.stream.written.0.store(end, Release);
            next = end;
        }
    }
}

struct Reader {
    stream: Arc<Stream>,
    block: u64,
    /// The last loaded value of `written`.
    written: u64,
}

impl Receiver for Reader {
    fn receive(&mut self, from: u64, to: u64) -> u64 {
        let capacity = self.stream.lines.len() as u64;
        let (mut next, mut idle, mut wrong) = (from, 0, 0);
        while next < to {
            let end = next_border(next, self.block, to);
            if end > self.written {
                self.written = self.stream.written.0.load(Acquire);
                wait_if(end > self.written, &mut idle);
                continue;
            }
            let first = (next & (capacity - 1)) as usize;
            let lines = &self.stream.lines[first..first + (end - next) as usize];
            for (line, number) in lines.iter().zip(next..) {
                // SAFETY: the writer has published this line and does not access it before it is
                // released.
                wrong |= unsafe { &*line.get() }.differs(number);
            }
            self.stream.read.0.store(end, Release);
            next = end;
        }
        wrong
    }
}

/// The end of the block that contains `next`, or the end of the run.
fn next_border(next: u64, block: u64, to: u64) -> u64 {
    ((next | (block - 1)) + 1).min(to)
}

#[inline(always)]
fn prefetch_write<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it cannot fault and does not change program state.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
