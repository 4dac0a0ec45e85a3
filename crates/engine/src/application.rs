//! The properties of an application that the engine needs before it runs.

use ringtap_extract::Extractors;
use serde::Serialize;

use crate::{Memory, PlanError};

/// An application's options: made from flags, printed with the plan, and read by the workers.
pub trait AppOptions: Clone + Serialize {
    /// The application's name.
    const NAME: &'static str;

    /// Share of reading, decoding and dispatching in the whole work, in thousandths: the load of
    /// the dispatcher's core before it can help with the analysis.
    fn dispatch_share(&self) -> u32;

    /// Fixed memory of each worker, bytes.
    fn worker_bytes(&self) -> u64;

    /// The extractors for payloads.
    fn extractors(&self) -> Extractors {
        Extractors::NONE
    }

    /// Memory for messages that are spread over several packets, of all readers, bytes.
    fn payload_bytes(&self) -> u64 {
        0
    }

    /// Whether it needs the TCP segments of packets ([`Segment`](ringtap_wire::Segment)).
    fn segments(&self) -> bool {
        false
    }

    /// Octets of the payload of each packet that it needs ([`Kind::OCTETS`](ringtap_extract::Kind::OCTETS)), at most
    /// [`Attachments::MOST_BYTES`](ringtap_stage::Attachments::MOST_BYTES).
    fn octets(&self) -> usize {
        0
    }

    /// Distance between marks in packet time, nanoseconds.
    fn tick_ns(&self) -> u64;

    /// Whether a mark precedes the first packet of files, too.
    fn begins_with_mark(&self) -> bool {
        false
    }

    /// Distance between marks on interfaces, nanoseconds.
    fn live_tick_ns(&self) -> u64 {
        self.tick_ns()
    }

    /// Fills in defaults, and divides the memory that the buffers leave.
    ///
    /// # Errors
    /// If an option is out of its range, or the memory is too small.
    fn settle(&mut self, memory: &Memory) -> Result<(), PlanError>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An application with little work, for tests.
    #[derive(Clone, Debug, Serialize)]
    pub(crate) struct Toy {
        pub(crate) tick_ns: u64,
    }

    impl AppOptions for Toy {
        const NAME: &'static str = "toy";

        fn dispatch_share(&self) -> u32 {
            250
        }

        fn worker_bytes(&self) -> u64 {
            1 << 20
        }

        fn tick_ns(&self) -> u64 {
            self.tick_ns
        }

        fn settle(&mut self, memory: &Memory) -> Result<(), PlanError> {
            memory.beside(1_000).map(drop)
        }
    }
}
