//! Million items a second through every kind of ring, from one thread to another.
//!
//! ```text
//! cargo bench -p ringtap-ring              7 interleaved trials
//! cargo bench -p ringtap-ring -- 21        21 trials
//! cargo test -p ringtap-ring --benches     one small trial: does it run, is the order right
//! ```
//!
//! The producer is pinned to CPU 0 and the consumer to CPU 1 if that is allowed. `single` is push
//! and pop; `burst` is push_burst of 256 ready items, and peek and release; `fill` constructs the
//! 256 items in their slots. Every item is read and checked for its place in the order. Trials
//! alternate between all variants, so that a slow phase of the machine affects all. Two tables: the
//! medians, and the best trials, which say more on a shared machine.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use ringtap_ring::{Consumer, Flavor, Kind, Producer, ring, spsc};
use std::{array, hint::spin_loop, sync::Barrier, thread, time::Duration};

const BURST: usize = 256;

#[derive(Clone, Copy)]
enum Mode {
    Single,
    Burst,
    Fill,
}

/// A variant: its name, the ring, its batch, its mode, and items a trial relative to others.
/// Without a kind: the ring of [`spsc`].
const VARIANTS: [(&str, Option<Kind>, usize, Mode, u64); 15] = [
    ("lock single", Some(Kind::Lock), 1, Mode::Single, 1),
    ("lock burst", Some(Kind::Lock), 1, Mode::Burst, 4),
    ("lamport single", Some(Kind::Lamport), 1, Mode::Single, 2),
    ("lamport burst", Some(Kind::Lamport), 1, Mode::Burst, 2),
    ("fastforward single", Some(Kind::FastForward), 1, Mode::Single, 2),
    ("mcring(1) single", Some(Kind::McRing), 1, Mode::Single, 2),
    ("mcring(50) single", Some(Kind::McRing), 50, Mode::Single, 4),
    ("mcring(1) burst", Some(Kind::McRing), 1, Mode::Burst, 8),
    ("mcring(50) burst", Some(Kind::McRing), 50, Mode::Burst, 8),
    ("mcring(50) fill", Some(Kind::McRing), 50, Mode::Fill, 8),
    ("vernier single", Some(Kind::Vernier), 1, Mode::Single, 8),
    ("vernier burst", Some(Kind::Vernier), 1, Mode::Burst, 8),
    ("vernier fill", Some(Kind::Vernier), 1, Mode::Fill, 8),
    ("spsc() single", None, 1, Mode::Single, 8),
    ("spsc() fill", None, 1, Mode::Fill, 8),
];

#[derive(Clone, Copy)]
#[repr(align(8))]
struct Bytes8([u64; 1]);
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bytes64([u64; 8]);
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Bytes128([u64; 16]);

/// An item whose words all equal its number.
trait Item: Copy + Send {
    fn new(number: u64) -> Self;
    /// Reads all words: 0 if each is `number`.
    fn differs(&self, number: u64) -> u64;
}

macro_rules! items {
    ($($item:ident),*) => {$(
        impl Item for $item {
            #[inline(always)]
            fn new(number: u64) -> Self {
                Self([number; size_of::<Self>() / 8])
            }
            #[inline(always)]
            fn differs(&self, number: u64) -> u64 {
                self.0.iter().fold(0, |all, word| all | (word ^ number))
            }
        }
    )*};
}
items!(Bytes8, Bytes64, Bytes128);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let measure = arguments.any(|argument| argument == "--bench");
    let trials = std::env::args().find_map(|argument| argument.parse().ok());
    let (trials, items) = if measure { (trials.unwrap_or(7), 400_000) } else { (1, 5_000) };
    let columns: [Vec<Vec<f64>>; 6] = array::from_fn(|column| {
        let capacity = [2_048, 65_536][column / 3];
        match column % 3 {
            0 => rates::<Bytes8>(capacity, trials, items),
            1 => rates::<Bytes64>(capacity, trials, items),
            _ => rates::<Bytes128>(capacity, trials, items),
        }
    });
    print("medians", &columns, |rates| rates[rates.len() / 2]);
    print("best", &columns, |rates| rates[rates.len() - 1]);
}

