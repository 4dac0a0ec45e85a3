//! The yardstick: a minimal flow meter on one thread that handles one packet at a time as fast as
//! possible.
//!
//! ```text
//! mapped pcap file -> record header -> Ethernet/IPv4/TCP/UDP -> canonical 5-tuple -> biflow table [-> file]
//! ```
//!
//! It has no timeouts, analyses, export, IPv6, tunnels, batching or prefetching. The comparison
//! with a real meter shows the cost of these features, and the gain of batching and prefetching.
//!
//! Usage: `meter FILE.pcap [--slots N] [--records FILE | --batched yes]`. Prints one line of JSON.
//! With `--records` it also writes the flows to a file at the end, 48 bytes each. `--batched yes`
//! selects the second yardstick (`batched.rs`). Invariant: every packet of the file is either in
//! exactly one flow or counted as `other`; the run aborts if the sums differ.

mod batched;
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

/// Initial number of slots: 96 MiB, room for a million flows; the table doubles when it is half
/// full.
const SLOTS_DEFAULT: usize = 1 << 21;

struct Options {
    path: String,
    slots: usize,
    records: Option<String>,
    batched: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut options =
            Self { path: arguments.next()?, slots: SLOTS_DEFAULT, records: None, batched: false };
        while let Some(flag) = arguments.next() {
            let value = arguments.next()?;
            match flag.as_str() {
                "--slots" => {
                    let fits = |n: &usize| n.is_power_of_two() && *n >= 2;
                    options.slots = value.parse().ok().filter(fits)?;
                }
                "--records" => options.records = Some(value),
                "--batched" => options.batched = value == "yes",
                _ => return None,
            }
        }
        Some(options)
    }
}

fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("usage: meter FILE.pcap [--slots POWER_OF_TWO] [--records FILE | --batched yes]");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("meter: {}: {reason}", options.path);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<String, String> {
    let start = Instant::now();
    if options.batched {
        let counts = batched::run(&options.path, options.slots)?;
        return Ok(line(counts.packets, counts.flows, counts.other, counts.octets, start));
    }
    let file = MappedFile::open(&options.path).map_err(|error| error.to_string())?;
    let mut table = Table::with_slots(options.slots);
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
    if let Some(path) = &options.records {
        write_records(&table, path).map_err(|error| format!("writing {path}: {error}"))?;
    }
    let (flows, counted, counted_octets) = table.totals();
    assert_eq!(flows, table.len(), "occupied slots and counted flows differ");
    assert_eq!(counted + other, packets, "packets in flows and packets read differ");
    assert_eq!(counted_octets, octets, "octets in flows and octets read differ");
    Ok(line(packets, flows, other, octets, start))
}

fn line(packets: u64, flows: usize, other: u64, octets: u64, start: Instant) -> String {
    let seconds = start.elapsed().as_secs_f64();
    format!(
        "{{\"packets\":{packets},\"flows\":{flows},\"other\":{other},\"octets\":{octets},\
         \"seconds\":{seconds:.6},\"mpps\":{:.3}}}",
        packets as f64 / seconds / 1e6
    )
}

fn write_records(table: &Table, path: &str) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
    table.records().try_for_each(|record| out.write_all(&record))?;
    out.flush()
}
