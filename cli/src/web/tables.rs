//! The tables of a view, from the rows in memory; each is also a question to the store.
//!
//! Packets and octets are those of slices, and a flow counts in its first slice, as in the answers of `ringtap query`.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::IpAddr;

use hashbrown::HashMap;
use ringtap_flow::Label;
use serde_json::Value;

use super::answer::Answer;
use super::flows::{Flow, Flows, application, iso, within};
use super::view::View;

/// A table.
#[derive(Debug)]
pub(super) struct Kind {
    /// In queries, and in questions.
    pub(super) word: &'static str,
    pub(super) title: &'static str,
    of: Of,
}

/// A table of sums, ordered by one of them.
#[derive(Debug)]
struct Ranking {
    /// The columns of the key.
    names: &'static [&'static str],
    /// Whether the octets that each end sent and received are counted separately.
    has_sides: bool,
    /// Whether only flows count of which the view's host is this end: 0 for the source.
    end: Option<usize>,
    keys: for<'a> fn(&Flow<'a>) -> Keys<'a>,
}

#[derive(Debug)]
enum Of {
    Ranking(Ranking),
    Failed,
    Long,
    Servers,
    Flows,
    /// Of the store alone.
    Compare,
}

impl Kind {
    /// The kind with this word.
    pub(super) fn of(word: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.word == word)
    }

    /// The question to the store.
    pub(super) fn question(&self, view: &View) -> String {
        let mut filter = view.filter();
        if let (Some(end), Some(host)) = (self.end(), view.host) {
            let what = if view.one_host().is_some() { "host" } else { "net" };
            filter += &format!(" and {} {what} {host}", ["src", "dst"][end]);
        }
        let filter = if filter.is_empty() { filter } else { format!(" where {filter}") };
        match &self.of {
            Of::Compare => format!("compare hosts by {}{filter}", view.by),
            Of::Ranking(Ranking { end: Some(_), .. }) => {
                format!("top names by {}{filter}", view.by)
            }
            Of::Ranking(_) => format!("top {} by {}{filter}", self.word, view.by),
            _ => format!("{}{filter}", self.word),
        }
    }

    fn end(&self) -> Option<usize> {
        match &self.of {
            Of::Ranking(ranking) => ranking.end,
            _ => None,
        }
    }

    /// Whether a view can have it.
    pub(super) fn fits(&self, view: &View) -> bool {
        self.end().is_none() || view.host.is_some()
    }

    /// The number of columns of the key, and what the rows are ordered by, for tables of sums: those of two times can be
    /// added up.
    pub(super) fn sums(&self, view: &View) -> Option<(usize, &'static str)> {
        match &self.of {
            Of::Ranking(ranking) => Some((ranking.names.len(), view.by)),
            Of::Failed => Some((2, "connections")),
            _ => None,
        }
    }

    /// Whether it has the latest flows first.
    pub(super) fn is_latest(&self) -> bool {
        matches!(self.of, Of::Flows)
    }

    /// Whether the store alone has it.
    pub(super) fn needs_store(&self) -> bool {
        matches!(self.of, Of::Compare)
    }

    /// The rows of a view in memory, at most [`MOST`], and the number of all: of flows that ended in the time, or of the
    /// slices in it.
    pub(super) fn rows(&self, flows: &Flows, view: &View, time: Times) -> (Answer, usize) {
        let ended = || flows.of(view, time.ended.0, time.ended.1);
        match &self.of {
            Of::Ranking(ranking) => {
                let is_of_end = |flow: &Flow<'_>| match (ranking.end, view.host) {
                    (Some(end), Some(host)) => within(host, flow.hosts()[end]),
                    _ => true,
                };
                let slices = flows.slices(view, time.slices).filter(is_of_end);
                ranked(ranking, slices, view.by)
            }
            Of::Failed => failed(ended().filter(|flow| flow.row.first_ns >= time.begun_ns)),
            Of::Long => long(ended()),
            Of::Servers => servers(ended()),
            Of::Flows => listed(flows, ended(), view, time),
            Of::Compare => (Answer::default(), 0),
        }
    }
}

