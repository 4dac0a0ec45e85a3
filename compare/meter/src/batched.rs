//! The second yardstick: the same meter with batching and prefetching.
//!
//! ```text
//! read(2), 256 KiB -> up to 16 packets: parse, hash, prefetch the slot -> the same 16: count
//! ```
//!
//! An entry is one cache line, so a packet touches one line. The table has a fixed size.

use std::fs::File;
use std::io::{self, Read};

use crate::map::{Plain, Zeroed};
use crate::packet::{self, Key, Packet, Records};
use crate::table::hash;

/// Packets of a batch; their cache misses overlap.
const BATCH: usize = 16;
const BLOCK: usize = 256 << 10;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    packets: [u32; 2],
    octets: [u64; 2],
    first_seconds: u32,
    last_seconds: u32,
    rest: [u64; 2],
}

const _: () = assert!(size_of::<Entry>() == 64);

// SAFETY: all fields are integers or arrays of integers.
unsafe impl Plain for Entry {}

/// The counters of a run.
#[derive(Default)]
pub struct Counts {
    pub packets: u64,
    pub other: u64,
    pub octets: u64,
    pub flows: usize,
}

struct Waiting {
    packet: Packet,
    slot: usize,
    seconds: u32,
}

struct Meter {
    entries: Zeroed<Entry>,
    waiting: Vec<Waiting>,
    counts: Counts,
}

/// Meters a file; `slots` is a power of two. Fails if the table becomes more than three quarters
/// full.
pub fn run(path: &str, slots: usize) -> Result<Counts, String> {
    let mut meter = Meter {
        entries: Zeroed::new(slots),
        waiting: Vec::with_capacity(BATCH),
        counts: Counts::default(),
    };
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let mut block = vec![0; BLOCK];
    let mut filled = read(&mut file, &mut block, 0)?;
    let mut done = packet::check_header(&block[..filled])?;
    loop {
        let mut records = Records::from(&block[done..filled]);
        for record in &mut records {
            meter.take(record.frame, record.seconds)?;
        }
        let rest = records.rest().len();
        block.copy_within(filled - rest..filled, 0);
        (done, filled) = (0, read(&mut file, &mut block, rest)?);
        if filled == rest {
            break;
        }
    }
    meter.count()?;
    let packets: u64 =
        meter.entries.slice().iter().flat_map(|entry| entry.packets).map(u64::from).sum();
    assert_eq!(
        packets + meter.counts.other,
        meter.counts.packets,
        "packets in flows and packets read differ"
    );
    Ok(meter.counts)
}

/// Reads into the block after its first `kept` bytes; returns the end of the data.
fn read(file: &mut File, block: &mut [u8], kept: usize) -> Result<usize, String> {
    let read = |file: &mut File, to: &mut [u8]| -> io::Result<usize> {
        loop {
            match file.read(to) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    };
    Ok(kept + read(file, &mut block[kept..]).map_err(|error| error.to_string())?)
}

impl Meter {
    #[inline(always)]
    fn take(&mut self, frame: &[u8], seconds: u32) -> Result<(), String> {
        self.counts.packets += 1;
        let Some(packet) = packet::parse(frame) else {
            self.counts.other += 1;
            return Ok(());
        };
        let entries = self.entries.slice();
        let slot = hash(&packet.key) as usize & (entries.len() - 1);
        prefetch(&entries[slot]);
        self.waiting.push(Waiting { packet, slot, seconds });
        if self.waiting.len() == BATCH { self.count() } else { Ok(()) }
    }

    #[inline(always)]
    fn count(&mut self) -> Result<(), String> {
        let entries = self.entries.slice_mut();
        let mask = entries.len() - 1;
        for Waiting { packet, mut slot, seconds } in self.waiting.drain(..) {
            while entries[slot].key != packet.key && entries[slot].key[1] != 0 {
                slot = (slot + 1) & mask;
            }
            let entry = &mut entries[slot];
            if entry.key[1] == 0 {
                entry.key = packet.key;
                entry.first_seconds = seconds;
                self.counts.flows += 1;
                if self.counts.flows > mask / 4 * 3 {
                    return Err("the flow table is full: use more --slots".into());
                }
            }
            entry.packets[packet.direction] += 1;
            entry.octets[packet.direction] += u64::from(packet.octets);
            entry.last_seconds = seconds;
            self.counts.octets += u64::from(packet.octets);
        }
        Ok(())
    }
}

#[inline(always)]
fn prefetch(entry: &Entry) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch does not access memory architecturally and cannot fault.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = entry;
}
