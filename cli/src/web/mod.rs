//! `--web`: a live page of the run.
//!
//! ```text
//! workers ── flow records ──▶ Flows ┐
//! merger ── alerts, intervals ─▶ Notes ├─▶ Shown ── a view (view.rs) ──▶ Page ──▶ HTML, CSV, JSON
//! Watch, Console ──▶ Now ──▶ History ┤
//! store ◀── helper process ◀─▶ Stored ┘
//! ```
//!
//! All of it belongs to one thread of the lowest priority, which serves the clients (see [`ringtap_serve`]).
//!
//! Invariant: memory is bounded, and the run never waits: what the page cannot take in time is lost for the page alone.

mod access;
mod answer;
mod charts;
mod content;
mod flows;
mod history;
mod notes;
mod now;
mod pace;
mod recent;
mod shell;
mod sources;
mod stored;
mod tables;
mod view;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use ringtap_base::{Clock, rss_bytes};
use ringtap_engine::Watch;
use ringtap_flow::Sinks;
use ringtap_monitor::report::Time;
use ringtap_query::moment;
use ringtap_terminal::chart::STYLE as CHARTS;
use ringtap_terminal::html::{self, STYLE};
use rustix::time::{ClockId, clock_gettime};

pub(crate) use access::Access;
pub(crate) use answer::Answer;
pub(crate) use notes::Reporter;
pub(crate) use recent::Recent;

use crate::loads::Loads;
use crate::metrics::{Metrics, RunStats, losses};
use content::Shown;
use flows::Flows;
use history::{History, Sample};
use notes::Notes;
use now::Now;
use pace::{Pace, SECOND_NS};
use ringtap_serve::{Get, Reply, Site};
use shell::Times;
use stored::Stored;
pub(crate) use stored::{Files, Store};
use tables::Kind;
use view::View;

const HTML: &str = "text/html; charset=utf-8";
const CSV: &str = "text/csv; charset=utf-8";
const JSON: &str = "application/json";
const SCRIPT: &str = include_str!("page.js");
const OWN_STYLE: &str = include_str!("page.css");

/// What a page says about its run.
pub(crate) struct About {
    /// What is monitored, and how.
    pub(crate) title: String,
    /// Whether packets come from interfaces: then flows have the time of the clock.
    pub(crate) is_live: bool,
    /// Whether TCP is measured.
    pub(crate) measures_tcp: bool,
    /// Whether networks, countries and autonomous systems are known.
    pub(crate) has_networks: bool,
    pub(crate) has_geo: bool,
    /// Most live flows.
    pub(crate) max_flows: u64,
    /// Names of the run's threads.
    pub(crate) threads: Vec<String>,
    /// The longest time without packets in which a flow is live, nanoseconds.
    pub(crate) idle_ns: u64,
}

/// Rows of a second do not change any more after this time: slices have arrived.
const SETTLED_S: u64 = 30;

/// CPU time of this thread so far, nanoseconds. Rendering is measured by it: on a busy machine most of the time between
/// two clock readings may be that of other threads.
fn spent_ns() -> u64 {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * SECOND_NS + spent.tv_nsec as u64
}

/// The site.
pub(crate) struct Web {
    about: About,
    access: Access,
    metrics: Metrics,
    watch: &'static Watch,
    clock: Clock,
    now: Now,
    history: History,
    flows: Flows,
    notes: Notes,
    stored: Option<Stored>,
    loads: Loads,
    pace: Pace,
    /// Contents of the current event, by query.
    rendered: HashMap<String, String>,
    ended: bool,
}

/// What a page shows, before the run begins: the sinks of its workers, and the merger's end.
pub(crate) struct Parts {
    flows: Flows,
    notes: Notes,
    pub(crate) reporter: Reporter,
}

/// Adds a sink of the page to those of each worker; flows are sliced by this time, nanoseconds.
pub(crate) fn parts(sinks: &mut [Sinks], slice_ns: u64) -> Parts {
    let flows = followed(sinks, slice_ns);
    let (notes, reporter) = Notes::new();
    Parts { flows, notes, reporter }
}

/// The flows of workers, whose sinks get one more.
fn followed(sinks: &mut [Sinks], slice_ns: u64) -> Flows {
    let (flows, keepers) = Flows::new(slice_ns, sinks.len());
    for (own, keeper) in sinks.iter_mut().zip(keepers) {
        own.add_records(Box::new(keeper));
    }
    flows
}

impl Web {
    pub(crate) fn new(
        about: About,
        access: Access,
        metrics: Metrics,
        watch: &'static Watch,
        parts: Parts,
        store: Option<Store>,
    ) -> io::Result<Self> {
        let Parts { flows, notes, .. } = parts;
        let loads = Loads::new(about.threads.clone());
        let stored = store.map(Stored::new);
        Ok(Self {
            about,
            access,
            metrics,
            watch,
            clock: Clock::start(),
            now: Now::default(),
            history: History::default(),
            flows,
            notes,
            stored: stored.transpose()?,
            loads,
            pace: Pace::default(),
            rendered: HashMap::new(),
            ended: false,
        })
    }