/// The times of a view, nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Flows that ended after the first and not after the second.
    pub(super) ended: (u64, u64),
    /// Slices from the first until before the second.
    pub(super) slices: (u64, u64),
    /// Failed connections that began then or later.
    pub(super) begun_ns: u64,
    /// Whether live flows are in it.
    pub(super) is_live: bool,
}

/// All tables, in the order of their links.
pub(super) const KINDS: [Kind; 15] = [
    ranking("hosts", "Hosts", &["host"], true, hosts),
    ranking("pairs", "Pairs", &["host", "peer"], false, pairs),
    ranking("ports", "Ports", &["protocol", "port"], false, ports),
    ranking("applications", "Applications", &["application"], false, applications),
    ranking("names", "Names", &["name"], false, names),
    names_of("asked", "Names asked", 0),
    names_of("served", "Names served", 1),
    ranking("networks", "Networks", &["network"], true, networks),
    ranking("countries", "Countries", &["country"], true, countries),
    ranking("as", "Autonomous systems", &["number", "organisation"], true, systems),
    Kind { word: "failed", title: "Failed connections", of: Of::Failed },
    Kind { word: "long", title: "Longest flows", of: Of::Long },
    Kind { word: "servers", title: "Slowest servers", of: Of::Servers },
    Kind { word: "flows", title: "Flows", of: Of::Flows },
    Kind { word: "compare", title: "What grew most", of: Of::Compare },
];

const fn ranking(
    word: &'static str,
    title: &'static str,
    names: &'static [&'static str],
    has_sides: bool,
    keys: for<'a> fn(&Flow<'a>) -> Keys<'a>,
) -> Kind {
    Kind { word, title, of: Of::Ranking(Ranking { names, has_sides, end: None, keys }) }
}

/// The names of flows of which the view's host is this end.
const fn names_of(word: &'static str, title: &'static str, end: usize) -> Kind {
    let of = Ranking { names: &["name"], has_sides: false, end: Some(end), keys: names };
    Kind { word, title, of: Of::Ranking(of) }
}

/// Most rows of a table.
pub(super) const MOST: usize = 10_000;

/// The key of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key<'a> {
    Host(IpAddr),
    Pair(IpAddr, IpAddr),
    Port(u8, u16),
    Text(&'a str),
    Label(Label),
    Country([u8; 2]),
    System(u32, &'a str),
}

impl Key<'_> {
    fn values(self) -> Vec<Value> {
        match self {
            Self::Host(host) => vec![address(host)],
            Self::Pair(one, other) => {
                // As the store compares texts.
                let mut both = [one, other].map(|host| host.to_string());
                both.sort();
                both.map(Value::from).into()
            }
            Self::Port(protocol, port) => vec![protocol.into(), port.into()],
            Self::Text(text) => vec![text.into()],
            Self::Label(label) => vec![application(&label).into()],
            Self::Country(code) => vec![String::from_utf8_lossy(&code).into()],
            Self::System(number, "") => vec![number.into(), Value::Null],
            Self::System(number, name) => vec![number.into(), name.into()],
        }
    }
}

/// The keys that a row counts for; for the second one, what was sent was received.
type Keys<'a> = [Option<Key<'a>>; 2];

fn address(host: IpAddr) -> Value {
    host.to_string().into()
}

fn hosts<'a>(flow: &Flow<'a>) -> Keys<'a> {
    both(flow.hosts().map(Some), Key::Host)
}

fn pairs<'a>(flow: &Flow<'a>) -> Keys<'a> {
    let [source, target] = flow.hosts();
    [Some(Key::Pair(source.min(target), source.max(target))), None]
}

fn ports<'a>(flow: &Flow<'a>) -> Keys<'a> {
    let port = Some(flow.row.server_port).filter(|port| *port > 0);
    [port.map(|port| Key::Port(flow.row.key.protocol, port)), None]
}

