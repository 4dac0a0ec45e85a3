//! Nanoseconds a packet in the flow table alone: `cargo bench -p ringtap-flow`.
//!
//! Packets are made in advance, so only hashing, look-up and update are measured. Each figure is
//! the best of ten rounds. Then bursts of 256 packets of new flows, while the table grows: microseconds of a burst, the
//! median, the 99.99th percentile and the longest. The last lines are of the mark at which live flows are cut: nanoseconds
//! a part, without the outputs, and milliseconds of the whole mark, during which its worker handles no packet. As a test
//! (`cargo test --benches`) it runs one small round.

use std::sync::Arc;
use std::time::Instant;

use ringtap_flow::{FlowRecord, FlowTable, Metering, Observer};
use ringtap_stage::Attachments;
use ringtap_wire::{Flags, HashKey, PacketRecord, Paths};

const KEY: HashKey = HashKey::from_seed(1);

/// Nanoseconds of a window of cuts: less than the idle timeout.
const WINDOW: u64 = 10_000_000_000;

/// Packets of flows that ended, and of parts.
struct Count(u64, u64);

impl Observer for Count {
    #[inline(always)]
    fn counted(&mut self, _: &PacketRecord, _: &mut u16) {}
    fn late(&mut self, _: &PacketRecord, _: u16) {}
    fn part(&mut self, record: &FlowRecord) {
        self.1 += record.packets[0] + record.packets[1];
    }
    fn ended(&mut self, record: &FlowRecord, _: u16) {
        self.0 += record.packets[0] + record.packets[1];
    }
}

/// A packet of flow `flow`, in either direction.
fn packet(flow: u64, number: u64, ipv6: bool) -> PacketRecord {
    let mut p = PacketRecord::EMPTY;
    p.ts_ns = 1_700_000_000_000_000_000 + number * 1_000;
    let spread = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    p.src[..4].copy_from_slice(&(spread >> 32).to_le_bytes()[..4]);
    p.dst[..4].copy_from_slice(&(flow as u32 % 1000).to_le_bytes());
    (p.src_port, p.dst_port) = (flow as u16, 443);
    (p.protocol, p.tcp_flags, p.ip_len, p.ttl) = (6, 16, 40 + number as u32 % 1400, 64);
    p.flags = Flags(if ipv6 { Flags::IPV6.0 } else { Flags::IPV4.0 } | Flags::PORTS.0);
    if number.is_multiple_of(3) {
        std::mem::swap(&mut p.src, &mut p.dst);
        std::mem::swap(&mut p.src_port, &mut p.dst_port);
    }
    p.pair_hash = KEY.pair(&p.src, &p.dst);
    p
}

/// Every third packet is a reply; flows are drawn at random.
fn packets(count: u64, flows: u64, ipv6: bool) -> Vec<PacketRecord> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).map(|number| packet(random() % flows, number, ipv6)).collect()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark asks the clock")]
fn seconds(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64()
}

/// Seconds of the mark at which this many live flows are cut.
fn cut(live: u64) -> f64 {
    let metering = Metering { cut_ns: Some(WINDOW), ..Metering::default() };
    let mut table = FlowTable::new(live as usize, &metering, KEY, Arc::new(Paths::new()));
    let mut counted = Count(0, 0);
    let packets: Vec<_> = (0..live).map(|flow| packet(flow, flow / 1_000, false)).collect();
    packets.chunks(256).for_each(|burst| table.burst(burst, Attachments::NONE, &mut counted));
    // The next window, before any flow has been idle for long.
    let mark = packets[0].ts_ns / WINDOW * WINDOW + WINDOW;
    let time = seconds(|| while !table.sweep(mark, 512, &mut counted) {});
    assert_eq!((counted.0, counted.1), (0, live));
    time
}

/// Microseconds of each burst of 256 new flows, ascending.
fn growth(flows: u64) -> Vec<f64> {
    let metering = Metering::default();
    let mut table = FlowTable::new(flows as usize, &metering, KEY, Arc::new(Paths::new()));
    let mut counted = Count(0, 0);
    let mut times: Vec<_> = (0..flows / 256)
        .map(|number| {
            let new = |at| packet(number * 256 + at, number * 256 + at, false);
            let burst: Vec<_> = (0..256).map(new).collect();
            seconds(|| table.burst(&burst, Attachments::NONE, &mut counted)) * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let test = !std::env::args().any(|argument| argument == "--bench");
    let (count, rounds) = if test { (10_000, 1) } else { (4_000_000, 10) };
    for (name, flows, ipv6) in [
        ("one flow", 1, false),
        ("1 k flows", 1_000, false),
        ("100 k flows", 100_000, false),
        ("1 M flows", 1_000_000, false),
        ("1 M flows, IPv6", 1_000_000, true),
    ] {
        let packets = packets(count, flows, ipv6);
        let (mut live, mut born) = (f64::MAX, f64::MAX);
        for _ in 0..rounds {
            let mut table =
                FlowTable::new(1 << 21, &Metering::default(), KEY, Arc::new(Paths::new()));
            let mut counted = Count(0, 0);
            let mut run = || {
                packets
                    .chunks(256)
                    .for_each(|burst| table.burst(burst, Attachments::NONE, &mut counted))
            };
            born = born.min(seconds(&mut run));
            live = live.min(seconds(&mut run));
            while !table.is_empty() {
                table.drain(0, 512, &mut counted);
            }
            assert_eq!(counted.0, 2 * count);
        }
        let ns = |seconds: f64| seconds * 1e9 / count as f64;
        println!(
            "{name:16} {:6.1} ns while flows come, {:6.1} ns once they live",
            ns(born),
            ns(live)
        );
    }
    for flows in if test { &[10_240][..] } else { &[1_000_000, 10_000_000] } {
        let times = growth(*flows);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!(
            "growth to {flows} flows, us a burst: {:.1}, {:.1}, {:.1}",
            at(0.5),
            at(0.9999),
            at(1.0)
        );
    }
    for live in if test { &[10_000][..] } else { &[100_000, 1_000_000] } {
        let time = (0..rounds).map(|_| cut(*live)).fold(f64::MAX, f64::min);
        let (ns, ms) = (time * 1e9 / *live as f64, time * 1e3);
        println!("cut of {live} flows {ns:6.1} ns a part, {ms:6.1} ms");
    }
}
