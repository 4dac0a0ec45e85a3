//! What the engine knows of an application before it runs.

use ringtap_extract::Extractors;
use serde::Serialize;

use crate::{Memory, PlanError};

/// An application's own options: they are made from flags, are printed with the plan, and reach the workers as they are.
pub trait AppOptions: Clone + Serialize {
    /// The application's name.
    const NAME: &'static str;

    /// Thousandths of the whole work that reading, decoding and handing over make up: what the dispatcher's core is
    /// busy with before it can help.
    fn dispatch_share(&self) -> u32;

    /// Memory that each worker takes, whatever it sees; bytes.
    fn worker_bytes(&self) -> u64;

    /// What is read from payloads.
    fn extractors(&self) -> Extractors {
        Extractors::NONE
    }

    /// How far apart marks are in packet time, nanoseconds.
    fn tick_ns(&self) -> u64;

    /// The same over interfaces.
    fn live_tick_ns(&self) -> u64 {
        self.tick_ns()
    }

    /// Chooses what was left open, and spends the memory that the buffers leave.
    ///
    /// # Errors
    /// If an option is out of its range, or the memory does not suffice.
    fn settle(&mut self, memory: &Memory) -> Result<(), PlanError>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An application that costs little.
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
