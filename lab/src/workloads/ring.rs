//! The workload `ring`: items per second from one thread to another through a ring.
//!
//! These are the paper's evaluations 1 to 3 (Lee, Bu and Chandranmenon, section II-D): a producer
//! inserts and a consumer extracts at full speed, both with busy waiting. Every item is written and
//! read completely, and checked.

use std::hint::spin_loop;
use std::sync::Barrier;

use ringtap_ring::{Consumer, Kind, Producer, ring};
use serde_json::{Value, json};

use super::Arguments;
use super::arguments::bind;
use crate::LabError;
use ringtap_base::Clock;

/// Items of a burst.
const BURST: usize = 256;
/// Failed attempts after which a thread yields, in case both threads share a core.
const SPINS: u32 = 1 << 14;

/// Item sizes, as words of 8 bytes.
macro_rules! by_size {
    ($bytes:expr, $plan:expr; $($words:literal),*) => {
        match $bytes {
            $(n if n == $words * 8 => transfer::<$words>($plan),)*
            n => Err(LabError::Trial(format!(
                "invalid bytes={n}: use one of {:?}", [$($words * 8),*]
            ))),
        }
    };
}

struct Plan {
    kind: Kind,
    capacity: usize,
    batch: usize,
    bursts: bool,
    items: u64,
    cores: Vec<usize>,
}

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let kind = arguments.text("kind")?;
    let bytes = arguments.count("bytes", 1 << 16)?;
    let mode = arguments.text("mode")?;
    let plan = Plan {
        kind: kind.parse().map_err(|error| LabError::Trial(format!("{error}")))?,
        capacity: arguments.count("capacity", 1 << 24)? as usize,
        batch: arguments.count("batch", 1 << 24)? as usize,
        bursts: match mode.as_str() {
            "single" => false,
            "burst" => true,
            _ => return Err(LabError::Trial(format!("invalid mode={mode}: use single or burst"))),
        },
        items: arguments.count("items", 1 << 40)?,
        cores: arguments.cores()?,
    };
    let (seconds, checksum) = by_size!(bytes, &plan; 1, 2, 4, 8, 16, 32, 64, 128, 256)?;
    Ok(json!({
        "workload": "ring",
        "kind": kind,
        "bytes": bytes,
        "capacity": plan.capacity,
        "batch": plan.batch,
        "mode": mode,
        "items": plan.items,
        "seconds": seconds,
        "items_per_second": plan.items as f64 / seconds,
        "checksum": format!("{checksum:016x}"),
    }))
}

/// Runs the transfer. Returns its seconds and the sum of all words of all items.
fn transfer<const WORDS: usize>(plan: &Plan) -> Result<(f64, u64), LabError> {
    let (producer, consumer) = ring::<[u64; WORDS]>(plan.kind, plan.capacity, plan.batch)
        .map_err(|error| LabError::Trial(error.to_string()))?;
    // Warm-up with a tenth of the items: slots are in memory, and the clock rate has risen.
    let warm = plan.items / 10;
    let start = Barrier::new(2);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            bind(&plan.cores, 0);
            let mut producer = producer;
            send(&mut producer, 0..warm, plan.bursts);
            start.wait();
            send(&mut producer, warm..warm + plan.items, plan.bursts);
        });
        let consumer = scope.spawn(|| {
            bind(&plan.cores, 1);
            let mut consumer = consumer;
            receive(&mut consumer, 0..warm, plan.bursts);
            start.wait();
            let watch = Clock::start();
            let sum = receive(&mut consumer, warm..warm + plan.items, plan.bursts);
            (watch.seconds(), sum)
        });
        consumer.join()
    });
    match received {
        Ok((seconds, Some(sum))) => Ok((seconds, sum)),
        Ok((_, None)) => Err(LabError::Trial("an item was lost or out of order".into())),
        Err(_) => Err(LabError::Trial("the consumer panicked".into())),
    }
}

fn send<const WORDS: usize>(
    producer: &mut Producer<[u64; WORDS]>,
    numbers: std::ops::Range<u64>,
    bursts: bool,
) {
    let (mut next, mut idle) = (numbers.start, 0);
    while next < numbers.end {
        let done = if bursts {
            let most = BURST.min((numbers.end - next) as usize);
            producer.fill(most, |i| [next + i as u64; WORDS]) as u64
        } else {
            u64::from(producer.push([next; WORDS]).is_ok())
        };
        next += done;
        wait_if(done == 0, &mut idle);
    }
    producer.flush();
}

/// The sum of all words; `None` if an item was lost or out of order.
fn receive<const WORDS: usize>(
    consumer: &mut Consumer<[u64; WORDS]>,
    numbers: std::ops::Range<u64>,
    bursts: bool,
) -> Option<u64> {
    let (mut next, mut idle, mut sum, mut wrong) = (numbers.start, 0, 0u64, 0u64);
    let mut take = |item: &[u64; WORDS], due: u64| {
        wrong |= item[0] ^ due;
        sum = item.iter().fold(sum, |sum, &word| sum.wrapping_add(word));
    };
    while next < numbers.end {
        let done = if bursts {
            let items = consumer.peek(BURST);
            for (item, due) in items.iter().zip(next..) {
                take(item, due);
            }
            let done = items.len();
            consumer.release(done);
            done as u64
        } else if let Some(item) = consumer.pop() {
            take(&item, next);
            1
        } else {
            0
        };
        next += done;
        wait_if(done == 0, &mut idle);
    }
    consumer.flush();
    (wrong == 0).then_some(sum)
}

fn wait_if(nothing: bool, idle: &mut u32) {
    if !nothing {
        *idle = 0;
        return;
    }
    *idle += 1;
    if (*idle).is_multiple_of(SPINS) { std::thread::yield_now() } else { spin_loop() }
}

#[cfg(test)]
mod tests {
    use super::super::run;

    #[test]
    fn all_rings_transfer_the_same_items() {
        let mut sums = std::collections::BTreeSet::new();
        for kind in ringtap_ring::Kind::ALL {
            for mode in ["single", "burst"] {
                let words = format!(
                    "kind={} bytes=64 capacity=100 batch=50 mode={mode} items=20k cores=",
                    kind.name()
                );
                let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
                let found = run("ring", &words).unwrap();
                assert!(found["items_per_second"].as_f64().unwrap() > 0.0);
                sums.insert(found["checksum"].to_string());
            }
        }
        // 8 × (2,000 + … + 21,999)
        assert_eq!(
            sums.into_iter().collect::<Vec<_>>(),
            [format!("\"{:016x}\"", 8u64 * 239_990_000)]
        );
    }

    #[test]
    fn invalid_arguments_are_named_in_the_error() {
        let error = |words: &str| {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            run("ring", &words).unwrap_err().to_string()
        };
        let good = "kind=lamport bytes=8 capacity=10 batch=1 mode=single items=10 cores=";
        assert!(error(&good.replace("kind=lamport", "kind=rope")).contains("rope"));
        assert!(error(&good.replace("bytes=8", "bytes=9")).contains("bytes=9"));
        assert!(error(&good.replace("items=10", "items=0")).contains("items=0"));
        assert!(error(&good.replace("mode=single", "mode=many")).contains("mode"));
        assert!(error(&format!("{good} extra=1")).contains("extra"));
        assert!(error("kind=lamport").contains("missing"));
        assert!(run("rope", &[]).unwrap_err().to_string().contains("ring"));
    }
}
