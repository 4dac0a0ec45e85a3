//! Several producers and consumers: our rings with an arbiter, compared with MPMC queues.
//!
//! ```text
//! producers, a thread each ──▶ queue ──▶ consumers, a thread each
//! ```
//!
//! Both sides handle one item per call. Threads are not pinned, because there may be more threads
//! than CPUs. For the same reason all threads yield after 64 unsuccessful polls. An item contains
//! its producer and its number. Each consumer checks that the items of a producer arrive in order;
//! the number and sum of all items are checked at the end.

mod arbiter;
mod race;

use crate::rounds::Plan;
use beside::{Random, Rate, child, markdown, quantile};
use race::{Polled, Race};
use std::fmt::Write;

/// Capacity in items of a queue, and of each ring of an arbiter.
const CAPACITY: usize = 2_048;
/// Numbers of producers and consumers.
const SHAPES: [(usize, usize); 6] = [(1, 2), (1, 4), (2, 1), (4, 1), (2, 2), (4, 4)];

/// The queue between producers and consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    /// An arbiter with its own thread.
    Arbiter,
    /// An arbiter that the only producer or the only consumer steps.
    ArbiterInside,
    Array,
    Channel,
    Kanal,
}

const QUEUES: [(Queue, &str); 5] = [
    (Queue::Arbiter, "**ringtap arbiter, own thread**"),
    (Queue::ArbiterInside, "**ringtap arbiter, stepped by the single end**"),
    (Queue::Array, "crossbeam-queue ArrayQueue"),
    (Queue::Channel, "crossbeam-channel"),
    (Queue::Kanal, "kanal"),
];

/// One queue in one shape, and its rates by round in million items per second.
pub struct Many {
    queue: usize,
    shape: usize,
    rates: Vec<f64>,
}

/// Measures all queues in all shapes, in a new random order each round, each trial in a process.
pub fn measure(plan: &Plan) -> Result<Vec<Many>, String> {
    let fits = |queue: usize, shape: usize| {
        let (producers, consumers) = SHAPES[shape];
        QUEUES[queue].0 != Queue::ArbiterInside || producers == 1 || consumers == 1
    };
    let mut all: Vec<Many> = (0..QUEUES.len())
        .flat_map(|queue| (0..SHAPES.len()).map(move |shape| (queue, shape)))
        .filter(|&(queue, shape)| fits(queue, shape))
        .map(|(queue, shape)| Many { queue, shape, rates: Vec::new() })
        .collect();
    let mut random = Random(plan.seed);
    let mut order: Vec<usize> = (0..all.len()).collect();
    for _ in 0..plan.rounds {
        random.shuffle(&mut order);
        for &index in &order {
            let Many { queue, shape, rates } = &mut all[index];
            let items = (plan.milliseconds * 10_000.0) as u64;
            let line = child("many", &[*queue as u64, *shape as u64, items])
                .map_err(|why| format!("{}: {why}", QUEUES[*queue].1))?;
            let rate: f64 = line.parse().map_err(|_| format!("invalid rate \"{line}\""))?;
            rates.push(rate);
        }
    }
    eprintln!("rings: queues of several producers and consumers are measured");
    Ok(all)
}

/// A table with a row for each queue and a column for each shape.
pub fn table(all: &[Many]) -> String {
    let mut header = vec!["producers → consumers".to_owned()];
    header.extend(SHAPES.iter().map(|(producers, consumers)| format!("{producers} → {consumers}")));
    let mut rows = vec![header];
    for (queue, (_, name)) in QUEUES.iter().enumerate() {
        let mut row = vec![(*name).to_owned()];
        for shape in 0..SHAPES.len() {
            let cell = all.iter().find(|many| (many.queue, many.shape) == (queue, shape));
            row.push(cell.map_or_else(|| "–".to_owned(), |many| many.figure()));
        }
        rows.push(row);
    }
    markdown(&rows)
}

/// Appends a CSV line for each trial.
pub fn csv(all: &[Many], text: &mut String) {
    for Many { queue, shape, rates } in all {
        let (producers, consumers) = SHAPES[*shape];
        let name = QUEUES[*queue].1.replace("**", "").replace(',', "");
        for (i, rate) in rates.iter().enumerate() {
            let mode = format!("{producers} to {consumers}");
            let round = i + 1;
            let _ =
                writeln!(text, "million_per_s,{name},{mode},8,{CAPACITY},1,{round},{rate},true");
        }
    }
}

impl Many {
    fn figure(&self) -> String {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| Rate(quantile(&rates, share)));
        format!("{median} ({low}–{high})")
    }
}

/// Runs one trial in this process; returns million items per second.
pub fn run([queue, shape, items]: [u64; 3]) -> Result<String, String> {
    let &(queue, _) = QUEUES.get(queue as usize).ok_or("unknown queue")?;
    let &(producers, consumers) = SHAPES.get(shape as usize).ok_or("unknown shape")?;
    let race = Race { producers, consumers, items: items / producers as u64 };
    let seconds = match queue {
        Queue::Arbiter => race.arbiter(),
        Queue::ArbiterInside if consumers == 1 => race.stepped_by_consumer(),
        Queue::ArbiterInside => race.stepped_by_producer(),
        Queue::Array => race.array_queue(),
        Queue::Channel => {
            let (sender, receiver) = crossbeam_channel::bounded(CAPACITY);
            race.channel(
                sender,
                receiver,
                |sender, item| sender.try_send(item).is_ok(),
                |receiver| match receiver.try_recv() {
                    Ok(item) => Polled::Item(item),
                    Err(crossbeam_channel::TryRecvError::Empty) => Polled::Nothing,
                    Err(crossbeam_channel::TryRecvError::Disconnected) => Polled::Over,
                },
            )
        }
        Queue::Kanal => {
            let (sender, receiver) = kanal::bounded(CAPACITY);
            race.channel(
                sender,
                receiver,
                |sender, item| sender.try_send(item) == Ok(true),
                |receiver| match receiver.try_recv() {
                    Ok(Some(item)) => Polled::Item(item),
                    Ok(None) => Polled::Nothing,
                    Err(_) => Polled::Over,
                },
            )
        }
    }?;
    Ok(((race.items * producers as u64) as f64 / seconds / 1e6).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_delivers_all_items_in_every_shape() {
        for (index, (queue, name)) in QUEUES.iter().enumerate() {
            for (shape, &(producers, consumers)) in SHAPES.iter().enumerate() {
                if *queue != Queue::ArbiterInside || producers == 1 || consumers == 1 {
                    run([index as u64, shape as u64, 20_000])
                        .unwrap_or_else(|why| panic!("{name}, {producers} → {consumers}: {why}"));
                }
            }
        }
    }
}
