//! States: captures split into parts, each monitored by a process of its own, and merged.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringtap_io::capture::{Files, Input, PcapWriter};
use ringtap_wire::{Decoded, Decoder, HashKey, PacketRecord, Paths};
use serde_json::Value;

use crate::common::{office, output_of, ringtap};

/// A frame with the addresses of its outermost IP header, if it has one.
struct Sent {
    ts_ns: u64,
    original_len: u32,
    data: Vec<u8>,
    pair: Option<([u8; 16], [u8; 16])>,
}

/// A capture in memory.
pub(crate) struct Traffic {
    frames: Vec<Sent>,
    link: ringtap_wire::LinkType,
    /// Whether a time is earlier than one before it.
    pub(crate) steps_back: bool,
}

/// Reads a capture; `None` if it has several link types or no packets.
pub(crate) fn read(path: &Path) -> Option<Traffic> {
    let mut files = Files::new(vec![Input::Path(path.to_owned())]);
    let mut decoder = Decoder::new(HashKey::from_seed(1), Arc::new(Paths::new()));
    let (mut frames, mut links) = (Vec::new(), Vec::new());
    let mut record = PacketRecord::EMPTY;
    while files.burst(1024, |frame| {
        let decoded =
            decoder.decode(frame.link, frame.ts_ns, frame.data, frame.original_len, &mut record);
        let pair = (!matches!(decoded, Decoded::NonIp(_))).then(|| {
            let [src, dst] = record.addresses();
            (src.min(dst), src.max(dst))
        });
        let (ts_ns, original_len) = (frame.ts_ns, frame.original_len);
        frames.push(Sent { ts_ns, original_len, data: frame.data.to_vec(), pair });
        links.push(frame.link);
    }) > 0
    {}
    links.dedup();
    let &[link] = &links[..] else { return None };
    let steps_back = frames.windows(2).any(|two| two[1].ts_ns < two[0].ts_ns);
    Some(Traffic { frames, link, steps_back })
}

impl Traffic {
    /// Writes the frames that `part` gives this number.
    fn write(&self, path: &Path, number: usize, mut part: impl FnMut(&Sent) -> usize) {
        let mut writer = PcapWriter::new(File::create(path).unwrap(), self.link, u32::MAX);
        for frame in &self.frames {
            if part(frame) == number {
                writer.write(frame.ts_ns, frame.original_len, &frame.data).unwrap();
            }
        }
        writer.flush().unwrap();
    }
}

/// The part of a pair: a sum, so no hash of the monitor's.
fn part_of(frame: &Sent, parts: usize) -> usize {
    let Some((low, high)) = frame.pair else { return frame.data.len() % parts };
    let both = low.iter().chain(&high);
    both.enumerate().map(|(at, &byte)| (at % 5 + 1) * usize::from(byte)).sum::<usize>() % parts
}

/// Monitors a capture, and returns its report; the state goes to `state`.
fn monitor(path: &Path, state: &Path, seed: usize, flags: &[&str]) -> Value {
    let workers = (seed % 3 + 1).to_string();
    let mut command = ringtap();
    command.args(["monitor", "--report", "json", "--digest", "-q", "--memory", "512M", "-r"]);
    command.arg(path).arg("--state").arg(state).args(["--seed", &seed.to_string()]).args(flags);
    command.args(["--force", "--workers", &workers, "--skeleton", "farm"]);
    let (out, errors, code) = output_of(&mut command);
    assert_eq!(code, 0, "{}: {errors}", path.display());
    serde_json::from_str(&out).unwrap()
}

/// Merges states into another one.
pub(crate) fn merge(states: &[&PathBuf], into: &Path) {
    let (_, errors, code) = output_of(ringtap().arg("merge").args(states).arg("--state").arg(into));
    assert_eq!((errors.as_str(), code), ("", 0));
}

/// The report over states.
pub(crate) fn report(states: &[&PathBuf]) -> Value {
    let mut command = ringtap();
    command.args(["merge", "--digest", "--report", "json", "--memory", "512M"]).args(states);
    let (out, errors, code) = output_of(&mut command);
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&out).unwrap()
}

