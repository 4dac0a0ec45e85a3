//! Compares facts from payloads and the performance of TCP connections with the truth of generated traffic, and facts
//! with those of the same traffic on other ports.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use crate::common::{
    Capture, Plan, Request, gather, generate, parallel, profile, reference, run, run_with,
    skeletons, traces,
};
use ringtap_base::SplitMix;
use ringtap_flow::{FlowRecord, Kind, TcpPerformance};
use ringtap_io::capture::PcapWriter;
use ringtap_ring::Kind as Ring;
use ringtap_traffic::{Applications, ExchangeTruth, Profile, TcpTruth, Truth};

/// Both ends of a flow, the lower one first, and the protocol.
type Ends = ([(IpAddr, u16); 2], u8);

/// Values by field, in order.
type Facts = BTreeMap<&'static str, Vec<String>>;

fn ends(a: (IpAddr, u16), b: (IpAddr, u16), protocol: u8) -> Ends {
    ([a.min(b), a.max(b)], protocol)
}

fn facts(record: &FlowRecord) -> Facts {
    let values = |kind| {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        record.facts.values(kind).map(text).collect::<Vec<_>>()
    };
    let all = Kind::KEPT.into_iter().map(|kind| (kind.name(), values(kind)));
    all.filter(|(_, values)| !values.is_empty()).collect()
}

/// A record's key, source, facts and performance.
type Found = (Ends, IpAddr, Facts, Option<TcpPerformance>);

/// The default request without an active timeout, so that a connection has one record.
fn request() -> Request {
    crate::common::request().app(|app| app.metering.timeouts.active_ns = u64::MAX)
}

/// All records of a run.
fn records(plan: &Plan, capture: &Capture) -> Vec<Found> {
    let (outputs, records) = gather(plan.arrangement.workers, |record: &FlowRecord| {
        let key = &record.key;
        let (source, destination) = (key.source(), key.destination());
        let ends = ends((source, key.src_port), (destination, key.dst_port), key.protocol);
        (ends, source, facts(record), record.tcp)
    });
    run_with(plan, capture, outputs);
    std::mem::take(&mut *records.lock().unwrap())
}

/// Checks the performance of a connection.
fn check_tcp(truth: &TcpTruth, found: &TcpPerformance, place: &str) {
    let counts = |of: [[u32; 2]; 4]| of;
    assert_eq!(
        counts([
            found.retransmissions,
            found.out_of_order,
            found.duplicate_acks,
            found.zero_windows
        ]),
        counts([
            truth.retransmissions,
            truth.out_of_order,
            truth.duplicate_acks,
            truth.zero_windows
        ]),
        "{place}: retransmissions, out of order, duplicate acknowledgments, zero windows"
    );
    assert_eq!(found.octets, truth.octets, "{place}: octets of data");
    // The initiator's segments are answered by the server.
    for (side, true_ns) in [truth.server_rtt_ns, truth.client_rtt_ns].into_iter().enumerate() {
        let handshake = found.handshake_us[side].map(|us| u64::from(us) * 1_000);
        for found_ns in [handshake, found.rtt_us(side).map(|us| us * 1_000)] {
            let near = |found_ns: u64| true_ns.is_some_and(|ns| ns.abs_diff(found_ns) <= 1_000);
            assert!(found_ns.is_none_or(near), "{place}: side {side}: {true_ns:?}, {found:?}");
        }
        assert_eq!(handshake.is_some(), true_ns.is_some(), "{place}: side {side}");
    }
}

/// Checks the records of a capture. Returns the sums of all counts: retransmissions and so on.
fn check(plan: &Plan, capture: &Capture, truth: &Truth, name: &str) -> [u32; 4] {
    let flows = &truth.applications.as_ref().unwrap().flows;
    let end = |address, port| (address, port);
    let key = |flow: &ExchangeTruth| {
        let client = end(flow.client, flow.client_port);
        ends(client, end(flow.server, flow.server_port), flow.protocol)
    };
    let mut missing: HashMap<Ends, &ExchangeTruth> =
        flows.iter().map(|flow| (key(flow), flow)).collect();
    assert_eq!(missing.len(), flows.len(), "{name}");
    let mut sums = [0; 4];
    for (ends, source, facts, tcp) in records(plan, capture) {
        let Some(flow) = missing.remove(&ends) else {
            assert!(facts.is_empty(), "{name}: {ends:?} has {facts:?}");
            continue;
        };
        let mut expected = Facts::new();
        for (field, value) in &flow.facts {
            expected.entry(field).or_default().push(value.clone());
        }
        let place = format!("{name} {} {ends:?}", plan.arrangement.skeleton);
        assert_eq!(facts, expected, "{place}");
        assert_eq!(source, flow.client, "{place}");
        assert_eq!(flow.tcp.is_some(), tcp.is_some(), "{place}");
        if let (Some(truth), Some(found)) = (&flow.tcp, &tcp) {
            check_tcp(truth, found, &place);
            let all = [
                truth.retransmissions,
                truth.out_of_order,
                truth.duplicate_acks,
                truth.zero_windows,
            ];
            sums.iter_mut().zip(all).for_each(|(sum, [there, back])| *sum += there + back);
        }
    }
    assert_eq!(missing.len(), 0, "{name}: flows without a record");
    sums
}

