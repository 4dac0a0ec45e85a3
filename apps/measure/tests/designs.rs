//! Every design gives the answer of a single owner: bit for bit where counting does not depend on
//! the order, within the bounds elsewhere.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use ringtap_measure::{
    AddressKeys, CountBy, Findings, Image, Keys, Kind, Measure, PairKeys, Settings, State,
    TupleKeys, Weight,
};
use ringtap_ring::Kind as Ring;
use ringtap_skeleton::{RunOptions, Seating, ShardMap, Skeleton, run, simulate};
use ringtap_stage::{Burst, Fed, Feed, Mark};
use ringtap_wire::{Flags, PacketRecord};

const PACKETS: u64 = 30_000;

/// Packets of some 1,300 flows, a few of them heavy, one in five IPv6; and some without an address.
fn packets() -> Vec<PacketRecord> {
    let mut random = 7u64;
    let mut next = move || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let packet = |number: u64| {
        // Few low numbers, most high ones: roughly 1 / n.
        let flow = 1300 / (next() % 1300 + 1);
        let mut packet = PacketRecord {
            ts_ns: number,
            ip_len: 40 + (next() % 1460) as u32,
            src_port: 1024 + flow as u16,
            dst_port: 443,
            protocol: 6,
            flags: Flags::IPV4,
            pair_hash: (flow as u32).wrapping_mul(0x9e37_79b9),
            ..PacketRecord::EMPTY
        };
        packet.src[..4].copy_from_slice(&(0x0a00_0000 + flow as u32).to_be_bytes());
        packet.dst[..4].copy_from_slice(&[192, 0, 2, flow as u8 % 7]);
        match number {
            n if n % 1000 == 3 => packet.flags = Flags::default(),
            _ if flow % 5 == 2 => {
                packet.flags = Flags::IPV6;
                packet.src[15] = 1;
            }
            _ => {}
        }
        packet
    };
    (0..PACKETS).map(packet).collect()
}

struct List {
    packets: Vec<PacketRecord>,
    at: usize,
}

impl Feed for List {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        let rest = &self.packets[self.at..];
        if rest.is_empty() {
            return Fed::Mark(Mark::End { time_ns: PACKETS });
        }
        let take = rest.len().min(burst.capacity() - burst.len());
        burst.extend_from_slice(&rest[..take]);
        self.at += take;
        Fed::Items
    }
}

/// Distributed as by a network card.
fn feeds(packets: &[PacketRecord], shards: &ShardMap) -> Vec<List> {
    let of = |queue| packets.iter().filter(move |packet| shards.queue(packet.pair_hash) == queue);
    (0..shards.queues())
        .map(|queue| List { packets: of(queue).copied().collect(), at: 0 })
        .collect()
}

fn options(skeleton: Skeleton, workers: usize) -> RunOptions {
    let queues = if skeleton == Skeleton::MultiQueue { workers } else { 1 };
    RunOptions {
        shards: ShardMap::queued(queues, &vec![1; workers]),
        ring: Ring::default(),
        capacity: 64,
        batch: 8,
        report_capacity: 4,
        seating: match skeleton {
            Skeleton::MultiQueue => Seating::queues(queues, workers),
            _ => Seating::apart(workers, workers + 1),
        },
    }
}

fn settings(structure: Kind, by: CountBy) -> Settings {
    Settings {
        structure,
        state: State::Separate,
        by,
        weight: Weight::Packets,
        threshold: Some(0.01),
        top: None,
        interval_ns: None,
        memory_bytes: 1 << 20,
        check: true,
        // A HyperLogLog depends on the order.
        distinct: false,
        seed: 11,
    }
}

fn measure<V: Keys>(skeleton: Skeleton, settings: Settings, workers: usize) -> Findings<V> {
    let app = Measure::<V>::new(settings, || 0).unwrap();
    let options = options(skeleton, workers);
    run(skeleton, &app, feeds(&packets(), &options.shards), &options).unwrap().report
}

/// Exact counts, computed without our tables.
fn truth(settings: &Settings) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for packet in packets() {
        let Some((source, destination)) = packet.source().zip(packet.destination()) else {
            continue;
        };
        let key = match settings.by {
            CountBy::Source => source.to_string(),
            CountBy::Pair => format!("{source} > {destination}"),
            _ => unreachable!("not used in these tests"),
        };
        let octets = u64::from(packet.ip_len);
        *counts.entry(key).or_default() +=
            if settings.weight == Weight::Octets { octets } else { 1 };
    }
    counts
}

