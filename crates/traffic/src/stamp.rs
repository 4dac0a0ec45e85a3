//! Stamps: a frame says in its payload who sent it, as which of his frames, and when.
//!
//! ```text
//!  payload of UDP or TCP
//!  | magic 4 | run 2 | stream 1 | number 6 | time 5 | what stood there before …
//!    "rTap"                       from 0     nanoseconds modulo 2⁴⁰ (18 minutes), 0: not told
//! ```
//!
//! 18 bytes are what the smallest Ethernet frame has room for with UDP over IPv4. A stamp has no
//! checksum of its own: that of UDP or TCP is made anew and covers it.
//!
//! Invariants: a frame keeps its length, and all in front of the payload but the checksum. No clock:
//! times are handed in. No bytes make it panic.

use crate::segment::Segment;

const MAGIC: [u8; 4] = *b"rTap";
const LEN: usize = 18;
const NUMBERS: u64 = 1 << 48;
const TIMES: u64 = 1 << 40;

/// What a frame says of itself; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Drawn anew for each run of a sender.
    pub run: u16,
    /// Tells senders of a run apart.
    pub stream: u8,
    /// Which frame of the stream this is, from 0; counted modulo 2⁴⁸.
    pub number: u64,
    /// When it was sent, if that is told.
    pub sent_ns: Option<u64>,
}

/// What a frame turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A frame without a stamp.
    Unstamped,
    /// There is a stamp, but the checksum is wrong: nothing it says is believed.
    Corrupted,
    /// A stamp. Its time is modulo 2⁴⁰.
    Stamped(Stamp),
}

impl Stamp {
    /// Puts the stamp into `frame` and makes its checksum right; false if it has no room: no whole
    /// UDP or TCP, or too little payload. A UDP datagram over IPv4 that has no checksum gets none.
    #[must_use]
    pub fn write(&self, frame: &mut [u8]) -> bool {
        let Some(segment) = Segment::find(frame) else { return false };
        let Some(payload) = frame.get_mut(segment.payload..segment.end) else { return false };
        let Some(place) = payload.first_chunk_mut::<LEN>() else { return false };
        // 0 says that no time is told; a nanosecond later is as good.
        let time = self.sent_ns.map_or(0, |time| (time % TIMES).max(1));
        place[..4].copy_from_slice(&MAGIC);
        place[4..6].copy_from_slice(&self.run.to_be_bytes());
        place[6] = self.stream;
        place[7..13].copy_from_slice(&(self.number % NUMBERS).to_be_bytes()[2..]);
        place[13..].copy_from_slice(&time.to_be_bytes()[3..]);
        segment.seal(frame);
        true
    }

    /// What `frame` says of itself.
    pub fn read(frame: &[u8]) -> Reading {
        let found = Segment::find(frame).and_then(|segment| {
            let payload = frame.get(segment.payload..segment.end)?;
            let place = payload.first_chunk::<LEN>()?;
            (place[..4] == MAGIC).then_some((segment, *place))
        });
        let Some((segment, place)) = found else { return Reading::Unstamped };
        if !segment.is_whole(frame) {
            return Reading::Corrupted;
        }
        let number = |bytes: &[u8]| bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
        Reading::Stamped(Self {
            run: u16::from_be_bytes([place[4], place[5]]),
            stream: place[6],
            number: number(&place[7..13]),
            sent_ns: Some(number(&place[13..])).filter(|&time| time != 0),
        })
    }

    /// How long the frame was on its way, if it came at `arrived_ns` of the clock that it was sent
    /// by; negative if that clock says that it came before. `None` if no time is told.
    pub fn latency_ns(&self, arrived_ns: u64) -> Option<i64> {
        let passed = arrived_ns.wrapping_sub(self.sent_ns?) % TIMES;
        Some(if passed < TIMES / 2 { passed as i64 } else { passed as i64 - TIMES as i64 })
    }
}
