//! Compares the filter with a simple oracle over real captures, generated traffic and rule changes
//! within the stream. Under every arrangement the output must have the same bytes.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::common::{generate, profile, traces};
use ringtap_engine::Watch;
use ringtap_filter::run::{
    ControlAuth, ControlKey, FilterFiles, FilterPlan, FilterReport, NotIp, Outputs, filter_files,
};
use ringtap_filter::{Limits, Policy, Rule, RuleSet, Span, Statement, parse};
use ringtap_io::capture::Input;
use ringtap_io::capture::{Files, MAX_CAPTURED_LEN, PcapWriter};
use ringtap_skeleton::Skeleton;
use ringtap_wire::{
    Decoded, Decoder, Flags, HashKey, LinkType, NonIp, PacketRecord, Paths, Tunnels,
};

const PORT: u16 = 7_777;

/// A frame of a capture.
#[derive(Clone)]
struct Frame {
    ts_ns: u64,
    link: LinkType,
    original_len: u32,
    data: Vec<u8>,
}

fn frames(mut files: Files) -> Vec<Frame> {
    let mut frames = Vec::new();
    while files.burst(256, |frame| {
        let data = frame.data.to_vec();
        frames.push(Frame {
            ts_ns: frame.ts_ns,
            link: frame.link,
            original_len: frame.original_len,
            data,
        });
    }) > 0
    {}
    frames
}

fn write(frames: &[&Frame], link: LinkType) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, link, MAX_CAPTURED_LEN);
    for frame in frames {
        writer.write(frame.ts_ns, frame.original_len, &frame.data).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    bytes
}

/// The oracle: a list of rules, searched from the last to the first.
struct Oracle {
    allow: bool,
    rules: Vec<Rule>,
    bans: Vec<Span>,
    decoder: Decoder,
}

impl Oracle {
    fn new() -> Self {
        let decoder = Decoder::new(HashKey::from_seed(1), Arc::new(Paths::new()));
        let decoder = decoder.with_tunnels(Tunnels::Outer);
        Self { allow: false, rules: Vec::new(), bans: Vec::new(), decoder }
    }

    fn change(&mut self, text: &str) {
        for (_, statement) in parse(text).unwrap() {
            match statement {
                Statement::Default(policy) => self.allow = policy == Policy::Allow,
                Statement::Add(rule) => self.rules.push(rule),
                Statement::Remove(rule) => {
                    let place = self.rules.iter().rposition(|other| *other == rule).unwrap();
                    self.rules.remove(place);
                }
                Statement::Ban(span) => self.bans.push(span),
                Statement::Unban(span) => self.bans.retain(|other| *other != span),
                Statement::Clear => {
                    self.rules.clear();
                    self.bans.clear();
                }
            }
        }
    }

    /// Source and destination; or `Err(true)` if the frame is certainly not IP, `Err(false)` if it
    /// cannot be decoded.
    fn addresses(&mut self, frame: &Frame) -> Result<(IpAddr, IpAddr), bool> {
        let mut record = PacketRecord::EMPTY;
        match self.decoder.decode(frame.link, 0, &frame.data, frame.original_len, &mut record) {
            Decoded::NonIp(
                NonIp::TooDeep
                | NonIp::UnsupportedLink(_)
                | NonIp::Truncated(_)
                | NonIp::Malformed(_),
            ) => Err(false),
            Decoded::NonIp(_) => Err(true),
            _ if record.flags.contains(Flags::BAD_HEADER) => Err(false),
            _ => Ok((record.source().unwrap(), record.destination().unwrap())),
        }
    }

    fn passes(&mut self, frame: &Frame) -> bool {
        let (source, destination) = match self.addresses(frame) {
            Ok(pair) => pair,
            Err(not_ip) => return not_ip,
        };
        let about = |rule: &&Rule| rule.from.contains(source) && rule.to.contains(destination);
        !self.bans.iter().any(|ban| ban.contains(source))
            && self.rules.iter().rfind(about).map_or(self.allow, |rule| rule.allow)
    }
}

/// The output of a filter, in memory.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs the filter. Returns the capture of passed packets, that of dropped ones, and the report.
fn filter(
    files: Files,
    rules: &str,
    workers: Option<usize>,
    auth: Option<ControlAuth>,
) -> (Vec<u8>, Vec<u8>, FilterReport) {
    let plan = FilterPlan {
        source: Vec::new(),
        output: None,
        drops: None,
        not_ip: NotIp::Pass,
        skeleton: workers.map_or(Skeleton::Reference, |_| Skeleton::Farm),
        workers: workers.unwrap_or(1),
        control_port: None,
        digest: true,
        buffers: None,
    };
    let rules = RuleSet::new(Policy::Deny, Limits::default()).transact(rules).unwrap();
    let (passed, drops) = (Bytes::default(), Bytes::default());
    let outputs =
        Outputs { passed: Some(Box::new(passed.clone())), drops: Some(Box::new(drops.clone())) };
    let inputs = FilterFiles { files, rules, auth, outputs };
    let report = filter_files(plan, inputs, &Watch::new()).unwrap();
    let bytes = |bytes: Bytes| std::mem::take(&mut *bytes.0.lock().unwrap());
    (bytes(passed), bytes(drops), report)
}

