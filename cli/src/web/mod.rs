//! `--web`: a live page of the run.
//!
//! ```text
//! workers ── flow records ──▶ Flows ┐
//! merger ── alerts, intervals ─▶ Notes ├─▶ Shown ── a view (view.rs) ──▶ Page ──▶ HTML, CSV
//! Watch, Console ──▶ Now ──▶ History ┘
//! ```
//!
//! All of it belongs to one thread of the lowest priority, which serves the clients (see [`crate::http`]).
//!
//! Invariant: memory is bounded, and the run never waits: what the page cannot take in time is lost for the page alone.

mod access;
mod content;
mod flows;
mod history;
mod notes;
mod sums;
mod view;

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringtap_base::{Clock, rss_bytes};
use ringtap_engine::Watch;
use ringtap_export::Status;
use ringtap_flow::Sinks;
use ringtap_terminal::chart::{STYLE as CHARTS, escaped};
use ringtap_terminal::html::{self, STYLE};

pub(crate) use access::Access;
pub(crate) use notes::Reporter;

use crate::http::{Get, Reply, Site};
use crate::loads::{Loads, ThreadLoad};
use crate::metrics::{Metrics, RunStats};
use content::Shown;
use flows::Flows;
use history::{History, Sample};
use notes::Notes;
use view::{ROWS, SPANS, View};

/// Time between two samples, and the shortest time between two events.
const SECOND_NS: u64 = 1_000_000_000;

/// Events take at most this part of the time: one second of rendering in fifty.
const REST: u64 = 50;

/// Replies take at most one second of rendering in twenty, after a reserve of this many nanoseconds.
const REPLY_REST: u64 = 20;
const RESERVE_NS: u64 = 20_000_000_000;

const HTML: &str = "text/html; charset=utf-8";
const CSV: &str = "text/csv; charset=utf-8";
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
    /// Most live flows.
    pub(crate) max_flows: u64,
}

/// Values of the run at a time.
#[derive(Default)]
struct Now {
    /// Seconds since 1970.
    at: u64,
    elapsed: Duration,
    is_live: bool,
    measures_tcp: bool,
    max_flows: u64,
    packets: u64,
    bytes: u64,
    dropped: u64,
    shed: u64,
    duplicates: u64,
    live_flows: u64,
    /// Losses for lack of room, by their names.
    shortages: Vec<(&'static str, u64)>,
    /// Per second, as captured, in the last second.
    packet_rate: f64,
    bit_rate: f64,
    memory_bytes: Option<u64>,
    loads: Vec<ThreadLoad>,
    outputs: Vec<Status>,
}

impl Now {
    /// Packets that no analysis got.
    fn lost(&self) -> u64 {
        self.dropped + self.shed
    }
}

/// The site.
pub(crate) struct Web {
    about: About,
    access: Access,
    metrics: Metrics,
    watch: &'static Watch,
    clock: Clock,
    /// Seconds since 1970 at the start of the clock.
    start_s: u64,
    now: Now,
    history: History,
    flows: Flows,
    notes: Notes,
    loads: Loads,
    /// When the next sample and the next event are due.
    sample_ns: u64,
    publish_ns: u64,
    /// Contents of the current event, by query.
    rendered: HashMap<String, String>,
    /// When the current event was begun, and the time taken for rendering since.
    begun_ns: u64,
    taken_ns: u64,
    /// Time that replies have used in advance, and when that was computed.
    owed_ns: u64,
    owed_at_ns: u64,
    ended: bool,
}

/// What a page shows, before the run begins: the sinks of its workers, and the merger's end.
pub(crate) struct Parts {
    flows: Flows,
    notes: Notes,
    pub(crate) reporter: Reporter,
}

/// Adds a sink of the page to those of each worker.
pub(crate) fn parts(sinks: &mut [Sinks]) -> Parts {
    let (flows, keepers) = Flows::new(sinks.len());
    for (own, keeper) in sinks.iter_mut().zip(keepers) {
        own.add_records(Box::new(keeper));
    }
    let (notes, reporter) = Notes::new();
    Parts { flows, notes, reporter }
}

impl Web {
    pub(crate) fn new(
        about: About,
        access: Access,
        metrics: Metrics,
        watch: &'static Watch,
        parts: Parts,
    ) -> Self {
        let Parts { flows, notes, .. } = parts;
        #[expect(clippy::disallowed_methods, reason = "a page shows the time of the clock")]
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            about,
            access,
            metrics,
            watch,
            clock: Clock::start(),
            start_s: start.as_secs(),
            now: Now::default(),
            history: History::default(),
            flows,
            notes,
            loads: Loads::default(),
            sample_ns: 0,
            publish_ns: 0,
            rendered: HashMap::new(),
            begun_ns: 0,
            taken_ns: 0,
            owed_ns: 0,
            owed_at_ns: 0,
            ended: false,
        }
    }

