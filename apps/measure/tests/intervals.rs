//! Intervals of packet time: equal for every arrangement, and to exact counts.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may panic, and says what it skips"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ringtap_engine::{Machine, PacketFeed, Plan, Watch};
use ringtap_io::capture::{Files, Input, PcapWriter};
use ringtap_measure::run::{Design, Options, plan, run_files};
use ringtap_measure::{CountBy, Interval, Kind, OnInterval, Settings};
use ringtap_stage::{Burst, Fed, Feed, Mark};
use ringtap_wire::{Flags, LinkType};
use serde_json::Value;

const SECOND: u64 = 1_000_000_000;
/// A multiple of all intervals here.
const BEGIN: u64 = 1_700_000_000 / 3_600 * 3_600;

const ARRANGEMENTS: [(Design, Option<usize>); 6] = [
    (Design::Sequential, None),
    (Design::Rss, Some(1)),
    (Design::Rss, Some(2)),
    (Design::Rss, Some(5)),
    (Design::Async, Some(3)),
    (Design::Sync, Some(3)),
];

fn settings(interval_ns: u64) -> Settings {
    Settings {
        structure: Kind::Exact,
        by: CountBy::Source,
        top: None,
        interval_ns: Some(interval_ns),
        memory_bytes: 16 << 20,
        ..Settings::default()
    }
}

fn planned(settings: Settings, design: Design, workers: Option<usize>) -> Plan<Options> {
    let run = ringtap_engine::Options { workers, seed: 5, ..ringtap_engine::Options::default() };
    let memory_bytes = Some(settings.memory_bytes);
    plan(run, Options { design, rate: None, memory_bytes, settings }, &Machine::this()).unwrap()
}

/// The intervals in the order in which they ended.
fn measured(files: Files, plan: &Plan<Options>) -> Vec<Interval> {
    let all = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&all);
    let on_interval: OnInterval =
        Box::new(move |interval| own.lock().unwrap().push(interval.clone()));
    let outcome = run_files(plan, files, &Watch::new(), Some(on_interval)).unwrap();
    let all = all.lock().unwrap().clone();
    assert_eq!(outcome.run.ledger.residual(), 0);
    let packets = |interval: &Interval| {
        interval.report.measured + interval.report.not_measured.values().sum::<u64>()
    };
    // Each packet is in one interval.
    assert_eq!(all.iter().map(packets).sum::<u64>(), outcome.run.counts.packets);
    assert!(all.iter().all(|interval| packets(interval) > 0), "empty intervals are left out");
    all
}

/// All that must be equal.
fn lines(intervals: &[Interval]) -> Vec<Value> {
    let line = |interval: &Interval| {
        let mut line: Value = serde_json::from_str(&interval.to_json(None).unwrap()).unwrap();
        line.as_object_mut().unwrap().remove("memory_bytes").unwrap();
        line
    };
    intervals.iter().map(line).collect()
}

/// A capture of UDP datagrams with these times, each from a source of its own.
fn capture(times_ns: &[u64]) -> Files {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType::ETHERNET, 2_000);
    for (source, &ts_ns) in (0_u8..=255).cycle().zip(times_ns) {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        let header = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, source, 10, 0, 1, 2];
        frame[14..34].copy_from_slice(&header);
        frame[34..42].copy_from_slice(&[4, 0, 0, 53, 0, 26, 0, 0]);
        writer.write(ts_ns, 60, &frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    Files::from_reader("test", Cursor::new(bytes))
}

/// The intervals of 10 s of packets at these seconds: start, packets, and strays among them.
fn of_seconds(seconds: &[u64]) -> Vec<(u64, u64, u64)> {
    let times: Vec<_> = seconds.iter().map(|second| (BEGIN + second) * SECOND).collect();
    let runs = ARRANGEMENTS.map(|(design, workers)| {
        measured(capture(&times), &planned(settings(10 * SECOND), design, workers))
    });
    for (run, arrangement) in runs.iter().zip(ARRANGEMENTS) {
        assert_eq!(lines(run), lines(&runs[0]), "{arrangement:?}");
    }
    let row = |interval: &Interval| {
        let Interval { start, end, report } = interval;
        assert_eq!(end.0 - start.0, 10 * SECOND);
        (start.0 / SECOND - BEGIN, report.measured, report.strays)
    };
    runs[0].iter().map(row).collect()
}

