//! The library: runs of this process, analyses of other crates.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringtap::{Analysis, Fact, Flow, FlowKey, Monitor, Packet, Room, Table};

use crate::common::{captures, office};

/// Octets of layer 3, and packets that are longer than the one before: it depends on the order of pairs.
#[derive(Default)]
struct Lengths<const ORDERED: bool> {
    octets: u64,
    longer: u64,
    before: u32,
}

impl<const ORDERED: bool> Analysis for Lengths<ORDERED> {
    const NAME: &'static str = if ORDERED { "planted" } else { "lengths" };
    type Report = [u64; 2];

    fn new(_: &Room) -> Self {
        Self::default()
    }

    fn packet(&mut self, packet: &Packet) {
        self.octets += u64::from(packet.ip_len);
        self.longer += u64::from(ORDERED && packet.ip_len > self.before);
        self.before = packet.ip_len;
    }

    fn merge(&mut self, other: Self) {
        self.octets += other.octets;
        self.longer += other.longer;
    }

    fn report(self) -> [u64; 2] {
        [self.octets, self.longer]
    }
}

fn counter() -> (Arc<AtomicU64>, Arc<AtomicU64>) {
    let counter = Arc::new(AtomicU64::new(0));
    (Arc::clone(&counter), counter)
}

fn add(to: &AtomicU64) {
    to.fetch_add(1, Relaxed);
}

#[test]
fn functions_watch_packets_flows_and_messages() {
    let ((packets, by_packet), (flows, by_flow)) = (counter(), counter());
    let ((dns, by_filter), (messages, by_message)) = (counter(), counter());
    let monitor = Monitor::builder()
        .files([office()])
        .on_packet(move |_| add(&packets))
        .on_flow(move |_| add(&flows))
        .on_flow_where("udp port 53", move |flow: &Flow| {
            assert_eq!(flow.server_port(), 53);
            add(&dns);
        })
        .on_message(move |_| add(&messages))
        .analysis::<Lengths<false>>();
    let report = monitor.run().unwrap();
    assert_eq!((report.errors(), report.losses()), (&[] as &[String], Vec::new()));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["packets"]["handled"], by_packet.load(Relaxed));
    assert_eq!(json["flows"]["records"], by_flow.load(Relaxed));
    assert!((1..by_flow.load(Relaxed)).contains(&by_filter.load(Relaxed)));
    assert!(by_message.load(Relaxed) > 10);
    let [octets, longer] = *report.of::<Lengths<false>>().unwrap();
    assert_eq!((longer, &json["custom"]["lengths"]), (0, &serde_json::json!([octets, 0])));
    assert_eq!(json["octets"]["ip"], octets);
    assert!(report.text().contains("Lengths"), "{}", report.text());
    assert!(report.of::<Lengths<true>>().is_none());
}

/// The records that an expression selects, in an order of their own, and the flows that were metered for them.
fn selected(
    analyses: &str,
    expression: &str,
    queues: i64,
    files: &[PathBuf],
) -> (Vec<String>, u64) {
    let records = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&records);
    let monitor = Monitor::builder().files(files).analyses(analyses).set("queues", queues);
    let monitor = monitor.on_flow_where(expression, move |flow| {
        taken.lock().unwrap().push(format!("{flow:?}"));
    });
    let report = monitor.run().unwrap();
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let mut records = std::mem::take(&mut *records.lock().unwrap());
    records.sort();
    (records, json["flows"]["records"].as_u64().unwrap())
}

#[test]
fn flows_that_packets_refuse_are_not_metered() {
    let files = captures();
    for (expression, by_packets) in [
        ("udp port 53", true),
        ("tcp and octets > 1000", true),
        ("not (tcp or udp)", true),
        ("src port 53 or dst host 10.0.0.1", true),
        ("net 10.0.0.0/8 and not dst portrange 0-1023", true),
        ("not (udp or octets > 1000)", true),
        ("port 0", true),
        ("octets > 1000 or udp", false),
        ("name ~ example", false),
    ] {
        let (all, metered) = selected("flows", expression, 1, &files);
        for queues in [1, 2] {
            let (own, fewer) = selected("none", expression, queues, &files);
            assert_eq!(own, all, "{expression}");
            assert_eq!(fewer < metered, by_packets, "{expression}: {fewer} of {metered}");
        }
    }
}

#[test]
fn a_watch_list_sees_all_flows_beside_an_expression() {
    let list = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&list, "10.20.0.0/16\n").unwrap();
    let watched = |monitor: Monitor| {
        let list = list.path().to_str().unwrap();
        let report = monitor.files([office()]).set("watch", list).run().unwrap();
        let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        json["watch"].clone()
    };
    let all = watched(Monitor::builder().analyses("flows"));
    assert!(!all["rows"].as_array().unwrap().is_empty());
    let selecting = Monitor::builder().analyses("none").on_flow_where("udp port 53", |_| ());
    assert_eq!(watched(selecting), all);
}

#[test]
fn a_plan_says_by_what_flows_are_selected() {
    let plan = |analyses: &str| {
        let monitor = Monitor::builder().files([office()]).analyses(analyses);
        monitor.on_flow_where("udp port 53", |_| ()).plan().unwrap()
    };
    assert!(plan("none").contains("flows \"udp port 53\", by packets, then records"));
    assert!(plan("flows").contains("flows \"udp port 53\", by records"));
}

