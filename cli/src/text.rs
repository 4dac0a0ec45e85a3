//! The report for people: at most 100 columns, one section a question.

mod activity;

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use ringtap_engine::report::{
    Facts, Flows, HorizontalScan, HostRow, Interval, PairRow, PortRow, Rankings, Scans, Talkers,
    Time, VerticalScan, Volume,
};
use ringtap_engine::{Exported, InterfaceCounts, Outcome, Plan, Role, Tunnels};

use crate::names;
use ringtap_terminal::numbers::{bytes, count, rate};
use ringtap_terminal::table::{Lean, Table};

use Lean::{Left, Right};

const HEADING: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));

/// Columns of a page.
const WIDTH: usize = 100;
/// Scans of either kind on a page; programs get all.
const SCANS: usize = 50;
/// Protocols in an interval, to say about how many intervals there is room for.
const PROTOCOLS: u64 = 4;
/// Columns for why packets are not IP.
const REASONS: usize = 64;

/// What will run.
pub(crate) fn plan(plan: &Plan) -> String {
    let mut page = Page::default();
    page.plan(plan);
    page.0
}

/// What was seen.
pub(crate) fn report(outcome: &Outcome) -> String {
    let report = &outcome.report;
    let mut page = Page::default();
    let intervals = report.intervals.as_deref().unwrap_or_default();
    let times = Times::of(intervals);
    page.packets(outcome, intervals);
    if let Some(protocols) = report.protocols.as_ref().filter(|all| !all.is_empty()) {
        page.protocols(protocols);
    }
    if outcome.plan.interval_ns.is_some() && report.intervals.is_some() {
        page.intervals(intervals, report.packets_in_further_intervals, times);
    }
    if let Some(flows) = &report.flows {
        page.flows(flows);
        page.facts(report.facts.as_ref(), &outcome.unread_payloads);
    }
    if let Some(talks) = &report.conversations {
        let about = if talks.exact { "" } else { "about " };
        page.heading("Conversations");
        page.line(&format!("{about}{} TCP, {about}{} UDP", count(talks.tcp), count(talks.udp)));
    }
    if let Some(scans) = &report.scans {
        page.scans(scans, outcome.plan.scan_threshold, times);
    }
    if let Some(talkers) = &report.talkers {
        page.rankings(&talkers.by_octets, talkers);
    }
    if let Some(activity) = &report.activity {
        page.activity(activity, report.activity_in_further_intervals, times);
    }
    page.export(&outcome.export);
    page.run(outcome);
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn heading(&mut self, title: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        self.0 += &format!("{gap}{HEADING}{title}{HEADING:#}\n");
    }

    fn line(&mut self, text: &str) {
        self.0 += &format!("  {text}\n");
    }

    fn table(&mut self, table: &Table) {
        for line in table.lines() {
            self.0 += &line;
            self.0.push('\n');
        }
    }

    fn packets(&mut self, outcome: &Outcome, intervals: &[Interval]) {
        let report = &outcome.report;
        let packets = &report.packets;
        self.heading("Packets");
        if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
            self.line(&span(first.start, last.end));
        }
        let mut table = Table::new(&[Left, Right, Right, Left]);
        let mut row = |name: &str, n: u64, note: &str| {
            table.row([name.into(), count(n), share(n, outcome.received), note.into()]);
        };
        let octets = format!(
            "{} on the wire, {} of IP, {} captured",
            bytes(report.octets.wire),
            bytes(report.octets.ip),
            bytes(outcome.captured_octets)
        );
        row("received", outcome.received, &octets);
        row("IPv4", packets.ipv4, "");
        row("IPv6", packets.ipv6, "");
        row("other", packets.non_ip, &reasons(&outcome.non_ip));
        if packets.fragments > 0 {
            row("fragments", packets.fragments, "");
        }
        if outcome.fragments_forgotten > 0 {
            row("forgotten", outcome.fragments_forgotten, "first fragments, for lack of memory");
        }
        if packets.truncated > 0 {
            row("truncated", packets.truncated, "captured shorter than on the wire");
        }
        if packets.inner > 0 {
            row("inner", packets.inner, within(outcome.plan.tunnels));
        }
        for (reason, dropped) in outcome.ledger.dropped() {
            row("dropped", dropped, reason);
        }
        self.table(&table);
        self.interfaces(&outcome.interfaces, outcome.received);
    }

    /// What came by each, if there are several.
    fn interfaces(&mut self, interfaces: &[InterfaceCounts], received: u64) {
        if interfaces.len() < 2 {
            return;
        }
        self.heading("Interfaces");
        let mut table = Table::new(&[Left, Right, Right, Right, Left]);
        for one in interfaces {
            let dropped: u64 = one.dropped.values().sum();
            table.row([
                one.name.clone(),
                format!("{} packets", count(one.packets)),
                share(one.packets, received),
                format!("{} dropped", count(dropped)),
                if one.gone { "gone before the end".into() } else { String::new() },
            ]);
        }
        self.table(&table);
    }

    fn protocols(&mut self, protocols: &BTreeMap<u8, Volume>) {
        let mut rows: Vec<_> = protocols.iter().collect();
        rows.sort_by_key(|&(number, volume)| (std::cmp::Reverse(volume.packets), number));
        let packets = rows.iter().map(|(_, volume)| volume.packets).sum();
        let octets = rows.iter().map(|(_, volume)| volume.octets).sum();
        self.heading("Protocols");
        let mut table = Table::new(&[Left, Right, Right, Right, Right]);
        for (&number, volume) in rows {
            table.row([
                names::protocol(number),
                format!("{} packets", count(volume.packets)),
                share(volume.packets, packets),
                bytes(volume.octets),
                share(volume.octets, octets),
            ]);
        }
        self.table(&table);
    }

    fn intervals(&mut self, intervals: &[Interval], further: u64, times: Times) {
        self.heading("Intervals");
        let mut table = Table::new(&[Left, Right, Right, Right, Right, Right]);
        table.row(["from", "packets", "on the wire", "of IP", "TCP conv.", "UDP conv."]);
        for interval in intervals {
            table.row([
                times.short(interval.start),
                count(interval.packets.handled),
                bytes(interval.octets.wire),
                bytes(interval.octets.ip),
                count(interval.conversations.tcp),
                count(interval.conversations.udp),
            ]);
        }
        self.table(&table);
        if further > 0 {
            self.line(&format!("and {} packets in intervals beyond these", count(further)));
        }
    }

    fn flows(&mut self, flows: &Flows) {
        self.heading("Flows");
        let mut ended: Vec<_> = flows.end_reasons.iter().filter(|&(_, &n)| n > 0).collect();
        ended.sort_by_key(|&(name, &n)| (std::cmp::Reverse(n), name));
        let ended: Vec<_> =
            ended.iter().map(|(name, n)| format!("{} {}", count(**n), ending(name))).collect();
        self.line(&format!(
            "{} records, at most {} flows alive at a time",
            count(flows.records),
            count(flows.active_peak)
        ));
        if !ended.is_empty() {
            self.line(&ended.join(", "));
        }
    }

    /// What was read from payloads into flow records.
    fn facts(&mut self, facts: Option<&Facts>, unread: &BTreeMap<String, u64>) {
        let mut parts = Vec::new();
        if let Some(Facts { kept, beyond, no_room }) = facts {
            parts.extend(kept.iter().map(|(name, values)| format!("{} {name}", count(*values))));
            let left_out =
                [(*beyond, "beyond what a flow keeps"), (*no_room, "for lack of memory")];
            for (values, why) in left_out.into_iter().filter(|&(values, _)| values > 0) {
                parts.push(format!("{} left out {why}", count(values)));
            }
        }
        let unread = unread.iter().map(|(why, packets)| format!("{} {why}", count(*packets)));
        parts.extend(unread);
        if !parts.is_empty() {
            self.line(&format!("from payloads: {}", parts.join(", ")));
        }
    }

    fn scans(&mut self, scans: &Scans, threshold: u32, times: Times) {
        if scans.vertical.is_empty() && scans.horizontal.is_empty() {
            self.heading("Port scans");
            self.line(&format!("none with more than {threshold} failed attempts"));
        }
        if !scans.vertical.is_empty() {
            self.heading("Vertical scans: one source, many ports of one target");
            let shown = largest(&scans.vertical, |scan| scan.ports);
            let names = shown
                .iter()
                .map(|scan| scan.source.to_string().len() + scan.target.to_string().len());
            let room = room(names.max(), times);
            let mut table = Table::new(&[Left, Right, Left, Left]);
            for VerticalScan { source, target, ports, first, last, sample } in shown {
                table.row([
                    format!("{source} → {target}"),
                    format!("{} ports", count(*ports)),
                    times.range(*first, *last),
                    some(sample, *ports, room),
                ]);
            }
            self.table(&table);
            self.more(scans.vertical.len().saturating_sub(SCANS));
        }
        if !scans.horizontal.is_empty() {
            self.heading("Horizontal scans: one source, one port of many targets");
            let shown = largest(&scans.horizontal, |scan| scan.targets);
            let names = shown
                .iter()
                .map(|scan| scan.source.to_string().len() + "port ".len() + port(scan.port).len());
            let room = room(names.max(), times);
            let mut table = Table::new(&[Left, Right, Left, Left]);
            for scan in shown {
                let HorizontalScan { source, targets, first, last, sample, .. } = scan;
                table.row([
                    format!("{source} → port {}", port(scan.port)),
                    format!("{} targets", count(*targets)),
                    times.range(*first, *last),
                    some(sample, *targets, room),
                ]);
            }
            self.table(&table);
            self.more(scans.horizontal.len().saturating_sub(SCANS));
        }
        if scans.attempts_ignored > 0 {
            let ignored = count(scans.attempts_ignored);
            self.line(&format!("{ignored} attempts were ignored for lack of memory"));
        }
    }

    fn more(&mut self, scans: usize) {
        if scans > 0 {
            self.line(&format!("and {} more; --report json has all", count(scans as u64)));
        }
    }

    fn rankings(&mut self, rankings: &Rankings, talkers: &Talkers) {
        let Rankings { source, destination, pair, port: ports } = rankings;
        for (title, rows) in [("Top sources", source), ("Top destinations", destination)] {
            let row = |row: &HostRow| (row.address.to_string(), row.volume);
            self.ranking(title, rows.iter().map(row));
        }
        let row = |PairRow { addresses: [low, high], volume }: &PairRow| {
            (format!("{low} ↔ {high}"), *volume)
        };
        self.ranking("Top pairs", pair.iter().map(row));
        let row = |row: &PortRow| {
            (format!("{} {}", names::protocol(row.protocol), port(row.port)), row.volume)
        };
        self.ranking("Top ports", ports.iter().map(row));
        let &Talkers { error_bound, packets_error_bound, .. } = talkers;
        if error_bound > 0 {
            self.line(&format!(
                "(each may be short by up to {} and {} packets)",
                bytes(error_bound),
                count(packets_error_bound)
            ));
        }
    }

    fn ranking(&mut self, title: &str, rows: impl Iterator<Item = (String, Volume)>) {
        let mut table = Table::new(&[Left, Right, Right]);
        let mut any = false;
        for (name, volume) in rows {
            any = true;
            table.row([name, bytes(volume.octets), format!("{} packets", count(volume.packets))]);
        }
        if any {
            self.heading(title);
            self.table(&table);
        }
    }

    fn export(&mut self, exported: &[Exported]) {
        if exported.is_empty() {
            return;
        }
        self.heading("Export");
        let mut table = Table::new(&[Left, Right, Right, Left]);
        for one in exported {
            let lost = match one.lost() {
                0 => String::new(),
                lost => format!("{} records not sent", count(lost)),
            };
            table.row([
                one.output.clone(),
                format!("{} records", count(one.sent.flows.records)),
                format!("{} messages", count(one.sent.messages)),
                lost,
            ]);
        }
        self.table(&table);
    }

    fn run(&mut self, outcome: &Outcome) {
        let dropped: u64 = outcome.ledger.dropped().values().sum();
        self.heading("Run");
        self.line(&format!(
            "ledger: {} received = {} handled + {} dropped, residual {}",
            count(outcome.received),
            count(outcome.report.packets.handled),
            count(dropped),
            outcome.ledger.residual()
        ));
        let performance = &outcome.performance;
        self.line(&format!(
            "{:.3} s, {} packets/s, {:.3} s of CPU, {} of memory",
            performance.seconds,
            rate(performance.packets_per_second as f64),
            performance.cpu_seconds,
            bytes(performance.peak_rss_bytes)
        ));
        if let Some(filter) = &outcome.plan.filter {
            let left_out = outcome.ledger.dropped().get("filtered").copied().unwrap_or(0);
            self.line(&format!("filter {:?} left out {}", filter.text(), count(left_out)));
        }
        if outcome.plan.sample > 1 {
            self.line(&format!("sampled {}", sample(outcome.plan.sample)));
        }
        self.arrangement(&outcome.plan);
        if let Some(digest) = &outcome.digest {
            self.0 += &format!("\ndigest {digest}\n");
        }
    }

    fn arrangement(&mut self, plan: &Plan) {
        let ring = if plan.packets_cross_rings() {
            format!("; ring {} {}/{}", plan.ring, plan.ring_capacity, plan.ring_batch)
        } else {
            String::new()
        };
        let (skeleton, seats, seed) = (plan.skeleton, seats(plan), plan.seed);
        self.line(&format!("{skeleton}: {seats}{ring}; seed {seed}"));
    }

    fn plan(&mut self, plan: &Plan) {
        let seconds = |ns: u64| format!("{} s", ns as f64 / 1e9);
        let shares: Vec<_> =
            plan.shares.iter().map(|share| format!("{} %", f64::from(*share) / 10.0)).collect();
        let mut table = Table::new(&[Left, Left]);
        // Those of interfaces are phrases.
        let between = if plan.buffer_bytes > 0 { ", " } else { " " };
        table.row(["source", &plan.source.join(between)]);
        table.row(["analyses", &plan.analyses.names().join(", ")]);
        table.row(["payloads", &plan.extract.to_string()]);
        table.row(["tunnels", plan.tunnels.name()]);
        table.row(["skeleton", &plan.skeleton.to_string()]);
        table.row(["threads", &seats(plan)]);
        if plan.queues > 1 {
            let each = plan.workers / plan.queues;
            table.row(["queues", &format!("{}, workers of each: {each}", plan.queues)]);
        }
        table.row(["shares", &shares.join(", ")]);
        if plan.packets_cross_rings() {
            let (ring, slots, batch) = (plan.ring, plan.ring_capacity, plan.ring_batch);
            table.row(["ring", &format!("{ring}, {slots} slots, batches of {batch}")]);
        }
        let kind = if plan.metering.uniflow { "one direction" } else { "both directions" };
        let vlans = if plan.metering.vlan_in_key { ", each VLAN by itself" } else { "" };
        table.row(["a flow is", &format!("{kind}{vlans}")]);
        let timeouts = plan.metering.timeouts;
        let idle_ns = timeouts.general_ns;
        let alike = timeouts.idle(idle_ns) == timeouts;
        let limits = if alike && timeouts.active_ns < u64::MAX {
            format!("{} idle, {} active", seconds(idle_ns), seconds(timeouts.active_ns))
        } else {
            timeouts.to_string()
        };
        table.row(["timeouts", &limits]);
        let interval = |ns| {
            let rows = plan.interval_rows(PROTOCOLS);
            format!("{}, room for about {} of them in the report", seconds(ns), count(rows))
        };
        table.row(["interval", &plan.interval_ns.map_or("the whole run".into(), interval)]);
        table.row(["flows", &format!("{} alive at the most", count(plan.max_flows))]);
        let datagrams = format!("of {} datagrams under way at the most", count(plan.max_datagrams));
        table.row(["fragments", &datagrams]);
        table.row(["scans", &format!("more than {} failed attempts", plan.scan_threshold)]);
        if let Some(filter) = &plan.filter {
            table.row(["filter", filter.text()]);
        }
        if plan.sample > 1 {
            table.row(["sample", &sample(plan.sample)]);
        }
        table.row(["seed", &plan.seed.to_string()]);
        self.heading("Plan");
        self.table(&table);
    }
}