const PARALLEL: [Skeleton; 3] = [Skeleton::Sync, Skeleton::Farm, Skeleton::MultiQueue];

#[test]
fn separate_structures_merge_into_that_of_one_owner() {
    // With this memory Misra-Gries and the exact table have room for all keys.
    for kind in [Kind::Cms, Kind::Rs, Kind::Mg, Kind::Exact] {
        let settings = settings(kind, CountBy::FiveTuple);
        let whole = measure::<TupleKeys>(Skeleton::Reference, settings, 1).to_bytes();
        for (skeleton, workers) in PARALLEL.into_iter().flat_map(|s| [1, 2, 3, 7].map(|w| (s, w))) {
            let merged = measure::<TupleKeys>(skeleton, settings, workers).to_bytes();
            assert!(merged == whole, "{kind}, {skeleton}, {workers} workers");
        }
    }
    let settings = settings(Kind::RsModular, CountBy::Source);
    let whole = measure::<AddressKeys>(Skeleton::Reference, settings, 1).to_bytes();
    for workers in [1, 2, 3, 7] {
        assert!(measure::<AddressKeys>(Skeleton::Farm, settings, workers).to_bytes() == whole);
    }
}

#[test]
fn shared_structures_lose_nothing() {
    for kind in Kind::SHARED {
        let separate = settings(kind, CountBy::FiveTuple);
        let shared = Settings { state: State::Shared, ..separate };
        let whole = measure::<TupleKeys>(Skeleton::Reference, separate, 1);
        for (skeleton, workers) in PARALLEL.into_iter().flat_map(|s| [1, 2, 3, 7].map(|w| (s, w))) {
            let found = measure::<TupleKeys>(skeleton, shared, workers);
            assert_eq!(found.total(), whole.total(), "{kind}, {skeleton}, {workers}");
            // Which of two keys is first in a slot depends on the threads.
            if kind.is_linear() {
                assert!(found.to_bytes() == whole.to_bytes(), "{kind}, {skeleton}, {workers}");
            }
        }
    }
}

#[test]
fn every_order_of_steps_gives_the_same_answer() {
    let settings = settings(Kind::Cms, CountBy::Pair);
    let whole = measure::<PairKeys>(Skeleton::Reference, settings, 1).to_bytes();
    for (seed, state) in (0..6).flat_map(|seed| State::ALL.map(|state| (seed, state))) {
        let app = Measure::<PairKeys>::new(Settings { state, ..settings }, || 0).unwrap();
        let options = RunOptions { capacity: 3, ..options(Skeleton::Sync, 3) };
        let feeds = feeds(&packets(), &options.shards);
        let run = simulate::run(Skeleton::Sync, &app, feeds, &options, seed).unwrap();
        assert!(run.report.to_bytes() == whole, "{state}, seed {seed}");
    }
}

#[test]
fn bounds_hold_for_every_structure_and_heavy_keys_are_found() {
    for (kind, by, weight) in Kind::ALL.into_iter().flat_map(|kind| {
        [(kind, CountBy::Source, Weight::Octets), (kind, CountBy::Pair, Weight::Packets)]
    }) {
        if kind == Kind::RsModular && by == CountBy::Pair {
            continue;
        }
        let settings = Settings { weight, distinct: true, ..settings(kind, by) };
        let truth = truth(&settings);
        let report = match by {
            CountBy::Pair => measure::<PairKeys>(Skeleton::MultiQueue, settings, 3).report(),
            _ => measure::<AddressKeys>(Skeleton::MultiQueue, settings, 3).report(),
        };
        let not_measured: u64 = report.not_measured.values().sum();
        assert_eq!(report.measured + not_measured, PACKETS, "{kind}");
        let least =
            |upper: u64, count: u64| if kind == Kind::Sht { upper + 1 } else { upper.max(count) };
        for row in &report.heavy {
            let count = truth[&row.key];
            assert!(
                row.upper >= count && row.estimate <= least(row.upper, count),
                "{kind}: {row:?}, {count}"
            );
        }
        let sum: u64 = truth.values().sum();
        if kind != Kind::RsModular {
            assert_eq!(report.total, sum, "{kind}");
            let keys = report.distinct.unwrap();
            assert!((keys.lower..=keys.upper).contains(&(truth.len() as u64)), "{kind}: {keys:?}");
        }
        let accuracy = report.accuracy.unwrap();
        assert_eq!((accuracy.unchecked, report.search.as_ref()), (0, None), "{kind}");
        assert!(accuracy.recall > 0.95 && accuracy.precision > 0.95, "{kind}: {accuracy:?}");
        if kind == Kind::Exact {
            assert_eq!((accuracy.f1, accuracy.are, accuracy.aae), (1.0, 0.0, 0.0));
            let heavy = truth.values().filter(|&&count| count >= report.heavy_from).count();
            assert_eq!((report.heavy.len(), accuracy.heavy), (heavy, heavy as u64));
        }
    }
}

