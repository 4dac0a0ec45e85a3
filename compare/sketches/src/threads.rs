//! Counting with two threads: separate Count-Min sketches, or a shared one.

use crate::{
    candidates::shape,
    stream::{Key, Stream},
};
use beside::thread_cpu;
use ringtap_sketch::{CountMin, SharedCountMin, SharedSketch, Sketch};
use std::thread;

const SEED: u64 = 0x5eed;
const BURST: usize = 256;

/// Names of the variants.
pub const VARIANTS: [&str; 3] =
    ["one thread", "two threads, separate, merged", "two threads, shared"];

/// Runs a variant; returns the CPU seconds of the slower thread (plus merging) and the serialised
/// result.
pub fn run(variant: usize, stream: &Stream) -> (f64, Vec<u8>) {
    let new = || CountMin::<Key, u64>::new(shape(4, 1 << 14), SEED);
    let halves = || stream.keys.chunks(stream.keys.len().div_ceil(2));
    match variant {
        0 => {
            let mut sketch = new();
            let seconds = timed(|| stream.keys.chunks(BURST).for_each(|b| sketch.update_burst(b)));
            (seconds, sketch.to_bytes())
        }
        1 => {
            let mut results = thread::scope(|scope| {
                let threads: Vec<_> = halves()
                    .map(|half| {
                        scope.spawn(move || {
                            let mut sketch = new();
                            let seconds =
                                timed(|| half.chunks(BURST).for_each(|b| sketch.update_burst(b)));
                            (seconds, sketch)
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().expect("no panic"))
                    .collect::<Vec<_>>()
            })
            .into_iter();
            let (mut slowest, mut whole) = results.next().expect("two threads");
            let merging = timed(|| {
                for (seconds, part) in results {
                    slowest = slowest.max(seconds);
                    whole.merge(&part).expect("sketches of one size and seed");
                }
            });
            (slowest + merging, whole.to_bytes())
        }
        _ => {
            let shared = SharedCountMin::<Key>::new(shape(4, 1 << 14), SEED);
            let seconds = thread::scope(|scope| {
                let threads: Vec<_> = halves()
                    .map(|half| {
                        let shared = &shared;
                        scope.spawn(move || {
                            timed(|| half.chunks(BURST).for_each(|b| shared.update_burst(b)))
                        })
                    })
                    .collect();
                let seconds =
                    |thread: thread::ScopedJoinHandle<'_, f64>| thread.join().expect("no panic");
                threads.into_iter().map(seconds).fold(0.0, f64::max)
            });
            (seconds, shared.into_separate().to_bytes())
        }
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = thread_cpu();
    work();
    thread_cpu() - start
}