/// What a report that counts some packets only has to say.
fn sample(one_in: u32) -> String {
    format!("1:{one_in}; volumes count the packets selected only")
}

/// The threads of a plan, with what each of them does.
pub(crate) fn seats(plan: &Plan) -> String {
    let pin = &plan.seating.pin;
    let seat = |(seat, roles): (usize, &Vec<Role>)| {
        let roles = roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ");
        match pin.get(seat % pin.len().max(1)) {
            Some(core) => format!("{roles} (core {core})"),
            None => roles,
        }
    };
    plan.seating.seats.iter().enumerate().map(seat).collect::<Vec<_>>().join(" | ")
}

/// How times of this report are written.
#[derive(Clone, Copy)]
struct Times {
    /// All on one day: the hour will do.
    one_day: bool,
}

impl Times {
    fn of(intervals: &[Interval]) -> Self {
        let day = |time: Time| time.0 / 86_400_000_000_000;
        let ends = intervals.first().zip(intervals.last());
        Self { one_day: ends.is_some_and(|(a, b)| day(a.start) == day(b.end)) }
    }

    fn short(self, time: Time) -> String {
        let text = time.to_string();
        let from = if self.one_day { 11 } else { 0 };
        text.get(from..19).unwrap_or(&text).replace('T', " ")
    }

