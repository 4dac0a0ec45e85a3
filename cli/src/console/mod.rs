//! Messages of a run on stderr: errors, alerts, statistics, progress. Lines do not mix with the
//! progress bar.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ringtap_base::text::shown;
use ringtap_engine::{ClockChanges, Plan, Watch};
use ringtap_export::{Handle, Status};
use ringtap_monitor::report::Interval;
use ringtap_monitor::{Alert, EndedInterval, Options, Totals, losses_so_far};
use ringtap_program::rate::Rate;
use ringtap_terminal::console::{Level, is_wanted, labelled};

mod progress;

pub(crate) use progress::Extent;
use progress::Progress;

use crate::alerts::{AlertLines, are_printed};
use crate::args::{Capture, MonitorArgs};
use crate::links;
use crate::metrics::{RunStats, losses};
use crate::output_reporter::{Line, OutputReporter};
use crate::screen::{Request, Screen};
use crate::web::Reporter;
use ringtap_terminal::numbers::{bytes, count, rate};

/// The period of the rate beside the bar.
const SECOND: Duration = Duration::from_secs(1);

/// A run that ends sooner shows no bar.
const BAR_AFTER: Duration = Duration::from_millis(400);

/// The console of a run. The merger reports alerts and intervals to it; the attendant thread shows
/// progress.
pub(crate) struct Console {
    begin: Instant,
    watch: &'static Watch,
    extent: Extent,
    /// Warnings have its limits.
    plan: Plan<Options>,
    prints_alerts: AtomicBool,
    /// Whether less is printed.
    quiet: bool,
    /// Print intervals and progress.
    verbose: bool,
    /// Print statistics at this interval instead of a bar.
    every: Option<Duration>,
    /// Number of statistics intervals that were printed or skipped.
    lines: AtomicU64,
    progress: Progress,
    rate: Mutex<Rate>,
    /// The terminal view, which replaces lines and bar.
    screen: Mutex<Option<Screen>>,
    outputs: Mutex<OutputReporter>,
    /// The live page.
    page: Option<Reporter>,
    /// Alerts so far.
    alerts: AtomicU64,
    alert_lines: Mutex<AlertLines>,
    /// Live flows at the end of the last interval; unset before the first.
    flows: OnceLock<AtomicU64>,
    /// A bit for each interface that was reported as gone.
    gone_reported: AtomicU32,
    totals: Mutex<Totals>,
    /// Names of what was reported and is reported once.
    reported: Mutex<BTreeSet<&'static str>>,
    clock_reported: AtomicU64,
    closed: AtomicBool,
}

impl Console {
    /// The console of a run with this `watch`. It also reports to the screen and the page.
    pub(crate) fn new(
        args: &MonitorArgs,
        plan: &Plan<Options>,
        watch: &'static Watch,
        extent: Extent,
        screen: Option<Screen>,
        page: Option<Reporter>,
        outputs: Handle,
    ) -> Self {
        // A pipe may be that of a program that captures.
        let read = &args.inputs.read;
        let are_files = !read.is_empty() && read.iter().all(|path| path.is_file());
        Self {
            begin: now(),
            watch,
            extent,
            plan: plan.clone(),
            prints_alerts: AtomicBool::new(are_printed(&args.alert_to)),
            quiet: args.quiet,
            verbose: !args.quiet && (screen.is_some() || is_wanted(Level::Info)),
            every: args.stats.map(Duration::from_nanos),
            lines: AtomicU64::new(0),
            progress: Progress::default(),
            rate: Mutex::default(),
            screen: Mutex::new(screen),
            outputs: Mutex::new(OutputReporter::new(outputs)),
            page,
            alerts: AtomicU64::new(0),
            alert_lines: Mutex::new(AlertLines::new(are_files)),
            flows: OnceLock::new(),
            gone_reported: AtomicU32::new(0),
            totals: Mutex::default(),
            reported: Mutex::default(),
            clock_reported: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Reports an alert.
    pub(crate) fn alert(&self, alert: &Alert) {
        self.page.iter().for_each(|page| page.alert(alert));
        self.alerts.fetch_add(u64::from(alert.state.is_first()), Ordering::Relaxed);
        let is_printed = self.prints_alerts.load(Ordering::Relaxed) && !self.quiet;
        if !is_printed || !is_wanted(Level::Warning) {
            return;
        }
        let lines = self.alert_lines().add(alert, self.begin.elapsed());
        lines.iter().for_each(|line| self.print_line(line));
    }

    /// Whether alerts are printed from now on, unless the run is quiet.
    pub(crate) fn set_prints_alerts(&self, are_printed: bool) {
        self.prints_alerts.store(are_printed, Ordering::Relaxed);
    }

    /// Prints a note, unless the run is quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet && is_wanted(Level::Info) {
            self.print_line(&shown(text));
        }
    }