/// Splits traffic by pair, and compares the merged digest with that of the whole, in several orders and nestings.
/// Returns the parts of the report that differ, if the digests do.
fn split_by_pair(traffic: &Traffic, parts: usize, flags: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: String| folder.path().join(name);
    let (whole, whole_state) = (place("whole.pcap".into()), place("whole.state".into()));
    traffic.write(&whole, 0, |_| 0);
    let expected = monitor(&whole, &whole_state, 99, flags);
    let states: Vec<_> = (0..parts)
        .map(|number| {
            let (capture, state) =
                (place(format!("{number}.pcap")), place(format!("{number}.state")));
            traffic.write(&capture, number, |frame| part_of(frame, parts));
            monitor(&capture, &state, number, flags);
            state
        })
        .collect();
    let all: Vec<_> = states.iter().collect();
    let mut backwards = all.clone();
    backwards.reverse();
    let (left, right) = (place("left".into()), place("right".into()));
    let (first, rest) = backwards.split_at(parts.div_ceil(2));
    merge(first, &left);
    let mut nested = vec![&left];
    if !rest.is_empty() {
        merge(rest, &right);
        nested.push(&right);
    }
    let merged = report(&all);
    // Of times that step back, large jumps are noticed.
    let is_exact = merged["exact"] == true || traffic.steps_back;
    assert!(is_exact, "{}", merged["inexact_reasons"]);
    assert_eq!(without_run(&report(&backwards)), without_run(&merged));
    assert_eq!(without_run(&report(&nested)), without_run(&merged));
    if merged["digest"] == expected["digest"] {
        return Vec::new();
    }
    differences(&expected, &merged)
}

/// The report without the runs, of which nested merges have the same.
fn without_run(report: &Value) -> Value {
    let mut report = report.clone();
    report.as_object_mut().unwrap().remove("runs");
    report
}

/// The parts of a report that differ from a merge's.
fn differences(whole: &Value, merged: &Value) -> Vec<String> {
    let beside =
        ["version", "exact", "inexact_reasons", "runs", "digest", "settings", "joined_flows"];
    let differs = |(name, value): &(&String, &Value)| {
        let (mut own, mut other) = (whole[*name].clone(), (*value).clone());
        for flows in [&mut own, &mut other] {
            flows.as_object_mut().map(|flows| flows.remove("active_peak"));
        }
        !beside.contains(&name.as_str()) && own != other
    };
    let rows = merged.as_object().unwrap().iter();
    rows.filter(differs).map(|(name, _)| name.clone()).collect()
}

/// Real captures, and applications; with `RINGTAP_FULL` all of them in every number of parts.
pub(crate) fn real() -> Vec<PathBuf> {
    let mut all = crate::common::captures();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces/applications");
    if let Ok(entries) = std::fs::read_dir(folder) {
        let paths = entries.map(|entry| entry.unwrap().path());
        let captures = |path: &PathBuf| {
            let name = path.to_string_lossy().into_owned();
            name.ends_with(".pcap") || name.ends_with(".pcapng")
        };
        all.extend(paths.filter(captures));
    }
    all.sort();
    all
}

/// What may differ if times step back, because what a run counts then depends on what else it has seen: the latest time,
/// by which flows end, what is counted by flow records, and the conversations of an interval that had ended.
const BY_TIME: [&str; 6] = ["intervals", "flows", "applications", "names", "tcp", "statistics"];

#[test]
fn merged_parts_of_real_captures_have_the_digest_of_the_whole() {
    let full = std::env::var_os("RINGTAP_FULL").is_some();
    let mut equal = 0;
    let some = real().into_iter().enumerate().step_by(if full { 1 } else { 2 });
    for (number, path) in some {
        let Some(traffic) = read(&path) else { continue };
        let parts = if full { &[1, 2, 3, 7][..] } else { &[[2, 3, 7, 1][number / 2 % 4]] };
        for &parts in parts {
            let flags = match (number + parts) % 3 {
                0 => &["--analyses", "all,tcp,statistics,passive_dns", "--interval", "1s"][..],
                1 => &["--tunnels", "inner"],
                _ => &[],
            };
            let different = split_by_pair(&traffic, parts, flags);
            equal += usize::from(different.is_empty());
            if !different.is_empty() {
                eprintln!("{} in {parts}: {different:?} differ", path.display());
                let only_times = different.iter().all(|name| BY_TIME.contains(&name.as_str()));
                assert!(traffic.steps_back && only_times, "{}: {different:?}", path.display());
            }
        }
    }
    assert!(equal > 0);
}

