//! The yardstick: the least that a flow meter can do, on one thread, as fast as it goes one packet at a time.
//!
//! ```text
//! mapped pcap file -> record header -> Ethernet/IPv4/TCP/UDP -> canonical 5-tuple -> biflow table
//! ```
//!
//! No timeouts, no analyses, no export, no IPv6, no tunnels, no batching and no prefetching: what a real meter
//! costs above this is the price of its features, and what it gains is its craft.
//!
//! Usage: `meter FILE.pcap [--slots N]`. Prints one line of JSON. Invariant: every packet of the file is either
//! in exactly one flow or counted as `other`; the run aborts if the sums differ.

mod map;
mod packet;
mod table;

use std::process::ExitCode;
use std::time::Instant;

use map::MappedFile;
use packet::Records;
use table::Table;

/// Slots to start with: 96 MiB, room for a million flows without growing; more than that doubles it.
const SLOTS_DEFAULT: usize = 1 << 21;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), flag, slots) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("usage: meter FILE.pcap [--slots N]");
        return ExitCode::from(2);
    };
    let slots = match (flag.as_deref(), slots.map(|n| n.parse::<usize>())) {
        (None, _) => SLOTS_DEFAULT,
        (Some("--slots"), Some(Ok(n))) if n.is_power_of_two() && n >= 2 => n,
        _ => {
            eprintln!("meter: --slots takes a power of two");
            return ExitCode::from(2);
        }
    };
    match run(&path, slots) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("meter: {path}: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &str, slots: usize) -> Result<String, String> {
    let start = Instant::now();
    let file = MappedFile::open(path).map_err(|error| error.to_string())?;
    let mut table = Table::with_slots(slots);
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
