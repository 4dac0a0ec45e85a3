//! The gate: whether anything else used the machine during a trial.
//!
//! ```text
//!  calibration loop ─ core times ─ trial ─ core times ─ calibration loop
//!          │               └───────────┬───────┘               │
//!          │                steal time, other processes        │
//!          └──────────── time of the loop, frequency ──────────┘
//! ```
//!
//! A trial is disturbed if one of four limits is exceeded. It is then repeated; its rows are kept,
//! but no value of them is used. On a machine that is never quiet, repetitions soon end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::fs;
use std::hint::black_box;

use ringtap_base::{Clock, Usage};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::rows::{Row, State};
use crate::statistics;

/// Steal time of the trial's cores, as a share of the trial's time.
const STEAL: f64 = 0.02;
/// Time of other processes on the trial's cores, as a share of the trial's time.
const OTHERS: f64 = 0.05;
/// How much longer than its median the calibration loop may take.
const SLOWER: f64 = 0.10;
/// How far the frequency of a core may fall during the trial.
const FALL: f64 = 0.10;

/// The unit of the kernel's times; Linux has 100 a second on all processors.
const TICK: f64 = 0.01;
/// Less on each core is rounding: a time is the difference of several truncated numbers.
const TICKS_MIN: f64 = 2.0;

/// Repetitions of a disturbed trial.
const REPETITIONS: u32 = 2;
/// After this many disturbed trials in a row, trials are not repeated until one is quiet.
const HOPELESS: u32 = 10;
/// Times of the calibration loop whose median counts, for each core. A lasting change of the
/// machine's speed is thus no disturbance for long.
const WINDOW: usize = 100;

/// Steps of the calibration loop: about a millisecond.
const STEPS: u64 = 500_000;
/// Runs of the loop, of which the fastest counts: an interrupt in one of them is no disturbance.
const RUNS: usize = 3;

/// Times of several cores together since the start of the system, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreTimes {
    /// User and system time of all processes but this one. Interrupts may be the trial's own.
    pub busy: f64,
    /// Time in which the host ran something else.
    pub steal: f64,
}

/// The speed of one core.
#[derive(Clone, Copy, Debug)]
pub struct CoreSpeed {
    /// Time of the calibration loop.
    pub loop_seconds: f64,
    /// Frequency, if the kernel reports it.
    pub hertz: Option<f64>,
}

/// Reads the state of the machine.
pub trait Sensor {
    /// The times of these cores.
    fn times(&mut self, cores: &[usize]) -> CoreTimes;
    /// The speed of a core, measured on it.
    fn speed(&mut self, core: usize) -> CoreSpeed;
}

/// Decides which trials are disturbed.
pub struct Gate {
    /// `None` if the gate is off.
    sensor: Option<Box<dyn Sensor>>,
    /// Recent times of the calibration loop, by core.
    loops: BTreeMap<usize, VecDeque<f64>>,
    /// Trials in succession that stayed disturbed.
    given_up: u32,
}

/// The state of the machine before a trial.
pub(crate) struct Before {
    times: CoreTimes,
    /// By core.
    speeds: BTreeMap<usize, CoreSpeed>,
}

impl Gate {
    /// The gate of this machine.
    pub fn of_this_machine() -> Self {
        Self::new(Some(Box::new(Linux)))
    }

    /// A gate with these readings instead of the machine's.
    pub fn with(sensor: impl Sensor + 'static) -> Self {
        Self::new(Some(Box::new(sensor)))
    }

    /// A gate that lets every trial pass.
    pub fn off() -> Self {
        Self::new(None)
    }

    fn new(sensor: Option<Box<dyn Sensor>>) -> Self {
        Self { sensor, loops: BTreeMap::new(), given_up: 0 }
    }

    /// How often the next trial is repeated if it is disturbed.
    pub(crate) fn repetitions(&self) -> u32 {
        if self.given_up < HOPELESS { REPETITIONS } else { 0 }
    }

