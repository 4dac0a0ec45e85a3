//! The report and plan of `ringtap monitor`, as text at most 100 columns wide.

use std::collections::BTreeMap;
use std::time::Duration;

use ringtap_engine::{INTERRUPTED, InterfaceCounts, Plan};
use ringtap_enrich::EntryKind;
use ringtap_export::Summary;
use ringtap_monitor::report::{Facts, Flows, Interval, Report, Suppressed, Time, Times, Volume};
use ringtap_monitor::resume::Gap;
use ringtap_monitor::state::{Counts, Merged, Run, Span};
use ringtap_monitor::{About, Options, Outcome};
use ringtap_skeleton::Role;
use ringtap_terminal::names;
use ringtap_terminal::numbers::{bytes, count, of, rate};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table};
use ringtap_wire::Tunnels;

use crate::charts;

/// Assumed number of protocols in an interval, to estimate how many intervals fit in the report.
const PROTOCOLS: u64 = 4;
/// Spans of parts shown of a run.
const SPANS: usize = 3;
/// Columns for the reasons of packets without IP.
const REASONS: usize = 64;

/// The plan as text.
pub(crate) fn plan(plan: &Plan<Options>) -> String {
    let mut page = Page::default();
    show_plan(&mut page, plan);
    page.text()
}

/// The report.
pub(crate) fn report(outcome: &Outcome) -> Page {
    let report = outcome.report();
    let mut page = Page::default();
    figures(&mut page, &outcome.counts, report);
    page.charts("Traffic", report.series.as_ref().map_or_else(Vec::new, charts::of));
    findings(&mut page, report, &outcome.plan.app);
    volumes(&mut page, &outcome.counts, report, &outcome.plan, outcome.gap);
    interfaces(&mut page, &outcome.run.interfaces, outcome.run.received);
    export(&mut page, &outcome.export);
    run(&mut page, outcome);
    page
}

/// The report of a merge.
pub(crate) fn merged(merged: &Merged) -> Page {
    let mut page = Page::default();
    figures(&mut page, &merged.counts, &merged.report);
    let intervals = merged.report.intervals.as_deref().unwrap_or_default();
    if let Some(interval_ns) = merged.plan.app.interval_ns {
        page.charts("Traffic", charts::of(&charts::series(intervals, interval_ns)));
    }
    findings(&mut page, &merged.report, &merged.plan.app);
    volumes(&mut page, &merged.counts, &merged.report, &merged.plan, None);
    page.heading("States");
    let mut table = Table::with_head(&[("probe", Left), ("run", Left), ("parts", Left)]);
    for (number, run) in &merged.header.runs {
        table.row([run.probe.clone(), format!("run {number}"), parts(run)]);
    }
    page.table(table);
    for run in merged.header.runs.values() {
        let (probe, missing) = (&run.probe, run.missing());
        for span in missing.iter().take(SPANS) {
            let (from, until) = (Time(span.from_ns), Time(span.until_ns));
            let since = if span.first == 0 { String::new() } else { format!("from {from} ") };
            page.line(&format!("missing: {} of {probe}, {since}until {until}", numbers(span)));
        }
        let more = missing.len().saturating_sub(SPANS);
        if more > 0 {
            page.line(&format!("missing: parts of {probe} in {} more places", count(more as u64)));
        }
    }
    if merged.joined_flows > 0 {
        page.line(&format!("{} joined with flows of other runs", count(merged.joined_flows)));
    }
    merged.notes().iter().for_each(|note| page.line(note));
    let inexact = merged.inexact();
    if inexact.is_empty() {
        page.line("exact: as one run over all packets");
    }
    for (what, number) in inexact {
        page.line(&format!("not exact: {what}: {}", count(number)));
    }
    if let Some(digest) = merged.digest() {
        page.last(format!("digest {digest}"));
    }
    page
}

