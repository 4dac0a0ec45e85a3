//! The hot paths over small generated inputs, for counting instructions: `make instructions`.
//!
//! Each kernel prepares its input, and does its work within [`counted`], once. `scripts/instructions.sh` runs the
//! program under callgrind, which counts the instructions of each call of `counted`, and divides them by the number of
//! items that the program prints. As a test (`cargo test --benches`) it runs every kernel.

use std::hint::black_box;
use std::io::Cursor;
use std::sync::Arc;

use ringtap_engine::{Machine, Plan, Watch};
use ringtap_export::RecordTotals;
use ringtap_export::encode::{Encoder, Ipfix, NetFlow9, Refusal, STREAM_LIMIT, UDP_LIMIT};
use ringtap_export::formats::{Format, Interfaces};
use ringtap_flow::{FlowRecord, FlowTable, Metering, Observer, RecordSink, Sinks};
use ringtap_io::capture::{Files, PcapWriter};
use ringtap_monitor::{Analyses, Monitor, Outputs, Setup};
use ringtap_ring::{Flavor, Kind, Ring, ring, spsc};
use ringtap_skeleton::Skeleton;
use ringtap_sketch::{CountMin, Shape, Sketch};
use ringtap_stage::{Application, Attachments, Mark, Outbox, Shard, Worker};
use ringtap_traffic::{Generator, Profile};
use ringtap_wire::{Decoder, HashKey, LinkType, PacketRecord, Paths};

const PACKETS: u64 = 20_000;
const BURST: usize = 256;
const KEY: HashKey = HashKey::from_seed(1);

/// The instructions of each call are counted. The script contains this name.
#[inline(never)]
fn counted(kernel: &mut dyn FnMut()) {
    kernel();
    // Otherwise the call would be a jump, which callgrind does not see as a call.
    black_box(());
}

fn measure(name: &str, items: usize, mut kernel: impl FnMut()) {
    counted(&mut kernel);
    println!("{name}\t{items}");
}

fn main() {
    let [w1, w2, w3, mix] = [("w1", 2_000), ("w2", 4_000), ("w3", PACKETS / 2), ("mix", 2_000)]
        .map(|(name, flows)| decode(name, &frames(name, flows)));
    flow_table("w1, known flows", &w1, true);
    let records = flow_table("w3, new flows", &w3, false);
    rings();
    encoders(&records);
    monitor("w1", &w1);
    monitor("w2", &w2);
    monitor("w3", &w3);
    monitor("mix", &mix);
    sketch(&w1);
    let mix = frames("mix", 2_000);
    run("all analyses", &mix, Analyses::ALL, false);
    for analysis in Analyses::known() {
        run(analysis, &mix, analysis.parse().expect("an analysis"), false);
    }
    run("payloads", &frames("applications", 2_000), Analyses::ALL, true);
}

/// Generated frames with their times and lengths on the wire.
fn frames(profile: &str, flows: u64) -> Vec<(u64, u32, Vec<u8>)> {
    let mut profile = Profile::named(profile).expect("a named profile");
    (profile.packets, profile.flows) = (PACKETS, flows);
    let mut generator = Generator::new(&profile, 7).expect("a valid profile");
    let next = || generator.next().map(|one| (one.ts_ns, one.original_len, one.data.to_vec()));
    std::iter::from_fn(next).collect()
}

/// The packet records of frames.
fn decode(name: &str, frames: &[(u64, u32, Vec<u8>)]) -> Vec<PacketRecord> {
    let mut decoder = Decoder::new(KEY, Arc::new(Paths::new()));
    let mut records = vec![PacketRecord::EMPTY; frames.len()];
    measure(&format!("decode, {name}"), frames.len(), || {
        for ((ts_ns, len, frame), record) in frames.iter().zip(&mut records) {
            black_box(decoder.decode(LinkType::ETHERNET, *ts_ns, frame, *len, record));
        }
    });
    records
}

struct Ended(Vec<FlowRecord>);

impl Observer for Ended {
    fn counted(&mut self, _: &PacketRecord, _: &mut u16) {}
    fn late(&mut self, _: &PacketRecord, _: u16) {}
    fn ended(&mut self, record: &FlowRecord, _: u16) {
        self.0.push(record.clone());
    }
}

/// Counts packets on flows, which exist already if `known`. Returns the flow records.
fn flow_table(name: &str, packets: &[PacketRecord], known: bool) -> Vec<FlowRecord> {
    let mut table = FlowTable::new(1 << 16, &Metering::default(), KEY, Arc::new(Paths::new()));
    let mut ended = Ended(Vec::with_capacity(packets.len()));
    let mut count = |packets: &[PacketRecord]| {
        packets.chunks(BURST).for_each(|burst| table.burst(burst, Attachments::NONE, &mut ended));
    };
    let mut again = packets.to_vec();
    if known {
        count(packets);
        let took_ns = packets.last().map_or(0, |last| last.ts_ns - packets[0].ts_ns);
        again.iter_mut().for_each(|packet| packet.ts_ns += took_ns);
    }
    measure(&format!("flow table, {name}"), packets.len(), || count(&again));
    while !table.is_empty() {
        table.drain(0, 512, &mut ended);
    }
    ended.0
}

fn rings() {
    const CAPACITY: usize = 2048;
    one_ring("vernier", spsc::<PacketRecord>(CAPACITY).expect("it fits"));
    let mcring = ring::<PacketRecord>(Kind::McRing, CAPACITY, 50);
    one_ring("mcring", mcring.expect("it fits"));
}