/// A capture of a generated profile.
pub(crate) fn generated(folder: &Path, profile: &str, packets: &str) -> PathBuf {
    let path = folder.join(format!("{profile}.pcap"));
    let mut command = ringtap();
    command.args(["generate", "--profile", profile, "--packets", packets, "--seed", "7", "-w"]);
    let (_, errors, code) = output_of(command.arg(&path));
    assert_eq!(code, 0, "{errors}");
    path
}

#[test]
fn merged_parts_of_generated_traffic_have_the_digest_of_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    for profile in ["w1", "w2", "w3", "mix", "scans", "applications"] {
        let traffic = read(&generated(folder.path(), profile, "20k")).unwrap();
        for parts in [1, 2, 3, 7] {
            for analyses in ["all,tcp,passive_dns", "flows,statistics,talkers,tcp,volumes"] {
                let flags = ["--analyses", analyses, "--idle-timeout", "1s"];
                let different = split_by_pair(&traffic, parts, &flags);
                assert!(different.is_empty(), "{profile} in {parts}: {different:?}");
            }
        }
    }
}

#[test]
fn packets_split_at_random_give_equal_totals_talkers_conversations_and_scans() {
    let folder = tempfile::tempdir().unwrap();
    let generated = ["mix", "scans"].map(|profile| generated(folder.path(), profile, "20k"));
    for path in generated.iter().chain([&office()]) {
        let traffic = read(path).unwrap();
        let place = |name: String| folder.path().join(name);
        let whole = place("whole.pcap".into());
        traffic.write(&whole, 0, |_| 0);
        let flags = ["--interval", "1s"];
        let expected = monitor(&whole, &place("whole.state".into()), 1, &flags);
        let states = [0, 1, 2].map(|number| {
            let (capture, state) =
                (place(format!("{number}.pcap")), place(format!("{number}.state")));
            let mut random = ringtap_base::SplitMix::new(5);
            traffic.write(&capture, number, |_| random.below(3) as usize);
            monitor(&capture, &state, number, &flags);
            state
        });
        let mut merged = report(&states.iter().collect::<Vec<_>>());
        let mut expected = expected;
        if expected["packets"]["fragments"].as_u64() > Some(0) {
            // The ports of a fragment are in the first one, which another part may have.
            for report in [&mut merged, &mut expected] {
                for order in ["by_octets", "by_packets"] {
                    report["talkers"][order].as_object_mut().unwrap().remove("port");
                }
            }
        }
        for part in ["packets", "octets", "intervals", "protocols", "conversations", "talkers"] {
            assert!(merged[part] == expected[part], "{part} of {}", path.display());
        }
        assert_eq!(merged["scans"], expected["scans"], "{}", path.display());
        assert_eq!((&merged["exact"], &merged["digest"]), (&Value::Bool(false), &Value::Null));
        let shared = &merged["inexact_reasons"]["address pairs seen by several runs"];
        assert!(shared.as_u64().unwrap() > 0, "{shared}");
        let records = |report: &Value| report["flows"]["records"].as_u64().unwrap();
        assert!(records(&merged) >= records(&expected));
    }
}