    /// Takes what the run has handed on.
    fn receive(&mut self) {
        self.flows.receive();
        self.notes.receive();
        if let Some(stored) = &mut self.stored
            && stored.turn(self.now.elapsed.as_secs())
        {
            self.rendered.clear();
        }
    }

    /// Reads the values of the run.
    fn sample(&mut self) {
        let elapsed = Duration::from_nanos(self.clock.now_ns());
        let RunStats { totals, outputs, .. } = self.metrics.stats();
        let watch = self.watch;
        let (packets, bytes) = (watch.packets.get(), watch.bytes.get());
        let before = std::mem::take(&mut self.now);
        let seconds = elapsed.saturating_sub(before.elapsed).as_secs_f64().max(1e-9);
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        self.now = Now {
            // As the times of packets, it follows steps of the clock.
            at: moment::now().max(0).unsigned_abs() / 1_000,
            elapsed,
            is_live: self.about.is_live,
            measures_tcp: self.about.measures_tcp,
            has_networks: self.about.has_networks,
            has_geo: self.about.has_geo,
            max_flows: self.about.max_flows,
            packets,
            bytes,
            dropped: watch.dropped.get(),
            shed: watch.shed.get(),
            duplicates: watch.duplicates.get(),
            live_flows: totals.live_flows,
            losses: losses(watch, &totals),
            packet_rate: per_second(packets, before.packets),
            bit_rate: 8.0 * per_second(bytes, before.bytes),
            memory_bytes: rss_bytes(),
            loads: self.loads.read(elapsed),
            outputs,
        };
        if self.ended {
            // The last sample is not of a whole second, and all flows have ended.
            let Now { packet_rate, bit_rate, loads, .. } = before;
            self.now = Now {
                packet_rate,
                bit_rate,
                loads,
                live_flows: 0,
                ..std::mem::take(&mut self.now)
            };
        }
        let silent_ns = self.about.idle_ns.saturating_add(60 * SECOND_NS);
        self.flows.drop_before(self.flows.latest_ns.saturating_sub(silent_ns));
        self.history.add(Sample {
            at: self.now.at,
            packets,
            bytes,
            lost: self.now.lost(),
            flows: self.flows.all(),
        });
    }

    fn shown(&self) -> Shown<'_> {
        let Self { now, history, flows, notes, stored, .. } = self;
        Shown { now, history, flows, notes, stored: stored.as_ref() }
    }

    /// The content of a view, or what is wrong with it.
    fn content(&self, view: &Result<View, String>) -> String {
        match view {
            Ok(view) => html::content(&self.shown().page(view)),
            Err(error) => shell::error(error),
        }
    }

    /// The whole page of a view.
    fn page(&self, query: &str) -> String {
        let view = View::parse(query);
        let content = self.content(&view);
        let view = view.unwrap_or_else(|_| View::of_right_parts(query));
        let shown = self.shown();
        let times = Times {
            now_s: shown.present_s(),
            begin_s: shown.earliest_s(),
            text: self.time_of(&view),
        };
        shell::page(&self.about.title, &view, times, &content)
    }

    /// The time of a view in words.
    fn time_of(&self, view: &View) -> String {
        let shown = self.shown();
        let zone = view.zone_name();
        let text = |seconds: u64| view.local(seconds.saturating_mul(SECOND_NS));
        let present = text(shown.present_s());
        match (view.from, view.until) {
            (Some(from), Some(until)) => {
                format!("From {} until {} {zone}", text(from), text(until))
            }
            (None, Some(until)) => format!("Until {} {zone}", text(until)),
            _ if self.ended => format!("The run has ended, {present} {zone}"),
            _ => format!("Live, {present} {zone}"),
        }
    }

    /// A reply that needs rendering.
    fn rendered(&mut self, render: impl FnOnce(&Self) -> Reply) -> Reply {
        if !self.pace.has_time_for_reply(self.clock.now_ns()) {
            return Reply::None("503 Service Unavailable", "too many requests\n".into());
        }
        let before_ns = spent_ns();
        let reply = render(self);
        self.pace.took_for_reply(spent_ns() - before_ns, self.clock.now_ns());
        reply
    }

    /// The rows of a table: `hosts`, or `hosts.csv`.
    fn rows(&self, query: &str, table: &str) -> Reply {
        let (word, is_csv) = match table.strip_suffix(".csv") {
            Some(word) => (word, true),
            None => (table, false),
        };
        let Some(kind) = Kind::of(word) else {
            let all: Vec<_> = tables::KINDS.iter().map(|kind| kind.word).collect();
            return Reply::missing(&format!("the tables are {}", all.join(", ")));
        };
        let view = match view::known_alone(query).and_then(|()| View::parse(query)) {
            Ok(view) => view,
            Err(error) => return Reply::None("400 Bad Request", format!("{error}\n")),
        };
        let shown = self.shown();
        let sources = shown.sources(&view);
        let mut rows = shown.rows(&view, kind, &sources);
        if is_csv {
            if rows.is_asked || rows.is_failed {
                let why = rows.notes.join("\n");
                return Reply::None("503 Service Unavailable", format!("{why}\ntry again\n"));
            }
            let body = rows.answer.table(&view, view.rows).csv().into_bytes();
            return Reply::File { name: "view.csv", kind: CSV, body };
        }
        rows.answer.rows.truncate(view.rows);
        let time = |ns: u64| Time(ns).to_string();
        let document = serde_json::json!({
            "table": kind.word,
            "filter": view.filter(),
            "from": time(sources.from_ns),
            "until": time(sources.until_ns),
            "state": match rows {
                _ if rows.is_asked => "asking",
                _ if rows.is_failed => "failed",
                _ => "complete",
            },
            "notes": rows.notes,
            "rows": rows.answer.objects(),
        });
        Reply::Resource { kind: JSON, body: format!("{document:#}\n").into_bytes() }
    }

    fn csv(&self, query: &str, name: &'static str) -> Reply {
        let view = match View::parse(query) {
            Ok(view) => view,
            Err(error) => return Reply::None("400 Bad Request", format!("{error}\n")),
        };
        let csv = if name == "flows.csv" {
            self.shown().flows_csv(&view)
        } else {
            let page = self.shown().page(&view);
            let table = view::last_value(query, "table").unwrap_or_default();
            let Some(table) = page.table_of(&table) else {
                return Reply::missing(&format!("no table {table:?} here"));
            };
            table.csv()
        };
        Reply::File { name, kind: CSV, body: csv.into_bytes() }
    }
}

