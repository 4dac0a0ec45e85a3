//! The yardstick: the least that a flow meter can do, on one thread, as fast as it goes one packet at a time.
//!
//! ```text
//! mapped pcap file -> record header -> Ethernet/IPv4/TCP/UDP -> canonical 5-tuple -> biflow table [-> file]
//! ```
//!
//! No timeouts, no analyses, no export, no IPv6, no tunnels, no batching and no prefetching: what a real meter
//! costs above this is the price of its features, and what it gains is its craft.
//!
//! Usage: `meter FILE.pcap [--slots N] [--records FILE]`. Prints one line of JSON; with `--records` the flows are also
//! written to a file at the end, 48 bytes each. Invariant: every packet of the file is either in exactly one flow or
//! counted as `other`; the run aborts if the sums differ.

mod map;
mod packet;
mod table;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::Instant;

use map::MappedFile;
use packet::Records;
use table::Table;

/// Slots to start with: 96 MiB, room for a million flows without growing; more than that doubles it.
const SLOTS_DEFAULT: usize = 1 << 21;

struct Asked {
    path: String,
    slots: usize,
    records: Option<String>,
}

impl Asked {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut asked = Self { path: arguments.next()?, slots: SLOTS_DEFAULT, records: None };
        while let Some(flag) = arguments.next() {
            let value = arguments.next()?;
            match flag.as_str() {
                "--slots" => {
                    let fits = |n: &usize| n.is_power_of_two() && *n >= 2;
                    asked.slots = value.parse().ok().filter(fits)?;
                }
                "--records" => asked.records = Some(value),
                _ => return None,
            }
        }
        Some(asked)
    }
}

fn main() -> ExitCode {
    let Some(asked) = Asked::parse(std::env::args().skip(1)) else {
        eprintln!("usage: meter FILE.pcap [--slots POWER_OF_TWO] [--records FILE]");
        return ExitCode::from(2);
    };
    match run(&asked) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("meter: {}: {reason}", asked.path);
            ExitCode::FAILURE
        }
    }
}

fn run(asked: &Asked) -> Result<String, String> {
    let start = Instant::now();
    let file = MappedFile::open(&asked.path).map_err(|error| error.to_string())?;
    let mut table = Table::with_slots(asked.slots);
    let (mut packets, mut other, mut octets) = (0u64, 0u64, 0u64);
    for record in Records::of(file.bytes())? {
        packets += 1;
        match packet::parse(record.frame) {
            Some(parsed) => {
                octets += u64::from(parsed.octets);
                table.add(&parsed, record.seconds);
            }
            None => other += 1,
        }
    }
    if let Some(path) = &asked.records {
        write_records(&table, path).map_err(|error| format!("writing {path}: {error}"))?;
    }
    let seconds = start.elapsed().as_secs_f64();

    let (flows, counted, counted_octets) = table.totals();
    assert_eq!(flows, table.len(), "occupied slots and counted flows differ");
    assert_eq!(counted + other, packets, "packets in flows and packets read differ");
    assert_eq!(counted_octets, octets, "octets in flows and octets read differ");
    Ok(format!(
        "{{\"packets\":{packets},\"flows\":{flows},\"other\":{other},\"octets\":{octets},\
         \"seconds\":{seconds:.6},\"mpps\":{:.3}}}",
        packets as f64 / seconds / 1e6
    ))
}

fn write_records(table: &Table, path: &str) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
    table.records().try_for_each(|record| out.write_all(&record))?;
    out.flush()
}