fn applications<'a>(flow: &Flow<'a>) -> Keys<'a> {
    [Some(Key::Label(flow.row.label)), None]
}

fn names<'a>(flow: &Flow<'a>) -> Keys<'a> {
    let name = flow.name();
    [(!name.is_empty()).then_some(Key::Text(name)), None]
}

fn networks<'a>(flow: &Flow<'a>) -> Keys<'a> {
    both(flow.networks.map(|name| (!name.is_empty()).then_some(name)), Key::Text)
}

fn countries<'a>(flow: &Flow<'a>) -> Keys<'a> {
    both(flow.row.countries.map(|code| (code != [0; 2]).then_some(code)), Key::Country)
}

fn systems<'a>(flow: &Flow<'a>) -> Keys<'a> {
    let ends = [0, 1].map(|side| (flow.row.systems[side], flow.organisations[side]));
    let known = ends.map(|(number, name)| (number > 0).then_some((number, name)));
    both(known, |(number, name)| Key::System(number, name))
}

/// The keys of both ends, which count once if they are equal.
fn both<'a, T: PartialEq>(ends: [Option<T>; 2], key: impl Fn(T) -> Key<'a>) -> Keys<'a> {
    let is_same = ends[0] == ends[1];
    let [source, target] = ends;
    [source.map(&key), target.filter(|_| !is_same).map(&key)]
}

#[derive(Clone, Copy, Default)]
struct Sums {
    sent: u64,
    received: u64,
    packets: u64,
    flows: u64,
}

impl Sums {
    fn octets(&self) -> u64 {
        self.sent.saturating_add(self.received)
    }
}

/// The keys with the largest sums, and the number of all keys.
fn ranked<'a>(
    ranking: &Ranking,
    slices: impl Iterator<Item = Flow<'a>>,
    by: &str,
) -> (Answer, usize) {
    let mut sums = HashMap::<Key<'a>, Sums>::new();
    for slice in slices {
        let row = slice.row;
        let [there, back] = row.octets;
        for (key, [sent, received]) in
            (ranking.keys)(&slice).into_iter().zip([[there, back], [back, there]])
        {
            let Some(key) = key else { continue };
            let own = sums.entry(key).or_default();
            own.sent = own.sent.saturating_add(sent);
            own.received = own.received.saturating_add(received);
            own.packets = own.packets.saturating_add(row.packets.iter().sum());
            own.flows += u64::from(row.is_first());
        }
    }
    let all = sums.len();
    let measure = |own: &Sums| match by {
        "packets" => own.packets,
        "flows" => own.flows,
        _ => own.octets(),
    };
    let rows = largest(sums.into_iter().collect(), |(key, own)| (Reverse(measure(own)), *key));
    let measures: &[&str] = match ranking.has_sides {
        true => &["octets", "sent", "received", "packets", "flows"],
        false => &["octets", "packets", "flows"],
    };
    let mut answer = Answer::with(&[ranking.names, measures].concat());
    answer.rows = rows
        .into_iter()
        .map(|(key, own)| {
            let mut row = key.values();
            row.push(own.octets().into());
            if ranking.has_sides {
                row.extend([own.sent, own.received].map(Value::from));
            }
            row.extend([own.packets, own.flows].map(Value::from));
            row
        })
        .collect();
    (answer, all)
}

/// The first [`MOST`] in an order.
fn largest<T, K: Ord>(mut all: Vec<T>, order: impl Fn(&T) -> K) -> Vec<T> {
    if all.len() > MOST {
        all.select_nth_unstable_by_key(MOST, &order);
        all.truncate(MOST);
    }
    all.sort_by_key(order);
    all
}