/// On one thread, in bursts: copied into slots and out, and constructed and read in place.
fn one_ring<F: Flavor<PacketRecord>>(
    name: &str,
    (mut producer, mut consumer): Ring<PacketRecord, F>,
) {
    let values = [PacketRecord::EMPTY; BURST];
    let rounds = PACKETS as usize / BURST;
    measure(&format!("ring {name}, push and pop"), rounds * BURST, || {
        for _ in 0..rounds {
            assert_eq!(producer.push_burst(&values), BURST);
            producer.flush();
            for _ in 0..BURST {
                black_box(consumer.pop());
            }
        }
    });
    measure(&format!("ring {name}, in place"), rounds * BURST, || {
        for round in 0..rounds {
            let item = |at| PacketRecord { ts_ns: (round + at) as u64, ..PacketRecord::EMPTY };
            assert_eq!(producer.fill(BURST, item), BURST);
            producer.flush();
            let mut left = BURST;
            while left > 0 {
                let taken = black_box(consumer.peek(left)).len();
                consumer.release(taken);
                left -= taken;
            }
        }
    });
}

fn encoders(records: &[FlowRecord]) {
    messages("encode IPFIX", records, Ipfix::new(0, 1, STREAM_LIMIT));
    messages("encode NetFlow v9", records, NetFlow9::new(0, UDP_LIMIT));
    // Those that are built in.
    for format in Format::ALL.into_iter().filter(|own| own.name().parse::<Format>().is_ok()) {
        measure(&format!("encode {format}"), records.len(), || {
            drop(black_box(format.encode(records, &Interfaces::default())));
        });
    }
}

struct NoOutbox;

impl Outbox<()> for NoOutbox {
    fn send(&mut self, (): ()) {}
}

fn messages(name: &str, records: &[FlowRecord], mut encoder: impl Encoder) {
    measure(name, records.len(), || {
        for record in records {
            while encoder.add(record, &mut RecordTotals::default()) == Err(Refusal::Full) {
                black_box(encoder.seal());
                encoder.done();
            }
        }
    });
}

/// A plan for one thread.
fn plan(app: ringtap_monitor::Options) -> Plan<ringtap_monitor::Options> {
    let run = ringtap_engine::Options {
        skeleton: Some(Skeleton::Reference),
        seed: 1,
        ..ringtap_engine::Options::default()
    };
    let machine = Machine { cores: 1, allowed_cores: vec![0], memory_bytes: 8 << 30 };
    Plan::new(run, app, &machine).expect("a valid plan")
}

/// All analyses, packets and then the end, when all flows become records.
fn monitor(name: &str, packets: &[PacketRecord]) {
    let plan = plan(ringtap_monitor::Options::default());
    let app = Monitor::new(Setup::of(&plan, &Arc::default()), Outputs::default());
    let mut worker = app.worker(Shard::WHOLE);
    measure(&format!("monitor, {name}"), packets.len(), || {
        let bursts = packets.chunks(BURST);
        bursts.for_each(|burst| worker.on_burst(burst, Attachments::NONE, &mut NoOutbox));
    });
    let mark = Mark::End { time_ns: packets.last().map_or(0, |packet| packet.ts_ns) };
    measure(&format!("monitor, end of {name}"), packets.len(), || {
        while worker.on_mark(&mark, &mut NoOutbox).is_none() {}
    });
}

/// The whole path, from frames in a capture to the report; with `payloads`, flow records with facts are made, too.
fn run(name: &str, frames: &[(u64, u32, Vec<u8>)], analyses: Analyses, payloads: bool) {
    let mut capture = Vec::new();
    let mut writer = PcapWriter::new(&mut capture, LinkType::ETHERNET, u32::MAX);
    for (ts_ns, len, frame) in frames {
        writer.write(*ts_ns, *len, frame).expect("memory takes it");
    }
    drop(writer);
    let app = ringtap_monitor::Options { analyses, ..ringtap_monitor::Options::default() };
    let plan = plan(app);
    let mut outputs = Outputs::default();
    if payloads {
        outputs.sinks.push(Sinks { records: Some(Box::new(NoRecords)), ..Sinks::default() });
    }
    let mut outputs = Some(outputs);
    measure(&format!("run, {name}"), frames.len(), || {
        let files = Files::from_reader("memory", Cursor::new(capture.clone()));
        let outputs = outputs.take().expect("one run");
        black_box(ringtap_monitor::run(&plan, files, outputs, &Watch::new()).expect("a run"));
    });
}

struct NoRecords;

impl RecordSink for NoRecords {
    fn take(&mut self, record: &FlowRecord) {
        black_box(record);
    }
}

fn sketch(packets: &[PacketRecord]) {
    let key = |packet: &PacketRecord| {
        let mut key = [0; 8];
        key[..4].copy_from_slice(&packet.src[..4]);
        key[4..].copy_from_slice(&packet.dst[..4]);
        key
    };
    let keys: Vec<[u8; 8]> = packets.iter().map(key).collect();
    let mut sketch: CountMin<[u8; 8]> =
        CountMin::new(Shape::new(4, 1 << 16).expect("a valid shape"), 1);
    measure("Count-Min, 4 rows", keys.len(), || {
        keys.chunks(BURST).for_each(|burst| sketch.update_burst(burst));
    });
}