/// No fixed threshold hides keys: those with the largest estimates are listed, and of equal ones the first.
#[test]
fn the_top_keys_are_those_with_the_largest_estimates() {
    let of = |kind, threshold, top| Settings { threshold, top, ..settings(kind, CountBy::Source) };
    let report = |settings| measure::<AddressKeys>(Skeleton::MultiQueue, settings, 3).report();
    let mut truth: Vec<u64> =
        truth(&settings(Kind::Exact, CountBy::Source)).into_values().collect();
    truth.sort_unstable_by(|a, b| b.cmp(a));
    let total: u64 = truth.iter().sum();
    let all = report(of(Kind::Exact, None, None));
    assert_eq!((all.heavy.len(), all.heavy_from), (truth.len(), 1));
    for top in [0, 1, 7, 400, 100_000] {
        let report = report(of(Kind::Exact, None, Some(top)));
        let expected: Vec<_> = truth.iter().take(top).copied().collect();
        let found: Vec<_> = report.heavy.iter().map(|row| row.estimate).collect();
        assert_eq!(found, expected);
        assert_eq!(report.heavy, all.heavy[..found.len()], "longer lists begin with shorter ones");
        let last = expected.last().copied().filter(|_| expected.len() == top);
        assert_eq!(report.heavy_from, last.unwrap_or(1));
        assert_eq!((report.top, report.accuracy.unwrap().f1), (Some(top), 1.0));
    }
    // Both limits hold.
    let least = (0.01 * total as f64).ceil() as u64;
    let heavy = truth.iter().filter(|count| **count >= least).count();
    assert_eq!(report(of(Kind::Exact, Some(0.01), Some(heavy + 5))).heavy.len(), heavy);
    assert_eq!(report(of(Kind::Exact, Some(0.01), Some(heavy + 5))).heavy_from, least);
    assert_eq!(report(of(Kind::Exact, Some(0.01), Some(heavy - 1))).heavy.len(), heavy - 1);
    for kind in Kind::ALL {
        let report = report(of(kind, None, Some(7)));
        let accuracy = report.accuracy.unwrap();
        assert_eq!((report.heavy.len(), accuracy.heavy), (7, 7), "{kind}: {report:?}");
        assert!(accuracy.f1 > 0.85 && report.search.is_none(), "{kind}: {accuracy:?}");
        assert!(report.heavy.is_sorted_by(|a, b| a.estimate >= b.estimate), "{kind}");
        assert_eq!(report.heavy_from, report.heavy[6].estimate, "{kind}");
    }
}

#[test]
fn keys_without_room_in_a_table_are_counted() {
    for kind in [Kind::Exact, Kind::Sht] {
        let settings = Settings { memory_bytes: 1024, ..settings(kind, CountBy::FiveTuple) };
        let report = measure::<TupleKeys>(Skeleton::Reference, settings, 1).report();
        assert!(report.lost > 0, "{kind}: {report:?}");
        let settings = Settings { threshold: None, ..settings };
        let all = measure::<TupleKeys>(Skeleton::Reference, settings, 1).report();
        let stored: u64 = all.heavy.iter().map(|row| row.lower).sum();
        assert_eq!(stored + all.lost, all.total, "{kind}");
    }
}

