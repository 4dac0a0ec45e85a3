//! Stamps of one stream of frames, and how many found room.

use std::hash::{BuildHasher, Hasher, RandomState};

use ringtap_traffic::Stamp;
use serde::Serialize;

use ringtap_terminal::numbers::of;

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Stamps {
    /// The number of this run, by which the other end tells it from others.
    pub(super) run: u16,
    pub(super) stamped: u64,
    pub(super) without_room: u64,
}

impl Stamps {
    pub(super) fn new(run: u16) -> Self {
        Self { run, stamped: 0, without_room: 0 }
    }

    /// For frames that are sent now: two runs at the same time must differ.
    pub(super) fn random() -> Self {
        Self::new(RandomState::new().build_hasher().finish() as u16)
    }

    pub(super) fn stamp(&mut self, frame: &mut [u8], sent_ns: Option<u64>) {
        let stamp = Stamp { run: self.run, stream: 0, number: self.stamped, sent_ns };
        if stamp.write(frame) {
            self.stamped += 1;
        } else {
            self.without_room += 1;
        }
    }

    /// What there is to complain of.
    pub(super) fn complaint(&self) -> Option<String> {
        (self.without_room > 0).then(|| {
            format!(
                "{} without a stamp: no whole UDP or TCP with 18 bytes of payload",
                of(self.without_room, "frame"),
            )
        })
    }
}
