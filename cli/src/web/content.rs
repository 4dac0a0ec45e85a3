//! The content of a page: figures, charts and tables of a view.

use std::net::IpAddr;

use ringtap_export::Status;
use ringtap_monitor::report::Time;
use ringtap_terminal::chart::Timeline;
use ringtap_terminal::names;
use ringtap_terminal::numbers::{bit_rate, count, rate};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table, quoted};

use super::flows::{Flow, Flows, end_of};
use super::history::{History, Rates, Sample};
use super::sums::{First, Sums};
use super::view::View;
use super::{Notes, Now};
use crate::charts;

/// Steps of a chart of flows.
const STEPS: u64 = 120;
/// Most flows of a file.
const FILE_FLOWS: usize = 100_000;
/// Longest name in a table, characters.
const NAME: usize = 60;

/// Everything that a page shows.
pub(super) struct Shown<'a> {
    pub(super) now: &'a Now,
    pub(super) history: &'a History,
    pub(super) flows: &'a Flows,
    pub(super) notes: &'a Notes,
}

impl Shown<'_> {
    /// The shown time: its end, seconds since 1970. That of capture files ends with their latest flow.
    fn until_s(&self, view: &View) -> u64 {
        view.until.map_or(self.now.at, |until| until.min(self.now.at))
    }

    /// The beginning and the end of the flows' time, nanoseconds.
    fn flow_time_ns(&self, view: &View) -> (u64, u64) {
        let latest_ns = if self.now.is_live { u64::MAX } else { self.flows.latest_ns };
        let until_ns = match view.until {
            Some(until) => until.saturating_mul(1_000_000_000),
            None => latest_ns,
        };
        let end_ns = until_ns.min(self.now.at.saturating_mul(1_000_000_000));
        let end_ns = if self.now.is_live { end_ns } else { until_ns };
        (end_ns.saturating_sub(view.span.1.saturating_mul(1_000_000_000)), until_ns)
    }

    /// The page of a view.
    pub(super) fn page(&self, view: &View) -> Page {
        let mut page = Page::default();
        let (from_ns, until_ns) = self.flow_time_ns(view);
        let mut sums = Sums::default();
        self.flows.of(view, from_ns, until_ns).for_each(|flow| sums.add(flow));
        if view.is_filtered() {
            self.filtered_figures(&mut page, &sums);
            let title = format!("Flows of {}", view.filter());
            page.charts(&title, self.filtered_charts(view, from_ns, until_ns));
        } else {
            self.figures(&mut page);
            page.charts("Traffic", self.charts(view));
        }
        self.alerts(&mut page, view);
        self.of_sums(&mut page, view, &sums);
        if !view.is_filtered() {
            self.busiest(&mut page, view);
            self.outputs(&mut page);
            self.ledger(&mut page);
            self.load(&mut page);
        }
        self.flow_list(&mut page, view, from_ns, until_ns);
        page
    }

    fn figures(&self, page: &mut Page) {
        let now = self.now;
        page.figure("packets", Cell::count(now.packets));
        page.figure("packets/s", Cell::about(now.packet_rate as u64, rate(now.packet_rate)));
        page.figure("bit/s", Cell::about(now.bit_rate as u64, rate(now.bit_rate)));
        page.figure("packets lost", Cell::count(now.lost()));
        page.figure("flows ended", Cell::count(self.flows.ended + self.flows.lost()));
        let share = 100.0 * now.live_flows as f64 / now.max_flows.max(1) as f64;
        let fill = format!("{} ({share:.0} %)", count(now.live_flows));
        page.figure("live flows (of room)", Cell::about(now.live_flows, fill));
        if let Some(memory) = now.memory_bytes {
            page.figure("memory", Cell::bytes(memory));
        }
        let seconds = now.elapsed.as_secs();
        let time = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        page.figure("run time", Cell::about(seconds, time));
    }

    fn filtered_figures(&self, page: &mut Page, sums: &Sums<'_>) {
        page.figure("flows", Cell::count(sums.all.flows));
        page.figure("packets", Cell::count(sums.all.packets));
        page.figure("of IP", Cell::bytes(sums.all.octets));
        page.figure("packets lost by the run", Cell::count(self.now.lost()));
    }

    fn charts(&self, view: &View) -> Vec<Timeline> {
        let until = self.until_s(view);
        let chart = |title, unit, colour, counter: &dyn Fn(&Sample) -> u64| {
            let Rates { start, step, values } = self.history.rates(view.span.1, until, counter);
            timeline(title, unit, (start, step), colour, values)
        };
        vec![
            chart("Packets", "packets/s", 0, &|one| one.packets),
            chart("Bits as captured", "bit/s", 1, &|one| one.bytes.saturating_mul(8)),
            chart("Packets lost", "packets/s", 2, &|one| one.lost),
            chart("Flows ended", "flows/s", 3, &|one| one.flows),
        ]
    }

    /// Flows add their packets and octets evenly from their first to their last packet.
    fn filtered_charts(&self, view: &View, from_ns: u64, until_ns: u64) -> Vec<Timeline> {
        let step_s = (view.span.1 / STEPS).max(1);
        let start_s = from_ns / 1_000_000_000 / step_s * step_s;
        let steps = (view.span.1 / step_s + 1) as usize;
        let (mut packets, mut bits) = (vec![0.0; steps], vec![0.0; steps]);
        for Flow { row, .. } in self.flows.of(view, from_ns, until_ns) {
            let step = |ns: u64| {
                ((ns / 1_000_000_000).saturating_sub(start_s) / step_s).min(steps as u64 - 1)
                    as usize
            };
            let (first, last) = (step(row.first_ns), step(row.last_ns));
            let share = (last.saturating_sub(first) + 1) as f64 * step_s as f64;
            let sum = |numbers: [u64; 2]| numbers[0] as f64 + numbers[1] as f64;
            for at in first..=last {
                packets[at] += sum(row.packets) / share;
                bits[at] += 8.0 * sum(row.octets) / share;
            }
        }
        let time = (start_s, step_s);
        vec![
            timeline("Packets", "packets/s", time, 0, packets),
            timeline("Bits of IP", "bit/s", time, 1, bits),
        ]
    }

    fn alerts(&self, page: &mut Page, view: &View) {
        page.heading("Alerts");
        let (alerts, all) = self.notes.alerts(view);
        if self.notes.lost() > 0 {
            let lost = count(self.notes.lost());
            page.line(&format!("{lost} changes are missing on this page alone, for lack of time"));
        }
        if alerts.is_empty() {
            page.line("none");
            return;
        }
        page.link("CSV", table_link(view, "Alerts"));
        page.table(alerts);
        if all > view.rows {
            page.line(&format!("and {} more", count((all - view.rows) as u64)));
        }
    }

    fn of_sums(&self, page: &mut Page, view: &View, sums: &Sums<'_>) {
        let rows = view.rows;
        let more = |page: &mut Page, shown: usize, all: usize, what: &str| {
            if all > shown {
                page.line(&format!("and {} more {what}", count((all - shown) as u64)));
            }
        };
        let First { entries: hosts, all } = sums.hosts(rows);
        let columns = [
            ("host", Left),
            ("octets", Right),
            ("sent", Right),
            ("received", Right),
            ("flows", Right),
        ];
        let mut table = Table::with_head(&columns);
        for (address, host) in hosts {
            table.row([
                host_cell(view, address, address.to_string()),
                Cell::bytes(host.octets()),
                Cell::bytes(host.sent),
                Cell::bytes(host.received),
                Cell::count(host.flows),
            ]);
        }
        section(page, view, "Hosts", table, |page| more(page, rows, all, "hosts"));

        let First { entries: labels, all } = sums.applications(rows);
        let columns =
            [("application", Left), ("octets", Right), ("packets", Right), ("flows", Right)];
        let mut table = Table::with_head(&columns);
        for (label, volume) in labels {
            let name = match label.as_str() {
                "" => "unknown".into(),
                name => {
                    let to = view.link_with(|view| view.application = Some(name.to_owned()));
                    Cell::from(name).to(to)
                }
            };
            table.row([
                name,
                Cell::bytes(volume.octets),
                Cell::count(volume.packets),
                Cell::count(volume.flows),
            ]);
        }
        section(page, view, "Applications", table, |page| more(page, rows, all, "applications"));

        let First { entries: servers, all } = sums.servers(rows);
        let mut table =
            Table::with_head(&[("server name", Left), ("octets", Right), ("flows", Right)]);
        for (name, volume) in servers {
            table.row([
                name_cell(view, name),
                Cell::bytes(volume.octets),
                Cell::count(volume.flows),
            ]);
        }
        section(page, view, "Server names", table, |page| more(page, rows, all, "names"));

        let First { entries: failures, all } = sums.failures(rows);
        let mut table = Table::with_head(&[("name", Left), ("answer", Left), ("flows", Right)]);
        for ((name, code), flows) in failures {
            table.row([name_cell(view, name), code.into(), Cell::count(flows)]);
        }
        section(page, view, "DNS failures", table, |page| more(page, rows, all, "failures"));

        let First { entries: answers, all } = sums.answers(rows);
        let columns =
            [("server", Left), ("mean answer", Right), ("longest", Right), ("answers", Right)];
        let mut table = Table::with_head(&columns);
        for ((address, port), own) in answers {
            let name = std::net::SocketAddr::new(address, port).to_string();
            table.row([
                host_cell(view, address, name),
                Cell::about(own.mean(), milliseconds(own.mean())),
                Cell::about(own.longest, milliseconds(own.longest)),
                Cell::count(own.number),
            ]);
        }
        section(page, view, "Slow servers", table, |page| {
            if !self.now.measures_tcp {
                page.line("of DNS alone; --analyses all,tcp measures TCP");
            }
            more(page, rows, all, "servers");
        });
    }

    /// The last interval of the activity, if it is measured.
    fn busiest(&self, page: &mut Page, view: &View) {
        let Some(activity) = &self.notes.activity else { return };
        let seconds = activity.end.0.saturating_sub(activity.start.0) as f64 / 1e9;
        let mut table = Table::with_head(&[("host", Left), ("of IP", Right)]);
        for row in activity.senders.iter().take(view.rows) {
            let bits = row.lower.saturating_mul(8) as f64 / seconds.max(1e-9);
            let text = format!("{} sent", bit_rate(bits));
            let name = row.address.to_string();
            table.row([host_cell(view, row.address, name), Cell::about(bits as u64, text)]);
        }
        for row in activity.receivers.iter().take(view.rows) {
            let bits = row.lower.saturating_mul(8) as f64 / seconds.max(1e-9);
            let text = format!("{} received", bit_rate(bits));
            let name = row.address.to_string();
            table.row([host_cell(view, row.address, name), Cell::about(bits as u64, text)]);
        }
        section(page, view, "Busiest hosts of the last interval", table, |page| {
            page.line(&format!(
                "about {} hosts sent and {} received in {seconds} s until {}",
                count(activity.distinct.sources),
                count(activity.distinct.destinations),
                clock(activity.end.0)
            ));
        });
    }

    fn outputs(&self, page: &mut Page) {
        let columns = [
            ("output", Left),
            ("state", Left),
            ("written", Right),
            ("lost", Right),
            ("waiting", Right),
        ];
        let mut table = Table::with_head(&columns);
        for one in &self.now.outputs {
            table.row([
                one.name.as_str().into(),
                health(one).into(),
                Cell::count(one.sent),
                Cell::count(one.lost_total()),
                Cell::bytes(one.queued_bytes),
            ]);
        }
        page.section("Outputs", table);
    }

    /// Where all packets are.
    fn ledger(&self, page: &mut Page) {
        let now = self.now;
        let all = now.packets + now.dropped;
        let mut table = Table::with_head(&[("packets", Left), ("number", Right), ("share", Right)]);
        let mut row = |name: &str, number: u64| {
            let share = format!("{:.3} %", 100.0 * number as f64 / all.max(1) as f64);
            table.row([name.into(), Cell::count(number), share.into()]);
        };
        row("arrived", all);
        row("dropped before reading", now.dropped);
        row("read", now.packets);
        row("of those, shed under overload", now.shed);
        row("of those, left out as duplicates", now.duplicates);
        page.section("Packets", table);
        let short = &now.shortages;
        short.iter().for_each(|(what, number)| page.line(&format!("{} {what}", count(*number))));
        if self.flows.lost() > 0 {
            let lost = count(self.flows.lost());
            page.line(&format!("{lost} flows are missing on this page alone, for lack of time"));
        }
    }

    fn load(&self, page: &mut Page) {
        let mut table = Table::with_head(&[("thread", Left), ("of a core", Right)]);
        let mut loads: Vec<_> = self.now.loads.iter().collect();
        loads.sort_by(|one, other| other.busy.total_cmp(&one.busy));
        for load in loads.into_iter().take(32) {
            let percent = 100.0 * load.busy;
            table.row([
                load.thread.as_str().into(),
                Cell::about(percent.round() as u64, format!("{percent:.0} %")),
            ]);
        }
        page.section("Load", table);
    }

    fn flow_list(&self, page: &mut Page, view: &View, from_ns: u64, until_ns: u64) {
        let columns = [
            ("end", Left),
            ("source", Left),
            ("destination", Left),
            ("protocol", Left),
            ("application", Left),
            ("name", Left),
            ("packets", Right),
            ("octets", Right),
            ("duration", Right),
        ];
        let mut table = Table::with_head(&columns);
        let rows = view.rows.max(20);
        let mut shown: Vec<_> = self.flows.of(view, from_ns, until_ns).collect();
        let all = shown.len();
        let order = |flow: &Flow<'_>| std::cmp::Reverse(flow.row.last_ns);
        if all > rows {
            shown.select_nth_unstable_by_key(rows, order);
            shown.truncate(rows);
        }
        shown.sort_by_key(order);
        for flow in shown {
            let row = flow.row;
            let [source, target] = flow.hosts();
            let seconds = row.last_ns.saturating_sub(row.first_ns) as f64 / 1e9;
            table.row([
                clock(row.last_ns).into(),
                host_cell(view, source, end_of(&row.key, true)),
                host_cell(view, target, end_of(&row.key, false)),
                names::protocol(row.key.protocol).into(),
                row.label.as_str().into(),
                name_cell(view, if flow.server.is_empty() { flow.lookup } else { flow.server }),
                Cell::count(row.packets.iter().sum()),
                Cell::bytes(row.octets[0].saturating_add(row.octets[1])),
                format!("{seconds:.3} s").into(),
            ]);
        }
        page.heading("Flows");
        page.widen();
        page.link("CSV", format!("/flows.csv{}", view.query()));
        if table.is_empty() {
            page.line("none has ended in this time");
        } else {
            page.table(table);
        }
        if all > rows {
            page.line(&format!("and {} more", count((all - rows) as u64)));
        }
        if self.flows.complete_after_ns > from_ns {
            let since = clock(self.flows.complete_after_ns);
            let kept = count(self.flows.len() as u64);
            page.line(&format!("The page keeps the latest {kept} flows: all since {since}."));
        }
    }

    /// All flows of a view as CSV, the latest block first, at most [`FILE_FLOWS`].
    pub(super) fn flows_csv(&self, view: &View) -> String {
        let mut csv = String::from(
            "first,last,source,sourcePort,destination,destinationPort,protocol,application,serverName,\
             dnsQueryName,dnsFailure,answerMicroseconds,packets,reversePackets,octets,reverseOctets\r\n",
        );
        let (from_ns, until_ns) = self.flow_time_ns(view);
        for flow in self.flows.of(view, from_ns, until_ns).take(FILE_FLOWS) {
            let row = flow.row;
            let [source, target] = flow.hosts();
            let fields = [
                Time(row.first_ns).to_string(),
                Time(row.last_ns).to_string(),
                source.to_string(),
                row.key.src_port.to_string(),
                target.to_string(),
                row.key.dst_port.to_string(),
                row.key.protocol.to_string(),
                row.label.as_str().to_owned(),
                quoted(flow.server),
                quoted(flow.lookup),
                quoted(flow.failure),
                row.answer_us.map_or_else(String::new, |us| us.to_string()),
                row.packets[0].to_string(),
                row.packets[1].to_string(),
                row.octets[0].to_string(),
                row.octets[1].to_string(),
            ];
            csv += &fields.join(",");
            csv += "\r\n";
        }
        csv
    }
}