    fn range(self, first: Time, last: Time) -> String {
        let (first, last) = (self.short(first), self.short(last));
        if first == last { first } else { format!("{first} – {last}") }
    }
}

fn span(first: Time, last: Time) -> String {
    let seconds = last.0.saturating_sub(first.0) as f64 / 1e9;
    let readable = |time: Time| {
        let text = time.to_string();
        text.get(..23).unwrap_or(&text).replace('T', " ")
    };
    let (first, last) = (readable(first), readable(last));
    let shared = if first.get(..10) == last.get(..10) { 11 } else { 0 };
    format!("{first} – {} UTC, {seconds:.3} s", last.get(shared..).unwrap_or(&last))
}

/// What packets within tunnels are counted for.
fn within(tunnels: Tunnels) -> &'static str {
    match tunnels {
        Tunnels::Inner => "within tunnels; of these are flows, talkers and scans",
        Tunnels::Both | Tunnels::Outer => {
            "within tunnels; of these, too, are flows, talkers and scans"
        }
    }
}

fn ending(reason: &str) -> &str {
    match reason {
        "end_detected" => "closed",
        "forced" => "still alive at the end",
        "idle" => "by idle timeout",
        "active" => "by active timeout",
        "lack_of_resources" => "ended early for lack of memory",
        other => other,
    }
}