    /// Reads the values of the run.
    fn sample(&mut self) {
        self.flows.receive();
        self.notes.receive();
        let elapsed_ns = self.clock.now_ns();
        let elapsed = Duration::from_nanos(elapsed_ns);
        let RunStats { totals, outputs, .. } = self.metrics.stats();
        let watch = self.watch;
        let (packets, bytes) = (watch.packets.get(), watch.bytes.get());
        let short = totals.shortage;
        let shortages = [
            ("flows ended early", short.flows_ended_early),
            ("scan attempts ignored", short.attempts_ignored),
            ("packets in further intervals", short.packets_in_further_intervals),
            ("first fragments evicted", watch.fragments_forgotten.get()),
            ("packets whose duplicates may count", watch.duplicates_evicted.get()),
        ];
        let before = &self.now;
        let seconds = elapsed.saturating_sub(before.elapsed).as_secs_f64().max(1e-9);
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        self.now = Now {
            at: self.start_s + elapsed.as_secs(),
            elapsed,
            is_live: self.about.is_live,
            measures_tcp: self.about.measures_tcp,
            max_flows: self.about.max_flows,
            packets,
            bytes,
            dropped: watch.dropped.get(),
            shed: watch.shed.get(),
            duplicates: watch.duplicates.get(),
            live_flows: totals.live_flows,
            shortages: shortages.into_iter().filter(|(_, number)| *number > 0).collect(),
            packet_rate: per_second(packets, before.packets),
            bit_rate: 8.0 * per_second(bytes, before.bytes),
            memory_bytes: rss_bytes(),
            loads: self.loads.read(elapsed),
            outputs,
        };
        self.history.add(Sample {
            at: self.now.at,
            packets,
            bytes,
            lost: self.now.lost(),
            flows: self.flows.ended + self.flows.lost(),
        });
    }

    fn shown(&self) -> Shown<'_> {
        let Self { now, history, flows, notes, .. } = self;
        Shown { now, history, flows, notes }
    }

    /// The content of a view, or what is wrong with it.
    fn content(&self, query: &str) -> String {
        match View::parse(query) {
            Ok(view) => html::content(&self.shown().page(&view)),
            Err(error) => error_text(&error),
        }
    }

    /// Whether there is time for a reply that needs rendering.
    fn may_reply(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        let passed_ns = now_ns.saturating_sub(self.owed_at_ns);
        self.owed_ns = self.owed_ns.saturating_sub(passed_ns);
        self.owed_at_ns = now_ns;
        self.owed_ns < RESERVE_NS
    }

    /// A reply that needs rendering.
    fn rendered(&mut self, render: impl FnOnce(&Self) -> Reply) -> Reply {
        if !self.may_reply() {
            return Reply::None("503 Service Unavailable", "too many requests\n".into());
        }
        let before_ns = self.clock.now_ns();
        let reply = render(self);
        let taken_ns = self.clock.now_ns().saturating_sub(before_ns);
        self.owed_ns += taken_ns.saturating_mul(REPLY_REST);
        reply
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
            let table = view::value(query, "table").unwrap_or_default();
            let Some(table) = page.table_of(&table) else {
                return Reply::missing(&format!("no table {table:?} here"));
            };
            table.csv()
        };
        Reply::File { name, kind: CSV, body: csv.into_bytes() }
    }

    /// The whole page of a view.
    fn page(&self, query: &str) -> String {
        let (view, error) = match View::parse(query) {
            Ok(view) => (view, None),
            Err(error) => (View::default(), Some(error)),
        };
        let content = match &error {
            Some(error) => error_text(error),
            None => html::content(&self.shown().page(&view)),
        };
        let title = escaped(&self.about.title);
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/page.css\">\
             <script src=\"/page.js\" defer></script><title>ringtap: {title}</title></head><body>\n\
             <header><h1>ringtap</h1><p><span>{title}</span><span id=\"status\" role=\"status\">At {}</span></p>\n{}{}</header>\n\
             <main id=\"content\">{content}</main>\n\
             <footer>{}</footer></body></html>\n",
            content::clock(self.now.at.saturating_mul(SECOND_NS)),
            form(&view),
            links(&view, self.now.at, self.history.begin()),
            escaped(&crate::text::about()),
        )
    }
}

fn error_text(error: &str) -> String {
    format!("<p class=\"error\">{}</p>\n", escaped(error))
}