/// Random rules of all forms about addresses of the frames; determined by the seed.
fn rules_about(frames: &[Frame], seed: u64) -> String {
    let mut oracle = Oracle::new();
    let pairs: Vec<_> = frames.iter().filter_map(|frame| oracle.addresses(frame).ok()).collect();
    let mut state = seed;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let mut text = format!("default {}\n", ["allow", "deny"][draw(2)]);
    for _ in 0..30 {
        let Some(&(source, destination)) = pairs.get(draw(pairs.len())) else { break };
        let mut side = |address: IpAddr| match (draw(4), address) {
            (0, _) => "any".into(),
            (1, _) => address.to_string(),
            (2, IpAddr::V4(v4)) => {
                let bits = 8 + draw(24) as u32;
                let first = v4.to_bits() & !(u32::MAX >> bits);
                Span::V4(first.into(), (first | u32::MAX >> bits).into()).to_string()
            }
            (_, IpAddr::V4(v4)) => {
                let (below, above) = (draw(1000) as u32, draw(1000) as u32);
                let (first, last) =
                    (v4.to_bits().saturating_sub(below), v4.to_bits().saturating_add(above));
                Span::V4(first.into(), last.into()).to_string()
            }
            (_, IpAddr::V6(v6)) => {
                let bits = 16 + draw(112) as u32;
                let first = v6.to_bits() & !(u128::MAX >> bits);
                Span::V6(first.into(), (first | u128::MAX >> bits).into()).to_string()
            }
        };
        let (from, to) = (side(source), side(destination));
        text += &format!("{} from {from} to {to}\n", ["allow", "deny"][draw(2)]);
    }
    if let Some((source, _)) = pairs.get(draw(pairs.len())) {
        text += &format!("ban {source}\n");
    }
    text
}

/// Compares every arrangement with the oracle. Returns the numbers of passed and dropped packets.
fn check(what: &str, open: impl Fn() -> Files, rules: &str) -> [usize; 2] {
    let frames = frames(open());
    let mut oracle = Oracle::new();
    oracle.change(rules);
    let verdicts: Vec<bool> = frames.iter().map(|frame| oracle.passes(frame)).collect();
    let link = frames.first().map_or(LinkType::ETHERNET, |frame| frame.link);
    let chosen = |passed| -> Vec<&Frame> {
        let with = frames.iter().zip(&verdicts);
        let with = with.filter(|(frame, verdict)| **verdict == passed && frame.link == link);
        with.map(|(frame, _)| frame).collect()
    };
    let (passed, drops) = (write(&chosen(true), link), write(&chosen(false), link));
    let mut digest = None;
    for workers in [None, Some(1), Some(2), Some(3), Some(7)] {
        let (own_passed, own_drops, report) = filter(open(), rules, workers, None);
        assert!(own_passed == passed, "{what}, {workers:?}: other packets passed\n{rules}");
        assert!(own_drops == drops, "{what}, {workers:?}: other packets were dropped");
        assert_eq!(report.ledger.residual(), 0, "{what}: {:?}", report.ledger);
        let packets = &report.stats.packets;
        assert_eq!(packets.received, frames.len() as u64);
        assert_eq!(packets.passed, verdicts.iter().filter(|&&verdict| verdict).count() as u64);
        assert_eq!(*digest.get_or_insert(report.verdicts_sha256.clone()), report.verdicts_sha256);
    }
    let passed = verdicts.iter().filter(|&&verdict| verdict).count();
    [passed, verdicts.len() - passed]
}

#[test]
fn real_captures_are_filtered_like_the_oracle() {
    let Some(folder) = traces() else { return };
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| {
        path.to_string_lossy().contains("cap") || path.extension() == Some("trace".as_ref())
    });
    let mut sums = [0, 0];
    for path in &paths {
        let open = || Files::new(vec![Input::Path(path.clone())]);
        let frames = frames(open());
        for seed in 0..3 {
            let what = path.display().to_string();
            let [passed, dropped] = check(&what, open, &rules_about(&frames, seed));
            sums[0] += passed;
            sums[1] += dropped;
        }
    }
    assert!(paths.len() > 50 && sums[0] > 30_000 && sums[1] > 30_000, "{} {sums:?}", paths.len());
}

