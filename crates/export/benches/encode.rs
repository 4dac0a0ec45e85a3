//! Measures encoding on one thread, and a sink with a writer that writes a file: `cargo bench -p ringtap-export`.
//!
//! Each figure is the best of ten rounds over a million records, half of them answered, a quarter IPv6, a few ICMP. As
//! a test (`cargo test --benches`) it runs one small round.

use std::fs::File;
use std::io::{self, Write};
use std::time::Instant;

use ringtap_export::RecordTotals;
use ringtap_export::encode::{
    Encoder, Ipfix, NetFlow5, NetFlow9, Refusal, STREAM_LIMIT, UDP_LIMIT,
};
use ringtap_export::{Output, Prepared, Settings, Store};
use ringtap_flow::{
    Application, ApplicationReason, EndReason, FlowKey, FlowRecord, IpVersion, Kind, Label,
};

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
        icmp_type_code: 0x0800,
        end_reason: EndReason::Idle,
        ..FlowRecord::new(key)
    }
}

/// The record with a label, and every second one with facts of TLS.
fn with_facts(number: u64) -> FlowRecord {
    let label = Label::new(b"google").expect("a label");
    let application = Some(Application { label, reason: ApplicationReason::Name });
    let mut record = FlowRecord { application, ..record(number) };
    if number.is_multiple_of(2) {
        let facts: [(Kind, &[u8]); 6] = [
            (Kind::Protocol, b"tls"),
            (Kind::TlsServerName, b"www.google.com"),
            (Kind::TlsVersion, b"TLS 1.3"),
            (Kind::TlsCipher, b"TLS_AES_128_GCM_SHA256"),
            (Kind::Ja3, b"00112233445566778899aabbccddeeff"),
            (Kind::Ja3s, b"ffeeddccbbaa99887766554433221100"),
        ];
        for (kind, value) in facts {
            record.facts.add(kind, value, usize::MAX).expect("enough room");
        }
    }
    record
}

type Make = fn() -> Box<dyn Encoder>;

/// Octets of all messages.
fn encode(encoder: &mut dyn Encoder, records: &[FlowRecord]) -> u64 {
    let mut octets = 0;
    let mut send = |encoder: &mut dyn Encoder| {
        octets +=
            encoder.seal().map_or(0, |sealed| std::hint::black_box(sealed.bytes).len() as u64);
        encoder.done();
    };
    for record in records {
        while encoder.add(record, &mut RecordTotals::default()) == Err(Refusal::Full) {
            send(encoder);
        }
    }
    send(encoder);
    octets
}

/// A regular file.
struct Plain(File);

impl Store for Plain {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.0.write_all(octets)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_regular(&self) -> bool {
        true
    }

    fn may_abandon(&self) -> bool {
        false
    }
}

/// Writes records to a file; returns its octets.
fn take(records: &[FlowRecord]) -> u64 {
    let folder = tempfile::tempdir().expect("a folder for a file");
    let path = folder.path().join("flows.ipfix");
    let output: Output = format!("ipfix-file:{}", path.display()).parse().expect("a URL");
    let open = |path: &std::path::Path| Ok(Box::new(Plain(File::create(path)?)) as Box<dyn Store>);
    let prepared = Prepared::new(&[output], Settings::default()).expect("a file");
    let (mut sinks, exports) = prepared.start(1, open).expect("a file");
    let sink = sinks[0].records.as_mut().expect("an output for records");
    records.iter().for_each(|record| sink.take(record));
    sinks[0].finish();
    let summary = exports.finish().remove(0);
    assert_eq!(summary.sent.flows.records, records.len() as u64, "{summary:?}");
    summary.sent.message_octets
}

#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark")]
fn main() {
    let measuring = std::env::args().any(|arg| arg == "--bench");
    let (count, rounds) = if measuring { (1_000_000, 10) } else { (10_000, 1) };
    let records: Vec<_> = (0..count).map(record).collect();
    let encoders: [(&str, Make); 4] = [
        ("ipfix, udp", || Box::new(Ipfix::new(0, 1, UDP_LIMIT))),
        ("ipfix, file", || Box::new(Ipfix::new(0, 1, STREAM_LIMIT))),
        ("netflow9", || Box::new(NetFlow9::new(0, UDP_LIMIT))),
        ("netflow5", || Box::new(NetFlow5::new(0, UDP_LIMIT))),
    ];
    let measure = |name: &str, count: usize, run: &mut dyn FnMut() -> u64| {
        let (mut best, mut octets) = (f64::INFINITY, 0);
        for _ in 0..rounds {
            let begin = Instant::now();
            octets = run();
            best = best.min(begin.elapsed().as_secs_f64());
        }
        assert!(octets > 48 * count as u64 / 2, "{name} wrote {octets} octets");
        if measuring {
            println!("{name:16} {:6.2} M flow records/s", count as f64 / best / 1e6);
        }
    };
    for (name, make) in encoders {
        measure(name, records.len(), &mut || encode(&mut *make(), &records));
    }
    let with_facts: Vec<_> = (0..count / 10).map(with_facts).collect();
    measure("ipfix, facts", with_facts.len(), &mut || {
        encode(&mut Ipfix::new(0, 1, UDP_LIMIT), &with_facts)
    });
    // In the folder of TMPDIR, which may be in memory.
    measure("file, written", records.len(), &mut || take(&records));
}