/// The form that changes the view.
fn form(view: &View) -> String {
    let text = |value: Option<String>| escaped(&value.unwrap_or_default());
    let choice = |name: &str, chosen: bool| {
        let chosen = if chosen { " selected" } else { "" };
        format!("<option{chosen}>{name}</option>")
    };
    let spans: String = SPANS.iter().map(|span| choice(span.0, *span == view.span)).collect();
    let rows: String =
        ROWS.iter().map(|rows| choice(&rows.to_string(), *rows == view.rows)).collect();
    let until =
        view.until.map(|until| format!("<input type=\"hidden\" name=\"until\" value=\"{until}\">"));
    format!(
        "<form action=\"/\" role=\"search\" aria-label=\"Filter\">\
         <label>Host<input id=\"host\" name=\"host\" value=\"{}\" spellcheck=\"false\" autocapitalize=\"off\"></label>\
         <label>Port<input id=\"port\" name=\"port\" value=\"{}\" inputmode=\"numeric\"></label>\
         <label>Application<input name=\"application\" value=\"{}\" autocapitalize=\"off\"></label>\
         <label>Name contains<input name=\"name\" value=\"{}\" autocapitalize=\"off\"></label>\
         <label>Time<select name=\"span\">{spans}</select></label>\
         <label>Rows<select name=\"rows\">{rows}</select></label>{}\
         <button>Show</button><button type=\"button\" id=\"pause\" aria-pressed=\"false\" hidden>Pause</button></form>\n",
        text(view.host.map(|host| host.to_string())),
        text(view.port.map(|port| port.to_string())),
        text(view.application.clone()),
        text(view.name.clone()),
        until.unwrap_or_default(),
    )
}

