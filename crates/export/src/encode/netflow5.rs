//! NetFlow v5, as sent by Cisco routers: IPv4 only, fixed records, 32-bit counters.
//!
//! ```text
//!  0               2               4               6               8
//! ├ version = 5 ───┼ count ≤ 30 ───┼ sysUptime, milliseconds ──────┤
//! ├ seconds since 1970 ────────────┼ nanoseconds = 0 ──────────────┤
//! ├ flow sequence ─────────────────┼ engine ───────┼ sampling ─────┤   24 octets, then records of 48
//! ```
//!
//! Flows are one-direction, so an answered flow becomes two records. A direction with more packets or octets than 32 bits
//! hold is divided into several records, if they fit into one message. By convention the destination port of ICMP is
//! type and code of the first packet; answers have 0. Sampling is a mode in two bits, 1 deterministic or 2 random, and
//! an interval (one packet in N) in 14 bits.

use ringtap_flow::{FlowRecord, IpVersion};

use super::uptime::Uptime;
use super::{Encoder, Progress, Refusal, Sealed, counts_of, directions, put_word};
use crate::fields::{self, milliseconds};
use crate::{Reason, RecordTotals, Sampling};

const HEADER: usize = 24;
const RECORD: usize = 48;
const RECORDS_MAX: usize = 30;

/// Encodes flow records as NetFlow v5 packets.
pub struct NetFlow5 {
    engine: u16,
    sampling: u16,
    sequence: u32,
    uptime: Uptime,
    bytes: Vec<u8>,
    records_max: usize,
    flows: RecordTotals,
}

impl NetFlow5 {
    /// Creates an encoder for the engine type and number in `engine`; its messages have at most `limit` octets.
    pub fn new(engine: u16, limit: usize) -> Self {
        let limit = limit.max(super::LEAST_LIMIT);
        let records_max = ((limit - HEADER) / RECORD).min(RECORDS_MAX);
        let mut bytes = Vec::with_capacity(limit);
        bytes.resize(HEADER, 0);
        let (uptime, flows) = (Uptime::default(), RecordTotals::default());
        Self { engine, sampling: 0, sequence: 0, uptime, bytes, records_max, flows }
    }

    /// Uses the clock of another encoder, so that the times in messages of both are relative to the same start.
    #[must_use]
    pub fn with_clock_of(mut self, other: &Self) -> Self {
        self.uptime = other.uptime.share();
        self
    }

    /// Adds the announcement that packets are sampled; the largest interval is 16,383.
    #[must_use]
    pub fn sampled(mut self, sampling: Option<Sampling>) -> Self {
        let encoded = |one: Sampling| {
            u16::from(one.mode()) << 14 | one.of().min(Sampling::NETFLOW5_MOST) as u16
        };
        self.sampling = sampling.map_or(0, encoded);
        self
    }

    fn records(&self) -> usize {
        (self.bytes.len() - HEADER) / RECORD
    }
}

impl Encoder for NetFlow5 {
    #[inline]
    fn add(&mut self, record: &FlowRecord, flows: &mut RecordTotals) -> Result<(), Refusal> {
        if record.key.version != IpVersion::V4 {
            return Err(Refusal::Unfit(Reason::Ipv6));
        }
        let all = as_small_uniflows(record);
        if all.records > self.records_max as u64 {
            return Err(Refusal::Unfit(Reason::CounterRange));
        }
        if self.records() + all.records as usize > self.records_max {
            return Err(Refusal::Full);
        }
        let (start, end) = (milliseconds(record.first_ns), milliseconds(record.last_ns));
        let times = self.uptime.place(start, end, self.records() == 0)?;
        for direction in directions(record) {
            let parts = parts(record, direction);
            for part in 0..parts {
                put(record, direction, times, [part, parts], &mut self.bytes);
            }
        }
        self.flows += all;
        *flows += all;
        Ok(())
    }

    fn seal(&mut self) -> Option<Sealed<'_>> {
        let count = self.records() as u16;
        if count == 0 {
            return None;
        }
        let (uptime, seconds) = self.uptime.header();
        let bytes = &mut self.bytes;
        bytes[0..2].copy_from_slice(&5u16.to_be_bytes());
        bytes[2..4].copy_from_slice(&count.to_be_bytes());
        bytes[4..8].copy_from_slice(&uptime.to_be_bytes());
        bytes[8..12].copy_from_slice(&seconds.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[20..22].copy_from_slice(&self.engine.to_be_bytes());
        bytes[22..24].copy_from_slice(&self.sampling.to_be_bytes());
        Some(Sealed { bytes, flows: self.flows })
    }

    fn done(&mut self) {
        // The sequence counter of all flows: records, without those of this message.
        self.sequence = self.sequence.wrapping_add(self.records() as u32);
        self.bytes.truncate(HEADER);
        self.flows = RecordTotals::default();
    }

    fn announcement(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn statistics(&mut self, _progress: &Progress) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn farewell(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn restart(&mut self) {
        self.sequence = 0;
    }

    fn octets(&self) -> usize {
        self.bytes.len()
    }

    fn learn(&mut self, _message: &[u8]) {}

    fn stamp(&mut self, message: &mut [u8], flows: RecordTotals) {
        put_word(message, 16, self.sequence);
        // Modulo 2³².
        self.sequence = self.sequence.wrapping_add(flows.records as u32);
    }
}

/// Number of records for a direction.
fn parts(record: &FlowRecord, direction: usize) -> u64 {
    let most = record.packets[direction].max(record.octets[direction]);
    most.div_ceil(u64::from(u32::MAX)).max(1)
}

/// The records of a flow in NetFlow v5.
pub(crate) fn as_small_uniflows(record: &FlowRecord) -> RecordTotals {
    counts_of(record, directions(record).map(|direction| parts(record, direction)).sum())
}

/// One record: part `part` of `parts` of a direction.
fn put(
    record: &FlowRecord,
    direction: usize,
    (first, last): (u32, u32),
    [part, parts]: [u64; 2],
    out: &mut Vec<u8>,
) {
    let key = if direction == 0 { record.key } else { record.key.reversed() };
    let to = fields::type_code(record, direction).unwrap_or(key.dst_port);
    // The first parts get the remainder of the division.
    let share = |all: u64| {
        let one_more = u64::from(part < all % parts);
        // At most 2³² - 1, by the choice of `parts`.
        (all / parts + one_more) as u32
    };
    // The input interface has 16 bits; 0 means unknown.
    let input = u16::try_from(fields::ingress(record, direction)).unwrap_or(0);
    let mut bytes = [0; RECORD];
    bytes[0..4].copy_from_slice(&key.src[..4]);
    bytes[4..8].copy_from_slice(&key.dst[..4]);
    bytes[12..14].copy_from_slice(&input.to_be_bytes());
    bytes[16..20].copy_from_slice(&share(record.packets[direction]).to_be_bytes());
    bytes[20..24].copy_from_slice(&share(record.octets[direction]).to_be_bytes());
    bytes[24..28].copy_from_slice(&first.to_be_bytes());
    bytes[28..32].copy_from_slice(&last.to_be_bytes());
    bytes[32..34].copy_from_slice(&key.src_port.to_be_bytes());
    bytes[34..36].copy_from_slice(&to.to_be_bytes());
    bytes[37] = record.tcp_flags[direction];
    bytes[38] = key.protocol;
    bytes[39] = record.tos[direction];
    out.extend_from_slice(&bytes);
}