#[test]
fn images_of_machines_merge_and_damaged_ones_are_refused() {
    let settings = Settings { distinct: true, ..settings(Kind::Mg, CountBy::Source) };
    let whole = measure::<AddressKeys>(Skeleton::Reference, settings, 1);
    let image = whole.to_bytes();
    let read = || Image::read(&image).unwrap().findings::<AddressKeys>().unwrap();
    let plain =
        measure::<AddressKeys>(Skeleton::Reference, Settings { distinct: false, ..settings }, 1);
    let again = Image::read(&plain.to_bytes()).unwrap().findings::<AddressKeys>().unwrap();
    assert!(again.to_bytes() == plain.to_bytes());
    let of_top = Image::read(&image).unwrap().listing(None, Some(3));
    let of_top = of_top.findings::<AddressKeys>().unwrap();
    assert_eq!((of_top.report().heavy.len(), of_top.report().top), (3, Some(3)));
    let again = Image::read(&of_top.to_bytes()).unwrap().findings::<AddressKeys>().unwrap();
    assert_eq!(again.report().heavy, of_top.report().heavy);
    let mut twice = read();
    twice.merge(read()).unwrap();
    assert_eq!(twice.total(), 2 * whole.total());
    let [twice_keys, keys] = [&twice, &whole].map(|found| found.distinct().unwrap());
    assert!((keys.lower..=keys.upper).contains(&twice_keys.value), "the same keys: {twice_keys:?}");

    let other = measure::<AddressKeys>(
        Skeleton::Reference,
        Settings { weight: Weight::Octets, ..settings },
        1,
    );
    let error = twice.merge(other).unwrap_err().to_string();
    assert_eq!(error, "the weight differs: packets and octets");
    let seeds = Settings { structure: Kind::Cms, ..settings };
    let mut own = measure::<AddressKeys>(Skeleton::Reference, seeds, 1);
    let other = measure::<AddressKeys>(Skeleton::Reference, Settings { seed: 12, ..seeds }, 1);
    assert!(own.merge(other).unwrap_err().to_string().contains("--seed"));

    let opens = |bytes: &[u8]| {
        Image::read(bytes).is_ok_and(|image| image.findings::<AddressKeys>().is_ok())
    };
    assert!(opens(&image));
    for cut in [0, 1, 10, 200, image.len() / 2, image.len() - 1] {
        assert!(!opens(&image[..cut]), "cut at {cut}");
    }
    assert!(!opens(&[&image[..], b"x"].concat()));
    let head = image.iter().position(|&byte| byte == b'\n').unwrap();
    for at in (head + 1..image.len()).step_by(501).take(40) {
        let mut damaged = image.clone();
        damaged[at] ^= 0x40;
        // After the structures are the HyperLogLogs, which have no checksum: they must not panic.
        let _ = opens(&damaged);
        if at < head + 1000 {
            assert!(!opens(&damaged), "byte {at}");
        }
    }
    for invalid in [
        &b"\n"[..],
        b"{}\n",
        b"{\"ringtap_measurement\":2}\n",
        b"{\"ringtap_measurement\":1}\n",
        &[b'x'; 9000],
    ] {
        assert!(Image::read(invalid).is_err());
    }
}

/// The source of a packet: seven of eight occur once, the others are [`heavy`].
fn source_of(number: u64) -> u32 {
    if number.is_multiple_of(8) { heavy(number / 8) } else { 0x0a00_0000 + number as u32 }
}

/// One of sixteen sources; of 136 packets the first one has sixteen, the second one fifteen.
fn heavy(number: u64) -> u32 {
    let mut place = number * 59 % 136;
    let own = (0..16).find(|source| {
        let is_own = place < 16 - source;
        place = place.wrapping_sub(16 - source);
        is_own
    });
    0x0100_0000 + own.unwrap() as u32
}

/// The packets of one queue, made when they are read.
struct Flood<'a> {
    next: u64,
    packets: u64,
    queue: usize,
    shards: &'a ShardMap,
}

impl Feed for Flood<'_> {
    type Item = PacketRecord;

    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        if self.next == self.packets {
            return Fed::Mark(Mark::End { time_ns: 1 });
        }
        while self.next < self.packets && burst.len() < burst.capacity() {
            let source = source_of(self.next);
            self.next += 1;
            let pair_hash = source.wrapping_mul(0x9e37_79b9);
            if self.shards.queue(pair_hash) == self.queue {
                let mut packet =
                    PacketRecord { flags: Flags::IPV4, pair_hash, ..PacketRecord::EMPTY };
                packet.src[..4].copy_from_slice(&source.to_be_bytes());
                burst.push(packet);
            }
        }
        Fed::Items
    }
}