/// Links to other views: everything, other times, this instant.
fn links(view: &View, now_s: u64, begin_s: Option<u64>) -> String {
    let mut links = Vec::new();
    let mut link = |to: String, text: &str| {
        links.push(format!("<a href=\"{}\">{text}</a>", escaped(&to)));
    };
    if view.is_filtered() {
        let all = |view: &mut View| {
            (view.host, view.port, view.application, view.name) = (None, None, None, None);
        };
        link(view.link_with(all), "Everything");
    }
    let end = view.until.unwrap_or(now_s);
    if begin_s.is_some_and(|begin| end > begin + view.span.1) {
        link(view.link_with(|view| view.until = Some(end - view.span.1)), "Earlier");
    }
    if let Some(until) = view.until {
        let later = until.saturating_add(view.span.1);
        if later < now_s {
            link(view.link_with(|view| view.until = Some(later)), "Later");
        }
        link(view.link_with(|view| view.until = None), "Now");
        links.push(format!(
            "<span>Until {}</span>",
            content::clock(until.saturating_mul(SECOND_NS))
        ));
    } else {
        link(view.link_with(|view| view.until = Some(now_s)), "This instant");
    }
    format!(
        "<nav aria-label=\"Views\">{}</nav>\n<details><summary>Help</summary><p>Every host, application and name is a \
         link that narrows the page to its flows; the address of the page is that of the view. Flows are shown once \
         they have ended. Keys: / goes to the filter, p pauses, 0 shows everything.</p></details>\n",
        links.join(" ")
    )
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
            "/metrics" => self.metrics.reply(),
            "/page.js" => text("text/javascript; charset=utf-8", SCRIPT),
            "/page.css" => text("text/css; charset=utf-8", &[STYLE, CHARTS, OWN_STYLE].concat()),
            _ => Reply::missing("the page is at /, the metrics are at /metrics"),
        }
    }

    fn pause(&self) -> Duration {
        let due_ns = self.sample_ns.min(self.publish_ns);
        Duration::from_nanos(due_ns.saturating_sub(self.clock.now_ns()))
    }

    fn publishes(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        if now_ns >= self.sample_ns {
            self.sample();
            self.sample_ns = (now_ns / SECOND_NS + 1) * SECOND_NS;
        }
        if now_ns < self.publish_ns {
            return false;
        }
        // The time that the last event took decides when the next one is due.
        let rest_ns = self.taken_ns.saturating_mul(REST);
        let due_ns = self.begun_ns.saturating_add(rest_ns);
        if now_ns < due_ns {
            self.publish_ns = due_ns;
            return false;
        }
        self.rendered.clear();
        (self.begun_ns, self.taken_ns) = (now_ns, 0);
        // Behind the sample of that second.
        self.publish_ns = self.sample_ns;
        true
    }

    fn event(&mut self, query: &str) -> String {
        if let Some(event) = self.rendered.get(query) {
            return event.clone();
        }
        let before_ns = self.clock.now_ns();
        let event = serde_json::json!({
            "content": self.content(query),
            "ended": self.ended,
        })
        .to_string();
        self.taken_ns += self.clock.now_ns().saturating_sub(before_ns);
        self.rendered.insert(query.to_owned(), event.clone());
        event
    }

    fn end(&mut self) {
        self.ended = true;
        self.sample();
        self.rendered.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use ringtap_flow::RecordSink;
    use ringtap_monitor::Totals;

    use super::*;

    static WATCH: Watch = Watch::new();

    /// A site with a flow that has hostile names.
    fn site() -> Web {
        let about =
            About { title: "<b>'\"&".into(), is_live: false, measures_tcp: false, max_flows: 1000 };
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let stats = || RunStats {
            elapsed: Duration::ZERO,
            alerts: 0,
            flows: None,
            totals: Totals::default(),
            outputs: Vec::new(),
        };
        let (flows, mut keepers) = Flows::new(1);
        keepers[0].take(&flows::tests::named(
            1_000_000,
            1,
            (2, 443),
            "<script>\"'&,\n=1+1\u{202e}",
        ));
        keepers[0].finish();
        let (notes, reporter) = Notes::new();
        let parts = Parts { flows, notes, reporter };
        let metrics = Metrics::new(&WATCH, 1, &[], stats);
        let mut site = Web::new(about, Access::new(address, None).unwrap(), metrics, &WATCH, parts);
        assert!(site.publishes());
        site
    }

    fn get(site: &mut Web, path: &str, query: &str) -> Reply {
        site.get(&Get { path, query, host: "localhost", authorization: "" })
    }

    fn text(reply: Reply) -> String {
        match reply {
            Reply::Resource { body, .. } | Reply::File { body, .. } => {
                String::from_utf8(body).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_of_flows_cannot_leave_their_places() {
        let mut site = site();
        let page = text(get(&mut site, "/", ""));
        assert_eq!(page.matches("<script").count(), 1, "its own");
        assert!(page.contains("&lt;script&gt;") && page.contains("&lt;b&gt;"), "{page}");
        assert!(page.contains("?name=%3Cscript%3E%22%27%26%2C%0A%3D1%2B1"), "{page}");
        let event: serde_json::Value = serde_json::from_str(&site.event("")).unwrap();
        assert!(!event["content"].as_str().unwrap().contains("<script"), "{event}");
        let csv = text(get(&mut site, "/flows.csv", ""));
        assert!(csv.contains(",\"<script>\"\"'&,\n=1+1\u{202e}\","), "{csv}");
        let name = "%3Cscript%3E";
        let page = text(get(&mut site, "/", &format!("name={name}&span=2d")));
        assert!(
            page.contains("value=\"&lt;script&gt;\"") && page.contains("value=\"2000\""),
            "{page}"
        );
    }

    /// Queries made of parts of right ones: no panic, and each reply is text.
    #[test]
    fn any_query_has_a_reply() {
        let parts = [
            "host=",
            "10.0.0.1",
            "::",
            "port=",
            "65535",
            "65536",
            "application=",
            "name=",
            "%",
            "%4",
            "%ff%00",
            "+",
            "&",
            "=",
            "span=",
            "1d",
            "until=",
            "18446744073709551615",
            "0",
            "rows=",
            "200",
            "table=",
            "Hosts",
            "<",
            "é",
        ];
        let mut site = site();
        let mut random = 1_u64;
        for _ in 0..20_000 {
            let mut query = String::new();
            for _ in 0..random >> 32 & 7 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                query += parts[(random >> 33) as usize % parts.len()];
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // The time that replies may take is another matter.
            site.owed_ns = 0;
            for path in ["/", "/events", "/flows.csv", "/view.csv"] {
                match get(&mut site, path, &query) {
                    Reply::Resource { body, .. } | Reply::File { body, .. } => {
                        assert!(std::str::from_utf8(&body).is_ok(), "{path}?{query}");
                    }
                    Reply::Events(topic) => {
                        site.rendered.clear();
                        assert!(
                            serde_json::from_str::<serde_json::Value>(&site.event(&topic)).is_ok()
                        );
                    }
                    Reply::None(status, _) => {
                        assert!(status.starts_with("40"), "{path}?{query}: {status}");
                    }
                }
            }
        }
    }

    #[test]
    fn requests_beyond_the_time_for_replies_are_refused() {
        let mut site = site();
        assert!(matches!(get(&mut site, "/", ""), Reply::Resource { .. }));
        site.owed_ns = 2 * RESERVE_NS;
        for path in ["/", "/flows.csv", "/view.csv"] {
            assert!(matches!(get(&mut site, path, ""), Reply::None("503 Service Unavailable", _)));
        }
        assert!(matches!(get(&mut site, "/page.css", ""), Reply::Resource { .. }));
        site.owed_at_ns = 0;
        site.owed_ns = 0;
        assert!(matches!(get(&mut site, "/", ""), Reply::Resource { .. }));
    }
}
