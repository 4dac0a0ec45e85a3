//! The content of a page: figures, charts and tables of a view.

use std::sync::Arc;

use ringtap_export::Status;
use ringtap_monitor::report::Time;
use ringtap_terminal::numbers::{bit_rate, count, rate};
use ringtap_terminal::page::Page;
use ringtap_terminal::table::Lean::{Left, Right};
use ringtap_terminal::table::{Cell, Table, quoted};

use super::answer::Answer;
use super::flows::Flows;
use super::history::History;
use super::notes::Notes;
use super::now::Now;
use super::pace::SECOND_NS;
use super::sources::{Clock, Sources, ns_of};
use super::stored::{Known, Stored};
use super::tables::{self, Kind, Times};
use super::view::{View, of_one};
use crate::query::helper::Ask;

/// Most bytes of a file of flows.
const FILE: usize = 8 << 20;

/// The store has not answered yet.
const ASKING: &str = "asking the store";

/// Everything that a page shows.
pub(super) struct Shown<'a> {
    pub(super) now: &'a Now,
    pub(super) history: &'a History,
    pub(super) flows: &'a Flows,
    pub(super) notes: &'a Notes,
    /// The store of the run, if its page may ask it.
    pub(super) stored: Option<&'a Stored>,
}

/// An answer of the store.
pub(super) struct FromStore {
    pub(super) answer: Arc<Answer>,
    /// Its end, milliseconds since 1970.
    to: i64,
    /// The times of the rows in memory to add.
    pub(super) memory: Option<Times>,
    /// Whether the store is still asked: then the answer is about the window before.
    is_asked: bool,
}

