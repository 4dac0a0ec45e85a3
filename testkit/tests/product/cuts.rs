//! Flows in parts: joined they are the flows without cuts, and each counts the packets of its own minute.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ringtap_flow::{FlowKey, FlowRecord};
use ringtap_io::capture::Files;
use ringtap_ring::Kind as Ring;
use ringtap_wire::{Decoder, HashKey, PacketRecord, Paths};

use crate::common::*;

const EVERY: u64 = 5_000_000_000;

/// The sorted records of a run.
fn records(plan: &Plan, capture: &Capture) -> Vec<FlowRecord> {
    let (outputs, records) = gather(plan.arrangement.workers, FlowRecord::clone);
    run_with(plan, capture, outputs);
    let mut records = std::mem::take(&mut *records.lock().unwrap());
    records.sort();
    records
}

/// The flows of parts, and the keys of different flows with first packets of the same time, which have the same `flowId`.
fn joined(parts: &[FlowRecord]) -> (Vec<FlowRecord>, HashSet<FlowKey>) {
    let mut flows: HashMap<_, Vec<FlowRecord>> = HashMap::new();
    for part in parts {
        let key = (part.key, part.path.vlans, part.part.map(|part| part.flow_first_ns));
        flows.entry(key).or_default().push(part.clone());
    }
    let numbers = |parts: &[FlowRecord]| {
        parts.iter().map(|part| part.part.map(|part| part.number)).collect::<HashSet<_>>().len()
    };
    let twins = flows.iter().filter(|(_, parts)| numbers(parts) < parts.len());
    let twins: HashSet<_> = twins.map(|((key, ..), _)| *key).collect();
    let mut whole: Vec<_> = flows.into_values().filter_map(FlowRecord::of_parts).collect();
    whole.sort();
    (whole, twins)
}

/// Packets and octets by window and pair of addresses, in order.
type Sums = BTreeMap<(u64, [u8; 16], [u8; 16]), [u64; 2]>;

/// The sums of decoded packets.
fn of_packets(mut files: Files) -> Sums {
    let paths = Arc::new(Paths::new());
    let mut decoder = Decoder::new(HashKey::from_seed(1), paths);
    let mut sums = Sums::new();
    while files.burst(256, |frame| {
        let mut record = PacketRecord::EMPTY;
        decoder.decode(frame.link, frame.ts_ns, frame.data, frame.original_len, &mut record);
        if record.is_ip() && !record.flags.contains(ringtap_wire::Flags::BAD_HEADER) {
            let sum = sums.entry((record.ts_ns / EVERY, record.src, record.dst)).or_default();
            *sum = [sum[0] + 1, sum[1] + u64::from(record.ip_len)];
        }
    }) > 0
    {}
    sums
}

/// The sums of parts.
fn of_parts(parts: &[FlowRecord]) -> Sums {
    let mut sums = Sums::new();
    for part in parts {
        assert_eq!(part.first_ns / EVERY, part.last_ns / EVERY, "{part:?}");
        let ends = [(part.key.src, part.key.dst), (part.key.dst, part.key.src)];
        for (side, (from, to)) in
            ends.into_iter().enumerate().filter(|&(side, _)| part.packets[side] > 0)
        {
            let sum = sums.entry((part.first_ns / EVERY, from, to)).or_default();
            *sum = [sum[0] + part.packets[side], sum[1] + part.octets[side]];
        }
    }
    sums
}

fn compare(name: &str, capture: &Capture, turn: usize) -> usize {
    let plain = reference(request());
    let request = request().app(|app| app.metering.cut_ns = Some(EVERY));
    let cut = reference(request.clone());
    let (whole, parts) = (records(&plain, capture), records(&cut, capture));
    let (mut joined, twins) = joined(&parts);
    let mut flows = whole.clone();
    for all in [&mut joined, &mut flows] {
        all.retain(|record| !twins.contains(&record.key));
    }
    assert!(twins.len() < 3, "{name}: {twins:?}");
    let other = joined.iter().zip(&flows).find(|(own, whole)| own != whole);
    assert!(joined.len() == flows.len() && other.is_none(), "{name}: {other:#?}");
    let digests = [&plain, &cut].map(|plan| digest(&run(plan, capture)).to_owned());
    assert_eq!(digests[0], digests[1], "{name}");
    if !whole.iter().any(|record| record.path.tunnel.is_some()) {
        assert!(of_parts(&parts) == of_packets(capture.open()), "{name}: the sums differ");
    }
    for skeleton in skeletons() {
        let ring = Ring::ALL[turn % Ring::ALL.len()];
        let plan = parallel(request.clone(), skeleton, (1 + turn % 2, 2), ring, (64, 8));
        assert!(records(&plan, capture) == parts, "{name}: {skeleton} has other parts");
    }
    parts.len() - whole.len()
}

#[test]
fn parts_of_real_captures_are_the_flows_without_cuts() {
    let Some(folder) = traces() else { return };
    let mut more = 0;
    for folder in [folder.clone(), folder.join("applications")] {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.to_string_lossy().contains("pcap"));
        files.sort();
        for (turn, path) in files.iter().enumerate() {
            more += compare(&path.display().to_string(), &Capture::File(path.clone()), turn);
        }
    }
    assert!(more > 1_000, "{more} more parts than flows");
}

#[test]
fn parts_of_generated_traffic_are_the_flows_without_cuts() {
    let mut profile = profile("mix", 40_000, 2_000);
    profile.duration_ns = 200_000_000_000;
    let more = compare("mix", &Capture::Bytes(generate(&profile, 5).0), 1);
    assert!(more > 1_000, "{more} more parts than flows");
}
