//! Conversations by interval when packets are late, against the definition: a conversation counts
//! in the interval of a packet that is later than every one in which it was counted before.
//!
//! A flow stores the interval in 16 bits, so the cases are those of two intervals that are 65,535
//! apart.
#![allow(clippy::unwrap_used, reason = "the volumes are there, or the test ends")]

use ringtap_flow::{Metering, Timeouts};
use ringtap_monitor::{Monitor, Options, Outputs, Setup};
use ringtap_stage::{Application, Attachments, Mark, Merger, Outbox, Shard, Worker};
use ringtap_wire::{Flags, HashKey, PacketRecord};

const MS: u64 = 1_000_000;

struct Ignore;

impl Outbox<()> for Ignore {
    fn send(&mut self, (): ()) {}
}

/// One UDP packet of a fixed conversation.
fn packet(ts_ns: u64, ports: Flags) -> PacketRecord {
    let mut packet = PacketRecord::EMPTY;
    packet.ts_ns = ts_ns;
    (packet.src[0], packet.dst[0]) = (1, 2);
    (packet.src_port, packet.dst_port) = (1000, 53);
    packet.protocol = 17;
    packet.flags = Flags(Flags::IPV4.0 | ports.0);
    packet
}

/// Starts of the one-millisecond intervals in which the conversation counts.
fn counted(packets: &[PacketRecord], idle_ns: u64) -> Vec<u64> {
    let app = Monitor::new(
        Setup::new(
            Options {
                metering: Metering {
                    timeouts: Timeouts::default().idle(idle_ns),
                    ..Metering::default()
                },
                interval_ns: Some(MS),
                max_flows: Some(100),
                interval_units: 1_000,
                ..Options::default()
            },
            HashKey::from_seed(1),
            vec![1],
        ),
        Outputs::default(),
    );
    let (mut worker, mut merger) = (app.worker(Shard::WHOLE), app.merger());
    worker.on_burst(packets, Attachments::NONE, &mut Ignore);
    let mark = Mark::End { time_ns: packets.iter().map(|p| p.ts_ns).max().unwrap() };
    let partial = worker.on_mark(&mark, &mut Ignore).expect("few flows end at once");
    merger.on_partial(Shard::WHOLE, &mark, partial);
    let report = merger.finish();
    assert_eq!(report.conversations.unwrap().udp, 1);
    let rows = report.intervals.unwrap();
    rows.iter().filter(|row| row.conversations.udp == 1).map(|row| row.start.0).collect()
}

fn with_ports(times: &[u64]) -> Vec<PacketRecord> {
    times.iter().map(|&ts_ns| packet(ts_ns, Flags::PORTS)).collect()
}

const IDLE: u64 = 30_000 * MS;

#[test]
fn a_flow_that_begins_with_a_late_packet() {
    let times = [MS, 65_536 * MS];
    assert_eq!(counted(&with_ports(&times), IDLE), times);
}

#[test]
fn a_late_packet_within_a_flow() {
    let times = [100_000 * MS, 54_465 * MS, 120_000 * MS];
    assert_eq!(counted(&with_ports(&times), IDLE), [100_000 * MS, 120_000 * MS]);
}

#[test]
fn a_flow_of_later_fragments() {
    let mut packets = with_ports(&[0, 25_000 * MS, 50_000 * MS, 65_535 * MS]);
    for later in &mut packets[1..3] {
        later.flags = Flags(Flags::IPV4.0 | Flags::PORTS_FROM_FIRST.0);
    }
    assert_eq!(counted(&packets, IDLE), [0, 65_535 * MS]);
}

#[test]
fn an_idle_timeout_just_below_the_range_of_stamps() {
    let packets = with_ports(&[MS - 1, 65_535 * MS]);
    assert_eq!(counted(&packets, 65_535 * MS - 1), [0, 65_535 * MS]);
}

#[test]
fn the_last_nanosecond_of_time() {
    let packets = with_ports(&[u64::MAX - 1, u64::MAX]);
    assert_eq!(counted(&packets, IDLE), [u64::MAX / MS * MS]);
}