#[test]
fn states_that_do_not_belong_together_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    monitor(&office(), &one, 1, &[]);
    monitor(&office(), &other, 2, &["--interval", "60s", "--probe", "site b"]);
    let error = |files: &[&Path], flags: &[&str]| {
        let (out, errors, code) = output_of(ringtap().arg("merge").args(files).args(flags));
        assert_eq!(out, "");
        (errors, code)
    };
    let different = format!(
        "error: merging {} of site b: the states were made with different settings: interval_ns is null in the first \
         and 60000000000 in this one\n",
        other.display()
    );
    assert_eq!(error(&[&one, &other], &[]), (different, 1));
    let (twice, code) = error(&[&one, &one], &[]);
    assert!(code == 1 && twice.contains("is in two of the states, and it counts once"), "{twice}");
    let (mixed, code) = error(&[&one, &office()], &[]);
    assert!(code == 2 && mixed.contains("is not a state, but other files are"), "{mixed}");
    let (wrong, code) = error(&[&one], &["--threshold", "0.1"]);
    assert!(code == 2 && wrong.contains("--threshold cannot be used with states"), "{wrong}");
    // Every damage is an error, whatever it concerns.
    monitor(&office(), &other, 3, &["--probe", "site b"]);
    let bytes = std::fs::read(&other).unwrap();
    for cut in [13, 100, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&other, &bytes[..cut]).unwrap();
        let (truncated, code) = error(&[&one, &other], &[]);
        assert!(code == 1 && truncated.contains("the state is truncated"), "{cut}: {truncated}");
        let named = format!("merging {}", other.display());
        assert!(truncated.contains(&named), "{cut}: {truncated}");
        // The names of probes are known when the header is there.
        assert_eq!(truncated.contains(" of site b: "), cut > bytes.len() / 3, "{cut}: {truncated}");
    }
    std::fs::write(&other, [&bytes[..], b"more"].concat()).unwrap();
    assert!(error(&[&other], &[]).0.contains("the state is damaged: bytes behind its end"));
    let mut later = bytes;
    later[12] = 5;
    std::fs::write(&other, later).unwrap();
    assert!(error(&[&other], &[]).0.contains("the state has version 5"));
    // The state of a run holds what a report needs.
    let (_, errors, code) = output_of(
        ringtap().args(["monitor", "--analyses", "flows", "--state", "x", "-r"]).arg(office()),
    );
    assert!(code == 2 && errors.contains("--state needs the analyses"), "{errors}");
    let names = folder.path().join("names");
    std::fs::write(&names, "example.org Example\n").unwrap();
    let (named, code) = error(&[&one], &["--names", names.to_str().unwrap()]);
    assert!(code == 1 && named.contains("another list of names"), "{named}");
    for flags in [["--state", "-"].as_slice(), &["--state", "x", "--top", "3"]] {
        let (wrong, code) = error(&[&one], flags);
        assert!(code == 2 && wrong.contains("stdout") | wrong.contains("add --report"), "{wrong}");
    }
}

#[test]
fn a_merged_state_replaces_no_input_and_an_earlier_one_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let [all, more] = ["all", "more"].map(|name| folder.path().join(name));
    monitor(&office(), &all, 1, &[]);
    monitor(&office(), &more, 2, &[]);
    let into = |into: &Path, flags: &[&str]| {
        let mut command = ringtap();
        command.args(["merge", "--report", "json"]).args([&all, &more]).arg("--state").arg(into);
        output_of(command.args(flags))
    };
    let before = std::fs::read(&all).unwrap();
    let (_, errors, code) = into(&all, &["--force"]);
    assert!(code == 2 && errors.contains("name the same file"), "{errors}");
    assert!(std::fs::read(&all).unwrap() == before);
    let merged = folder.path().join("merged");
    std::fs::write(&merged, "earlier").unwrap();
    let (_, errors, code) = into(&merged, &[]);
    assert!(code == 2 && errors.contains("use another name, or --force"), "{errors}");
    let (out, errors, code) = into(&merged, &["--force"]);
    assert_eq!((errors.as_str(), code), ("", 0));
    let printed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(printed["packets"], report(&[&merged])["packets"]);
}

#[test]
fn a_report_is_printed_even_if_its_state_cannot_be_written() {
    let mut command = ringtap();
    command.args(["monitor", "-q", "--state", "/dev/full", "-r"]).arg(office());
    let (out, errors, code) = output_of(&mut command);
    assert!(out.contains("Packets") && code == 1, "{out}");
    assert!(errors.contains("error: ") && errors.contains("No space left"), "{errors}");
    // What is known before the run is an error before it.
    let mut command = ringtap();
    command.args(["monitor", "-q", "--state", "/no/such/folder/x", "-r"]).arg(office());
    let (out, errors, code) = output_of(&mut command);
    assert_eq!((out.as_str(), code), ("", 1));
    assert!(errors.contains("error: writing /no/such/folder/x: No such file"), "{errors}");
}