/// The default profile, one with bad paths, and one with short ones, of this many packets.
fn profiles(packets: u64) -> [Profile; 3] {
    let applications = profile("applications", packets, 500);
    let with = |name: &str, spec: Applications| Profile {
        name: name.into(),
        flows: 0,
        applications: Some(spec),
        ..applications.clone()
    };
    let bad = Applications {
        loss: 0.1,
        loss_before: 0.1,
        reordering: 0.1,
        duplicate_acks: 0.1,
        zero_windows: 0.5,
        client_rtt_us: [20_000, 1_000_000],
        zipf: 0.5,
        ..Applications::default()
    };
    let near = Applications {
        client_rtt_us: [200, 300],
        server_rtt_us: [200, 300],
        tls_share: 0.1,
        http_share: 0.5,
        long_share: 1.0,
        names: 20,
        ..bad.clone()
    };
    [applications.clone(), with("bad", bad), with("near", near)]
}

#[test]
fn facts_and_performance_match_the_truth_under_every_arrangement() {
    for (seed, profile) in (1..).zip(profiles(30_000)) {
        let (bytes, truth) = generate(&profile, seed);
        std::fs::write(format!("/tmp/gen-{seed}.pcap"), &bytes).unwrap();
        let capture = Capture::Bytes(bytes);
        let name = &profile.name;
        let sums = check(&reference(request()), &capture, &truth, name);
        let least = if name == "applications" { 0 } else { 50 };
        assert!(sums.iter().all(|&sum| sum >= least), "{name}: {sums:?}");
        for (turn, skeleton) in skeletons().enumerate() {
            for (ring, shape) in
                [(Ring::ALL[turn % Ring::ALL.len()], (2, 3)), (Ring::default(), (3, 1))]
            {
                let plan = parallel(request(), skeleton, shape, ring, (512, 50));
                check(&plan, &capture, &truth, name);
            }
        }
    }
}

#[test]
fn the_truth_is_exact_after_any_number_of_packets() {
    for packets in (1..40).chain([333, 1_000, 2_718]) {
        for (seed, mut profile) in (packets..).zip(profiles(packets)) {
            // Many flows are incomplete at the end.
            profile.duration_ns = 1_000_000;
            let (bytes, truth) = generate(&profile, seed);
            check(&reference(request()), &Capture::Bytes(bytes), &truth, &profile.name);
        }
    }
}

#[test]
fn the_report_counts_the_facts_of_the_truth() {
    let (bytes, truth) = generate(&profile("applications", 60_000, 500), 7);
    let truth = truth.applications.unwrap();
    let outcome = run(&reference(request()), &Capture::Bytes(bytes));
    let found = outcome.run.report.facts.as_ref().unwrap();
    for (field, values) in &truth.facts {
        assert_eq!(found.kept[*field], values.values().sum::<u64>(), "{field}");
    }
    assert_eq!(found.kept.values().filter(|&&kept| kept > 0).count(), truth.facts.len());
    // The most popular name of a Zipf law with the exponent 1 is twice as frequent as the second.
    let mut names: Vec<u64> = truth.facts["tlsServerName"].values().copied().collect();
    names.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    assert!(names.len() > 200 && names[0] > names[1] && names[0] < 4 * names[1], "{names:?}");
}

/// Ports replaced by random ones from 20,000 on, one to one.
struct OtherPorts {
    random: SplitMix,
    new: BTreeMap<u16, u16>,
    used: BTreeSet<u16>,
}

impl OtherPorts {
    fn new(seed: u64) -> Self {
        Self { random: SplitMix::new(seed), new: BTreeMap::new(), used: BTreeSet::new() }
    }

    fn replace(&mut self, port: &mut [u8]) {
        let old = u16::from_be_bytes([port[0], port[1]]);
        let new = *self.new.entry(old).or_insert_with(|| {
            loop {
                let new = 20_000 + (self.random.next() % 45_000) as u16;
                if self.used.insert(new) {
                    return new;
                }
            }
        });
        port.copy_from_slice(&new.to_be_bytes());
    }

