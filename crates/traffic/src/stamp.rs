//! Stamps: a frame's payload contains its sender, its number and its sending time.
//!
//! ```text
//!  payload of UDP or TCP
//! | magic 4 | run 2 | stream 1 | number 6 | time 5 | original payload …
//!   "rTap"                       from 0     nanoseconds modulo 2⁴⁰ (18 minutes), 0: no time
//! ```
//!
//! The smallest Ethernet frame with UDP over IPv4 has 18 bytes for it. A stamp has no checksum; that of UDP or TCP is
//! computed again and covers it.
//!
//! Invariants: the length of the frame and the bytes before its payload, except the checksum, do not change. No clock:
//! times are arguments. No bytes make it panic.

use crate::segment::Segment;

const MAGIC: [u8; 4] = *b"rTap";
const LEN: usize = 18;
const NUMBERS: u64 = 1 << 48;
const TIMES: u64 = 1 << 40;

/// The contents of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Random number of the sender's run.
    pub run: u16,
    /// Number of the sender within a run.
    pub stream: u8,
    /// Number of the frame in its stream, from 0, modulo 2⁴⁸.
    pub number: u64,
    /// The sending time, if the stamp has one.
    pub sent_ns: Option<u64>,
}

/// The result of reading a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A frame without a stamp.
    Unstamped,
    /// A stamp with a wrong checksum; its values are not used.
    Corrupted,
    /// A stamp. Its time is modulo 2⁴⁰.
    Stamped(Stamp),
}

impl Stamp {
    /// Writes the stamp into `frame` and corrects its checksum; false if there is no complete UDP or TCP packet, or too
    /// little payload. A UDP datagram over IPv4 without a checksum stays without one.
    #[must_use]
    pub fn write(&self, frame: &mut [u8]) -> bool {
        let Some(segment) = Segment::find(frame) else { return false };
        let Some(payload) = frame.get_mut(segment.payload..segment.end) else { return false };
        let Some(place) = payload.first_chunk_mut::<LEN>() else { return false };
        // 0 means that there is no time, so 0 is stored as one nanosecond.
        let time = self.sent_ns.map_or(0, |time| (time % TIMES).max(1));
        place[..4].copy_from_slice(&MAGIC);
        place[4..6].copy_from_slice(&self.run.to_be_bytes());
        place[6] = self.stream;
        place[7..13].copy_from_slice(&(self.number % NUMBERS).to_be_bytes()[2..]);
        place[13..].copy_from_slice(&time.to_be_bytes()[3..]);
        segment.seal(frame);
        true
    }

    /// Reads the stamp of `frame`.
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

    /// The latency of the frame, if it arrived at `arrived_ns` of the sender's clock; negative if that is before it was
    /// sent. `None` without a sending time.
    pub fn latency_ns(&self, arrived_ns: u64) -> Option<i64> {
        let passed = arrived_ns.wrapping_sub(self.sent_ns?) % TIMES;
        Some(if passed < TIMES / 2 { passed as i64 } else { passed as i64 - TIMES as i64 })
    }
}