fn failed<'a>(ended: impl Iterator<Item = Flow<'a>>) -> (Answer, usize) {
    #[derive(Default)]
    struct Failures {
        connections: u64,
        clients: BTreeSet<IpAddr>,
        first_ns: u64,
        last_ns: u64,
    }
    let mut servers = HashMap::<(IpAddr, u16), Failures>::new();
    for flow in ended.filter(|flow| flow.row.is_failed) {
        let (row, [source, target]) = (flow.row, flow.hosts());
        let own = servers.entry((target, row.key.dst_port)).or_default();
        let first_ns = if own.connections == 0 { u64::MAX } else { own.first_ns };
        own.first_ns = first_ns.min(row.first_ns);
        own.last_ns = own.last_ns.max(row.last_ns);
        own.connections += 1;
        own.clients.insert(source);
    }
    let number = servers.len();
    let order = |(server, own): &((IpAddr, u16), Failures)| (Reverse(own.connections), *server);
    let all = largest(servers.into_iter().collect(), order);
    let columns = ["server", "port", "connections", "clients", "client", "first", "last"];
    let mut answer = Answer::with(&columns);
    answer.rows = all
        .into_iter()
        .map(|((server, port), own)| {
            vec![
                address(server),
                port.into(),
                own.connections.into(),
                own.clients.len().into(),
                own.clients.first().map_or(Value::Null, |client| address(*client)),
                iso(own.first_ns).into(),
                iso(own.last_ns).into(),
            ]
        })
        .collect();
    (answer, number)
}

/// The columns of flow records.
const RECORD: [&str; 10] = [
    "source",
    "source_port",
    "destination",
    "port",
    "protocol",
    "application",
    "name",
    "packets",
    "octets",
    "seconds",
];

fn record(flow: &Flow<'_>) -> Vec<Value> {
    let (row, [source, target]) = (flow.row, flow.hosts());
    let milliseconds = row.last_ns.saturating_sub(row.first_ns) / 1_000_000;
    vec![
        address(source),
        row.key.src_port.into(),
        address(target),
        row.key.dst_port.into(),
        row.key.protocol.into(),
        row.label.as_str().into(),
        flow.name().into(),
        row.packets.iter().sum::<u64>().into(),
        row.octets[0].saturating_add(row.octets[1]).into(),
        (milliseconds as f64 / 1000.0).into(),
    ]
}

fn long<'a>(ended: impl Iterator<Item = Flow<'a>>) -> (Answer, usize) {
    let all: Vec<_> = ended.collect();
    let number = all.len();
    let all = largest(all, |Flow { row, .. }| {
        (Reverse(row.last_ns.saturating_sub(row.first_ns)), Reverse(row.octets[0]), row.first_ns)
    });
    let mut answer = Answer::with(&[&["start", "end"][..], &RECORD].concat());
    let line = |flow: &Flow<'_>| {
        let times = [flow.row.first_ns, flow.row.last_ns].map(|ns| Value::from(iso(ns)));
        times.into_iter().chain(record(flow)).collect()
    };
    answer.rows = all.iter().map(line).collect();
    (answer, number)
}

fn listed<'a>(
    flows: &Flows,
    ended: impl Iterator<Item = Flow<'a>>,
    view: &View,
    time: Times,
) -> (Answer, usize) {
    let mut answer = Answer::with(&[&["end"][..], &RECORD].concat());
    let line = |flow: &Flow<'_>, end: Value| [end].into_iter().chain(record(flow)).collect();
    let live = if time.is_live { flows.live(view) } else { Vec::new() };
    let ended: Vec<_> = ended.collect();
    let number = live.len() + ended.len();
    let live = largest(live, |flow| (Reverse(flow.row.first_ns), flow.row.key));
    answer.rows.extend(live.iter().map(|flow| line(flow, "live".into())));
    let latest = |flow: &Flow<'_>| (Reverse(flow.row.last_ns), Reverse(flow.row.first_ns));
    let ended = largest(ended, latest);
    answer.rows.extend(ended.iter().map(|flow| line(flow, iso(flow.row.last_ns).into())));
    (answer, number)
}