#[test]
fn an_analysis_says_the_same_everywhere() {
    assert!(ringtap::testing::equal_everywhere::<Lengths<false>>([office()]) > 50);
}

#[test]
#[should_panic(expected = "planted depends on the arrangement")]
fn an_analysis_that_depends_on_the_order_of_pairs_is_found() {
    ringtap::testing::equal_everywhere::<Lengths<true>>([] as [&str; 0]);
}

#[test]
fn what_cannot_run_is_an_error() {
    let error = |monitor: Monitor| monitor.run().unwrap_err().to_string();
    let files = || Monitor::builder().files([office()]);
    assert_eq!(error(Monitor::builder().files(["none.pcap"])), "opening none.pcap: no such file");
    assert!(error(files().set("idle-timeuot", "15s")).contains("--idle-timeout"));
    let text = error(files().on_flow_where("tcp prot 53", |_| ()));
    assert!(text.starts_with("the expression \"tcp prot 53\": "), "{text}");
    assert_eq!(error(files().set("state", "a.state")), "set(\"state\"): use with_state");
    let text = error(files().on_flow_where("country = DE", |_| ()));
    assert!(text.starts_with("the expression"), "{text}");
    assert!(error(files().analyses("flows,nothing")).contains("unknown analysis \"nothing\""));
    assert!(error(Monitor::builder().interface("no0")).contains("no0"));
    let named = error(files().analysis::<Lengths<false>>().analysis::<Taken>());
    assert_eq!(named, "two analyses are named lengths");
}

/// A report whose keys cannot be those of JSON.
struct Silent;

impl Analysis for Silent {
    const NAME: &'static str = "silent";
    type Report = BTreeMap<[u8; 2], u64>;

    fn new(_: &Room) -> Self {
        Self
    }

    fn merge(&mut self, _: Self) {}

    fn report(self) -> Self::Report {
        BTreeMap::from([([1, 2], 3)])
    }
}

#[test]
#[should_panic(expected = "silent has no JSON")]
fn a_report_without_json_is_found() {
    ringtap::testing::equal_everywhere::<Silent>([office()]);
}

/// Octets by source, in a table with one row.
struct Narrow(Table<IpAddr, u64>);

impl Analysis for Narrow {
    const NAME: &'static str = "narrow";
    type Report = usize;

    fn new(room: &Room) -> Self {
        Self(Table::with_rows(room, 1))
    }

    fn record(&mut self, flow: &Flow) {
        self.0.add(flow.key.source(), flow.octets[0]);
    }

    fn merge(&mut self, other: Self) {
        self.0.merge(other.0, |own, more| *own += more);
    }

    fn report(self) -> usize {
        self.0.len()
    }
}

#[test]
fn what_has_no_room_and_what_a_state_lacks_is_said_by_name() {
    let run = |workers: i64| {
        let monitor = Monitor::builder().files([office()]).analyses("flows,volumes,talkers");
        let monitor = monitor.analysis::<Narrow>().set("workers", workers).with_state();
        monitor.set("skeleton", "farm").run().unwrap()
    };
    for workers in [1, 3] {
        let report = run(workers);
        let warnings = report.warnings().join("\n");
        let lost = report.losses().iter().map(|(_, count)| *count).sum::<u64>();
        assert!(lost > 100, "{:?}", report.losses());
        assert!(warnings.contains(&format!("narrow: {lost} rows had no room")), "{warnings}");
        assert!(warnings.contains("the state has nothing of narrow"), "{warnings}");
    }
}

#[test]
fn records_can_be_made_for_tests() {
    let packet = Packet { dst_port: 443, protocol: 6, ..Packet::EMPTY };
    let mut flow = Flow::new(FlowKey::of(&packet));
    flow.facts.add(Fact::TlsServerName, b"a.example", usize::MAX).expect("room");
    assert_eq!(flow.facts.values(Fact::TlsServerName).collect::<Vec<_>>(), [b"a.example"]);
    let mut narrow = Narrow(Table::new(&Room::for_flows(10)));
    flow.octets = [1_000, 50_000];
    narrow.record(&flow);
    assert_eq!(narrow.report(), 1);
}

struct Taken;

impl Analysis for Taken {
    const NAME: &'static str = "lengths";
    type Report = ();

    fn new(_: &Room) -> Self {
        Self
    }

    fn merge(&mut self, _: Self) {}

    fn report(self) {}
}

#[test]
fn a_run_over_an_interface_ends_after_its_duration_or_a_stop() {
    let live = || Monitor::builder().interface("lo").filter("tcp port 9").analyses("flows");
    match live().duration(Duration::from_millis(300)).run() {
        Ok(report) => assert_eq!(report.errors(), &[] as &[String]),
        Err(error) => {
            assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
            println!("SKIPPED: packet sockets need CAP_NET_RAW");
            return;
        }
    }
    let endless = live();
    let stop = endless.stop();
    let run = std::thread::spawn(|| endless.run().map(|report| report.packets()));
    std::thread::sleep(Duration::from_millis(300));
    stop.request();
    run.join().unwrap().unwrap();
}
