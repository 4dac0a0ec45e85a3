//! Tests of an analysis: it must say the same in every arrangement, and after a merge.

use std::fs::File;
use std::path::{Path, PathBuf};

use ringtap_engine::Options as RunOptions;
use ringtap_extract::Names;
use ringtap_io::capture::PcapWriter;
use ringtap_monitor::state::{self, Choices};
use ringtap_ring::Kind as Ring;
use ringtap_skeleton::Skeleton;
use ringtap_traffic::{Applications, Generator, Profile, ScanSpec};
use ringtap_wire::LinkType;
use serde_json::Value;

use super::analysis::Analysis;
use super::monitor::{Monitor, Report};

/// The bundled capture of ringtap's repository.
pub const BUNDLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/office.pcap");

/// Queues, and workers of each.
const SHAPES: [(i64, i64); 6] = [(1, 1), (1, 2), (1, 3), (1, 7), (3, 1), (3, 2)];
/// Seeds of the generated traffic.
const SEEDS: [u64; 3] = [1, 2, 3];
/// The conversations that a capture of generated traffic has: all, or one of two halves.
const ALL: fn(&[u8]) -> bool = |_| true;
const HALVES: [fn(&[u8]) -> bool; 2] = [is_even, |frame| !is_even(frame)];

/// Whether the last bytes of both IPv4 addresses have an even sum: the same in both directions.
fn is_even(frame: &[u8]) -> bool {
    let is_ipv4 = frame.get(12..14) == Some(&[8, 0]);
    is_ipv4 && frame.get(29).zip(frame.get(33)).is_some_and(|(a, b)| (a ^ b) & 1 == 0)
}

/// Runs an analysis over these captures and over generated traffic: on one thread, and in every skeleton with different
/// numbers of queues and workers and different rings. If it has [tables](Analysis::TABLES), two runs with half of the
/// conversations each are merged, too. Returns the number of comparisons.
///
/// # Panics
/// If any of them has another result than one thread, if something is lost, or if a capture cannot be read.
pub fn equal_everywhere<A: Analysis>(
    captures: impl IntoIterator<Item = impl AsRef<Path>>,
) -> usize {
    let folder = tempfile::tempdir().expect("a folder for generated traffic");
    let made = SEEDS.map(|seed| generated(folder.path(), seed, "all", ALL));
    let given = captures.into_iter().map(|capture| capture.as_ref().to_owned());
    let mut compared = 0;
    for (turn, capture) in given.chain(made.clone()).enumerate() {
        let expected = result::<A>(of::<A>(&capture).set("sequential", true), "one thread");
        for (s, skeleton) in Skeleton::ALL.into_iter().enumerate() {
            if skeleton == Skeleton::Reference {
                continue;
            }
            for (w, (queues, workers)) in SHAPES.into_iter().enumerate() {
                let ring = Ring::ALL[(turn + s + w) % Ring::ALL.len()];
                let run = of::<A>(&capture).set("skeleton", skeleton.to_string());
                let run = run.set("ring", ring.to_string()).set("queues", queues);
                let run = match skeleton {
                    Skeleton::MultiQueue => run.set("queues", queues * workers),
                    _ => run.set("workers", queues * workers),
                };
                let name = format!("{skeleton}, {queues} × {workers}, {ring}");
                compare::<A>(&capture, &name, &expected, &result::<A>(run, &name));
                compared += 1;
            }
        }
    }
    if !A::TABLES.is_empty() {
        for (capture, seed) in made.iter().zip(SEEDS) {
            // The fewest analyses of a state.
            let least = |capture: &Path| of::<A>(capture).analyses("flows,volumes,talkers");
            let expected = result::<A>(least(capture).set("sequential", true), "one thread");
            let states = [0, 1].map(|half| {
                let part = generated(folder.path(), seed, &half.to_string(), HALVES[half]);
                let report = ran(least(&part).with_state(), "half of the traffic");
                report.state().expect("a state").expect("the analyses of a state")
            });
            compare::<A>(capture, "a merge of two runs", &expected, &merged::<A>(&states));
            compared += 1;
        }
    }
    compared
}

/// A run of the analysis beside those of the command.
fn of<A: Analysis>(capture: &Path) -> Monitor {
    Monitor::builder().files([capture]).analysis::<A>().set("seed", 1)
}