#[test]
fn generated_traffic_is_filtered_like_the_oracle() {
    for (seed, name) in ["mix", "scans", "w1"].into_iter().enumerate() {
        let (bytes, _) = generate(&profile(name, 20_000, 500), seed as u64);
        let open = || Files::from_reader("generated", io::Cursor::new(bytes.clone()));
        let rules = rules_about(&frames(open()), seed as u64);
        let [passed, dropped] = check(name, open, &rules);
        assert!(passed > 0 && dropped > 0, "{name}: {passed} {dropped}\n{rules}");
    }
}

/// A datagram from 192.0.2.1 to 192.0.2.2.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend((28 + len).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 4, 0]);
    frame.extend(PORT.to_be_bytes());
    frame.extend((8 + len).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

#[test]
fn a_control_packet_takes_effect_at_its_place_under_every_arrangement() {
    let (bytes, _) = generate(&profile("mix", 30_000, 300), 7);
    let plain_frames = frames(Files::from_reader("generated", io::Cursor::new(bytes)));
    let (key, other_key) = (ControlKey::new(&[7; 32]).unwrap(), ControlKey::new(&[8; 32]).unwrap());
    let first = rules_about(&plain_frames, 1);
    let mut oracle = Oracle::new();
    oracle.change(&first);
    let (mut stream, mut verdicts, mut sequence) = (Vec::new(), Vec::new(), 0);
    for (at, frame) in plain_frames.iter().enumerate() {
        // Within chunks and close together, so that a chunk has many parts.
        if at % 700 < 3 {
            sequence += 1;
            let ts_ns = frame.ts_ns;
            let mut put = |data: Vec<u8>, verdict| {
                let original_len = data.len() as u32;
                stream.push(Frame { ts_ns, link: LinkType::ETHERNET, original_len, data });
                verdicts.push(verdict);
            };
            let text = format!("clear\n{}", rules_about(&plain_frames, at as u64));
            put(datagram(&key.seal(sequence, &text)), false);
            oracle.change(&text);
            // A control packet with an error changes nothing. One with another key, and one with an
            // old sequence number, are handled like data packets.
            sequence += 1;
            put(datagram(&key.seal(sequence, "default allow\nban 192.0.2")), false);
            for forged in [other_key.seal(sequence + 1, "clear"), key.seal(sequence, "clear")] {
                let frame = Frame { data: datagram(&forged), ..frame.clone() };
                let passes = oracle.passes(&frame);
                put(frame.data, passes);
            }
        }
        verdicts.push(oracle.passes(frame));
        stream.push(frame.clone());
    }
    let bytes = write(&stream.iter().collect::<Vec<_>>(), LinkType::ETHERNET);
    let chosen: Vec<&Frame> = stream
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| **verdict)
        .map(|(frame, _)| frame)
        .collect();
    let expected = write(&chosen, LinkType::ETHERNET);
    for workers in [None, Some(1), Some(2), Some(3), Some(7)] {
        let files = Files::from_reader("generated", io::Cursor::new(bytes.clone()));
        let auth = ControlAuth::new(PORT, key.clone(), 0);
        let (passed, _, report) = filter(files, &first, workers, Some(auth));
        assert!(passed == expected, "{workers:?}");
        let control = &report.stats.control;
        let changes = sequence / 2;
        assert_eq!(
            [control.made, control.refused, control.forged],
            [changes, changes, 2 * changes]
        );
        assert_eq!(report.stats.rules.revision, 1 + changes);
        assert_eq!(report.stats.packets.dropped["control"], 2 * changes);
        assert_eq!(report.ledger.residual(), 0);
        assert!(control.why.as_ref().unwrap().starts_with("line 2: "), "{:?}", control.why);
    }
}

#[test]
fn rule_counters_count_the_packets_that_each_rule_decided() {
    let frame = |data| Frame { ts_ns: 1, link: LinkType::ETHERNET, original_len: 60, data };
    let stream = vec![frame(datagram(b"hello")); 9];
    let bytes = write(&stream.iter().collect::<Vec<_>>(), LinkType::ETHERNET);
    let rules = "deny from any to any\nallow from 192.0.2.0/24 to 192.0.2.2\nallow to ::1";
    let files = Files::from_reader("nine", io::Cursor::new(bytes));
    let (_, _, report) = filter(files, rules, Some(2), None);
    let rows: Vec<_> = report.stats.rules.counters.iter().collect();
    assert_eq!((rows.len(), rows[0].rule, rows[0].packets), (1, 2, 9));
    assert_eq!(rows[0].words.as_deref(), Some("allow from 192.0.2.0/24 to 192.0.2.2"));
    assert_eq!(report.stats.packets.octets, 540);
}