    fn alert_lines(&self) -> MutexGuard<'_, AlertLines> {
        self.alert_lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a finished interval, with the number of live flows.
    pub(crate) fn interval(&self, ended: &EndedInterval<'_>) {
        self.flows.get_or_init(AtomicU64::default).store(ended.live, Ordering::Relaxed);
        self.page.iter().for_each(|page| page.interval(ended));
        if !self.verbose {
            return;
        }
        if self.on_screen(|screen| screen.interval(ended)).is_some() {
            return;
        }
        let Interval { start, end, packets, octets, conversations, .. } = ended.interval;
        let seconds = end.0.saturating_sub(start.0) as f64 / 1e9;
        let about = if conversations.exact { "" } else { "about " };
        self.print_line(&format!(
            "{start}, {seconds} s: {} packets ({}/s), {}, {about}{} TCP and {} UDP conversations, {} flows live, \
             {} dropped so far{}",
            count(packets.handled),
            rate(packets.handled as f64 / seconds),
            bytes(octets.wire),
            count(conversations.tcp),
            count(conversations.udp),
            count(ended.live),
            count(self.watch.dropped.get()),
            self.losses_so_far(),
        ));
    }

    fn output_status(&self) -> Vec<Status> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).status()
    }

    fn records_lost(&self) -> u64 {
        self.output_status().iter().map(Status::lost_total).sum()
    }

    /// Sets the totals so far.
    pub(crate) fn totals(&self, totals: &Totals) {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner) = *totals;
    }

    fn current_totals(&self) -> Totals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn losses(&self) -> Vec<String> {
        losses(self.watch, &self.current_totals())
    }

    /// The losses so far, as the end of a line; empty if there are none.
    fn losses_so_far(&self) -> String {
        let lost = self.records_lost();
        let outputs = (lost > 0).then(|| format!("{} records lost by outputs", count(lost)));
        self.losses().into_iter().chain(outputs).map(|loss| format!(", {loss}")).collect()
    }

    /// Whether this is the first report of it.
    fn is_new(&self, what: &'static str) -> bool {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(what)
    }

    /// Shows the progress, at its interval, and returns the user's requests.
    pub(crate) fn tick(&self) -> Vec<Request> {
        if self.closed.load(Ordering::Relaxed) {
            self.check_outputs(self.begin.elapsed());
            return Vec::new();
        }
        self.check_sharding();
        self.check_shedding();
        self.check_gone();
        links::turn(self.watch, |text| self.warn(text));
        self.check_room();
        self.check_clock();
        let elapsed = self.begin.elapsed();
        self.check_outputs(elapsed);
        let line = self.alert_lines().turn(elapsed);
        line.iter().for_each(|line| self.print_line(line));
        let requests = self.on_screen(|screen| {
            screen.tick(self.watch, elapsed, || (self.output_status(), self.losses()));
            screen.requests()
        });
        if let Some(requests) = requests {
            return requests;
        }
        if let Some(every) = self.every {
            let due = elapsed.as_nanos() / every.as_nanos().max(1);
            if due > u128::from(self.lines.load(Ordering::Relaxed)) {
                self.lines.store(due as u64, Ordering::Relaxed);
                self.statistics();
            }
        } else if self.verbose && elapsed > BAR_AFTER && io::stderr().is_terminal() {
            self.progress.draw(&self.extent, self.watch.bytes.get(), elapsed, &self.rates(SECOND));
        }
        Vec::new()
    }

    /// The values for the metrics.
    pub(crate) fn run_stats(&self) -> RunStats {
        RunStats {
            elapsed: self.begin.elapsed(),
            alerts: self.alerts.load(Ordering::Relaxed),
            flows: self.flows.get().map(|flows| flows.load(Ordering::Relaxed)),
            totals: self.current_totals(),
            outputs: self.output_status(),
        }
    }

    /// Warns once if an interface distributes a flow's frames over several queues.
    fn check_sharding(&self) {
        let Extent::Live(interfaces, capture) = &self.extent else { return };
        if self.watch.split.get() == 0 || !self.is_new("split") {
            return;
        }
        self.warn(&format!(
            "{}: packets of the same address pair arrive in different queues, so \
             their flows are metered in parts; {}",
            interfaces.join(", "),
            remedy(interfaces.first().map_or("IFACE", String::as_str), *capture)
        ));
    }

    /// Reports each interface that disappeared while others remain. If all disappear, the run ends
    /// with an error.
    fn check_gone(&self) {
        let Extent::Live(interfaces, _) = &self.extent else { return };
        for (place, interface) in interfaces.iter().enumerate() {
            let reported =
                || self.gone_reported.fetch_or(1 << place, Ordering::Relaxed) >> place & 1 == 1;
            if interfaces.len() > 1 && self.watch.interfaces.is_gone(place) && !reported() {
                let text = format!("the interface {interface} is gone; the others continue");
                self.print_line(&labelled("error", &text));
            }
        }
    }

    /// Warns once that packets are shed.
    fn check_shedding(&self) {
        if self.watch.shed.get() > 0 && self.is_new("shed") {
            self.warn(
                "overload: the packets of some address pairs are dropped and counted as shed",
            );
        }
    }

    /// Reports outputs that fail, lose records or recover; once the console is closed only those that recover, because the
    /// end of the run reports the others.
    fn check_outputs(&self, elapsed: Duration) {
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = outputs.check(elapsed);
        drop(outputs);
        for line in lines {
            match line {
                Line::Warning(_) if self.closed.load(Ordering::Relaxed) => {}
                Line::Warning(text) | Line::Space(text) => self.warn(&text),
                Line::Note(text) if is_wanted(Level::Info) => self.print_line(&shown(&text)),
                Line::Note(_) => {}
            }
        }
    }

    /// Warns of each loss of a live run once, when it begins.
    fn check_room(&self) {
        if !matches!(self.extent, Extent::Live(..)) {
            return;
        }
        for (loss, number) in losses_so_far(self.watch, &self.current_totals()) {
            if let Some(text) = loss.warning_of(number, &self.plan)
                && self.is_new(loss.name)
            {
                self.warn(&format!("out of memory: {text}"));
            }
        }
    }

    /// Warns each time the clock of the timestamps was set.
    fn check_clock(&self) {
        let (count, by_ns) = self.watch.clock();
        if self.clock_reported.swap(count, Ordering::Relaxed) >= count {
            return;
        }
        self.warn(&format!(
            "the clock of the timestamps was set {}: {}",
            ClockChanges::set_by(by_ns),
            ClockChanges::effect(by_ns)
        ));
    }

    /// Prints a line of totals, with the rate since the line before.
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
        let line = format!("stats: {seconds:.1} s, {}, {rest}", self.rates(Duration::ZERO));
        self.print_line(&shown(&line));
    }

    /// Packets of each interface, in parentheses, if there are several.
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

    /// The time since the start of the run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Packets so far, and their rate in the last period of at least this length.
    fn rates(&self, least: Duration) -> String {
        let packets = self.watch.packets.get();
        let mut current = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let per_second = current.read(self.begin.elapsed(), packets, least);
        format!("{} packets, {}/s", count(packets), rate(per_second))
    }

    /// Clears the bar or restores the terminal, and prints the number of suppressed alerts.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.progress.clear();
        let line = self.alert_lines().close();
        line.iter().for_each(|line| self.print_line(line));
    }

    /// Calls `work` with the screen, if there is one.
    fn on_screen<T>(&self, work: impl FnOnce(&mut Screen) -> T) -> Option<T> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work)
    }

    /// Prints a warning, if warnings are enabled.
    pub(crate) fn warn(&self, text: &str) {
        if is_wanted(Level::Warning) {
            self.print_line(&labelled("warning", text));
        }
    }

    /// Prints a line, which may have styles, on stderr or in the terminal view.
    pub(crate) fn print_line(&self, line: &str) {
        if self.on_screen(|screen| screen.add_message(line)).is_some() {
            return;
        }
        self.progress.print_line(line);
    }
}

#[expect(clippy::disallowed_methods, reason = "progress uses wall-clock time, not packet time")]
fn now() -> Instant {
    Instant::now()
}

/// The remedy for an interface that distributes a flow's frames over several queues.
fn remedy(interface: &str, capture: Capture) -> String {
    match capture {
        Capture::Dpdk => {
            "the device does not hash addresses alone: use one queue (--queues 1)".into()
        }
        Capture::Auto | Capture::AfPacket | Capture::AfXdp => format!(
            "let it hash addresses alone, symmetrically: use --setup-nic, or the commands of 'ringtap doctor {interface}'; \
             or give it one queue: ethtool -L {interface} combined 1"
        ),
    }
}