/// Servers by the mean time of their responses, then by the median of round trips to them, as in the answer of `servers`.
fn servers<'a>(ended: impl Iterator<Item = Flow<'a>>) -> (Answer, usize) {
    #[derive(Default)]
    struct Times {
        responses: u64,
        sum_us: u128,
        slowest_us: Option<u64>,
        round_trips_us: Vec<u32>,
    }
    let mut servers = HashMap::<(IpAddr, u16, Label), Times>::new();
    for flow in ended {
        let row = flow.row;
        let mean_us = row.responses.and_then(|times| Some((times.mean_us()?, times.count)));
        if mean_us.is_none() && row.round_trip_us.is_none() {
            continue;
        }
        let own = servers.entry((flow.hosts()[1], row.key.dst_port, row.label)).or_default();
        if let Some((us, count)) = mean_us {
            own.responses += u64::from(count);
            own.sum_us += u128::from(us) * u128::from(count);
            own.slowest_us = own.slowest_us.max(Some(us));
        }
        own.round_trips_us.extend(row.round_trip_us);
    }
    let number = servers.len();
    let all = servers.into_iter().map(|(server, mut own)| {
        let mean_us =
            (own.responses > 0).then(|| rounded(own.sum_us as f64 / own.responses as f64));
        own.round_trips_us.sort_unstable();
        (server, [mean_us, median(&own.round_trips_us)], own)
    });
    let all = largest(all.collect(), |(server, times_us, _)| (Reverse(*times_us), *server));
    let columns = [
        "server",
        "port",
        "application",
        "responses",
        "mean_us",
        "slowest_record_us",
        "rtt_median_us",
        "rtt_longest_us",
    ];
    let mut answer = Answer::with(&columns);
    answer.rows = all
        .into_iter()
        .map(|((server, port, label), [mean_us, median_us], own)| {
            let label = (label != Label::EMPTY).then(|| label.as_str());
            vec![
                address(server),
                port.into(),
                label.into(),
                own.responses.into(),
                mean_us.into(),
                own.slowest_us.into(),
                median_us.into(),
                own.round_trips_us.last().copied().into(),
            ]
        })
        .collect();
    (answer, number)
}

/// The median of sorted values, as the store computes it.
fn median(sorted: &[u32]) -> Option<u64> {
    let at = |place: usize| sorted.get(place).copied().map(f64::from);
    let middle = at(sorted.len() / 2)?;
    let before = if sorted.len().is_multiple_of(2) { at(sorted.len() / 2 - 1)? } else { middle };
    Some(rounded(f64::midpoint(before, middle)))
}

/// The nearest whole number; of two the even one.
fn rounded(number: f64) -> u64 {
    number.round_ties_even() as u64
}

/// Servers of DNS with the longest mean time to answer.
pub(super) fn dns<'a>(ended: impl Iterator<Item = Flow<'a>>) -> (Answer, usize) {
    #[derive(Default)]
    struct Waits {
        number: u64,
        sum_us: u64,
        longest_us: u64,
    }
    let mut servers = HashMap::<(IpAddr, u16), Waits>::new();
    for flow in ended {
        let Some(us) = flow.row.dns_us.map(u64::from) else { continue };
        let own = servers.entry((flow.hosts()[1], flow.row.key.dst_port)).or_default();
        own.number += 1;
        own.sum_us = own.sum_us.saturating_add(us);
        own.longest_us = own.longest_us.max(us);
    }
    let number = servers.len();
    let mean_us = |own: &Waits| own.sum_us / own.number.max(1);
    let order = |(server, own): &((IpAddr, u16), Waits)| (Reverse(mean_us(own)), *server);
    let all = largest(servers.into_iter().collect(), order);
    let columns = ["server", "port", "answer_mean_us", "answer_longest_us", "answers"];
    let mut answer = Answer::with(&columns);
    answer.rows = all
        .into_iter()
        .map(|((server, port), own)| {
            let numbers = [mean_us(&own), own.longest_us, own.number].map(Value::from);
            [address(server), port.into()].into_iter().chain(numbers).collect()
        })
        .collect();
    (answer, number)
}