/// The parts of a run, if it is not whole, and whether it was interrupted.
fn parts(run: &Run) -> String {
    let end = match (run.interrupted, run.ended) {
        (true, _) => ", interrupted",
        (false, true) => "",
        (false, false) => ", not ended",
    };
    let all: Vec<_> = run.parts.iter().take(SPANS).map(numbers).collect();
    let more = if run.parts.len() > SPANS { ", …" } else { "" };
    match run.is_whole() {
        true => end.trim_start_matches(", ").to_owned(),
        false => format!("{}{more}{end}", all.join(", ")),
    }
}

fn numbers(span: &Span) -> String {
    match *span {
        Span { first, last, .. } if first == last => format!("part {first}"),
        Span { first, last, .. } => format!("parts {first} to {last}"),
    }
}

/// The most important numbers.
fn figures(page: &mut Page, counts: &Counts, report: &Report) {
    page.figure("packets", Cell::count(counts.received));
    page.figure("on the wire", Cell::bytes(report.octets.wire));
    if let Some(flows) = &report.flows {
        page.figure("flow records", Cell::count(flows.records));
    }
    if let Some(scans) = &report.sections.scans {
        let udp = report.sections.udp_scans.iter();
        let all = udp.chain([scans]).map(|scans| scans.vertical.len() + scans.horizontal.len());
        page.figure("scans", Cell::count(all.sum::<usize>() as u64));
    }
    page.figure("packets dropped", Cell::count(counts.dropped.values().sum()));
}

/// What the analyses found: what is to be acted on, then who and what, then what was slow.
fn findings(page: &mut Page, report: &Report, options: &Options) {
    let times = Times::of(report.intervals.as_deref().unwrap_or_default());
    let about = About { scan_threshold: options.scan_threshold, times };
    report.sections.show(page, &about, true);
    if let Some(rules) = &report.suppressed_alerts {
        suppressed(page, rules);
    }
    report.sections.show(page, &about, false);
}

/// How much there was of what.
fn volumes(
    page: &mut Page,
    counts: &Counts,
    report: &Report,
    plan: &Plan<Options>,
    between: Option<Gap>,
) {
    if let Some(all) = &report.flows {
        flows(page, all);
        between.iter().for_each(|own| gap(page, own));
        payloads(page, report.facts.as_ref(), counts);
    }
    if let Some(talks) = &report.conversations {
        let about = if talks.exact { "" } else { "about " };
        page.heading("Conversations");
        page.line(&format!("{about}{} TCP, {about}{} UDP", count(talks.tcp), count(talks.udp)));
    }
    if let Some(all) = &report.protocols {
        protocols(page, all);
    }
    packets(page, counts, report, plan.options.tunnels);
    if let (Some(intervals), Some(_)) = (&report.intervals, plan.app.interval_ns) {
        let times = Times::of(intervals);
        show_intervals(page, intervals, report.packets_in_further_intervals, times);
    }
}

/// Most rules in the text.
const RULES: usize = 50;

/// The alerts that rules suppressed.
fn suppressed(page: &mut Page, rules: &[Suppressed]) {
    page.heading("Suppressed alerts");
    if rules.is_empty() {
        page.line("none");
    }
    let mut table = Table::with_head(&[("rule", Left), ("alerts", Right), ("line", Right)]);
    for rule in rules.iter().take(RULES) {
        let until = rule.until.map_or_else(String::new, |until| format!(" until {until}"));
        table.row([
            format!("{} {}{until}", rule.network, rule.kind).into(),
            Cell::count(rule.alerts),
            Cell::count(rule.line as u64),
        ]);
    }
    page.table(table);
    if rules.len() > RULES {
        let more = count((rules.len() - RULES) as u64);
        page.line(&format!("and {more} more rules; --report json has all"));
    }
}

