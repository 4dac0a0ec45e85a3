//! What is said beside the report: complaints, alerts, progress. All of it goes to stderr, and
//! the lines do not run into the progress bar.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use ringtap_engine::{ClockChanges, Watch};
use ringtap_export::{Handle, Status};
use ringtap_monitor::report::Interval;
use ringtap_monitor::{Alert, Ended, Shortage};
use ringtap_terminal::console::{Level, is_wanted, labelled};

mod progress;

use progress::Progress;

use crate::args::Capture;
use crate::metrics::Standing;
use crate::output_reporter::{Line, OutputReporter};
use crate::screen::{Screen, Wish};
use ringtap_terminal::names;
use ringtap_terminal::numbers::{bytes, count, rate};

/// Alerts printed as they come; the report has them all.
const ALERTS_SHOWN: u64 = 20;

/// A run that ends sooner shows no bar.
const BAR_AFTER: Duration = Duration::from_millis(400);

/// A key of the Toeplitz hash for which both directions of a flow have the same value: it repeats every 16 bits (Woo and
/// Park, *Scalable TCP Session Monitoring with Symmetric Receive-side Scaling*, 2012). As long as cards mostly want it.
const KEY: &str = "6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:\
                   6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a:6d:5a";

/// How much there is to read.
pub(crate) enum Extent {
    /// So many bytes, if that is known.
    Bytes(Option<u64>),
    /// As much as comes to these interfaces.
    Live(Vec<String>, Capture),
}

/// The run as seen from outside. Shared by the merger, which tells of alerts, and the attendant,
/// which shows progress.
pub(crate) struct Console {
    begin: Instant,
    watch: &'static Watch,
    extent: Extent,
    /// No alerts.
    quiet: bool,
    /// Intervals and progress.
    chatty: bool,
    /// Lines instead of a bar, this often.
    every: Option<Duration>,
    lines: AtomicU64,
    progress: Progress,
    /// Instead of lines and bar.
    screen: Mutex<Option<Screen>>,
    outputs: Mutex<OutputReporter>,
    alerts: AtomicU64,
    /// Those that lived when an interval ended; none has ended before.
    flows: OnceLock<AtomicU64>,
    split_told: AtomicBool,
    shed_told: AtomicBool,
    /// A bit for each interface.
    gone_told: AtomicU32,
    shortage: Mutex<Shortage>,
    shortage_told: AtomicBool,
    fragments_told: AtomicBool,
    clock_told: AtomicU64,
    closed: AtomicBool,
}

impl Console {
    /// A console over a run that `watch` watches.
    pub(crate) fn new(
        watch: &'static Watch,
        extent: Extent,
        every: Option<Duration>,
        quiet: bool,
        screen: Option<Screen>,
        outputs: Handle,
    ) -> Self {
        Self {
            begin: now(),
            watch,
            extent,
            quiet,
            chatty: !quiet && (screen.is_some() || is_wanted(Level::Info)),
            every,
            lines: AtomicU64::new(0),
            progress: Progress::default(),
            screen: Mutex::new(screen),
            outputs: Mutex::new(OutputReporter::new(outputs)),
            alerts: AtomicU64::new(0),
            flows: OnceLock::new(),
            split_told: AtomicBool::new(false),
            shed_told: AtomicBool::new(false),
            gone_told: AtomicU32::new(0),
            shortage: Mutex::new(Shortage::default()),
            shortage_told: AtomicBool::new(false),
            fragments_told: AtomicBool::new(false),
            clock_told: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Tells of a scan.
    pub(crate) fn alert(&self, alert: &Alert) {
        let number = self.alerts.fetch_add(1, Ordering::Relaxed);
        if self.quiet || !is_wanted(Level::Warning) || number >= ALERTS_SHOWN {
            return;
        }
        let (time, what) = match alert {
            Alert::Vertical { source, target, ports, time } => {
                (time, format!("{source} scans {target}, {ports} ports failed so far"))
            }
            Alert::Horizontal { source, port, targets, time } => {
                (time, format!("{source} scans port {port}/tcp, {targets} targets failed so far"))
            }
            Alert::Packets { target, per_second, protocol, percent, time } => {
                let protocol = names::protocol(*protocol);
                let rate = rate(*per_second as f64);
                (
                    time,
                    format!("{target} was sent {rate} packets/s, {percent} % of them {protocol}"),
                )
            }
            Alert::Bits { target, per_second, time } => {
                (time, format!("{target} was sent {}bit/s", rate(*per_second as f64)))
            }
            Alert::Spreads { source, targets, time } => {
                (time, format!("{source} sent to {} hosts", count(*targets)))
            }
            Alert::Attracts { target, sources, time } => {
                (time, format!("{target} was sent to by {} hosts", count(*sources)))
            }
        };
        let style = Style::new().bold().fg_color(Some(AnsiColor::Magenta.into()));
        self.say(&format!("{style}alert:{style:#} {time} {what}"));
    }

    /// Tells of an interval that is over, and of flows that live.
    pub(crate) fn interval(&self, ended: &Ended<'_>) {
        self.flows.get_or_init(AtomicU64::default).store(ended.live, Ordering::Relaxed);
        if !self.chatty {
            return;
        }
        if self.on_screen(|screen| screen.interval(ended)).is_some() {
            return;
        }
        let Interval { start, end, packets, octets, conversations, .. } = ended.interval;
        let seconds = end.0.saturating_sub(start.0) as f64 / 1e9;
        let about = if conversations.exact { "" } else { "about " };
        self.say(&format!(
            "{start}, {seconds} s: {} packets ({}/s), {}, {about}{} TCP and {} UDP conversations, {} flows live, \
             {} dropped so far{}",
            count(packets.handled),
            rate(packets.handled as f64 / seconds),
            bytes(octets.wire),
            count(conversations.tcp),
            count(conversations.udp),
            count(ended.live),
            count(self.watch.dropped.get()),
            self.shortages(),
        ));
    }

    fn output_status(&self) -> Vec<Status> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).status()
    }