/// The most frequent reasons, as many as fit.
fn reasons(reasons: &BTreeMap<String, u64>) -> String {
    let mut rows: Vec<_> = reasons.iter().collect();
    rows.sort_by_key(|&(name, &n)| (std::cmp::Reverse(n), name));
    let mut text = String::new();
    for (name, &n) in rows {
        let reason = format!("{name} {}", count(n));
        let gap = if text.is_empty() { "" } else { ", " };
        if text.len() + gap.len() + reason.len() > REASONS {
            return text + ", …";
        }
        text = text + gap + &reason;
    }
    text
}

fn port(port: u16) -> String {
    names::service(port).map_or(port.to_string(), |name| format!("{port} ({name})"))
}

/// The largest scans, largest first, as many as a page has room for.
fn largest<T>(scans: &[T], size: impl Fn(&T) -> u64) -> Vec<&T> {
    let mut shown: Vec<&T> = scans.iter().collect();
    // Stable: equals stay in the order of their keys.
    shown.sort_by_key(|scan| std::cmp::Reverse(size(scan)));
    shown.truncate(SCANS);
    shown
}

/// Columns left for a sample beside the two names of a scan, its size and its times.
fn room(names: Option<usize>, times: Times) -> usize {
    let size = "1,000,000 targets".len();
    let times = times.range(Time(0), Time(1_000_000_000)).chars().count();
    let gaps = 2 + " → ".chars().count() + 3 * 2 + " …".chars().count();
    WIDTH.saturating_sub(names.unwrap_or(0) + size + times + gaps)
}

