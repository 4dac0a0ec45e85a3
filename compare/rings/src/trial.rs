//! One trial, in a process of its own: warm up, meet, send, read everything, say how long it took.
//!
//! ```text
//! producer, CPU a   send 0..warm ─┐  meet   send warm..warm+items
//! consumer, CPU b   receive … ────┘         receive … │
//!                                    └── timed ───────┘
//! ```
//!
//! The ring is empty when the clock starts and when it stops. A trial is disturbed if one of the
//! threads had less CPU time than wall time or if the hypervisor took one of the two CPUs away.

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

/// No trial takes as long; who does has lost items.
const GIVE_UP: Duration = Duration::from_secs(30);

/// A thread that had less of its CPU than this was preempted.
const OWN_CPU: f64 = 0.97;

/// What a trial found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub seconds: f64,
    pub disturbed: bool,
    /// Some item was not what it should have been.
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
        outcome().ok_or_else(|| format!("not the outcome of a trial: \"{line}\""))
    }
}

/// Sends `items` items after `warm` others from one CPU to the other.
pub fn run(ends: Pair, warm: u64, items: u64, cpus: [usize; 2]) -> Result<Outcome, String> {
    let (mut sender, mut receiver) = ends;
    let meeting = Meeting::default();
    let stolen = stolen(cpus)?;
    let [sent, received] = on_two_cpus(
        cpus,
        {
            let meeting = meeting.clone();
            move || {
                sender.send(0, warm);
                meeting.meet();
                timed(|| {
                    sender.send(warm, warm + items);
                    0
                })
            }
        },
        move || {
            let wrong = receiver.receive(0, warm);
            meeting.meet();
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

/// Runs two closures on threads bound to two CPUs.
pub fn on_two_cpus<R: Send + 'static>(
    cpus: [usize; 2],
    first: impl FnOnce() -> R + Send + 'static,
    second: impl FnOnce() -> R + Send + 'static,
) -> Result<[R; 2], String> {
    let (tell, told) = mpsc::channel();
    let tell_second = tell.clone();
    let spawn = |cpu, work: Box<dyn FnOnce() + Send>| {
        thread::spawn(move || match bind(cpu) {
            Ok(()) => work(),
            Err(why) => eprintln!("rings: {why}"),
        })
    };
    spawn(cpus[0], Box::new(move || drop(tell.send((0, first())))));
    spawn(cpus[1], Box::new(move || drop(tell_second.send((1, second())))));
    let mut results = [None, None];
    for _ in 0..2 {
        let (which, result): (usize, R) =
            told.recv_timeout(GIVE_UP).map_err(|_| "it did not come to an end".to_owned())?;
        results[which] = Some(result);
    }
    Ok(results.map(|result| result.expect("each end tells once")))
}

fn bind(cpu: usize) -> Result<(), String> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|why| format!("cannot run on CPU {cpu}: {why}"))
}

/// Where both threads wait for each other, spinning.
#[derive(Clone, Default)]
pub struct Meeting(Arc<AtomicU32>);

impl Meeting {
    /// Waits for the other. For one meeting of two.
    pub fn meet(&self) {
        self.0.fetch_add(1, SeqCst);
        let mut idle = 0;
        while self.0.load(SeqCst) < 2 {
            wait_if(true, &mut idle);
        }
    }
}

/// Wall and CPU seconds of something, and what it returned.
pub struct Timing {
    pub wall: f64,
    pub cpu: f64,
    pub wrong: u64,
}

impl Timing {
    /// A millisecond is allowed for the clocks' grain.
    pub fn preempted(&self) -> bool {
        self.cpu < self.wall * OWN_CPU - 0.001
    }
}

pub fn timed(work: impl FnOnce() -> u64) -> Timing {
    let (cpu, wall) = (thread_cpu(), Instant::now());
    let wrong = work();
    Timing { wall: wall.elapsed().as_secs_f64(), cpu: thread_cpu() - cpu, wrong }
}

/// Ticks that the hypervisor has taken from two CPUs so far.
pub fn stolen(cpus: [usize; 2]) -> Result<u64, String> {
    let stat = fs::read_to_string("/proc/stat").map_err(|why| format!("/proc/stat: {why}"))?;
    let steal = |cpu: usize| {
        let name = format!("cpu{cpu}");
        let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
        line.split_whitespace().nth(8)?.parse::<u64>().ok()
    };
    // A kernel that does not count it has nothing to tell.
    Ok(cpus.into_iter().filter_map(steal).sum())
}
