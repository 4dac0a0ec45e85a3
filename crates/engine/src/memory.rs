//! Divides the memory of a run: buffers first, the rest for the application.

use ringtap_wire::BYTES_PER_DATAGRAM;
use serde::Serialize;

use crate::duplicates::PACKET_BYTES;
use crate::recent::LEAST_QUEUE_BYTES;
use crate::{Options, PlanError, RecentBytes};

/// Buffer for waiting frames of each interface: 64 ms of 60-byte frames at 10 million a second.
pub(crate) const BUFFER_BYTES: u64 = 64 << 20;
/// A block or two for each of many queues.
const LEAST_BUFFER_BYTES: u64 = 4 << 20;
/// Encoded flow records that wait for an output: a second of two workers' output, or minutes of an
/// outage.
const OUTPUT_BYTES: u64 = 32 << 20;
/// Some blocks for each of a few workers.
const LEAST_OUTPUT_BYTES: u64 = 1 << 20;
/// Least size of a worker's record blocks for an output, in total.
const LEAST_WORKER_OUTPUT_BYTES: u64 = 64 << 10;
/// The latest frames, unless the user gave their memory: seconds of a fast link; at most a quarter of all memory, but
/// the least that the queues need.
const RECENT_BYTES: u64 = 64 << 20;
/// Memory before any state: the program and its buffers for reading and writing.
/// Measured: 6 MB, 9 MB with records to a file, 15 MB with two collectors.
const BASE_BYTES: u64 = 20 << 20;
/// A slot of a lane: one packet.
const SLOT_BYTES: u64 = 64;

/// First fragments: this part of all memory, with these bounds of their number.
const FRAGMENTS_PART: u64 = 64;
const LEAST_DATAGRAMS: u64 = 4_096;
const MOST_DATAGRAMS: u64 = 1 << 20;

/// Packets that are stored to find duplicates: this part, these bounds. The most: 0.4 s at 10 million a second.
const DUPLICATES_PART: u64 = 16;
const LEAST_DUPLICATES: u64 = 4_096;
const MOST_DUPLICATES: u64 = 4 << 20;

/// Memory that the engine itself uses.
#[derive(Clone, Debug, Serialize)]
pub struct Buffers {
    /// Bytes for frames that wait to be read, of all interfaces together.
    #[serde(skip_serializing_if = "is_zero")]
    pub buffer_bytes: u64,
    /// Bytes for encoded records that wait to be written, of each output.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_bytes: u64,
    /// Bytes for the latest frames.
    #[serde(skip_serializing_if = "is_zero")]
    pub recent_bytes: u64,
    /// Most packets that are stored to find duplicates.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_duplicates: u64,
    /// Most fragmented datagrams whose later fragments get the ports of the first one.
    pub max_datagrams: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Memory available to an application.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The limit that the user gave.
    pub requested: Option<u64>,
    /// Memory for the whole run, bytes.
    pub bytes: u64,
    /// Memory of the program, buffers and workers, bytes.
    pub fixed: u64,
    /// Workers of all queues.
    pub workers: u64,
    /// Whether the source is interfaces.
    pub live: bool,
}

impl Buffers {
    /// Divides memory among the buffers; also returns the rest.
    pub(crate) fn new(
        options: &Options,
        machine_bytes: u64,
        queues: u64,
        workers: u64,
        worker_bytes: u64,
    ) -> (Self, Memory) {
        let requested = options.memory_bytes;
        let bytes = requested.unwrap_or(machine_bytes / 4);
        let datagrams = bytes / FRAGMENTS_PART / BYTES_PER_DATAGRAM;
        let own = Self {
            buffer_bytes: buffer_bytes(options.interfaces() as u64, requested),
            output_bytes: if options.outputs > 0 { output_bytes(workers, requested) } else { 0 },
            recent_bytes: options.recent.map_or(0, |given| recent_bytes(given, bytes, queues)),
            max_duplicates: options.dedup_ns.map_or(0, |_| stored_packets(bytes)),
            max_datagrams: datagrams.clamp(LEAST_DATAGRAMS, MOST_DATAGRAMS),
        };
        let fixed = BASE_BYTES
            + own.buffer_bytes
            + options.outputs as u64 * own.output_bytes
            + options.output_fixed_bytes
            + options.input_bytes
            + (worker_bytes + options.ring_capacity as u64 * SLOT_BYTES) * workers
            + own.max_duplicates * PACKET_BYTES
            + own.max_datagrams * BYTES_PER_DATAGRAM;
        // The user may have given any number.
        let fixed = fixed.saturating_add(own.recent_bytes);
        (own, Memory { requested, bytes, fixed, workers, live: options.live })
    }
}

impl Memory {
    /// Memory left after `least`, which the application cannot do without; bytes.
    ///
    /// # Errors
    /// If the user's limit is too low for that.
    pub fn beside(&self, least: u64) -> Result<u64, PlanError> {
        let least = self.fixed + least;
        match self.requested {
            Some(given) if given < least => Err(PlanError::TooLittleMemory { given, least }),
            _ => Ok(self.bytes.saturating_sub(least)),
        }
    }
}

/// Bytes of the run's memory for the latest frames.
fn recent_bytes(given: RecentBytes, bytes: u64, queues: u64) -> u64 {
    match given {
        RecentBytes::Given(bytes) => bytes,
        RecentBytes::Default => RECENT_BYTES.min(bytes / 4).max(queues * LEAST_QUEUE_BYTES),
    }
}

/// Packets stored to find duplicates.
fn stored_packets(bytes: u64) -> u64 {
    (bytes / DUPLICATES_PART / PACKET_BYTES).clamp(LEAST_DUPLICATES, MOST_DUPLICATES)
}

/// Bytes of the run's memory, if bounded, for waiting frames of all interfaces.
fn buffer_bytes(interfaces: u64, requested: Option<u64>) -> u64 {
    let most = interfaces * BUFFER_BYTES;
    let least = interfaces * LEAST_BUFFER_BYTES;
    requested.map_or(most, |memory| (memory / 4).max(least).min(most))
}

/// Bytes of it for waiting encoded records of one output.
fn output_bytes(workers: u64, requested: Option<u64>) -> u64 {
    let bytes = requested
        .map_or(OUTPUT_BYTES, |memory| (memory / 16).clamp(LEAST_OUTPUT_BYTES, OUTPUT_BYTES));
    bytes.max(workers * LEAST_WORKER_OUTPUT_BYTES)
}
