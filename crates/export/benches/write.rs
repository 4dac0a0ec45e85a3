//! Measures encoding of record formats on one thread: `cargo bench -p ringtap-export`.
//!
//! Each figure is the best of five rounds over a million records, half of them answered, a quarter IPv6, a few ICMP, all
//! with a VLAN tag and link addresses. As a test (`cargo test --benches`) it runs one small round.

use std::io;
use std::time::Instant;

use ringtap_export::formats::{Format, GROUP_ROWS, Interfaces};
use ringtap_flow::{EndReason, FlowKey, FlowRecord, History, Initiator, IpVersion, Path};

fn record(number: u64) -> FlowRecord {
    let v6 = number.is_multiple_of(4);
    let icmp = number.is_multiple_of(50);
    let mut src = [0; 16];
    src[..4].copy_from_slice(&(number as u32).to_be_bytes());
    let key = FlowKey {
        version: if v6 { IpVersion::V6 } else { IpVersion::V4 },
        src,
        dst: [0; 16],
        src_port: number as u16,
        dst_port: 443,
        protocol: if !icmp {
            6
        } else if v6 {
            58
        } else {
            1
        },
    };
    FlowRecord {
        first_ns: 1_700_000_000_000_000_000 + number * 1000,
        last_ns: 1_700_000_000_000_000_000 + number * 2000,
        packets: [number % 100 + 1, number % 2 * 10],
        octets: [number % 100_000 + 40, number % 2 * 10_000],
        tcp_flags: [0x1b, 0x12],
        ttl: [[64, 64], [50, 57]],
        ip_len: [[40, 1500], [40, 576]],
        history: History::of("ShADadFf"),
        initiator: Initiator::Syn,
        icmp_type_code: 0x0800,
        end_reason: EndReason::EndDetected,
        path: Path {
            macs: [[2; 6], [4; 6]],
            vlan_tags: 1,
            vlans: [number as u16 % 8, 0],
            ..Path::default()
        },
        ..FlowRecord::new(key)
    }
}

/// Encodes all records, 65,536 at a time, and drops the bytes; returns their number.
fn encode(format: Format, records: &[FlowRecord]) -> io::Result<u64> {
    let mut octets = 0;
    for records in records.chunks(GROUP_ROWS) {
        octets +=
            std::hint::black_box(format.encode(records, &Interfaces::default())?).len() as u64;
    }
    Ok(octets)
}

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark")]
fn main() -> io::Result<()> {
    let measuring = std::env::args().any(|arg| arg == "--bench");
    let (count, rounds) = if measuring { (1_000_000, 5) } else { (10_000, 1) };
    let records: Vec<_> = (0..count).map(record).collect();
    for format in Format::ALL {
        let (mut best, mut octets) = (f64::INFINITY, 0);
        for _ in 0..rounds {
            let begin = Instant::now();
            octets = encode(format, &records)?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        assert!(octets > 30 * count, "{format} wrote {octets} octets");
        if measuring {
            let rate = count as f64 / best / 1e6;
            println!("{format:8} {rate:6.2} M flow records/s, {} octets each", octets / count);
        }
    }
    Ok(())
}