fn packets(page: &mut Page, counts: &Counts, report: &Report, tunnels: Tunnels) {
    let packets = &report.packets;
    let intervals = report.intervals.as_deref().unwrap_or_default();
    page.heading("Packets");
    if let (Some(first), Some(last)) = (intervals.first(), intervals.last()) {
        page.line(&span(first.start, last.end));
    }
    let mut table = Table::with_head(&[
        ("packets", Left),
        ("number", Right),
        ("share", Right),
        ("of them", Left),
    ]);
    let mut row = |name: &str, n: u64, note: &str| {
        table.row([name.into(), Cell::count(n), share(n, counts.received).into(), note.into()]);
    };
    let octets = format!(
        "{} on the wire, {} of IP, {} captured",
        bytes(report.octets.wire),
        bytes(report.octets.ip),
        bytes(counts.captured_octets)
    );
    row("received", counts.received, &octets);
    row("IPv4", packets.ipv4, "");
    row("IPv6", packets.ipv6, "");
    row("other", packets.non_ip, &reasons(&counts.non_ip));
    if packets.fragments > 0 {
        row("fragments", packets.fragments, "");
    }
    if counts.fragments_forgotten > 0 {
        row("forgotten", counts.fragments_forgotten, "first fragments, for lack of memory");
    }
    if packets.truncated > 0 {
        row("truncated", packets.truncated, "captured shorter than on the wire");
    }
    if packets.inner > 0 {
        row("inner", packets.inner, within(tunnels));
    }
    for (reason, &dropped) in &counts.dropped {
        row("dropped", dropped, reason);
    }
    page.table(table);
}

/// Counters of each interface, if there are several or the only one has changed.
fn interfaces(page: &mut Page, interfaces: &[InterfaceCounts], received: u64) {
    if interfaces.len() < 2 && interfaces.iter().all(|one| interface_state(one).is_empty()) {
        return;
    }
    page.heading("Interfaces");
    let mut table = Table::with_head(&[
        ("interface", Left),
        ("packets", Right),
        ("share", Right),
        ("dropped", Right),
        ("state", Left),
    ]);
    for one in interfaces {
        let dropped: u64 = one.dropped.values().sum();
        table.row([
            one.name.as_str().into(),
            Cell::count(one.packets),
            share(one.packets, received).into(),
            Cell::count(dropped),
            interface_state(one).into(),
        ]);
    }
    page.table(table);
}

