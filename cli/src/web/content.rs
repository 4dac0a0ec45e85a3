//! The content of a page: figures, charts and tables of a view.

use std::net::IpAddr;

use ringtap_export::Status;
use ringtap_monitor::report::Time;
use ringtap_terminal::names;
use ringtap_terminal::numbers::{bit_rate, count, rate};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table, quoted};

use super::flows::{Flow, Flows, application, end_of};
use super::history::History;
use super::notes::Notes;
use super::now::Now;
use super::pace::SECOND_NS;
use super::sums::{First, Sums, Waits};
use super::view::View;

/// Most bytes of a file of flows.
const FILE: usize = 8 << 20;
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
    /// The present, seconds since 1970; of files that of their latest flow.
    pub(super) fn present_s(&self) -> u64 {
        let latest_s = self.flows.latest_ns.div_ceil(SECOND_NS);
        if self.now.is_live { self.now.at } else { latest_s }
    }

    /// The first second that can be shown.
    pub(super) fn begin_s(&self) -> u64 {
        let earliest_s = self.flows.earliest_ns / SECOND_NS;
        let begin_s = self.history.begin().filter(|_| self.now.is_live);
        begin_s.unwrap_or(earliest_s).min(self.present_s())
    }

    /// The end of a view's time, seconds since 1970.
    pub(super) fn until_s(&self, view: &View) -> u64 {
        view.until.map_or(self.present_s(), |until| until.min(self.present_s()))
    }

    /// The beginning and the end of a view's time, nanoseconds.
    fn span_ns(&self, view: &View) -> (u64, u64) {
        let until_ns = self.until_s(view).saturating_mul(SECOND_NS);
        let from_ns = until_ns.saturating_sub(view.span.1.saturating_mul(SECOND_NS));
        // Flows that end while this is rendered belong to the present, too.
        (from_ns, if view.until.is_some() { until_ns } else { u64::MAX })
    }

    /// A time as text, UTC: with the date unless it is that of the present.
    pub(super) fn time(&self, ns: u64) -> String {
        let text = |ns: u64| Time(ns).to_string();
        let (text, present) = (text(ns), text(self.present_s().saturating_mul(SECOND_NS)));
        let part = if text.get(..10) == present.get(..10) { 11..19 } else { 5..19 };
        text.get(part).unwrap_or_default().replace('T', " ")
    }

    /// The page of a view.
    pub(super) fn page(&self, view: &View) -> Page {
        let mut page = Page::default();
        let (from_ns, until_ns) = self.span_ns(view);
        let mut sums = Sums::default();
        self.flows.of(view, from_ns, until_ns).for_each(|flow| sums.add_flow(flow));
        let time = self.flows.slices_in(from_ns, until_ns);
        self.flows.slices(view, time).for_each(|slice| sums.add_slice(slice));
        let is_present = view.until.is_none() && !view.is_filtered();
        if is_present {
            self.figures(&mut page);
        } else {
            self.figures_of(&mut page, &sums);
        }
        if view.is_filtered() || !self.now.is_live {
            let what = if view.is_filtered() { view.filter() } else { "all hosts".into() };
            page.charts(&format!("Flows of {what}"), self.charts_of(view));
        } else {
            page.charts("Traffic", self.charts(view));
        }
        self.gaps(&mut page, time.0);
        if view.host.is_some() || !view.is_filtered() {
            self.alerts(&mut page, view);
        }
        self.of_sums(&mut page, view, &sums, time);
        if is_present {
            self.busiest(&mut page, view);
            self.outputs(&mut page);
            self.ledger(&mut page);
            self.load(&mut page);
        }
        self.flow_list(&mut page, view, from_ns, until_ns);
        page
    }

    /// What is missing in the tables of flows.
    fn gaps(&self, page: &mut Page, from_ns: u64) {
        let mut lines = Vec::new();
        if self.flows.complete_after_ns > from_ns {
            lines.push(format!(
                "The page keeps the latest {} flows and minutes of flows: all that ended after {}.",
                count(self.flows.len() as u64),
                self.time(self.flows.complete_after_ns)
            ));
        }
        if self.flows.lost() > 0 {
            lines.push(format!(
                "{} flows and minutes of flows are missing on this page alone: more came at once than it can take.",
                count(self.flows.lost())
            ));
        }
        if !lines.is_empty() {
            page.heading("Missing flows");
            lines.iter().for_each(|line| page.line(line));
        }
    }

    fn figures(&self, page: &mut Page) {
        let now = self.now;
        page.figure("packets", Cell::count(now.packets));
        page.figure("packets/s", Cell::about(now.packet_rate as u64, rate(now.packet_rate)));
        page.figure("throughput", Cell::about(now.bit_rate as u64, bit_rate(now.bit_rate)));
        page.figure("packets lost", Cell::count(now.lost()));
        page.figure("flows ended", Cell::count(self.flows.all()));
        let share = 100.0 * now.live_flows as f64 / now.max_flows.max(1) as f64;
        let fill = format!("{} ({share:.0} %)", count(now.live_flows));
        page.figure("live flows (of the table)", Cell::about(now.live_flows, fill));
        if let Some(memory) = now.memory_bytes {
            page.figure("memory", Cell::bytes(memory));
        }
        let seconds = now.elapsed.as_secs();
        let time = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        page.figure("run time", Cell::about(seconds, time));
    }

    fn figures_of(&self, page: &mut Page, sums: &Sums<'_>) {
        page.figure("flows", Cell::count(sums.all.flows));
        page.figure("packets", Cell::count(sums.all.packets));
        page.figure("octets of IP", Cell::bytes(sums.all.octets));
        page.figure("packets lost by the run", Cell::count(self.now.lost()));
    }

    fn alerts(&self, page: &mut Page, view: &View) {
        page.heading("Alerts");
        let (alerts, all) = self.notes.alerts(view, &|ns| self.time(ns));
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

    fn of_sums(&self, page: &mut Page, view: &View, sums: &Sums<'_>, time: (u64, u64)) {
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
        section(page, view, "Hosts", table, |page| {
            let from = self.time(time.0);
            let until = match view.until {
                Some(_) => format!("until {}", self.time(time.1)),
                None => "on, those of a live flow after each minute".into(),
            };
            page.line(&format!(
                "Octets are of packets from {from} {until}. A flow counts when it ends."
            ));
            more(page, rows, all, "hosts");
        });

        let First { entries: labels, all } = sums.applications(rows);
        let columns =
            [("application", Left), ("octets", Right), ("packets", Right), ("flows", Right)];
        let mut table = Table::with_head(&columns);
        for (label, volume) in labels {
            let name = application(&label);
            let to = view.link_with(|view| view.application = Some(name.to_lowercase()));
            let name = Cell::from(name).to(to);
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

        let waits = |First { entries, all }: First<(IpAddr, u16), Waits>, what, number| {
            let columns = [("server", Left), (what, Right), ("longest", Right), (number, Right)];
            let mut table = Table::with_head(&columns);
            for ((address, port), own) in entries {
                let name = std::net::SocketAddr::new(address, port).to_string();
                table.row([
                    host_cell(view, address, name),
                    Cell::about(own.mean(), milliseconds(own.mean())),
                    Cell::about(own.longest, milliseconds(own.longest)),
                    Cell::count(own.number),
                ]);
            }
            (table, all)
        };
        let (table, all) = waits(sums.round_trips(rows), "mean round trip", "handshakes");
        section(page, view, "Slowest round trips", table, |page| {
            page.line("from SYN to SYN-ACK: of the network, not how long a server takes to answer");
            more(page, rows, all, "servers");
        });
        let (table, all) = waits(sums.dns(rows), "mean answer", "answers");
        section(page, view, "Slowest DNS answers", table, |page| {
            if !self.now.measures_tcp {
                page.line("--analyses all,tcp measures the round trips of TCP");
            }
            more(page, rows, all, "servers");
        });
    }

    /// The last interval of the activity, if it is measured.
    fn busiest(&self, page: &mut Page, view: &View) {
        let Some(activity) = &self.notes.activity else { return };
        let seconds = activity.end.0.saturating_sub(activity.start.0) as f64 / 1e9;
        let lists = [
            ("Busiest senders", &activity.senders, activity.distinct.sources),
            ("Busiest receivers", &activity.receivers, activity.distinct.destinations),
        ];
        for (title, rows, distinct) in lists {
            let mut table = Table::with_head(&[("host", Left), ("of IP", Right)]);
            for row in rows.iter().take(view.rows) {
                let bits = row.lower.saturating_mul(8) as f64 / seconds.max(1e-9);
                table.row([
                    host_cell(view, row.address, row.address.to_string()),
                    Cell::about(bits as u64, bit_rate(bits)),
                ]);
            }
            section(page, view, title, table, |page| {
                let (number, until) = (count(distinct), self.time(activity.end.0));
                page.line(&format!("of about {number} hosts, in {seconds} s until {until}"));
            });
        }
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
        now.losses.iter().for_each(|loss| page.line(loss));
    }

    fn load(&self, page: &mut Page) {
        let mut table = Table::with_head(&[("thread", Left), ("of a core", Right)]);
        let mut loads: Vec<_> = self.now.loads.iter().collect();
        loads.sort_by(|one, other| other.busy.total_cmp(&one.busy));
        for load in loads.into_iter().take(32) {
            let percent = 100.0 * load.busy;
            let output = load.output().and_then(|place| self.now.outputs.get(place));
            let name = output.map(|output| format!("{}: {}", load.thread, output.name));
            table.row([
                name.unwrap_or_else(|| load.thread.clone()).into(),
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
        let rows = view.rows;
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
                self.time(row.last_ns).into(),
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
        page.link("CSV (at most 8 MiB)", format!("/flows.csv{}", view.query()));
        if table.is_empty() {
            page.line("None has ended in this time; a flow ends after --idle-timeout or --active-timeout.");
        } else {
            page.table(table);
        }
        if all > rows {
            page.line(&format!("and {} more", count((all - rows) as u64)));
        }
    }

    /// The flows of a view as CSV, the latest block first, as many as fit in 8 MiB.
    pub(super) fn flows_csv(&self, view: &View) -> String {
        let mut csv = String::from(
            "first,last,source,sourcePort,destination,destinationPort,protocol,application,serverName,\
             dnsQueryName,dnsFailure,roundTripMicroseconds,packets,reversePackets,octets,reverseOctets,\
             dnsResponseMicroseconds\r\n",
        );
        let (from_ns, until_ns) = self.span_ns(view);
        let microseconds = |us: Option<u32>| us.map_or_else(String::new, |us| us.to_string());
        for flow in self.flows.of(view, from_ns, until_ns) {
            if csv.len() > FILE {
                break;
            }
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
                quoted(row.label.as_str()),
                quoted(flow.server),
                quoted(flow.lookup),
                quoted(flow.failure),
                microseconds(row.round_trip_us),
                row.packets[0].to_string(),
                row.packets[1].to_string(),
                row.octets[0].to_string(),
                row.octets[1].to_string(),
                microseconds(row.dns_us),
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

fn milliseconds(us: u64) -> String {
    format!("{}.{} ms", count(us / 1000), us / 100 % 10)
}

#[cfg(test)]
pub(super) mod tests {
    use ringtap_flow::RecordSink;

    use super::super::flows::tests::{keep, record};
    use super::*;

    /// What is shown of flows, given by their first and last second; each has 10 packets a second.
    pub(crate) fn shown(
        is_live: bool,
        at: u64,
        times: &[(u64, u64)],
        test: impl FnOnce(&Shown<'_>),
    ) {
        let (mut flows, mut keepers) = Flows::new(60 * SECOND_NS, 1);
        for &(first, last) in times {
            let mut record = record(last, 1, (2, 80));
            record.first_ns = first * SECOND_NS;
            record.packets = [10 * (last + 1 - first), 0];
            keep(&mut keepers[0], &record);
        }
        keepers[0].finish();
        flows.receive();
        let (notes, _) = Notes::new();
        let now = Now { at, is_live, ..Now::default() };
        let history = History::default();
        test(&Shown { now: &now, history: &history, flows: &flows, notes: &notes });
    }

    #[test]
    fn the_present_of_files_is_their_latest_flow() {
        shown(false, 1_800_000_000, &[(900, 950), (1_000, 1_010)], |shown| {
            assert_eq!((shown.present_s(), shown.begin_s()), (1_010, 900));
            let page = shown.page(&View::default());
            assert_eq!(page.table_of("Flows").unwrap().csv().lines().count(), 3);
            let page = shown.page(&View::parse("until=955").unwrap());
            assert_eq!(page.table_of("Flows").unwrap().csv().lines().count(), 2);
            assert!(page.table_of("Packets").is_none(), "no values of the present");
            // Later than all.
            let page = shown.page(&View::parse("until=99999999999").unwrap());
            assert_eq!(page.table_of("Flows").unwrap().csv().lines().count(), 3);
            assert_eq!(shown.time(1_000 * SECOND_NS), "00:16:40");
            assert_eq!(shown.time(90_000 * SECOND_NS), "01-02 01:00:00");
        });
        shown(false, 1_800_000_000, &[], |shown| {
            assert!(shown.charts_of(&View::default()).is_empty());
            assert!(shown.page(&View::default()).table_of("Flows").is_none());
        });
    }
}