/// The first of `all` things, as many as fit in `room` columns.
fn some<T: ToString>(sample: &[T], all: u64, room: usize) -> String {
    let mut text = String::new();
    for (shown, item) in sample.iter().enumerate() {
        let item = item.to_string();
        if text.len() + item.len() > room {
            return text + "…";
        }
        text += &item;
        if (shown as u64) + 1 < all {
            text.push(' ');
        }
    }
    if all > sample.len() as u64 { text + "…" } else { text }
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_says_when_there_is_more() {
        assert_eq!(some(&[1, 2, 3], 3, 30), "1 2 3");
        assert_eq!(some(&[1, 2, 3], 400, 30), "1 2 3 …");
        let long: Vec<u32> = (10_000..10_020).collect();
        assert_eq!(some(&long, 20, 12), "10000 10001 …");
        assert_eq!(some(&long, 20, 0), "…");
    }

    #[test]
    fn the_largest_scans_come_first() {
        let sizes: Vec<u64> = (0..70).chain([69]).collect();
        let shown = largest(&sizes, |&size| size);
        assert_eq!((shown.len(), shown[..3].to_vec()), (SCANS, vec![&69, &69, &68]));
    }

    #[test]
    fn times_name_the_day_only_when_there_are_several() {
        let at = |day: u64, second: u64| Time((day * 86_400 + second) * 1_000_000_000);
        let interval = |start, end| Interval { start, end, ..Interval::default() };
        let one = Times::of(&[interval(at(1, 10), at(1, 70))]);
        assert_eq!(one.range(at(1, 10), at(1, 70)), "00:00:10 – 00:01:10");
        assert_eq!(one.range(at(1, 10), at(1, 10)), "00:00:10");
        let two = Times::of(&[interval(at(1, 10), at(2, 10))]);
        assert_eq!(two.short(at(2, 10)), "1970-01-03 00:00:10");
        assert!(span(at(1, 10), at(1, 70)).ends_with("– 00:01:10.000 UTC, 60.000 s"));
    }
}
