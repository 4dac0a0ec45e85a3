//! Records a second that one thread writes: `cargo bench -p ringtap-records`.
//!
//! Each figure is the best of five rounds over a million records, half of them answered, a quarter IPv6, a few ICMP, all
//! with a VLAN tag and link addresses. As a test (`cargo test --benches`) it runs one small round.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ringtap_flow::{EndReason, FlowKey, FlowRecord, History, Initiator, IpVersion, Path};
use ringtap_records::Format;

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

/// Counts the octets and forgets them.
struct Counter<'a>(&'a AtomicU64);

impl Write for Counter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(std::hint::black_box(bytes).len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark")]
fn main() -> io::Result<()> {
    let measuring = std::env::args().any(|arg| arg == "--bench");
    let (count, rounds) = if measuring { (1_000_000, 5) } else { (10_000, 1) };
    let records: Vec<_> = (0..count).map(record).collect();
    for format in Format::ALL {
        let (mut best, octets) = (f64::INFINITY, AtomicU64::new(0));
        for _ in 0..rounds {
            octets.store(0, Ordering::Relaxed);
            let begin = Instant::now();
            let mut writer = format.writer(Box::new(Counter(&octets)));
            for record in &records {
                writer.write(record)?;
            }
            writer.finish()?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        let octets = octets.into_inner();
        assert!(octets > 30 * count, "{format} wrote {octets} octets");
        if measuring {
            let rate = count as f64 / best / 1e6;
            println!("{format:8} {rate:6.2} M flow records/s, {} octets each", octets / count);
        }
    }
    Ok(())
}
