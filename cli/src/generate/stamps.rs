//! Writes the stamps of a stream of frames, and counts them.

use std::hash::{BuildHasher, Hasher, RandomState};

use ringtap_traffic::Stamp;
use serde::Serialize;

use ringtap_terminal::numbers::of;

/// The run number and counters of stamps. Field names are those of `--report json`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Stamps {
    /// Number of this run, by which the receiver separates runs.
    pub(super) run: u16,
    pub(super) stamped: u64,
    pub(super) without_room: u64,
}

impl Stamps {
    pub(super) fn new(run: u16) -> Self {
        Self { run, stamped: 0, without_room: 0 }
    }

    /// Stamps with a random run number: two simultaneous runs must differ.
    pub(super) fn random() -> Self {
        Self::new(RandomState::new().build_hasher().finish() as u16)
    }

    /// Stamps a frame, or counts it as without room.
    pub(super) fn stamp(&mut self, frame: &mut [u8], sent_ns: Option<u64>) {
        let stamp = Stamp { run: self.run, stream: 0, number: self.stamped, sent_ns };
        if stamp.write(frame) {
            self.stamped += 1;
        } else {
            self.without_room += 1;
        }
    }

    /// A warning about frames without room, if any.
    pub(super) fn warning(&self) -> Option<String> {
        (self.without_room > 0).then(|| {
            format!(
                "{} without a stamp: no complete UDP or TCP header with 18 bytes of payload",
                of(self.without_room, "frame"),
            )
        })
    }
}