#[test]
fn a_packet_is_in_the_interval_of_its_time() {
    assert_eq!(of_seconds(&[]), []);
    assert_eq!(of_seconds(&[5, 9, 10, 19, 20, 20]), [(0, 2, 0), (10, 2, 0), (20, 2, 0)]);
    // Behind a gap time goes on with the fourth packet; at the end with fewer.
    assert_eq!(
        of_seconds(&[5, 15, 995, 996, 997, 998, 1_005]),
        [(0, 1, 0), (10, 1, 0), (990, 4, 0), (1_000, 1, 0)]
    );
    assert_eq!(of_seconds(&[5, 995, 1_006]), [(0, 1, 0), (990, 1, 0), (1_000, 1, 0)]);
    // One far ahead moves no time.
    assert_eq!(of_seconds(&[5, 6, 300, 7, 15]), [(0, 3, 0), (10, 1, 0), (300, 1, 0)]);
    // Minutes between packets.
    let sparse: Vec<_> = (0..40).map(|n| n * 70 + n % 3).collect();
    let expected: Vec<_> = sparse.iter().map(|second| (second / 10 * 10, 1, 0)).collect();
    assert_eq!(of_seconds(&sparse), expected);
    // A gap from the first packet on.
    assert_eq!(of_seconds(&[5, 995, 996, 997, 998]), [(0, 1, 0), (990, 4, 0)]);
}

#[test]
fn a_late_packet_is_counted_as_a_stray() {
    assert_eq!(of_seconds(&[5, 15, 8, 16]), [(0, 1, 0), (10, 3, 1)]);
    // Far ahead, which moves no time.
    assert_eq!(of_seconds(&[900_000, 5, 6, 900_001]), [(900_000, 4, 2)]);
}

#[test]
fn a_clock_that_steps_back_begins_an_interval_again() {
    let steps = |from: u64, to: u64| [&[from - 10, from][..], &[to; 40]].concat();
    // Time is set back by 32 packets in a row.
    let expected = [(3_600, 1, 0), (3_610, 32, 31), (0, 9, 0)];
    assert_eq!(of_seconds(&steps(3_615, 5)), expected);
    let again = [&steps(3_615, 3_505)[..], &[3_606]].concat();
    let expected = [(3_600, 1, 0), (3_610, 32, 31), (3_500, 9, 0)];
    assert_eq!(of_seconds(&again)[..3], expected);
    assert_eq!(of_seconds(&again)[3], (3_600, 1, 0), "the interval occurs twice");
}

/// Steps forwards and back, by seconds and by hours, at any place.
#[test]
fn clocks_that_step_at_random_give_equal_intervals_that_have_each_packet_once() {
    let (mut has_strays, mut has_twice) = (false, false);
    for seed in 0..20_u64 {
        let mut random = seed;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        let mut now = 500_000;
        let seconds: Vec<_> = (0..400)
            .map(|_| {
                now = match next(40) {
                    0 => now + next(7_200),
                    1 => now.saturating_sub(next(7_200)),
                    2..6 => now.saturating_sub(next(15)),
                    _ => now + next(3),
                };
                now
            })
            .collect();
        let found = of_seconds(&seconds);
        assert_eq!(found.iter().map(|(_, packets, _)| packets).sum::<u64>(), 400, "{seed}");
        has_strays |= found.iter().any(|(.., strays)| *strays > 0);
        let starts: BTreeSet<_> = found.iter().map(|(start, ..)| start).collect();
        has_twice |= starts.len() < found.len();
    }
    assert!(has_strays && has_twice);
}