fn ran(monitor: Monitor, name: &str) -> Report {
    let report = monitor.run().unwrap_or_else(|error| panic!("{name}: {error}"));
    let errors = report.errors();
    assert!(errors.is_empty(), "{name}: {}", errors.join("; "));
    let losses = report.losses();
    assert!(losses.is_empty(), "{name}: losses: {losses:?}");
    report
}

/// The result as JSON.
fn result<A: Analysis>(monitor: Monitor, name: &str) -> Value {
    let report = ran(monitor, name);
    let warnings = report.warnings();
    let silent = warnings.iter().find(|text| text.contains("has no JSON"));
    assert!(silent.is_none(), "{name}: {}", silent.map_or("", |text| text));
    report.json_of::<A>().cloned().unwrap_or_else(|| panic!("{name}: no {}", A::NAME))
}

/// The result of merged states.
fn merged<A: Analysis>(states: &[Vec<u8>]) -> Value {
    let choices = Choices {
        scan_threshold: 25,
        udp_scan_threshold: 25,
        top: 10,
        digest: false,
        names: Names::built_in(),
        memory_bytes: RunOptions::default().memory_bytes,
    };
    let inputs = states.iter().map(|state| &state[..]).collect();
    let merged = state::report(inputs, &choices).unwrap_or_else(|error| panic!("a merge: {error}"));
    let section = merged.report.sections.custom.get(A::NAME);
    section.unwrap_or_else(|| panic!("the merge has no {}", A::NAME)).json.clone()
}

fn compare<A: Analysis>(capture: &Path, name: &str, expected: &Value, found: &Value) {
    if expected == found {
        return;
    }
    let mut place = String::new();
    let [found, expected] = first_difference(&mut place, found, expected);
    panic!(
        "{} depends on the arrangement (docs/LIBRARY.md, \"What breaks equality\"): {}, {name}: {place} is {found}, on one thread \
         {expected}",
        A::NAME,
        capture.display()
    );
}

/// The first values that differ, and their place within the result.
fn first_difference<'v>(place: &mut String, one: &'v Value, other: &'v Value) -> [&'v Value; 2] {
    let inner = match (one, other) {
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find(|(_, (one, other))| one != other).map(|(at, pair)| (at.to_string(), pair))
        }
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            let mut pairs = one.iter().zip(other.values());
            let found = pairs.find(|((_, one), other)| one != other);
            found.map(|((key, one), other)| (key.clone(), (one, other)))
        }
        _ => None,
    };
    match inner {
        Some((key, (one, other))) => {
            *place += "/";
            *place += &key;
            first_difference(place, one, other)
        }
        None => {
            if place.is_empty() {
                place.push_str("the result");
            }
            [one, other]
        }
    }
}

/// A capture of generated traffic: conversations, scans and applications, some of them over IPv6.
fn generated(folder: &Path, seed: u64, name: &str, has: fn(&[u8]) -> bool) -> PathBuf {
    let scan = ScanSpec { ports: 60, ..ScanSpec::default() };
    let profile = Profile {
        packets: 20_000,
        flows: 600,
        scans: vec![scan],
        ipv6_share: 0.2,
        applications: Some(Applications { share: 0.2, ..Applications::default() }),
        snaplen: 1_518,
        ..Profile::default()
    };
    let path = folder.join(format!("generated-{seed}-{name}.pcap"));
    let file = File::create_new(&path).expect("a new file");
    let mut writer = PcapWriter::new(file, LinkType::ETHERNET, profile.snaplen);
    let mut generator = Generator::new(&profile, seed).expect("a valid profile");
    while let Some(frame) = generator.next() {
        if has(frame.data) {
            let written = writer.write(frame.ts_ns, frame.original_len, frame.data);
            written.expect("room on the disk");
        }
    }
    writer.flush().expect("room on the disk");
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_has_its_place() {
        let shown = |one: Value, other: Value| {
            let mut place = String::new();
            let [one, other] = first_difference(&mut place, &one, &other);
            format!("{place}: {one} {other}")
        };
        let rows =
            |last: u32| json!({ "all": 2, "rows": [{ "a": 1 }, { "a": last, "b": [last] }] });
        assert_eq!(shown(rows(2), rows(3)), "/rows/1/a: 2 3");
        assert_eq!(shown(json!([1, 2]), json!([1])), "the result: [1,2] [1]");
        assert_eq!(
            shown(json!({ "a": { "b": 1 } }), json!({ "a": { "c": 1 } })),
            "/a: {\"b\":1} {\"c\":1}"
        );
    }
}