/// One table: a row for each variant, a column for each size and capacity.
fn print(title: &str, columns: &[Vec<Vec<f64>>], choose: impl Fn(&[f64]) -> f64) {
    let trials = columns[0][0].len();
    println!("\nmillion items a second, {title} of {trials} interleaved trials");
    print!("{:20}", "bytes x capacity");
    for capacity in [2_048, 65_536] {
        for bytes in [8, 64, 128] {
            print!("{:>12}", format!("{bytes}x{capacity}"));
        }
    }
    println!();
    for (row, (name, ..)) in VARIANTS.iter().enumerate() {
        print!("{name:20}");
        columns.iter().for_each(|column| print!("{:12.1}", choose(&column[row])));
        println!();
    }
}

/// The rates of all trials of each variant, in ascending order.
fn rates<T: Item>(capacity: usize, trials: usize, items: u64) -> Vec<Vec<f64>> {
    let mut rates = vec![Vec::new(); VARIANTS.len()];
    for _ in 0..trials {
        for (rates, &(_, kind, batch, mode, weight)) in rates.iter_mut().zip(&VARIANTS) {
            let items = items * weight;
            let time = match kind {
                Some(kind) => {
                    trial(ring::<T>(kind, capacity, batch).expect("it fits"), mode, items)
                }
                None => trial(spsc::<T>(capacity).expect("it fits"), mode, items),
            };
            rates.push(items as f64 / time.as_secs_f64() / 1e6);
        }
    }
    rates.iter_mut().for_each(|rates| rates.sort_by(f64::total_cmp));
    rates
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn trial<T: Item, F: Flavor<T>>(
    (producer, consumer): (Producer<T, F>, Consumer<T, F>),
    mode: Mode,
    n: u64,
) -> Duration {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            start.wait();
            produce(producer, mode, n);
        });
        let consumer = scope.spawn(|| {
            pin(1);
            // The slots' pages are touched by the first lap, as in any new ring.
            start.wait();
            let began = std::time::Instant::now();
            consume(consumer, mode, n);
            began.elapsed()
        });
        consumer.join().expect("no order is broken")
    })
}

fn produce<T: Item, F: Flavor<T>>(mut producer: Producer<T, F>, mode: Mode, n: u64) {
    let mut values = [T::new(0); BURST];
    let mut next = 0;
    let mut idle = 0;
    while next < n {
        let wanted = (n - next).min(BURST as u64) as usize;
        let pushed = match mode {
            Mode::Single => usize::from(producer.push(T::new(next)).is_ok()),
            Mode::Fill => producer.fill(wanted, |i| T::new(next + i as u64)),
            Mode::Burst => {
                for (value, number) in values[..wanted].iter_mut().zip(next..) {
                    *value = T::new(number);
                }
                producer.push_burst(&values[..wanted])
            }
        };
        next += pushed as u64;
        wait_if(pushed == 0, &mut idle);
    }
}

fn consume<T: Item, F: Flavor<T>>(mut consumer: Consumer<T, F>, mode: Mode, n: u64) {
    let mut next = 0;
    let mut idle = 0;
    let mut wrong = 0;
    while next < n {
        let taken = match mode {
            Mode::Single => match consumer.pop() {
                Some(item) => {
                    wrong |= item.differs(next);
                    1
                }
                None => 0,
            },
            Mode::Burst | Mode::Fill => {
                let items = consumer.peek(BURST);
                for (item, number) in items.iter().zip(next..) {
                    wrong |= item.differs(number);
                }
                let taken = items.len();
                consumer.release(taken);
                taken
            }
        };
        next += taken as u64;
        wait_if(taken == 0, &mut idle);
    }
    assert_eq!(wrong, 0, "items out of order");
}

/// Spins while there is nothing to do, and yields sometimes.
#[inline(always)]
fn wait_if(nothing: bool, idle: &mut u32) {
    if !nothing {
        *idle = 0;
    } else {
        *idle += 1;
        if idle.is_multiple_of(1024) { thread::yield_now() } else { spin_loop() }
    }
}

/// Binds the calling thread to a CPU, if that is allowed.
fn pin(cpu: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}