impl Site for Web {
    fn get(&mut self, request: &Get<'_>) -> Reply {
        if let Err(refusal) = self.access.check(request) {
            return refusal;
        }
        let text = |kind, text: &str| Reply::Resource { kind, body: text.as_bytes().to_vec() };
        let query = request.query;
        match request.path {
            "/" => self.rendered(|web| text(HTML, &web.page(query))),
            "/events" => Reply::Events(query.to_owned()),
            "/flows.csv" => self.rendered(|web| web.csv(query, "flows.csv")),
            "/view.csv" => self.rendered(|web| web.csv(query, "view.csv")),
            path if path.starts_with("/api/") => {
                let table = &path["/api/".len()..];
                self.rendered(|web| web.rows(query, table))
            }
            "/metrics" => self.metrics.reply(),
            "/page.js" => text("text/javascript; charset=utf-8", SCRIPT),
            "/page.css" => text("text/css; charset=utf-8", &[STYLE, CHARTS, OWN_STYLE].concat()),
            _ => Reply::missing("the page is at /, the metrics are at /metrics"),
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_nanos(self.pace.next_ns().saturating_sub(self.clock.now_ns()))
    }

    fn publishes(&mut self) -> bool {
        self.receive();
        let now_ns = self.clock.now_ns();
        if self.pace.takes_sample(now_ns) {
            self.sample();
        }
        if self.pace.is_publishing() {
            return true;
        }
        let begins = self.pace.begins_event(now_ns);
        if begins {
            self.rendered.clear();
        }
        begins
    }

    fn published(&mut self) {
        self.pace.published();
    }

    fn event(&mut self, query: &str) -> String {
        let view = View::parse(query);
        // Queries of the same view have the same content.
        let key = view.as_ref().map_or_else(|_| query.to_owned(), View::query);
        if let Some(event) = self.rendered.get(&key) {
            return event.clone();
        }
        let before_ns = spent_ns();
        if let Some(stored) = &self.stored {
            stored.begin_view();
        }
        let status = self.time_of(view.as_ref().unwrap_or(&View::default()));
        let content = self.content(&view);
        // Nothing changes any more: the last slices have arrived, and files are complete.
        let files_s =
            self.stored.as_ref().map_or(0, |Stored { files, .. }| files.rotate_s + files.joint_s);
        let is_past = |until: u64| {
            !self.now.is_live || until.saturating_add(SETTLED_S + files_s) <= self.now.at
        };
        let is_fixed = view.as_ref().map_or(true, |view| view.until.is_some_and(is_past))
            && self.stored.as_ref().is_none_or(|stored| !stored.is_asked());
        let event = serde_json::json!({
            "content": content,
            "status": status,
            "ended": self.ended || is_fixed,
        })
        .to_string();
        self.pace.took_for_event(spent_ns() - before_ns);
        self.rendered.insert(key, event.clone());
        event
    }

    fn end(&mut self) {
        self.ended = true;
        self.receive();
        self.sample();
        self.rendered.clear();
    }
}

#[cfg(test)]
mod tests;