/// Ten million keys with RINGTAP_FULL=1, otherwise 200,000.
#[test]
fn heavy_keys_among_millions_are_found_in_bounded_memory() {
    let is_full = std::env::var_os("RINGTAP_FULL").is_some_and(|value| value == "1");
    let keys: u64 = if is_full { 10_000_000 } else { 200_000 };
    let (packets, memory_bytes) = (keys / 7 * 8, keys / 10);
    let mut truth = BTreeMap::<_, u64>::new();
    for number in 0..packets / 8 {
        *truth.entry(std::net::Ipv4Addr::from(heavy(number)).to_string()).or_default() += 1;
    }
    for kind in Kind::ALL {
        let memory_bytes = if kind == Kind::RsModular { 1 << 20 } else { memory_bytes };
        let listing = Settings {
            threshold: None,
            top: Some(10),
            check: false,
            ..settings(kind, CountBy::Source)
        };
        let app = Measure::<AddressKeys>::new(Settings { memory_bytes, ..listing }, || 0).unwrap();
        let options = options(Skeleton::MultiQueue, 3);
        let feeds = (0..3).map(|queue| Flood { next: 0, packets, queue, shards: &options.shards });
        let found = run(Skeleton::MultiQueue, &app, feeds.collect(), &options).unwrap().report;
        let report = found.report();
        assert_eq!((report.measured, report.total), (packets, packets), "{kind}");
        assert!(report.memory_bytes <= 3 * memory_bytes, "{kind}: {}", report.memory_bytes);
        assert_eq!(report.lost > 0, matches!(kind, Kind::Exact | Kind::Sht), "{kind}");
        for row in &report.heavy {
            let count = truth.get(&row.key).copied().unwrap_or(1);
            assert!((row.lower..=row.upper).contains(&count), "{kind}: {row:?}, {count}");
        }
        if !kind.keeps_keys() || report.search.is_some() {
            continue;
        }
        // Above this weight a key is listed.
        let bound = report.heavy_from.max(report.lost);
        for (key, count) in truth.iter().filter(|(_, count)| **count > bound) {
            assert!(report.heavy.iter().any(|row| row.key == *key), "{kind}: {key}, {count}");
        }
    }
}

#[test]
fn invalid_settings_are_errors() {
    let error = |change: fn(&mut Settings)| {
        let mut settings = settings(Kind::Mg, CountBy::FiveTuple);
        change(&mut settings);
        settings.check().unwrap_err().to_string()
    };
    assert!(error(|s| s.state = State::Shared).contains("use cms, sht or rs"));
    assert!(error(|s| s.structure = Kind::RsModular).contains("single IPv4 addresses"));
    assert!(error(|s| s.threshold = Some(0.0)).contains("above 0"));
    assert!(error(|s| s.threshold = Some(f64::NAN)).contains("above 0"));
    assert!(error(|s| s.interval_ns = Some(999_999)).contains("use 1ms or more"));
    assert!(
        error(|s| (s.structure, s.state, s.interval_ns) = (Kind::Cms, State::Shared, Some(1 << 30)))
            .contains("use --state separate")
    );
    assert!(error(|s| s.memory_bytes = 7).contains("invalid memory 7 for mg: use at least"));
    assert!(error(|s| (s.structure, s.memory_bytes) = (Kind::Cms, u64::MAX)).contains("use less"));
    for kind in Kind::ALL {
        let by = CountBy::Source;
        // The smallest size in the error is enough.
        let little =
            Settings { memory_bytes: 1, ..settings(kind, by) }.check().unwrap_err().to_string();
        let least: u64 = little.rsplit(' ').nth(1).unwrap().parse().unwrap();
        for memory_bytes in [4 * least, 10_000_000] {
            let settings = Settings { memory_bytes, ..settings(kind, by) };
            settings.check().unwrap();
            let report = measure::<AddressKeys>(Skeleton::Reference, settings, 1).report();
            // Two IP versions; and a table of keys has at least a few slots.
            assert!(
                report.memory_bytes <= 2 * memory_bytes.max(1024),
                "{kind}: {}",
                report.memory_bytes
            );
        }
    }
}