/// The most frequent failures of lookups.
pub(super) fn failures<'a>(ended: impl Iterator<Item = Flow<'a>>) -> (Answer, usize) {
    let mut all = HashMap::<(&str, &str), u64>::new();
    for flow in ended.filter(|flow| !flow.failure.is_empty()) {
        *all.entry((flow.lookup, flow.failure)).or_default() += 1;
    }
    let number = all.len();
    let all = largest(all.into_iter().collect(), |(key, flows)| (Reverse(*flows), *key));
    let mut answer = Answer::with(&["name", "answer", "flows"]);
    let row =
        |((name, code), flows): ((&str, &str), u64)| vec![name.into(), code.into(), flows.into()];
    answer.rows = all.into_iter().map(row).collect();
    (answer, number)
}

#[cfg(test)]
mod tests {
    use ringtap_flow::RecordSink;

    use serde_json::json;

    use super::super::flows::tests::{keep, named, record};
    use super::super::view::of_one;
    use super::*;

    #[test]
    fn sums_are_those_of_the_flows() {
        let (mut flows, mut keepers) = Flows::new(60_000_000_000, 1);
        for second in 1..=20 {
            keep(&mut keepers[0], &record(second, 1, (2, 80)));
            keep(&mut keepers[0], &named(second, (second % 3) as u8 + 10, (4, 443), "a.example"));
        }
        keepers[0].finish();
        flows.receive();
        let view = View::default();
        let all = (0, u64::MAX);
        let time = Times { ended: all, slices: all, begun_ns: 0, is_live: false };
        let rows = |word: &str| Kind::of(word).unwrap().rows(&flows, &view, time).0.rows;
        let hosts = rows("hosts");
        assert_eq!(hosts.len(), 6);
        assert_eq!(
            hosts[0],
            json!(["10.0.0.1", 40_000, 20_000, 20_000, 40, 20]).as_array().unwrap()[..]
        );
        assert_eq!(hosts[1][0], "10.0.0.2");
        let of = |query: &str, word: &str| {
            let view = View::parse(query).unwrap();
            Kind::of(word).unwrap().rows(&flows, &view, time).0.rows
        };
        assert_eq!(of("host=10.0.0.4", "served"), rows("names"), "all are of this server");
        assert!(of("host=10.0.0.4", "asked").is_empty());
        assert_eq!(rows("names"), [vec![json!("a.example"), json!(40_000), json!(40), json!(20)]]);
        let ports: Vec<_> = rows("ports").into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(ports, [json!(80), json!(443)]);
        assert_eq!(rows("pairs").len(), 4);
        assert_eq!(rows("applications")[0][1], json!(80_000));
        assert_eq!((rows("flows").len(), rows("long").len()), (40, 40));
        assert!(rows("servers").is_empty() && rows("failed").is_empty());
        let failed = failures(flows.of(&view, 0, u64::MAX)).0.rows;
        assert_eq!(failed, [vec![json!("lookup.example"), json!("NXDOMAIN"), json!(20)]]);
        let answers = dns(flows.of(&view, 0, u64::MAX)).0.rows;
        assert_eq!(answers[0][2..], [json!(1500), json!(1500), json!(20)]);
    }

    /// What a view filters by is understood by the language, whatever the name is.
    #[test]
    fn every_filter_is_a_question() {
        for name in ["a.example", "*", "x\"y'z", "\\d[a-z]^$", "(é)", "'", "\"\"", "a|b&c"] {
            let name = name.to_owned();
            let host = [of_one([10, 0, 0, 1].into()), "10.0.0.0/8".parse().unwrap()];
            let host = Some(host[name.len() % 2]);
            let view =
                View { host, name: Some(name.clone()), application: Some(name), ..View::default() };
            for kind in KINDS {
                let question = kind.question(&view);
                assert!(ringtap_query::Question::new(&question).is_ok(), "{question}");
            }
        }
    }
}