    /// Reads the state before a trial on `cores`; `None` if the gate is off.
    pub(crate) fn before(&mut self, cores: &[usize]) -> Option<Before> {
        let sensor = self.sensor.as_mut()?;
        let speeds = cores.iter().map(|&core| (core, sensor.speed(core))).collect();
        Some(Before { times: sensor.times(cores), speeds })
    }

    /// Reads the state after the trial, which ran for `seconds` and used `cpu_seconds` itself.
    /// Returns the limits that were exceeded, or `None` if it was quiet.
    pub(crate) fn after(
        &mut self,
        before: &Before,
        seconds: f64,
        cpu_seconds: f64,
    ) -> Option<String> {
        let sensor = self.sensor.as_mut()?;
        let cores: Vec<usize> = before.speeds.keys().copied().collect();
        let times = sensor.times(&cores);
        let rounding = TICKS_MIN * TICK * cores.len() as f64;
        let mut found = Vec::new();
        let mut compare = |name: &str, time: f64, limit: f64| {
            if time > (limit * seconds).max(rounding) {
                found.push(format!("{name} {:.1} % of the trial's time", 100.0 * time / seconds));
            }
        };
        compare("steal", times.steal - before.times.steal, STEAL);
        compare("other processes", times.busy - before.times.busy - cpu_seconds, OTHERS);
        let (mut slower, mut fall) = (0.0f64, 0.0f64);
        for (&core, earlier) in &before.speeds {
            let later = sensor.speed(core);
            let known = self.loops.entry(core).or_default();
            let longest = earlier.loop_seconds.max(later.loop_seconds);
            if let Some(median) = statistics::median(known.make_contiguous()) {
                slower = slower.max(longest / median - 1.0);
            }
            known.extend([earlier.loop_seconds, later.loop_seconds]);
            known.drain(..known.len().saturating_sub(WINDOW));
            if let (Some(from), Some(to)) = (earlier.hertz, later.hertz) {
                fall = fall.max(1.0 - to / from);
            }
        }
        if slower > SLOWER {
            found.push(format!("the calibration loop took {:.0} % longer", 100.0 * slower));
        }
        if fall > FALL {
            found.push(format!("the frequency fell by {:.0} %", 100.0 * fall));
        }
        (!found.is_empty()).then(|| found.join(", "))
    }

    /// Takes note of the last state of a trial, after its repetitions.
    pub(crate) fn ended(&mut self, state: State) {
        self.given_up = if state == State::Disturbed { self.given_up + 1 } else { 0 };
    }
}

/// Readings of this machine.
struct Linux;

impl Sensor for Linux {
    fn times(&mut self, cores: &[usize]) -> CoreTimes {
        // Without the file all times are 0, so there is neither steal nor another process.
        let found = core_times(&fs::read_to_string("/proc/stat").unwrap_or_default(), cores);
        CoreTimes { busy: found.busy - Usage::now().cpu_s, ..found }
    }

    fn speed(&mut self, core: usize) -> CoreSpeed {
        let measured = || {
            let mut set = CpuSet::new();
            set.set(core);
            // A core that was taken from this process meanwhile: any other shows its load, too.
            let _ = sched_setaffinity(None, &set);
            calibrate()
        };
        // A thread of its own: the affinity ends with it.
        let loop_seconds = std::thread::scope(|scope| scope.spawn(measured).join());
        let file = format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        let kilohertz = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
        CoreSpeed {
            loop_seconds: loop_seconds.unwrap_or(f64::NAN),
            hertz: kilohertz.map(|kilohertz: f64| kilohertz * 1e3),
        }
    }
}