/// A section with a table of a view, which can be fetched as CSV; `rest` adds lines.
fn section(page: &mut Page, view: &View, title: &str, table: Table, rest: impl FnOnce(&mut Page)) {
    if table.is_empty() {
        return;
    }
    page.heading(title);
    page.link("CSV", table_link(view, title));
    page.table(table);
    rest(page);
}

fn table_link(view: &View, title: &str) -> String {
    let query = view.query();
    let mark = if query.is_empty() { '?' } else { '&' };
    format!("/view.csv{query}{mark}table={}", title.replace(' ', "+"))
}

fn host_cell(view: &View, host: IpAddr, text: String) -> Cell {
    Cell::from(text).to(view.link_with(|view| view.host = Some(host)))
}

/// A name, shortened, as a link to its flows.
fn name_cell(view: &View, name: &str) -> Cell {
    if name.is_empty() {
        return "".into();
    }
    let mut text: String = name.chars().take(NAME).collect();
    if text.len() < name.len() {
        text.push('…');
    }
    Cell::from(text).to(view.link_with(|view| view.name = Some(name.to_lowercase())))
}

fn health(output: &Status) -> String {
    match (&output.last_error, output.failing) {
        (Some((error, _)), true) => format!("failed: {error}"),
        (None, true) => "failed".into(),
        _ if output.lost_total() > 0 => "works, and has lost records".into(),
        _ => "works".into(),
    }
}

fn timeline(
    title: &str,
    unit: &'static str,
    (start, step): (u64, u64),
    colour: usize,
    values: Vec<f64>,
) -> Timeline {
    Timeline {
        title: title.into(),
        unit,
        start: start as f64,
        step: step as f64,
        values,
        colour,
        day: charts::month_and_day,
    }
}

fn milliseconds(us: u64) -> String {
    format!("{}.{} ms", count(us / 1000), us / 100 % 10)
}

/// The time of day, UTC.
pub(super) fn clock(ns: u64) -> String {
    Time(ns).to_string().get(11..19).unwrap_or_default().to_owned()
}
