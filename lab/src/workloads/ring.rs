//! The workload `ring`: items per second from one thread to another through a ring.
//!
//! These are the paper's evaluations 1 to 3 (Lee, Bu and Chandranmenon, section II-D): a producer
//! inserts and a consumer extracts at full speed, both with busy waiting. Every item is written and
//! read completely, and checked. The rings are those of `ringtap-ring`, and, with the prefix
//! `literal-`, those of the paper as it prints them.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::Barrier;

use ringtap_ring::published::{
    BasicRingBuffer, FastForward, LockRingBuffer, McRingBuffer, Ring, ends,
};
use ringtap_ring::{InvalidCapacity, Kind, ring};
use serde_json::{Value, json};

use super::Arguments;
use super::arguments::bind;
use crate::LabError;
use ringtap_base::Clock;

/// Items of a burst.
const BURST: usize = 256;
/// Failed attempts after which a thread yields, in case both threads share a core.
const SPINS: u32 = 1 << 14;

ringtap_base::choices! {
    /// The paper's rings.
    enum Literal: "literal rings" {
        Lock = "literal-lock",
        Basic = "literal-basic",
        FastForward = "literal-fastforward",
        Mcring = "literal-mcring",
    }
}

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

#[derive(Clone, Copy)]
enum AnyKind {
    Ours(Kind),
    Literal(Literal),
}

struct Plan {
    kind: AnyKind,
    capacity: usize,
    batch: usize,
    bursts: bool,
    /// Whether each element begins with a cache line; otherwise they follow the allocator's 16 bytes.
    on_lines: bool,
    items: u64,
    cores: Vec<usize>,
}

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let kind = arguments.text("kind")?;
    let bytes = arguments.count("bytes", 1 << 16)?;
    let mode = arguments.text("mode")?;
    let align: Option<String> = arguments.optional("align")?;
    let plan = Plan {
        kind: match kind.parse() {
            Ok(literal) => AnyKind::Literal(literal),
            Err(_) => {
                AnyKind::Ours(kind.parse().map_err(|error| LabError::Trial(format!("{error}")))?)
            }
        },
        capacity: arguments.count("capacity", 1 << 24)? as usize,
        batch: arguments.count("batch", 1 << 24)? as usize,
        bursts: match mode.as_str() {
            "single" => false,
            "burst" => true,
            _ => return Err(LabError::Trial(format!("invalid mode={mode}: use single or burst"))),
        },
        on_lines: match align.as_deref() {
            None | Some("16") => false,
            Some("64") => true,
            Some(other) => {
                return Err(LabError::Trial(format!("invalid align={other}: use 16 or 64")));
            }
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
        "align": if plan.on_lines { 64 } else { 16 },
        "items": plan.items,
        "seconds": seconds,
        "items_per_second": plan.items as f64 / seconds,
        "checksum": format!("{checksum:016x}"),
    }))
}

/// Runs the transfer. Returns its seconds and the sum of all words of all items.
fn transfer<const WORDS: usize>(plan: &Plan) -> Result<(f64, u64), LabError> {
    match (plan.kind, plan.on_lines) {
        (AnyKind::Ours(kind), false) => transfer_ours::<WORDS, [u64; WORDS]>(plan, kind),
        (AnyKind::Ours(kind), true) => transfer_ours::<WORDS, OnLines<WORDS>>(plan, kind),
        (AnyKind::Literal(kind), false) => transfer_literal::<WORDS, [u64; WORDS]>(plan, kind),
        (AnyKind::Literal(kind), true) => transfer_literal::<WORDS, OnLines<WORDS>>(plan, kind),
    }
}

/// Words that are an item.
trait Words<const WORDS: usize>: Copy + Send {
    fn of(number: u64) -> Self;
    fn words(&self) -> &[u64; WORDS];
}

impl<const WORDS: usize> Words<WORDS> for [u64; WORDS] {
    #[inline(always)]
    fn of(number: u64) -> Self {
        [number; WORDS]
    }

    #[inline(always)]
    fn words(&self) -> &[u64; WORDS] {
        self
    }
}

/// An item that begins with a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct OnLines<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> Words<WORDS> for OnLines<WORDS> {
    #[inline(always)]
    fn of(number: u64) -> Self {
        Self([number; WORDS])
    }

    #[inline(always)]
    fn words(&self) -> &[u64; WORDS] {
        &self.0
    }
}

