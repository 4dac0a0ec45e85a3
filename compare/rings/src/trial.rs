//! One trial, in its own process: warm-up, barrier, then the timed transfer of all items.
//!
//! ```text
//! producer, CPU a   send 0..warm ─┐  barrier   send warm..warm+items
//! consumer, CPU b   receive … ────┘            receive … │
//!                                    └── timed ──────────┘
//! ```
//!
//! The ring is empty when the clock starts and when it stops. A trial is disturbed if one of the
//! threads had less CPU time than wall time, or if one of the two CPUs had steal time.

use crate::ends::{Pair, wait_if};
use beside::thread_cpu;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    fmt, fs,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// Time limit of a trial; a longer trial has lost items.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A thread with a smaller ratio of CPU time to wall time was preempted.
const OWN_CPU: f64 = 0.97;

/// The result of a trial.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub seconds: f64,
    pub disturbed: bool,
    /// An item was wrong.
    pub wrong: bool,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.seconds, self.disturbed, self.wrong)
    }
}

impl FromStr for Outcome {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let mut outcome = || {
            Some(Self {
                seconds: words.next()?.parse().ok()?,
                disturbed: words.next()?.parse().ok()?,
                wrong: words.next()?.parse().ok()?,
            })
        };
        outcome().ok_or_else(|| format!("invalid outcome of a trial: \"{line}\""))
    }
}

/// Sends `warm` items and then, timed, `items` items from one CPU to the other.
pub fn run(ends: Pair, warm: u64, items: u64, cpus: [usize; 2]) -> Result<Outcome, String> {
    let (mut sender, mut receiver) = ends;
    let barrier = SpinBarrier::default();
    let stolen = stolen(cpus)?;
    let [sent, received] = on_two_cpus(
        cpus,
        {
            let barrier = barrier.clone();
            move || {
                sender.send(0, warm);
                barrier.wait();
                timed(|| {
                    sender.send(warm, warm + items);
                    0
                })
            }
        },
        move || {
            let wrong = receiver.receive(0, warm);
            barrier.wait();
            let mut timing = timed(|| receiver.receive(warm, warm + items));
            timing.wrong |= wrong;
            timing
        },
    )?;
    Ok(Outcome {
        seconds: received.wall,
        disturbed: sent.preempted() || received.preempted() || self::stolen(cpus)? != stolen,
        wrong: received.wrong != 0,
    })
}

/// Runs two closures on threads pinned to two CPUs.
pub fn on_two_cpus<R: Send + 'static>(
    cpus: [usize; 2],
    first: impl FnOnce() -> R + Send + 'static,
    second: impl FnOnce() -> R + Send + 'static,
) -> Result<[R; 2], String> {
    let (sender, receiver) = mpsc::channel();
    let second_sender = sender.clone();
    let spawn = |cpu, work: Box<dyn FnOnce() + Send>| {
        thread::spawn(move || match bind(cpu) {
            Ok(()) => work(),
            Err(why) => eprintln!("rings: {why}"),
        })
    };
    spawn(cpus[0], Box::new(move || drop(sender.send((0, first())))));
    spawn(cpus[1], Box::new(move || drop(second_sender.send((1, second())))));
    let mut results = [None, None];
    for _ in 0..2 {
        let (which, result): (usize, R) =
            receiver.recv_timeout(TIME_LIMIT).map_err(|_| "timed out".to_owned())?;
        results[which] = Some(result);
    }
    Ok(results.map(|result| result.expect("a result of each thread")))
}

fn bind(cpu: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|why| format!("cannot run on CPU {cpu}: {why}"))
}

/// A spinning barrier for two threads, good for one use.
#[derive(Clone, Default)]
pub struct SpinBarrier(Arc<AtomicU32>);

impl SpinBarrier {
    /// Waits for the other thread.
    pub fn wait(&self) {
        self.0.fetch_add(1, SeqCst);
        let mut idle = 0;
        while self.0.load(SeqCst) < 2 {
            wait_if(true, &mut idle);
        }
    }
}

/// Wall and CPU seconds of a call, and its result.
pub struct Timing {
    pub wall: f64,
    pub cpu: f64,
    pub wrong: u64,
}

impl Timing {
    /// Whether the thread was preempted; 1 ms is allowed for the resolution of the clocks.
    pub fn preempted(&self) -> bool {
        self.cpu < self.wall * OWN_CPU - 0.001
    }
}

pub fn timed(work: impl FnOnce() -> u64) -> Timing {
    let (cpu, wall) = (thread_cpu(), Instant::now());
    let wrong = work();
    Timing { wall: wall.elapsed().as_secs_f64(), cpu: thread_cpu() - cpu, wrong }
}

/// Steal ticks of two CPUs so far.
pub fn stolen(cpus: [usize; 2]) -> Result<u64, String> {
    let stat = fs::read_to_string("/proc/stat").map_err(|why| format!("/proc/stat: {why}"))?;
    let steal = |cpu: usize| {
        let name = format!("cpu{cpu}");
        let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
        line.split_whitespace().nth(8)?.parse::<u64>().ok()
    };
    // A kernel without steal times counts as 0.
    Ok(cpus.into_iter().filter_map(steal).sum())
}
