//! Cache misses of the real rings, counted by the processor (perf_event_open(2)).
//!
//! The event is reads that miss the last-level cache, of both threads, from the first item to the
//! last, in user mode. The paper's event is loads that miss the second-level cache, the last level
//! of its machine.

use perf_event::events::{Cache, CacheOp, CacheResult, WhichCache};
use perf_event::{Builder, Counter};
use ringtap_ring::{Kind, ring};

use super::super::arguments::bind;
use crate::LabError;

/// Misses of both threads, for `items` items of 8 bytes.
pub(super) fn misses(
    kind: &str,
    capacity: usize,
    batch: usize,
    items: u64,
    cores: &[usize],
) -> Result<u64, LabError> {
    let kind: Kind =
        kind.parse().map_err(|error| LabError::Trial(format!("kind={kind}: {error}")))?;
    let (mut producer, mut consumer) =
        ring::<u64>(kind, capacity, batch).map_err(|error| LabError::Trial(error.to_string()))?;
    let counted = std::thread::scope(|scope| {
        let sends = scope.spawn(move || {
            bind(cores, 0);
            let mut counter = counter()?;
            let mut next = 0;
            // If a thread gets no counter, it ends at once; its end of the ring is dropped, which
            // ends the other thread.
            while next < items && !producer.is_abandoned() {
                next += u64::from(producer.push(next).is_ok());
            }
            producer.close();
            counter.read()
        });
        let receives = scope.spawn(move || {
            bind(cores, 1);
            let mut counter = counter()?;
            loop {
                let closed = consumer.is_closed();
                if consumer.pop().is_none() && closed {
                    return counter.read();
                }
            }
        });
        [sends.join(), receives.join()]
    });
    let mut sum = 0;
    for counted in counted {
        let counted = counted.map_err(|_| LabError::Trial("a thread panicked".into()))?;
        sum += counted.map_err(|error| {
            LabError::Unavailable(format!(
                "cache miss counters are not available on this machine ({error})"
            ))
        })?;
    }
    Ok(sum)
}

/// A counter of the calling thread, started.
fn counter() -> std::io::Result<Counter> {
    let event =
        Cache { which: WhichCache::LL, operation: CacheOp::READ, result: CacheResult::MISS };
    let mut counter = Builder::new().kind(event).build()?;
    counter.enable()?;
    Ok(counter)
}