/// Many intervals while a queue has no packets at all.
#[test]
fn thousands_of_short_intervals_are_equal_for_all_arrangements() {
    let times: Vec<_> = (0..3_000).map(|n| BEGIN * SECOND + n * n * 1_000).collect();
    let runs = ARRANGEMENTS.map(|(design, workers)| {
        measured(capture(&times), &planned(settings(1_000_000), design, workers))
    });
    assert!(runs[0].len() > 2_000, "{}", runs[0].len());
    assert!(runs.iter().all(|run| lines(run) == lines(&runs[0])));
    assert!(runs[0].is_sorted_by(|a, b| a.start.0 < b.start.0));
    assert!(runs[0].iter().all(|interval| interval.report.strays == 0));
}

/// The bundled capture, and captures of real traffic if `shared/traces` exists.
fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("examples/office.pcap")];
    let Ok(found) = std::fs::read_dir(root.join("../shared/traces")) else {
        eprintln!("SKIPPED: no folder of real captures next to the project (shared/traces)");
        return all;
    };
    let found = found.map(|entry| entry.unwrap().path());
    all.extend(found.filter(|path| {
        let is_capture = path.file_name().unwrap().to_string_lossy().starts_with("o0");
        is_capture && path.metadata().is_ok_and(|data| data.len() < 4 << 20)
    }));
    all[1..].sort();
    all
}

/// Exact counts by interval and source, each packet in the interval of its own time.
fn truth(path: &Path, interval_ns: u64) -> BTreeMap<(u64, String), u64> {
    let settings = Settings { interval_ns: None, ..settings(interval_ns) };
    let plan = planned(settings, Design::Sequential, None);
    let (watch, files) = (Watch::new(), Files::new(vec![Input::Path(path.to_owned())]));
    let mut feeds = PacketFeed::all(&plan, &Arc::default(), files, &watch);
    let mut counts = BTreeMap::new();
    loop {
        let mut burst = Burst::with_capacity(64);
        if let Fed::Mark(Mark::End { .. }) = feeds[0].next(&mut burst) {
            return counts;
        }
        for packet in burst.iter().filter(|packet| !packet.flags.contains(Flags::BAD_HEADER)) {
            if let Some(source) = packet.source() {
                *counts.entry((packet.ts_ns / interval_ns, source.to_string())).or_default() += 1;
            }
        }
    }
}

#[test]
fn intervals_of_real_traffic_equal_exact_counts_in_every_arrangement() {
    let (mut exact, mut several) = (0, 0);
    let captures = captures();
    for (path, seconds) in captures.iter().flat_map(|path| [(path, 1), (path, 60)]) {
        let interval_ns = seconds * SECOND;
        let truth = truth(path, interval_ns);
        let open = || Files::new(vec![Input::Path(path.clone())]);
        let runs = ARRANGEMENTS.map(|(design, workers)| {
            measured(open(), &planned(settings(interval_ns), design, workers))
        });
        for (run, arrangement) in runs.iter().zip(ARRANGEMENTS) {
            let name = path.display();
            assert!(lines(run) == lines(&runs[0]), "{name}, {seconds} s, {arrangement:?}");
        }
        let mut found = BTreeMap::new();
        for Interval { start, report, .. } in &runs[0] {
            for row in &report.heavy {
                assert_eq!((row.lower, row.upper), (row.estimate, row.estimate));
                *found.entry((start.0 / interval_ns, row.key.clone())).or_default() += row.estimate;
            }
        }
        let has_strays = runs[0].iter().any(|interval| interval.report.strays > 0);
        if has_strays {
            // Strays are in another interval, and only there.
            let by_key = |counts: BTreeMap<(u64, String), u64>| {
                let mut sums = BTreeMap::<_, u64>::new();
                counts.into_iter().for_each(|((_, key), n)| *sums.entry(key).or_default() += n);
                sums
            };
            assert_eq!(by_key(found), by_key(truth), "{}", path.display());
        } else {
            assert_eq!(found, truth, "{}, {seconds} s", path.display());
            exact += 1;
            several += usize::from(runs[0].len() > 2);
        }
    }
    assert!(exact > captures.len() && several > captures.len() / 4, "{exact}, {several}");
}