/// What happened to an interface during the run.
fn interface_state(one: &InterfaceCounts) -> String {
    let times = |number: u64, what: &str| match number {
        0 => None,
        1 => Some(format!("{what} once")),
        _ => Some(format!("{what} {} times", count(number))),
    };
    let parts = [
        one.gone.then(|| "gone before the end".to_owned()),
        times(one.times_down, "down"),
        times(one.mtu_changes, "new MTU"),
        times(one.name_changes, "renamed"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn protocols(page: &mut Page, protocols: &BTreeMap<u8, Volume>) {
    let mut rows: Vec<_> = protocols.iter().collect();
    rows.sort_by_key(|&(number, volume)| (std::cmp::Reverse(volume.packets), number));
    let packets = rows.iter().map(|(_, volume)| volume.packets).sum();
    let octets = rows.iter().map(|(_, volume)| volume.octets).sum();
    page.heading("Protocols");
    let mut table = Table::with_head(&[
        ("protocol", Left),
        ("packets", Right),
        ("share", Right),
        ("octets", Right),
        ("share", Right),
    ]);
    for (&number, volume) in rows {
        table.row([
            names::protocol(number).into(),
            Cell::count(volume.packets),
            share(volume.packets, packets).into(),
            Cell::bytes(volume.octets),
            share(volume.octets, octets).into(),
        ]);
    }
    page.table(table);
}

fn show_intervals(page: &mut Page, intervals: &[Interval], further: u64, times: Times) {
    page.heading("Intervals");
    let mut table = Table::with_head(&[
        ("from", Left),
        ("packets", Right),
        ("on the wire", Right),
        ("of IP", Right),
        ("TCP conv.", Right),
        ("UDP conv.", Right),
    ]);
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
    page.table(table);
    if further > 0 {
        page.line(&format!("and {} packets in intervals beyond these", count(further)));
    }
}

/// What passed between two runs.
fn gap(page: &mut Page, gap: &Gap) {
    let Gap { packets, time_ns, intervals } = *gap;
    let packets = packets.map_or("an unknown number of packets".into(), |packets| {
        format!("{} packets", count(packets))
    });
    page.line(&format!(
        "{packets} passed in the {:.1} s between the runs, in {} intervals",
        time_ns as f64 / 1e9,
        count(intervals)
    ));
}

fn flows(page: &mut Page, flows: &Flows) {
    page.heading("Flows");
    let mut ended: Vec<_> = flows.end_reasons.iter().filter(|&(_, &n)| n > 0).collect();
    ended.sort_by_key(|&(name, &n)| (std::cmp::Reverse(n), name));
    let ended: Vec<_> =
        ended.iter().map(|(name, n)| format!("{} {}", count(**n), ending(name))).collect();
    let peak =
        flows.active_peak.map(|most| format!(", at most {} flows alive at a time", count(most)));
    let parts = flows.parts.map(|parts| format!(" in {} parts", count(parts)));
    let (parts, peak) = (parts.unwrap_or_default(), peak.unwrap_or_default());
    page.line(&format!("{} records{parts}{peak}", count(flows.records)));
    if !ended.is_empty() {
        page.line(&ended.join(", "));
    }
    if let Some(resumed) = flows.resumed {
        page.line(&format!("{} flows of the run before were continued", count(resumed)));
    }
    if let Some(ended) = flows.not_continued {
        page.line(&format!("{} flows of the run before could not be continued", count(ended)));
    }
    if let Some(kept) = flows.kept {
        page.line(&format!("{} open flows are kept for the next run", count(kept)));
    }
}

/// Messages in payloads, and facts of them in flow records.
fn payloads(page: &mut Page, facts: Option<&Facts>, counts: &Counts) {
    let messages = counts.payload_messages.iter();
    let messages: Vec<_> = messages.map(|(name, n)| format!("{} {name}", count(*n))).collect();
    if !messages.is_empty() {
        page.line(&format!("messages in payloads: {}", messages.join(", ")));
    }
    let unread: Vec<_> =
        counts.unread_payloads.iter().map(|(why, n)| format!("{} {why}", count(*n))).collect();
    if !unread.is_empty() {
        page.line(&format!("messages not read: {}", unread.join(", ")));
    }
    let Some(Facts { kept, beyond, no_room }) = facts else { return };
    let values = [
        (kept.values().sum(), "in flow records"),
        (*beyond, "beyond the limit of a flow"),
        (*no_room, "omitted for lack of memory"),
    ];
    let values = values.into_iter().filter(|&(values, _)| values > 0);
    let values: Vec<_> = values.map(|(values, what)| format!("{} {what}", count(values))).collect();
    page.line(&format!("values from payloads: {}", values.join(", ")));
}

fn export(page: &mut Page, exported: &[Summary]) {
    if exported.is_empty() {
        return;
    }
    page.heading("Export");
    let mut table = Table::with_head(&[
        ("output", Left),
        ("records", Right),
        ("messages", Right),
        ("lost", Right),
    ]);
    for one in exported {
        table.row([
            one.output.as_str().into(),
            Cell::count(one.sent.flows.records),
            Cell::count(one.sent.messages),
            Cell::count(one.lost()),
        ]);
    }
    page.table(table);
}

fn run(page: &mut Page, outcome: &Outcome) {
    let dropped: u64 = outcome.run.ledger.dropped().values().sum();
    page.heading("Run");
    if outcome.run.interrupted {
        page.line(INTERRUPTED);
    }
    page.line(&format!(
        "ledger: {} received = {} handled + {} dropped, residual {}",
        count(outcome.run.received),
        count(outcome.report().packets.handled),
        count(dropped),
        outcome.run.ledger.residual()
    ));
    let performance = &outcome.run.performance;
    page.line(&format!(
        "{:.3} s, {} packets/s, {:.3} s of CPU, {} of memory",
        performance.seconds,
        rate(performance.packets_per_second as f64),
        performance.cpu_seconds,
        bytes(performance.peak_rss_bytes)
    ));
    if let Some(filter) = &outcome.plan.options.filter {
        let filtered = outcome.run.ledger.dropped().get("filtered").copied().unwrap_or(0);
        page.line(&format!("filter {:?}: {} packets not selected", filter.text(), count(filtered)));
    }
    if outcome.plan.options.sample > 1 {
        page.line(&format!("sampled {}", sample(outcome.plan.options.sample)));
    }
    arrangement(page, &outcome.plan);
    queues(outcome).iter().for_each(|line| page.line(line));
    if let Some(digest) = &outcome.digest {
        page.last(format!("digest {digest}"));
    }
}

/// Whether both directions of address pairs arrived in one queue, of a live run with several.
fn queues(outcome: &Outcome) -> Option<String> {
    if !outcome.plan.options.live || outcome.plan.arrangement.queues == 1 {
        return None;
    }
    let found = match (outcome.run.pairs_checked, outcome.run.packets_split) {
        (0, 0) => "no address pair of the sample was seen in both directions".to_owned(),
        (pairs, 0) => {
            format!("both directions of {} address pairs arrived in one queue each", count(pairs))
        }
        (_, split) => format!("{} packets arrived in another queue than their pair", count(split)),
    };
    Some(format!("queues: {found} (1 pair in 64 is checked)"))
}

fn arrangement(page: &mut Page, plan: &Plan<Options>) {
    let ring = if plan.packets_cross_rings() {
        format!(
            "; ring {} {}/{}",
            plan.options.ring, plan.options.ring_capacity, plan.options.ring_batch
        )
    } else {
        String::new()
    };
    let (skeleton, seats, seed) = (plan.arrangement.skeleton, seats(plan), plan.options.seed);
    page.line(&format!("{skeleton}: {seats}{ring}; seed {seed}"));
}

fn show_plan(page: &mut Page, plan: &Plan<Options>) {
    let seconds = |ns: u64| format!("{} s", ns as f64 / 1e9);
    let shares: Vec<_> = plan
        .arrangement
        .shares
        .iter()
        .map(|share| format!("{} %", f64::from(*share) / 10.0))
        .collect();
    let mut table = Table::new(&[Left, Left]);
    // Sources of a live run have blanks, as in "eth0 by AF_PACKET".
    let between = if plan.buffers.buffer_bytes > 0 { ", " } else { " " };
    table.row(["source", &plan.options.source.join(between)]);
    table.row(["analyses", &plan.app.analyses.names().join(", ")]);
    let observers = &plan.app.observers;
    let by = if observers.wants.is_some() { "packets, then records" } else { "records" };
    for selection in observers.all.iter().filter_map(|own| own.selection()) {
        table.row(["selected", &format!("flows {selection:?}, by {by}")]);
    }
    table.row(["payloads", &plan.app.extract.to_string()]);
    let ports = &plan.options.tunnel_ports;
    let ports = if ports.is_default() { String::new() } else { format!(", also {ports}") };
    table.row(["tunnels", &format!("{}{ports}", plan.options.tunnels.name())]);
    table.row(["skeleton", &plan.arrangement.skeleton.to_string()]);
    table.row(["threads", &seats(plan)]);
    if plan.arrangement.queues > 1 {
        let each = plan.arrangement.workers / plan.arrangement.queues;
        table.row(["queues", &format!("{}, workers of each: {each}", plan.arrangement.queues)]);
    }
    table.row(["shares", &shares.join(", ")]);
    if plan.packets_cross_rings() {
        let (ring, slots, batch) =
            (plan.options.ring, plan.options.ring_capacity, plan.options.ring_batch);
        table.row(["ring", &format!("{ring}, {slots} slots, batches of {batch}")]);
    }
    let kind = if plan.app.metering.uniflow { "one direction" } else { "both directions" };
    let vlans = if plan.app.metering.vlan_in_key { ", separate for each VLAN" } else { "" };
    table.row(["flow", &format!("{kind}{vlans}")]);
    let timeouts = plan.app.metering.timeouts;
    let idle_ns = timeouts.general_ns;
    let alike = timeouts.idle(idle_ns) == timeouts;
    let limits = if alike && timeouts.active_ns < u64::MAX {
        format!("{} idle, {} active", seconds(idle_ns), seconds(timeouts.active_ns))
    } else {
        timeouts.to_string()
    };
    table.row(["timeouts", &limits]);
    let interval = |ns| {
        let rows = plan.app.interval_rows(PROTOCOLS);
        format!("{}, room for about {} of them in the report", seconds(ns), count(rows))
    };
    table.row(["interval", &plan.app.interval_ns.map_or("the whole run".into(), interval)]);
    table.row(["flows", &format!("at most {} alive at a time", count(plan.app.max_flows()))]);
    let datagrams =
        format!("of at most {} datagrams in progress", count(plan.buffers.max_datagrams));
    table.row(["fragments", &datagrams]);
    let [tcp, udp] = [plan.app.scan_threshold, plan.app.udp_scan_threshold];
    let attempts = match tcp == udp {
        true => format!("more than {tcp} failed attempts"),
        false => format!("more than {tcp} failed attempts, {udp} of UDP"),
    };
    table.row(["scans", &attempts]);
    if let Some(filter) = &plan.options.filter {
        table.row(["filter", filter.text()]);
    }
    if let Some(list) = &plan.app.watch {
        let counts = [EntryKind::Name, EntryKind::Fingerprint, EntryKind::Network]
            .map(|kind| count(list.count(kind) as u64));
        let [names, fingerprints, networks] = counts;
        let entries = format!("{names} names, {fingerprints} fingerprints, {networks} networks");
        table.row(["watched", &entries]);
    }
    if let Some(list) = &plan.app.allow {
        table.row(["allowed", &of(list.rules().len() as u64, "rule")]);
    }
    if let Some(networks) = &plan.app.enrichment.networks {
        table.row(["networks", &count(networks.count() as u64)]);
    }
    if let Some(vendors) = &plan.app.enrichment.vendors {
        table.row(["vendors", &count(vendors.count() as u64)]);
    }
    if let Some(vlans) = &plan.app.enrichment.vlans {
        table.row(["VLANs", &count(vlans.count() as u64)]);
    }
    if let Some(geo) = &plan.app.enrichment.geo {
        table.row(["geo", &geo.types().join(", ")]);
    }
    if plan.app.enrichment.anonymiser.is_some() {
        table.row(["anonymised", "addresses and names, in all outputs"]);
    }
    if let Some(window_ns) = plan.options.dedup_ns {
        let (window, most) = (Duration::from_nanos(window_ns), plan.buffers.max_duplicates);
        table.row(["duplicates", &format!("within {window:?}, of {} packets", count(most))]);
    }
    if plan.buffers.recent_bytes > 0 {
        table.row(["recent", &format!("{} of packets", bytes(plan.buffers.recent_bytes))]);
    }
    if plan.options.sample > 1 {
        table.row(["sample", &sample(plan.options.sample)]);
    }
    table.row(["seed", &plan.options.seed.to_string()]);
    page.heading("Plan");
    page.table(table);
}

/// The sampling rate, with its effect on volumes.
fn sample(one_in: u32) -> String {
    format!("1:{one_in}; volumes count only the selected packets")
}

/// The threads of a plan, with their roles and cores.
pub(crate) fn seats<A>(plan: &Plan<A>) -> String {
    let pin = &plan.arrangement.seating.pin;
    let seat = |(seat, roles): (usize, String)| match pin.get(seat % pin.len().max(1)) {
        Some(core) => format!("{roles} (core {core})"),
        None => roles,
    };
    threads(plan).into_iter().enumerate().map(seat).collect::<Vec<_>>().join(" | ")
}

/// Names of the threads of a plan.
pub(crate) fn threads<A>(plan: &Plan<A>) -> Vec<String> {
    let name =
        |roles: &Vec<Role>| roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ");
    plan.arrangement.seating.seats.iter().map(name).collect()
}

/// A time range in UTC, with its length in seconds.
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

/// The note on packets inside tunnels.
fn within(tunnels: Tunnels) -> &'static str {
    match tunnels {
        Tunnels::Inner => "inside tunnels; used for flows, talkers and scans",
        Tunnels::Both | Tunnels::Outer => "inside tunnels; also used for flows, talkers and scans",
    }
}

/// The text of a flow end reason.
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

/// The most frequent reasons, as many as fit in [`REASONS`] columns.
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

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

/// The program, for the head of a page.
pub(crate) fn about() -> String {
    format!("ringtap {}; all times are UTC", env!("CARGO_PKG_VERSION"))
}
