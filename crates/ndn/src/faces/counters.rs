//! Counters of a face, and the reasons why frames are lost.
//!
//! ```text
//!  frames in  = complete + fragments + idle + dropped      packets in  = complete + reassembled
//!  frames out = sent + dropped
//! ```

use crate::packets::{Headers, NackReason, kind};

/// Why a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Lost {
    /// Not a link packet, or a fragment that contradicts others.
    Malformed,
    /// Larger than the largest packet.
    TooLong,
    /// Its sender has no face: all faces are in use, or unknown senders get none on this socket.
    NoFace,
    /// A packet to send that needs more than 64 fragments.
    TooManyFragments,
    /// The socket, or the output buffer of a stream, is full.
    Congested,
    /// The system refused to send it.
    Refused,
    /// The face to send on does not exist.
    Gone,
    /// The connection ended before it was sent, or is not established.
    Disconnected,
}

impl Lost {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::TooLong,
        Self::NoFace,
        Self::TooManyFragments,
        Self::Congested,
        Self::Refused,
        Self::Gone,
        Self::Disconnected,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLong => "too-long",
            Self::NoFace => "no-face",
            Self::TooManyFragments => "too-many-pieces",
            Self::Congested => "congested",
            Self::Refused => "refused",
            Self::Gone => "gone",
            Self::Disconnected => "disconnected",
        }
    }

    /// Whether the reason applies to received frames; the others apply to frames to send.
    pub fn is_incoming(self) -> bool {
        matches!(self, Self::Malformed | Self::TooLong | Self::NoFace)
    }
}

/// Counters of a face, or of all faces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests received.
    pub interests_in: u64,
    /// Data received.
    pub data_in: u64,
    /// Nacks received.
    pub nacks_in: u64,
    /// Other packets received; the forwarder drops them as malformed.
    pub others_in: u64,
    /// Interests to be sent.
    pub interests_out: u64,
    /// Data to be sent.
    pub data_out: u64,
    /// Nacks to be sent.
    pub nacks_out: u64,
    /// Frames received.
    pub frames_in: u64,
    /// Frames to be sent.
    pub frames_out: u64,
    /// Bytes of received frames.
    pub octets_in: u64,
    /// Bytes of frames to be sent.
    pub octets_out: u64,
    /// Received frames that were fragments.
    pub fragments_in: u64,
    /// Received frames without a network packet.
    pub idle_in: u64,
    /// Packets reassembled from fragments.
    pub reassembled: u64,
    lost: [u64; Lost::ALL.len()],
    nack_reasons_in: [u64; NackReason::ALL.len()],
    nack_reasons_out: [u64; NackReason::ALL.len()],
}

impl Counters {
    /// Frames lost for this reason.
    pub fn lost(&self, reason: Lost) -> u64 {
        self.lost[reason as usize]
    }

    /// Nacks received for this reason.
    pub fn nacks_in_for(&self, reason: NackReason) -> u64 {
        self.nack_reasons_in[reason as usize]
    }

    /// Nacks to be sent for this reason.
    pub fn nacks_out_for(&self, reason: NackReason) -> u64 {
        self.nack_reasons_out[reason as usize]
    }

    /// Counts a received Nack.
    pub(crate) fn count_nack_in(&mut self, reason: NackReason) {
        self.nacks_in += 1;
        self.nack_reasons_in[reason as usize] += 1;
    }

    /// Counts a Nack to be sent.
    pub(crate) fn count_nack_out(&mut self, reason: NackReason) {
        self.nacks_out += 1;
        self.nack_reasons_out[reason as usize] += 1;
    }

    /// Packets received.
    pub fn packets_in(&self) -> u64 {
        self.interests_in + self.data_in + self.nacks_in + self.others_in
    }

    /// Number of received frames that no other counter covers; must be 0.
    pub fn residual(&self) -> i64 {
        let incoming = Lost::ALL.into_iter().filter(|reason| reason.is_incoming());
        let lost: u64 = incoming.map(|reason| self.lost(reason)).sum();
        let whole = self.packets_in() - self.reassembled;
        self.frames_in as i64 - (whole + self.fragments_in + self.idle_in + lost) as i64
    }

    /// Counts a received complete packet.
    pub(crate) fn count_in(&mut self, headers: &Headers, packet: &[u8]) {
        *match (first_kind(packet), headers.nack) {
            (kind::INTEREST, None) => &mut self.interests_in,
            (kind::INTEREST, Some(reason)) => return self.count_nack_in(reason),
            (kind::DATA, None) => &mut self.data_in,
            _ => &mut self.others_in,
        } += 1;
    }

    /// Counts a packet to send.
    pub(crate) fn count_out(&mut self, headers: &Headers, packet: &[u8]) {
        *match (first_kind(packet), headers.nack) {
            (kind::DATA, _) => &mut self.data_out,
            (_, None) => &mut self.interests_out,
            (_, Some(reason)) => return self.count_nack_out(reason),
        } += 1;
    }

    /// Counts lost frames.
    pub(crate) fn count_lost(&mut self, reason: Lost, frames: u64) {
        self.lost[reason as usize] += frames;
    }

    /// Adds the counters of another face.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, |sum, value| sum + value);
    }

    /// Subtracts the counters of another face; none falls below 0.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, u64::saturating_sub);
    }

    fn combine(&mut self, other: &Self, combined: impl Fn(u64, u64) -> u64) {
        for (mine, value) in [
            (&mut self.interests_in, other.interests_in),
            (&mut self.data_in, other.data_in),
            (&mut self.nacks_in, other.nacks_in),
            (&mut self.others_in, other.others_in),
            (&mut self.interests_out, other.interests_out),
            (&mut self.data_out, other.data_out),
            (&mut self.nacks_out, other.nacks_out),
            (&mut self.frames_in, other.frames_in),
            (&mut self.frames_out, other.frames_out),
            (&mut self.octets_in, other.octets_in),
            (&mut self.octets_out, other.octets_out),
            (&mut self.fragments_in, other.fragments_in),
            (&mut self.idle_in, other.idle_in),
            (&mut self.reassembled, other.reassembled),
        ] {
            *mine = combined(*mine, value);
        }
        for (mine, values) in [
            (&mut self.lost[..], &other.lost[..]),
            (&mut self.nack_reasons_in, &other.nack_reasons_in),
            (&mut self.nack_reasons_out, &other.nack_reasons_out),
        ] {
            mine.iter_mut().zip(values).for_each(|(mine, value)| *mine = combined(*mine, *value));
        }
    }
}

fn first_kind(packet: &[u8]) -> u32 {
    packet.first().copied().unwrap_or(0).into()
}