fn invalid(error: InvalidCapacity) -> LabError {
    LabError::Trial(error.to_string())
}

fn transfer_ours<const WORDS: usize, T: Words<WORDS>>(
    plan: &Plan,
    kind: Kind,
) -> Result<(f64, u64), LabError> {
    let (mut producer, mut consumer) =
        ring::<T>(kind, plan.capacity, plan.batch).map_err(invalid)?;
    let bursts = plan.bursts;
    timed(
        plan,
        move |numbers| {
            send(numbers, |next, left| match bursts {
                true => producer.fill(BURST.min(left as usize), |i| T::of(next + i as u64)) as u64,
                false => u64::from(producer.push(T::of(next)).is_ok()),
            });
            producer.flush();
        },
        move |numbers, sum| {
            receive(numbers, |due| match bursts {
                true => {
                    let items = consumer.peek(BURST);
                    items.iter().zip(due..).for_each(|(item, due)| sum.add(item.words(), due));
                    let done = items.len();
                    consumer.release(done);
                    done as u64
                }
                false => consumer.pop().map_or(0, |item| {
                    sum.add(item.words(), due);
                    1
                }),
            });
            consumer.flush();
        },
    )
}

fn transfer_literal<const WORDS: usize, T: Words<WORDS>>(
    plan: &Plan,
    kind: Literal,
) -> Result<(f64, u64), LabError> {
    let refused = |reason: String| Err(LabError::Trial(reason));
    let (max, batch) = (plan.capacity as u32, plan.batch as u32);
    if plan.bursts {
        return refused("invalid mode=burst: the paper's rings have mode=single only".into());
    }
    if max < 2 {
        return refused(format!(
            "invalid capacity={max}: use 2 or more, because one slot stays empty"
        ));
    }
    match kind {
        Literal::Lock => transfer_published(plan, LockRingBuffer::<T>::new(max)),
        Literal::Basic => transfer_published(plan, BasicRingBuffer::<T>::new(max)),
        Literal::FastForward if WORDS > 1 || plan.on_lines => {
            refused("FastForward transfers pointers: use bytes=8 and align=16".into())
        }
        Literal::FastForward => transfer_pointers(plan, FastForward::new(max)),
        Literal::Mcring if batch >= max => refused(format!(
            "batch={batch} stalls the paper's ring, of whose {max} slots one stays empty: use less"
        )),
        Literal::Mcring if !plan.items.is_multiple_of(10 * u64::from(batch)) => refused(format!(
            "invalid items={}: use a multiple of {}, because an incomplete batch is never published",
            plan.items,
            10 * batch
        )),
        Literal::Mcring => transfer_published(plan, McRingBuffer::<T>::new(max, batch)),
    }
}

fn transfer_published<const WORDS: usize, T: Words<WORDS>>(
    plan: &Plan,
    ring: Result<impl Ring<Element = T>, InvalidCapacity>,
) -> Result<(f64, u64), LabError> {
    let (mut producer, mut consumer) = ends(ring.map_err(invalid)?);
    timed(
        plan,
        move |numbers| send(numbers, |next, _| u64::from(producer.insert(T::of(next)))),
        move |numbers, sum| {
            receive(numbers, |due| {
                consumer.extract().map_or(0, |item| {
                    sum.add(item.words(), due);
                    1
                })
            });
        },
    )
}

/// A pointer is not NULL, so it is the number plus 1.
fn transfer_pointers(
    plan: &Plan,
    ring: Result<FastForward, InvalidCapacity>,
) -> Result<(f64, u64), LabError> {
    let (mut producer, mut consumer) = ends(ring.map_err(invalid)?);
    timed(
        plan,
        move |numbers| send(numbers, |next, _| u64::from(producer.insert(next + 1))),
        move |numbers, sum| {
            receive(numbers, |due| {
                consumer.extract().map_or(0, |pointer| {
                    sum.add(&[pointer - 1], due);
                    1
                })
            });
        },
    )
}

/// What the consumer read.
#[derive(Default)]
struct Sum {
    /// The sum of all words of all items.
    words: u64,
    /// Not 0 if an item was lost or out of order.
    wrong: u64,
}

impl Sum {
    #[inline(always)]
    fn add<const WORDS: usize>(&mut self, item: &[u64; WORDS], due: u64) {
        self.wrong |= item[0] ^ due;
        self.words = item.iter().fold(self.words, |sum, &word| sum.wrapping_add(word));
    }
}