/// The rows of a table, as far as they are known.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) answer: Answer,
    /// The number of all rows, if it is known.
    all: Option<usize>,
    /// What is to be said of them.
    pub(super) notes: Vec<String>,
    /// Whether the store has still to answer.
    pub(super) is_asked: bool,
    /// Whether it cannot.
    pub(super) is_failed: bool,
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

    /// The first second of which a view may have rows: the store's is not known.
    pub(super) fn earliest_s(&self) -> u64 {
        if self.stored.is_some() && self.now.is_live { 0 } else { self.begin_s() }
    }

    /// The end of a view's time, seconds since 1970.
    pub(super) fn until_s(&self, view: &View) -> u64 {
        view.until.map_or(self.present_s(), |until| until.min(self.present_s()))
    }

    /// A time as text, UTC: with the date unless it is that of the present.
    pub(super) fn time(&self, ns: u64) -> String {
        let text = |ns: u64| Time(ns).to_string();
        let (text, present) = (text(ns), text(self.present_s().saturating_mul(SECOND_NS)));
        let part = if text.get(..10) == present.get(..10) { 11..19 } else { 5..19 };
        text.get(part).unwrap_or_default().replace('T', " ")
    }

    /// Where the rows of a view come from.
    pub(super) fn sources(&self, view: &View) -> Sources {
        let (present_s, begin_s) = (self.present_s(), self.begin_s());
        let files = self.stored.filter(|_| self.now.is_live).map(|stored| stored.files);
        Sources::new(view, self.flows, Clock { present_s, begin_s, files })
    }

    /// The page of a view.
    pub(super) fn page(&self, view: &View) -> Page {
        let mut page = Page::default();
        let sources = self.sources(view);
        let kind = view.table.as_deref().and_then(Kind::of);
        let is_present = view.until.is_none() && !view.is_filtered() && sources.stored.is_none();
        if kind.is_none() && is_present {
            self.figures(&mut page);
        } else if kind.is_none() {
            self.figures_of(&mut page, view, &sources);
        }
        if view.is_filtered() || !self.now.is_live || sources.stored.is_some() {
            let filter = view.filter();
            let what =
                if filter.is_empty() { "Flows".into() } else { format!("Flows of {filter}") };
            page.charts(&what, self.charts_of(view, &sources));
        } else {
            page.charts("Traffic", self.charts(view));
        }
        self.gaps(&mut page, view, &sources);
        if let Some(kind) = kind {
            self.section(&mut page, view, kind, &sources, true);
            return page;
        }
        if view.one_host().is_some() || !view.is_filtered() {
            self.alerts(&mut page, view, &sources);
        }
        self.overview(&mut page, view, &sources);
        if is_present {
            self.busiest(&mut page, view);
            self.outputs(&mut page);
            self.ledger(&mut page);
            self.load(&mut page);
        }
        self.section_of(&mut page, view, "flows", &sources);
        page
    }

    /// The rows of a table.
    pub(super) fn rows(&self, view: &View, kind: &Kind, sources: &Sources) -> Rows {
        let most = view.rows as u64 + 1;
        let mut notes: Vec<_> = gap(view, sources).into_iter().collect();
        if !kind.fits(view) {
            notes.push("Choose a host or a network.".into());
            return Rows { notes, ..Rows::default() };
        }
        let from_memory = |notes| {
            let (answer, all) = kind.rows(self.flows, view, sources.memory);
            Rows { answer, all: Some(all), notes, ..Rows::default() }
        };
        let Some((stored, window)) = self.stored.zip(sources.stored) else {
            let missing =
                kind.needs_store().then(|| "needs --store DIR, and a time of its files".into());
            notes.extend(missing);
            return from_memory(notes);
        };
        let adds = kind.sums(view).filter(|_| sources.has_memory);
        if sources.has_memory && kind.is_latest() {
            let from = view.local(sources.memory.slices.0);
            notes.push(format!("Those since {from}: for earlier ones choose an end before it."));
            return from_memory(notes);
        }
        let rows = if adds.is_some() { tables::MOST as u64 } else { most };
        let ask = Ask {
            question: kind.question(view),
            window: window.map(Some),
            before: kind.needs_store().then(|| {
                let [from, to] = window;
                [Some(from.saturating_sub(to - from).max(0)), Some(from)]
            }),
            rows,
        };
        let FromStore { answer, to, memory, is_asked } = match self.known(stored, &ask, sources) {
            Ok(known) => known,
            Err(error) => {
                let is_asked = error.is_none();
                notes.push(error.as_deref().unwrap_or(ASKING).to_owned());
                let mut rows = match sources.in_memory().filter(|_| adds.is_some()) {
                    Some(memory) => {
                        notes.push(format!("Only flows since {}.", view.local(memory.slices.0)));
                        from_memory(notes)
                    }
                    None => Rows { notes, ..Rows::default() },
                };
                (rows.is_asked, rows.is_failed) = (is_asked, !is_asked);
                return rows;
            }
        };
        if is_asked {
            notes.push("As of a short time ago: the store is asked anew.".into());
        }
        let mut answer = Arc::unwrap_or_clone(answer);
        let Some((keys, by)) = adds else {
            if sources.has_memory {
                let until = view.local(ns_of(to));
                notes.push(format!(
                    "Until {until}, where the last complete file of the store ends."
                ));
            }
            let all = (answer.rows.len() < rows as usize).then_some(answer.rows.len());
            return Rows { answer, all, notes, is_asked, is_failed: false };
        };
        let memory = memory.map(|memory| kind.rows(self.flows, view, memory).0).unwrap_or_default();
        let is_whole = answer.rows.len() < tables::MOST && memory.rows.len() < tables::MOST;
        if !is_whole {
            notes.push(format!("Of the largest {} rows of the store.", count(rows)));
        }
        answer.add(&memory, keys);
        answer.sort(by, keys);
        let all = is_whole.then_some(answer.rows.len());
        Rows { answer, all, notes, is_asked, is_failed: false }
    }

    /// What the store has answered. The error is that of the store; none if there is no answer yet.
    fn known(
        &self,
        stored: &Stored,
        ask: &Ask,
        sources: &Sources,
    ) -> Result<FromStore, Option<Arc<str>>> {
        match stored.know(ask, self.now.elapsed.as_secs()) {
            Known::Answered(answer) => {
                let to = sources.stored.map_or(0, |window| window[1]);
                Ok(FromStore { answer, to, memory: sources.in_memory(), is_asked: false })
            }
            Known::Failed(error) => Err(Some(error)),
            Known::Asked => {
                let earlier = stored.earlier(ask, |window| sources.may_be(window));
                let (answer, window) = earlier.ok_or(None)?;
                let memory = sources.in_memory_since(self.flows, window);
                Ok(FromStore { answer, to: window[1], memory, is_asked: true })
            }
        }
    }

    /// The command that gives the same rows.
    pub(super) fn command(&self, view: &View, kind: &Kind, sources: &Sources) -> Option<String> {
        let stored = self.stored?;
        let time = |ns: u64| Time(ns).to_string();
        // The rows of tables that are not added up are of the store alone, or of memory.
        let [from_ns, until_ns] = match sources.stored {
            Some(_) if sources.has_memory && kind.is_latest() => {
                [sources.memory.ended.0, sources.until_ns]
            }
            Some(window) if kind.sums(view).is_none() => window.map(ns_of),
            _ => [sources.from_ns, sources.until_ns],
        };
        let (from, to) = (time(from_ns), time(until_ns));
        let with = match kind.needs_store() {
            true => format!(" --with -{}s", (until_ns - from_ns) / SECOND_NS),
            false => String::new(),
        };
        let question = kind.question(view).replace('\'', "'\\''");
        let [store, probe] = [&stored.path, &stored.probe].map(|text| text.replace('\'', "'\\''"));
        Some(format!(
            "ringtap query '{store}' '{question}' --probe '{probe}' --from {from} --to {to}{with} --limit {}",
            view.rows
        ))
    }

    fn section_of(&self, page: &mut Page, view: &View, word: &str, sources: &Sources) {
        if let Some(kind) = Kind::of(word) {
            self.section(page, view, kind, sources, false);
        }
    }

    /// A table; in a view of its own also what it is about.
    fn section(&self, page: &mut Page, view: &View, kind: &Kind, sources: &Sources, is_own: bool) {
        let rows = self.rows(view, kind, sources);
        let is_list = kind.word == "flows";
        if rows.answer.rows.is_empty() && rows.notes.is_empty() && !is_own && !is_list {
            return;
        }
        let title = match (kind.word, view.one_host()) {
            ("pairs", Some(_)) => "Peers",
            _ => kind.title,
        };
        page.heading(title);
        if is_own || is_list {
            page.widen();
        }
        if !is_own {
            page.link(
                "more",
                view.link_with(|view| {
                    (view.table, view.rows) = (Some(kind.word.into()), view.rows.max(50));
                }),
            );
        }
        if is_list && sources.stored.is_none() {
            page.link("CSV (at most 8 MiB)", format!("/flows.csv{}", view.query()));
        } else {
            page.link("CSV", format!("/api/{}.csv{}", kind.word, view.query()));
        }
        page.link("JSON", format!("/api/{}{}", kind.word, view.query()));
        let table = rows.answer.table(view, view.rows);
        if !table.is_empty() {
            page.table(table);
        } else if !rows.is_asked && is_list {
            page.line("None in this time.");
        } else if !rows.is_asked && rows.notes.is_empty() {
            page.line("none");
        }
        match rows.all {
            Some(all) if all > view.rows => {
                page.line(&format!("and {} more", count((all - view.rows) as u64)));
            }
            None if rows.answer.rows.len() > view.rows => page.line("and more"),
            _ => {}
        }
        rows.notes.iter().for_each(|note| page.line(note));
        if kind.word == "hosts" || is_own && kind.sums(view).is_some() {
            let [from, until] = [sources.from_ns, sources.until_ns].map(|ns| view.local(ns));
            let until = match view.until {
                Some(_) => format!("until {until}"),
                None => "on; those of live flows after each slice of 10 s".into(),
            };
            page.line(&format!(
                "Octets are of packets from {from} {until}. A flow counts where it begins."
            ));
        }
        if kind.word == "servers" {
            page.line(
                "Responses: from the last packet of a request to the first one of its response. Round trips: from \
                 SYN to SYN-ACK, the time of the network alone.",
            );
            if !self.now.measures_tcp {
                page.line("--analyses all,tcp measures both");
            }
        }
        if let (true, Some(command)) = (is_own, self.command(view, kind, sources)) {
            page.line(&format!("The same from the store, once its files are complete: {command}"));
        }
    }

    /// What is missing in the tables of flows.
    fn gaps(&self, page: &mut Page, view: &View, sources: &Sources) {
        let mut lines = Vec::new();
        if let Some(line) = gap(view, sources) {
            lines.push(line);
        } else if sources.has_memory && self.flows.complete_after_ns > sources.memory.ended.0 {
            lines.push(format!(
                "The page keeps the latest {} flows and slices of flows: all that ended after {}.",
                count(self.flows.len() as u64),
                self.time(self.flows.complete_after_ns)
            ));
        }
        if sources.stored.is_some()
            && let Err(error) = self.timeline(view, sources)
        {
            let error = error.as_deref().unwrap_or(ASKING);
            lines.push(format!("Figures and charts have no packets of the store: {error}"));
        }
        if self.flows.lost() > 0 {
            lines.push(format!(
                "{} flows and slices of flows are missing on this page alone: more came at once than it can take.",
                count(self.flows.lost())
            ));
        }
        if self.flows.unlisted > 0 {
            let unlisted = count(self.flows.unlisted);
            lines.push(format!("{unlisted} live flows were not listed, for lack of room."));
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

    fn figures_of(&self, page: &mut Page, view: &View, sources: &Sources) {
        let [mut flows, mut packets, mut octets] = [0; 3];
        let mut add = |more: [u64; 3]| {
            flows += more[0];
            packets += more[1];
            octets += more[2];
        };
        let (stored, memory) = self.packets(view, sources);
        if let Some(memory) = memory {
            for slice in self.flows.slices(view, memory.slices) {
                let row = slice.row;
                let all = |numbers: [u64; 2]| numbers[0].saturating_add(numbers[1]);
                add([u64::from(row.is_first()), all(row.packets), all(row.octets)]);
            }
        }
        if let Some(answer) = stored {
            let begin_s = sources.from_ns / SECOND_NS / sources.step_s * sources.step_s;
            let is_shown = |row: &&Vec<_>| answer.time_s(row, "time") >= Some(begin_s);
            for row in answer.rows.iter().filter(is_shown) {
                add(["flows", "packets", "octets"].map(|name| answer.number(row, name)));
            }
        }
        page.figure("flows", Cell::count(flows));
        page.figure("packets", Cell::count(packets));
        page.figure("octets of IP", Cell::bytes(octets));
        page.figure("packets lost by the run", Cell::count(self.now.lost()));
    }

    fn alerts(&self, page: &mut Page, view: &View, sources: &Sources) {
        page.heading("Alerts");
        let (alerts, all) = self.notes.alerts(view, &|ns| self.time(ns));
        if self.notes.lost() > 0 {
            let lost = count(self.notes.lost());
            page.line(&format!("{lost} changes are missing on this page alone, for lack of time"));
        }
        if alerts.is_empty() {
            page.line(if self.stored.is_some() { "none in this run" } else { "none" });
        } else {
            page.link("CSV", table_link(view, "Alerts"));
            page.table(alerts);
        }
        if all > view.rows {
            page.line(&format!("and {} more", count((all - view.rows) as u64)));
        }
        let Some((stored, window)) = self.stored.zip(sources.stored) else { return };
        let of = view.one_host().map_or_else(String::new, |host| format!(" of {host}"));
        let (question, window) = (format!("alerts{of}"), window.map(Some));
        let ask = Ask { question, window, before: None, rows: view.rows as u64 };
        let line = match stored.know(&ask, self.now.elapsed.as_secs()) {
            Known::Answered(answer) if answer.rows.is_empty() => return,
            Known::Answered(answer) => {
                page.heading("Stored alerts");
                page.link("CSV", table_link(view, "Stored alerts"));
                page.table(answer.table(view, view.rows));
                return;
            }
            Known::Asked => ASKING.into(),
            Known::Failed(error) => error.to_string(),
        };
        page.heading("Stored alerts");
        page.line(&line);
    }

    /// The packets of a view in the store by time, if they are known, and the times of those in memory. Some may be of steps
    /// before the view.
    pub(super) fn packets(
        &self,
        view: &View,
        sources: &Sources,
    ) -> (Option<Arc<Answer>>, Option<Times>) {
        match self.timeline(view, sources) {
            Ok(FromStore { answer, memory, .. }) => (Some(answer), memory),
            Err(_) => (None, sources.in_memory()),
        }
    }

    fn timeline(&self, view: &View, sources: &Sources) -> Result<FromStore, Option<Arc<str>>> {
        let (stored, window) = self.stored.zip(sources.stored).ok_or(None)?;
        let filter = view.filter();
        let filter = if filter.is_empty() { filter } else { format!(" where {filter}") };
        let question = format!("timeline every {}s{filter}", sources.step_s);
        let ask = Ask { question, window: window.map(Some), before: None, rows: u64::MAX };
        self.known(stored, &ask, sources)
    }

    fn overview(&self, page: &mut Page, view: &View, sources: &Sources) {
        let words: &[&str] = match view.one_host() {
            None => &["hosts", "applications", "names", "networks", "countries", "as", "failed"],
            Some(_) => {
                &["hosts", "pairs", "applications", "asked", "served", "ports", "failed", "long"]
            }
        };
        let is_known = |word: &str| match word {
            "networks" => self.now.has_networks,
            "countries" | "as" => self.now.has_geo,
            _ => true,
        };
        let known = words.iter().filter(|word| is_known(word));
        known.for_each(|word| self.section_of(page, view, word, sources));
        if sources.stored.is_some() {
            return self.section_of(page, view, "servers", sources);
        }
        let (from_ns, until_ns) = sources.memory.ended;
        let ended = || self.flows.of(view, from_ns, until_ns);
        let mut own = |title, (answer, all): (Answer, usize)| {
            section(page, view, title, answer.table(view, view.rows), |page| {
                if all > view.rows {
                    page.line(&format!("and {} more", count((all - view.rows) as u64)));
                }
            });
        };
        own("DNS failures", tables::failures(ended()));
        own("Slowest DNS answers", tables::dns(ended()));
        self.section_of(page, view, "servers", sources);
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
                    Cell::from(row.address.to_string())
                        .to(view.link_with(|view| view.host = Some(of_one(row.address)))),
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
            let name = output.map_or(&load.thread, |output| &output.name);
            table.row([
                name.as_str().into(),
                Cell::about(percent.round() as u64, format!("{percent:.0} %")),
            ]);
        }
        page.section("Load", table);
    }

    /// The flows of a view as CSV, the latest block first, as many as fit in 8 MiB.
    pub(super) fn flows_csv(&self, view: &View) -> String {
        let mut csv = String::from(
            "first,last,source,sourcePort,destination,destinationPort,protocol,application,serverName,\
             dnsQueryName,dnsFailure,roundTripMicroseconds,packets,reversePackets,octets,reverseOctets,\
             dnsResponseMicroseconds\r\n",
        );
        let (from_ns, until_ns) = self.sources(view).memory.ended;
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

/// Which flows are neither in the store nor in memory.
fn gap(view: &View, sources: &Sources) -> Option<String> {
    let [from, until] = sources.gap?.map(|ns| view.local(ns));
    Some(format!(
        "From {from} until {until}: the page does not keep all flows, and the file of the store that has them is not complete."
    ))
}

fn table_link(view: &View, title: &str) -> String {
    let query = view.query();
    let mark = if query.is_empty() { '?' } else { '&' };
    format!("/view.csv{query}{mark}table={}", title.replace(' ', "+"))
}

fn health(output: &Status) -> String {
    match (&output.last_error, output.failing) {
        (Some((error, _)), true) => format!("failed: {error}"),
        (None, true) => "failed".into(),
        _ if output.lost_total() > 0 => "works, and has lost records".into(),
        _ => "works".into(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;

    use ringtap_flow::RecordSink;

    use super::super::flows::tests::{keep, record};
    use super::super::stored::{Files, Store};
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
        let stored = None;
        test(&Shown { now: &now, history: &history, flows: &flows, notes: &notes, stored });
    }

    /// Only sums that rows of memory are added to need more rows than are shown.
    #[test]
    fn a_view_of_the_store_alone_asks_for_the_rows_that_it_shows() {
        let (flows, _) = Flows::new(10 * SECOND_NS, 1);
        let (helper, its) = UnixStream::pair().unwrap();
        let files = Files { rotate_s: 300, joint_s: 300 };
        let store = Store { path: "store".into(), probe: "edge".into(), files, helper };
        let mut stored = Stored::new(store).unwrap();
        let now = Now { at: 10_000, is_live: true, ..Now::default() };
        let (history, (notes, _)) = (History::default(), Notes::new());
        let (flows, stored_now) = (&flows, Some(&stored));
        let shown =
            Shown { now: &now, history: &history, flows, notes: &notes, stored: stored_now };
        let view = View::parse("from=500&until=800&rows=50").unwrap();
        let rows = shown.rows(&view, Kind::of("hosts").unwrap(), &shown.sources(&view));
        assert!(rows.is_asked && rows.answer.rows.is_empty());
        stored.turn(0);
        let mut line = String::new();
        BufReader::new(its).read_line(&mut line).unwrap();
        assert_eq!(serde_json::from_str::<Ask>(&line).unwrap().rows, 51);
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
            let view = View::default();
            assert!(shown.charts_of(&view, &shown.sources(&view)).is_empty());
            assert!(shown.page(&View::default()).table_of("Flows").is_none());
        });
    }
}