    fn records_lost(&self) -> u64 {
        self.output_status().iter().map(Status::lost_total).sum()
    }

    /// Notes what there was no room for so far.
    pub(crate) fn shortage(&self, shortage: &Shortage) {
        *self.shortage.lock().unwrap_or_else(PoisonError::into_inner) = *shortage;
    }

    fn short_of(&self) -> Shortage {
        *self.shortage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of an interval's line: what there was no room for so far, if anything.
    fn shortages(&self) -> String {
        let short = self.short_of();
        let parts = [
            (short.flows_ended_early, "flows ended early"),
            (short.attempts_ignored, "scan attempts ignored"),
            (short.packets_in_further_intervals, "packets in further intervals"),
            (self.watch.fragments_forgotten.get(), "fragments forgotten"),
            (self.records_lost(), "flow records lost by outputs"),
        ];
        let told = parts.iter().filter(|(number, _)| *number > 0);
        told.map(|(number, what)| format!(", {} {what}", count(*number))).collect()
    }

    /// Shows how far the run has come, if it is time to, and hears what the user wishes.
    pub(crate) fn tick(&self) -> Vec<Wish> {
        if self.closed.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.check_sharding();
        self.check_shedding();
        self.check_gone();
        self.check_room();
        self.check_clock();
        let elapsed = self.begin.elapsed();
        self.check_outputs(elapsed);
        let wishes = self.on_screen(|screen| {
            screen.tick(self.watch, elapsed, || self.records_lost());
            screen.wishes()
        });
        if let Some(wishes) = wishes {
            return wishes;
        }
        if let Some(every) = self.every {
            let due = elapsed.as_nanos() / every.as_nanos().max(1);
            if due > u128::from(self.lines.load(Ordering::Relaxed)) {
                self.lines.store(due as u64, Ordering::Relaxed);
                self.statistics();
            }
        } else if self.chatty && elapsed > BAR_AFTER && io::stderr().is_terminal() {
            self.progress.draw(&self.extent, self.watch.bytes.get(), elapsed, &self.rates());
        }
        Vec::new()
    }

    /// What the metrics have from here.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            elapsed: self.begin.elapsed(),
            alerts: self.alerts.load(Ordering::Relaxed),
            flows: self.flows.get().map(|flows| flows.load(Ordering::Relaxed)),
            shortage: self.short_of(),
            outputs: self.output_status(),
        }
    }

    /// Tells, once, if an interface does not share frames out as flows need it.
    fn check_sharding(&self) {
        let Extent::Live(interfaces, capture) = &self.extent else { return };
        let told = || self.split_told.swap(true, Ordering::Relaxed);
        if self.watch.split.get() == 0 || told() {
            return;
        }
        self.warn(&format!(
            "{}: packets between the same two addresses come by different queues, so \
             their flows are metered in parts. {}",
            interfaces.join(", "),
            remedy(interfaces.first().map_or("IFACE", String::as_str), *capture)
        ));
    }

    /// Tells, once for each, of interfaces that are gone while others go on. If all are, the run ends and says so.
    fn check_gone(&self) {
        let Extent::Live(interfaces, _) = &self.extent else { return };
        for (place, interface) in interfaces.iter().enumerate() {
            let told = || self.gone_told.fetch_or(1 << place, Ordering::Relaxed) >> place & 1 == 1;
            if interfaces.len() > 1 && self.watch.interfaces.is_gone(place) && !told() {
                let text = format!(
                    "the interface {interface} is gone; the others are listened to further"
                );
                self.say(&labelled("error", &text));
            }
        }
    }

    /// Tells, once, that flows are being left out.
    fn check_shedding(&self) {
        let told = || self.shed_told.swap(true, Ordering::Relaxed);
        if self.watch.shed.get() == 0 || told() {
            return;
        }
        self.warn(
            "more comes than can be metered: the packets of some pairs of addresses are left out, and counted as shed",
        );
    }

    /// Reports outputs that fail, lose records, or work again.
    fn check_outputs(&self, elapsed: Duration) {
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = outputs.check(elapsed);
        drop(outputs);
        for line in lines {
            match line {
                Line::Warning(text) => self.warn(&text),
                Line::Note(text) if is_wanted(Level::Info) => self.say(&text),
                Line::Note(_) => {}
            }
        }
    }

    /// Warns, once, that a table of a live run is full.
    fn check_room(&self) {
        if !matches!(self.extent, Extent::Live(..)) {
            return;
        }
        let forgotten = self.watch.fragments_forgotten.get() > 0;
        if forgotten && !self.fragments_told.swap(true, Ordering::Relaxed) {
            self.warn(
                "more fragmented datagrams are under way than there is room for: later fragments may lack their ports. \
                 Raise --memory",
            );
        }
        if self.short_of() != Shortage::default()
            && !self.shortage_told.swap(true, Ordering::Relaxed)
        {
            self.warn(&format!(
                "memory does not suffice{}: flows are cut short, or counts are no longer exact. \
                 Raise --memory or --max-flows",
                self.shortages()
            ));
        }
    }

    /// Tells each time that the clock of an interface was set.
    fn check_clock(&self) {
        let (count, by_ns) = self.watch.clock();
        if self.clock_told.swap(count, Ordering::Relaxed) >= count {
            return;
        }
        self.warn(&format!(
            "the clock that stamps frames was set {}: {}",
            ClockChanges::set_by(by_ns),
            ClockChanges::effect(by_ns)
        ));
    }

    /// One line of totals and rates.
    pub(crate) fn statistics(&self) {
        let read = bytes(self.watch.bytes.get());
        let rest = match &self.extent {
            &Extent::Bytes(Some(total)) => {
                let share = 100.0 * self.watch.bytes.get() as f64 / total.max(1) as f64;
                format!("{read} read of {} ({share:.0} %)", bytes(total))
            }
            Extent::Bytes(None) => format!("{read} read"),
            Extent::Live(interfaces, _) => {
                let (dropped, shed) = (self.watch.dropped.get(), self.watch.shed.get());
                let shed = if shed > 0 { format!(", {} shed", count(shed)) } else { String::new() };
                format!("{} dropped{shed}{}", count(dropped), self.by_interface(interfaces))
            }
        };
        let seconds = self.begin.elapsed().as_secs_f64();
        self.say(&format!("stats: {seconds:.1} s, {}, {rest}", self.rates()));
    }

    /// Packets of each interface, if there are several.
    fn by_interface(&self, interfaces: &[String]) -> String {
        if interfaces.len() < 2 {
            return String::new();
        }
        let one = |(place, name): (usize, &String)| {
            format!("{name} {}", count(self.watch.interfaces.packets(place)))
        };
        let all: Vec<_> = interfaces.iter().enumerate().map(one).collect();
        format!(" ({})", all.join(", "))
    }

    /// Since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    fn rates(&self) -> String {
        let packets = self.watch.packets.get();
        let seconds = self.begin.elapsed().as_secs_f64().max(1e-9);
        format!("{} packets, {}/s", count(packets), rate(packets as f64 / seconds))
    }

    /// The run is over: clears the bar or gives the terminal back, and says what was not said.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.progress.clear();
        let alerts = self.alerts.load(Ordering::Relaxed);
        if !self.quiet && is_wanted(Level::Warning) && alerts > ALERTS_SHOWN {
            let more = count(alerts - ALERTS_SHOWN);
            self.say(&format!("alert: {more} more; the report has all scans"));
        }
    }

    /// Does something with the screen, if there is one.
    fn on_screen<T>(&self, work: impl FnOnce(&mut Screen) -> T) -> Option<T> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    /// A warning, if warnings are wanted.
    fn warn(&self, text: &str) {
        if is_wanted(Level::Warning) {
            self.say(&labelled("warning", text));
        }
    }

    /// A line on stderr, or on the screen.
    pub(crate) fn say(&self, line: &str) {
        if self.on_screen(|screen| screen.say(line)).is_some() {
            return;
        }
        self.progress.say(line);
    }
}

#[expect(clippy::disallowed_methods, reason = "progress is about the user's time, not packets'")]
fn now() -> Instant {
    Instant::now()
}

/// What helps where an interface does not share frames out as flows need it.
fn remedy(interface: &str, capture: Capture) -> String {
    match capture {
        Capture::Dpdk => {
            "The device does not hash addresses alone: read it by one queue (--queues 1)".into()
        }
        Capture::Auto | Capture::AfPacket | Capture::AfXdp => format!(
            "Have it share out by addresses alone, both directions alike: \
             ethtool -X {interface} hfunc toeplitz hkey {KEY} and, for tcp4, udp4, tcp6 and udp6, \
             ethtool -N {interface} rx-flow-hash udp4 sd; or give it one queue: ethtool -L {interface} combined 1"
        ),
    }
}