/// Sends and receives in two threads. Returns the seconds and the sum of all words of all items.
fn timed(
    plan: &Plan,
    mut send: impl FnMut(Range<u64>) + Send,
    mut receive: impl FnMut(Range<u64>, &mut Sum) + Send,
) -> Result<(f64, u64), LabError> {
    // Warm-up with a tenth of the items: slots are in memory, and the clock rate has risen.
    let warm = plan.items / 10;
    let start = Barrier::new(2);
    let received = std::thread::scope(|scope| {
        let start = &start;
        scope.spawn(move || {
            bind(&plan.cores, 0);
            send(0..warm);
            start.wait();
            send(warm..warm + plan.items);
        });
        let consumer = scope.spawn(move || {
            bind(&plan.cores, 1);
            let mut sum = Sum::default();
            receive(0..warm, &mut sum);
            sum.words = 0;
            start.wait();
            let watch = Clock::start();
            receive(warm..warm + plan.items, &mut sum);
            (watch.seconds(), sum)
        });
        consumer.join()
    });
    match received {
        Ok((seconds, Sum { words, wrong: 0 })) => Ok((seconds, words)),
        Ok(_) => Err(LabError::Trial("an item was lost or out of order".into())),
        Err(_) => Err(LabError::Trial("the consumer panicked".into())),
    }
}

/// Sends all numbers; `put(next, left)` returns how many it sent.
#[inline(always)]
fn send(numbers: Range<u64>, mut put: impl FnMut(u64, u64) -> u64) {
    let (mut next, mut idle) = (numbers.start, 0);
    while next < numbers.end {
        let done = put(next, numbers.end - next);
        next += done;
        wait_if(done == 0, &mut idle);
    }
}

/// Receives all numbers; `take(due)` returns how many it received.
#[inline(always)]
fn receive(numbers: Range<u64>, mut take: impl FnMut(u64) -> u64) {
    let (mut next, mut idle) = (numbers.start, 0);
    while next < numbers.end {
        let done = take(next);
        next += done;
        wait_if(done == 0, &mut idle);
    }
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
    use super::Literal;

    #[test]
    fn all_rings_transfer_the_same_items() {
        let ours = ringtap_ring::Kind::ALL.map(|kind| (kind.name(), &["single", "burst"][..]));
        let literal = Literal::ALL.map(|kind| (kind.name(), &["single"][..]));
        for (kind, modes) in ours.into_iter().chain(literal) {
            for (mode, align) in modes.iter().flat_map(|mode| [(mode, 16), (mode, 64)]) {
                let bytes = if kind == "literal-fastforward" { 8 } else { 64 };
                if bytes < align && kind.starts_with("literal") {
                    continue;
                }
                let words = format!(
                    "kind={kind} bytes={bytes} capacity=100 batch=50 mode={mode} align={align} items=20k cores=",
                );
                let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
                let found = run("ring", &words).unwrap();
                assert!(found["items_per_second"].as_f64().unwrap() > 0.0);
                // 2,000 + … + 21,999
                let sum = bytes / 8 * 239_990_000;
                assert_eq!(found["checksum"], format!("{sum:016x}"), "{kind} {mode} {align}");
            }
        }
    }

    #[test]
    fn what_the_papers_rings_cannot_do_is_an_error() {
        let error = |words: &str| {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            run("ring", &words).unwrap_err().to_string()
        };
        let good = "kind=literal-mcring bytes=8 capacity=50 batch=49 mode=single items=490 cores=";
        run("ring", &good.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap();
        assert!(error(&good.replace("batch=49", "batch=50")).contains("batch=50 stalls"));
        assert!(error(&good.replace("items=490", "items=500")).contains("multiple of 490"));
        assert!(error(&good.replace("single", "burst")).contains("mode=single"));
        assert!(error(&good.replace("capacity=50", "capacity=1")).contains("capacity=1"));
        let pointers = good.replace("mcring", "fastforward").replace("bytes=8", "bytes=16");
        assert!(error(&pointers).contains("use bytes=8"));
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
        assert!(error(&good.replace("cores=", "align=8 cores=")).contains("align=8"));
        assert!(error(&good.replace("mode=single", "mode=many")).contains("mode"));
        assert!(error(&format!("{good} extra=1")).contains("extra"));
        assert!(error("kind=lamport").contains("missing"));
        assert!(run("rope", &[]).unwrap_err().to_string().contains("ring"));
    }
}