    /// The frame with other ports, if it is Ethernet with TCP or UDP; of fragments the first one has ports.
    fn frame(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut bytes = frame.to_vec();
        let mut at = 12;
        while frame.get(at..at + 2) == Some(&[0x81, 0]) {
            at += 4;
        }
        let Some(ip) = frame.get(at + 2..).filter(|ip| ip.len() >= 40) else { return bytes };
        let (protocol, header) = match (&frame[at..at + 2], ip[0] >> 4) {
            ([8, 0], 4) if u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff == 0 => {
                (ip[9], usize::from(ip[0] & 15) * 4)
            }
            ([0x86, 0xdd], 6) => (ip[6], 40),
            _ => return bytes,
        };
        if let Some(ports) = bytes.get_mut(at + 2 + header..at + 6 + header)
            && matches!(protocol, 6 | 17)
        {
            self.replace(&mut ports[..2]);
            self.replace(&mut ports[2..]);
        }
        bytes
    }
}

/// The capture with other ports.
fn with_other_ports(capture: &Capture, seed: u64) -> Capture {
    let (mut ports, mut bytes, mut link) = (OtherPorts::new(seed), Vec::new(), None);
    let mut frames = Vec::new();
    let mut files = capture.open();
    while files.burst(64, |frame| {
        link.get_or_insert(frame.link);
        frames.push((frame.ts_ns, frame.original_len, ports.frame(frame.data)));
    }) > 0
    {}
    let mut writer = PcapWriter::new(&mut bytes, link.expect("a packet"), u32::MAX);
    for (ts_ns, original_len, frame) in frames {
        writer.write(ts_ns, original_len, &frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    Capture::Bytes(bytes)
}

/// How often each value occurs in the records of TLS, QUIC, HTTP, SSH and DNS. Without a well-known port it is not
/// certain which side of SSH is the server.
fn values(capture: &Capture) -> BTreeMap<(&'static str, String), u64> {
    let mut values = BTreeMap::new();
    for (_, _, facts, _) in records(&reference(request()), capture) {
        for (field, value) in facts
            .into_iter()
            .flat_map(|(field, values)| values.into_iter().map(move |value| (field, value)))
        {
            let field = if field.starts_with("ssh") { "ssh" } else { field };
            *values.entry((field, value)).or_default() += 1;
        }
    }
    values
}

#[test]
fn generated_messages_are_found_on_any_port() {
    let capture = Capture::Bytes(generate(&profile("applications", 40_000, 500), 5).0);
    let expected = values(&capture);
    for protocol in ["tls", "quic", "http", "ssh", "dns"] {
        assert!(expected[&("applicationProtocol", protocol.into())] > 20, "{protocol}");
    }
    for seed in 0..3 {
        assert_eq!(values(&with_other_ports(&capture, seed)), expected);
    }
}

/// Captures whose facts need ports, and why.
const WITH_PORTS: [(&str, &str); 6] = [
    ("dns-tunnel-iodine.pcap", "names that are not printable are DNS on its port alone"),
    (
        "dns_fragmented.pcap",
        "later fragments have the ports of the first one, which is not changed with them",
    ),
    ("dns_invert_query.pcapng", "an inverse query is DNS on its port alone"),
    ("ftp-start-tls.pcap", "the commands of FTP need its port"),
    ("ja3_lots_of_cipher_suites_2_anon.pcap", "the port of GTP is needed"),
    ("netbios_wildcard_dns_query.pcap", "a NetBIOS name is DNS on its port alone"),
];

#[test]
fn messages_of_real_captures_are_found_on_any_port() {
    let Some(folder) = traces() else { return };
    let mut found = BTreeMap::<String, u32>::new();
    for entry in std::fs::read_dir(folder.join("applications")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !path.extension().is_some_and(|end| end == "pcap" || end == "pcapng") {
            continue;
        }
        let capture = Capture::File(path);
        let expected = values(&capture);
        let with_port = WITH_PORTS.iter().any(|(own, _)| *own == name);
        if expected.is_empty() || with_port {
            continue;
        }
        assert_eq!(values(&with_other_ports(&capture, 1)), expected, "{name}");
        for (_, protocol) in
            expected.into_keys().filter(|(field, _)| *field == "applicationProtocol")
        {
            *found.entry(protocol).or_default() += 1;
        }
    }
    println!("captures by protocol: {found:?}");
    assert!(
        ["tls", "quic", "http", "dns"].iter().all(|protocol| found[*protocol] > 3),
        "{found:?}"
    );
}
