//! The workload `pool`: drops and time per packet by the number of buffers, as measured by Wu, Li,
//! Ran and Luo ("DPDK Mempool Size").
//!
//! ```text
//!  card, core a                                   measurer, core b
//!  takes a free buffer, writes a packet ─▶ full ─▶ reads it, counts it in a sketch
//!     none free: the packet is dropped ◀─ free ◀─ returns the buffer
//! ```
//!
//! One core simulates the network card: it writes packets when they are due, in trains. Too few
//! buffers are used up by a train; many buffers, used in turn, exceed the cache. Buffers are 2 KiB
//! as in DPDK; a packet takes the first 64 bytes.

use std::hint::spin_loop;

use ringtap_ring::{Consumer, Producer, Vernier, spsc};
use ringtap_sketch::{CountMin, Shape, Sketch};
use serde_json::{Value, json};

use super::Arguments;
use super::arguments::bind;
use crate::LabError;
use ringtap_base::Clock;

const BUFFER_BYTES: usize = 2_048;
const BURST: usize = 32;
/// Packets of a train. They arrive at four times the mean rate; a pause follows.
const TRAIN: u64 = 8_192;
const TRAIN_SPEED: f64 = 4.0;

/// A buffer, with or without a packet. The box moves through the rings, so a buffer has one owner
/// at a time.
type Buffer = Box<[u64; BUFFER_BYTES / 8]>;
/// A flow's number.
type Key = [u8; 8];

struct Plan {
    rate: f64,
    packets: u64,
    memory: usize,
    seed: u64,
    cores: Vec<usize>,
}

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let buffers = arguments.count("buffers", 1 << 20)? as usize;
    let plan = Plan {
        rate: arguments.count("rate", 1_000_000_000)? as f64,
        packets: arguments.count("packets", 1 << 40)?,
        memory: arguments.count("memory", 1 << 32)? as usize,
        seed: arguments.optional("seed")?.unwrap_or(1),
        cores: arguments.cores()?,
    };
    let wrong = |error: &dyn std::fmt::Display| LabError::Trial(error.to_string());
    // A sketch of four rows of four-byte counters; the width of a row is a power of two.
    let width = 1 << (plan.memory / 16).max(1).ilog2();
    let shape = Shape::new(4, width).map_err(|error| wrong(&error))?;
    let sketch = CountMin::<Key>::new(shape, plan.seed);
    let (mut to_free, free) = spsc::<Buffer>(buffers).map_err(|error| wrong(&error))?;
    let (full, to_measure) = spsc::<Buffer>(buffers).map_err(|error| wrong(&error))?;
    for _ in 0..buffers {
        // The ring has room for all buffers.
        let _ = to_free.push(Box::new([0; BUFFER_BYTES / 8]));
    }
    to_free.flush();
    let ended = std::thread::scope(|scope| {
        let card = scope.spawn(|| {
            bind(&plan.cores, 0);
            offer(&plan, free, full)
        });
        let measurer = scope.spawn(|| {
            bind(&plan.cores, 1);
            count(sketch, to_measure, to_free)
        });
        (card.join(), measurer.join())
    });
    let (Ok((dropped, behind)), Ok((counted, busy))) = ended else {
        return Err(LabError::Trial("a thread panicked".into()));
    };
    if counted + dropped != plan.packets {
        return Err(LabError::Trial(format!(
            "{counted} counted + {dropped} dropped packets are not {}",
            plan.packets
        )));
    }
    Ok(json!({
        "workload": "pool",
        "buffers": buffers,
        "packets": plan.packets,
        "dropped": dropped,
        "behind": behind,
        "delivered": counted as f64 / plan.packets as f64,
        "packet_drop_rate": dropped as f64 / plan.packets as f64,
        "processing_ns_mean": busy * 1e9 / counted.max(1) as f64,
    }))
}

/// The card: writes packets when they are due. Returns the number of drops for lack of a buffer, and how
/// much longer it took than planned, as a share of the plan: a card that falls behind offers less.
fn offer(
    plan: &Plan,
    mut free: Consumer<Buffer, Vernier>,
    mut full: Producer<Buffer, Vernier>,
) -> (u64, f64) {
    // Trains start at the mean rate; packets within a train arrive faster.
    let due_at = |number: u64| {
        let start = (number - number % TRAIN) as f64 / plan.rate;
        start + (number % TRAIN) as f64 / (plan.rate * TRAIN_SPEED)
    };
    let watch = Clock::start();
    let (mut next, mut dropped, mut state) = (0u64, 0u64, plan.seed);
    while next < plan.packets {
        if watch.seconds() < due_at(next) {
            full.flush();
            spin_loop();
            continue;
        }
        let together = (BURST as u64).min(plan.packets - next);
        for number in next..next + together {
            let Some(mut buffer) = free.pop() else {
                dropped += 1;
                continue;
            };
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Half of the packets belong to 256 flows, the others to 65,536.
            let flow = if state >> 63 == 0 { state >> 33 & 0xff } else { state >> 33 & 0xffff };
            buffer[..8].fill(flow);
            buffer[7] = number;
            if full.push(buffer).is_err() {
                dropped += 1;
            }
        }
        free.flush();
        next += together;
    }
    let planned = due_at(plan.packets);
    (dropped, (watch.seconds() / planned - 1.0).max(0.0))
}

/// The measurer: counts packets in the sketch. Returns their number and the seconds of counting.
fn count(
    mut sketch: CountMin<Key>,
    mut full: Consumer<Buffer, Vernier>,
    mut free: Producer<Buffer, Vernier>,
) -> (u64, f64) {
    let (mut counted, mut busy) = (0u64, 0.0);
    let mut burst: Vec<Buffer> = Vec::with_capacity(BURST);
    let mut keys: Vec<Key> = Vec::with_capacity(BURST);
    loop {
        let closed = full.is_closed();
        burst.extend(std::iter::from_fn(|| full.pop()).take(BURST));
        if burst.is_empty() {
            if closed {
                return (counted, busy);
            }
            spin_loop();
            continue;
        }
        let watch = Clock::start();
        keys.clear();
        keys.extend(burst.iter().map(|buffer| buffer[0].to_le_bytes()));
        sketch.update_burst(&keys);
        busy += watch.seconds();
        counted += burst.len() as u64;
        for buffer in burst.drain(..) {
            // The ring has as many slots as there are buffers, so there is always room.
            let _ = free.push(buffer);
        }
        free.flush();
        full.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;

    #[test]
    fn every_packet_is_counted_or_dropped() {
        for (buffers, rate) in [("64", "50M"), ("4096", "100k")] {
            let words =
                format!("buffers={buffers} rate={rate} packets=20k memory=64k seed=1 cores=");
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            let found = run("pool", &words).unwrap();
            let dropped = found["dropped"].as_u64().unwrap();
            assert!(
                dropped <= 20_000 && found["processing_ns_mean"].as_f64().unwrap() > 0.0,
                "{found}"
            );
            assert!(found["behind"].as_f64().unwrap() >= 0.0, "{found}");
        }
    }
}