/// Time of the loop: multiplications, each of which needs the result of the one before.
fn calibrate() -> f64 {
    let once = |_| {
        let watch = Clock::start();
        let product = (0..STEPS).fold(black_box(1u64), |product, step| {
            (product ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        black_box(product);
        watch.seconds()
    };
    (0..RUNS).map(once).fold(f64::INFINITY, f64::min)
}

/// The times of `cores` in the text of /proc/stat.
fn core_times(stat: &str, cores: &[usize]) -> CoreTimes {
    let mut times = CoreTimes::default();
    for line in stat.lines() {
        let mut fields = line.split_ascii_whitespace();
        let core = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if !core.is_some_and(|core| cores.contains(&core)) {
            continue;
        }
        // user nice system idle iowait irq softirq steal
        let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
        let of = |at: usize| ticks.get(at).copied().unwrap_or(0.0) * TICK;
        times.busy += of(0) + of(1) + of(2);
        times.steal += of(7);
    }
    times
}

/// Number of disturbed trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disturbances {
    /// Trials that ran at least once, quiet or not.
    pub trials: usize,
    /// Trials that were disturbed at least once.
    pub disturbed: usize,
    /// Disturbed trials of which a repetition was quiet.
    pub repeated: usize,
}

impl Disturbances {
    /// Counts the trials of `rows`.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r Row>) -> Self {
        let (mut quiet, mut disturbed) = (BTreeSet::new(), BTreeSet::new());
        for row in rows {
            let trial = (&row.experiment, &row.candidate, &row.parameters, row.trial);
            match row.state {
                State::Ok => drop(quiet.insert(trial)),
                State::Disturbed => drop(disturbed.insert(trial)),
                _ => {}
            }
        }
        Self {
            trials: quiet.union(&disturbed).count(),
            disturbed: disturbed.len(),
            repeated: quiet.intersection(&disturbed).count(),
        }
    }

    /// Disturbed trials without a quiet repetition.
    pub fn left(&self) -> usize {
        self.disturbed - self.repeated
    }
}

impl fmt::Display for Disturbances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trials, disturbed, repeated } = self;
        let verb = if *disturbed == 1 { "was" } else { "were" };
        write!(f, "{disturbed} of {trials} trials {verb} disturbed")?;
        if *disturbed > 0 {
            write!(f, ", {repeated} repeated successfully")?;
        }
        if 2 * self.left() > *trials {
            f.write_str("; this machine is not quiet, so most of its trials decide nothing")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::tests::row;

    /// Readings for the tests: fixed steps of the times, and the speeds in turn.
    struct Planted {
        step: CoreTimes,
        now: CoreTimes,
        speeds: VecDeque<CoreSpeed>,
    }

    impl Sensor for Planted {
        fn times(&mut self, _: &[usize]) -> CoreTimes {
            let before = self.now;
            self.now.busy += self.step.busy;
            self.now.steal += self.step.steal;
            before
        }

        fn speed(&mut self, _: usize) -> CoreSpeed {
            self.speeds.pop_front().unwrap_or(CoreSpeed { loop_seconds: 0.001, hertz: None })
        }
    }

    /// The result of a gate for a trial of 10 s on one core that uses 9 s.
    fn found(busy: f64, steal: f64, speeds: &[(f64, Option<f64>)]) -> Option<String> {
        let speed = |&(loop_seconds, hertz): &(f64, Option<f64>)| CoreSpeed { loop_seconds, hertz };
        let mut all: VecDeque<_> = speeds.iter().map(speed).collect();
        // Four earlier readings, so the median is 1 ms.
        for _ in 0..4 {
            all.push_front(CoreSpeed { loop_seconds: 0.001, hertz: None });
        }
        let step = CoreTimes { busy, steal };
        let mut gate = Gate::with(Planted { step, now: CoreTimes::default(), speeds: all });
        for _ in 0..2 {
            let before = gate.before(&[0]).unwrap();
            let _ = gate.after(&before, 10.0, 9.0);
        }
        let before = gate.before(&[0]).unwrap();
        gate.after(&before, 10.0, 9.0)
    }

    #[test]
    fn a_quiet_machine_disturbs_nothing() {
        assert_eq!(found(9.0, 0.0, &[]), None);
        // Just below all limits, and a trial with threads on other cores.
        let ghz = |ghz: f64| Some(ghz * 1e9);
        assert_eq!(found(9.49, 0.19, &[(0.00109, ghz(3.0)), (0.0009, ghz(2.8))]), None);
        assert_eq!(found(5.0, 0.0, &[]), None);
    }

    #[test]
    fn each_limit_disturbs_alone() {
        let reason = |busy, steal, speeds: &[_]| found(busy, steal, speeds).unwrap();
        assert_eq!(reason(9.6, 0.0, &[]), "other processes 6.0 % of the trial's time");
        assert_eq!(reason(9.0, 0.3, &[]), "steal 3.0 % of the trial's time");
        for slow in [[(0.0012, None), (0.001, None)], [(0.001, None), (0.0012, None)]] {
            assert_eq!(reason(9.0, 0.0, &slow), "the calibration loop took 20 % longer");
        }
        let slower = [(0.001, Some(3e9)), (0.001, Some(2e9))];
        assert_eq!(reason(9.0, 0.0, &slower), "the frequency fell by 33 %");
    }

    #[test]
    fn short_trials_are_not_disturbed_by_rounding() {
        let after = |busy| {
            let step = CoreTimes { busy, steal: 0.0 };
            let now = CoreTimes::default();
            let mut gate = Gate::with(Planted { step, now, speeds: VecDeque::new() });
            let before = gate.before(&[0, 1]).unwrap();
            gate.after(&before, 0.1, 0.1)
        };
        assert_eq!(after(0.13), None);
        assert!(after(0.15).is_some());
    }

    #[test]
    fn a_lasting_change_of_speed_is_soon_the_new_median() {
        let speeds = VecDeque::new();
        let (step, now) = (CoreTimes::default(), CoreTimes::default());
        let mut gate = Gate::with(Planted { step, now, speeds });
        gate.loops.insert(0, [0.0005; WINDOW].into());
        let mut disturbed = || {
            let before = gate.before(&[0]).unwrap();
            gate.after(&before, 1.0, 1.0).is_some()
        };
        assert_eq!((0..WINDOW).filter(|_| disturbed()).count(), WINDOW / 4 + 1);
        assert_eq!(gate.loops[&0].len(), WINDOW);
    }

    #[test]
    fn a_machine_that_is_never_quiet_ends_the_repetitions() {
        let mut gate = Gate::off();
        for _ in 0..HOPELESS {
            assert_eq!(gate.repetitions(), REPETITIONS);
            gate.ended(State::Disturbed);
        }
        assert_eq!(gate.repetitions(), 0);
        gate.ended(State::Ok);
        assert_eq!(gate.repetitions(), REPETITIONS);
    }

    #[test]
    fn core_times_are_those_of_the_given_cores() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 20 30 999 5 7 8 40 0 0\n\
                    cpu1 1 1 1 1 1 1 1 1 0 0\ncpu10 200 0 0 0 0 0 0 5 0 0\nintr 4 5\n";
        let found = core_times(stat, &[0, 10]);
        assert!((found.busy - 3.5).abs() < 1e-9 && (found.steal - 0.45).abs() < 1e-9, "{found:?}");
        assert_eq!(core_times("", &[0]), CoreTimes::default());
    }

    #[test]
    fn this_machine_can_be_read() {
        let before = Linux.times(&[0]);
        assert!(Linux.speed(0).loop_seconds > 0.0);
        assert!(before.steal >= 0.0 && before.busy.is_finite(), "{before:?}");
    }

    #[test]
    fn trials_are_counted_once() {
        let disturbed =
            |candidate, trial| Row { state: State::Disturbed, ..row(candidate, trial, 1.0) };
        let rows = [
            row("a", 1, 1.0),
            disturbed("a", 2),
            disturbed("a", 2),
            row("a", 2, 1.0),
            disturbed("b", 1),
        ];
        let found = Disturbances::of(&rows);
        assert_eq!(found, Disturbances { trials: 3, disturbed: 2, repeated: 1 });
        assert_eq!(found.to_string(), "2 of 3 trials were disturbed, 1 repeated successfully");
        let all = Disturbances::of(&rows[4..]).to_string();
        assert!(all.contains("1 of 1 trials was disturbed") && all.contains("not quiet"), "{all}");
    }
}
