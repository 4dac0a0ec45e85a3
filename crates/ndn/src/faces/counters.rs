//! What went over a face, and what did not, with the reason.
//!
//! ```text
//!  frames in  = whole + pieces + idle + dropped      packets in  = whole + put together
//!  frames out = sent + dropped
//! ```

/// Why a frame went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Lost {
    /// What came is no packet of the link, or contradicts other pieces.
    Malformed,
    /// What came is larger than any packet.
    TooLong,
    /// Its sender may have no face: there are too many, or unknown senders get none here.
    NoFace,
    /// There is no way to cut what leaves into few enough pieces.
    TooManyPieces,
    /// Whom it was for takes no more for now.
    Congested,
    /// The system refused to send it.
    Refused,
    /// Whom it was for has gone.
    Gone,
}

impl Lost {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::TooLong,
        Self::NoFace,
        Self::TooManyPieces,
        Self::Congested,
        Self::Refused,
        Self::Gone,
    ];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::TooLong => "too-long",
            Self::NoFace => "no-face",
            Self::TooManyPieces => "too-many-pieces",
            Self::Congested => "congested",
            Self::Refused => "refused",
            Self::Gone => "gone",
        }
    }

    /// Whether it befell what came, not what was to leave.
    pub fn is_incoming(self) -> bool {
        matches!(self, Self::Malformed | Self::TooLong | Self::NoFace)
    }
}

/// Counts of a face, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests that came.
    pub interests_in: u64,
    /// Data that came.
    pub data_in: u64,
    /// Nacks that came.
    pub nacks_in: u64,
    /// What came and is none of these; it is passed on to be judged.
    pub others_in: u64,
    /// Interests to be sent.
    pub interests_out: u64,
    /// Data to be sent.
    pub data_out: u64,
    /// Nacks to be sent.
    pub nacks_out: u64,
    /// Frames that came.
    pub frames_in: u64,
    /// Frames to be sent.
    pub frames_out: u64,
    /// Their bytes.
    pub octets_in: u64,
    /// Their bytes.
    pub octets_out: u64,
    /// Frames that were pieces of packets.
    pub pieces_in: u64,
    /// Frames that said nothing about a packet.
    pub idle_in: u64,
    /// Packets put together from pieces.
    pub reassembled: u64,
    lost: [u64; Lost::ALL.len()],
}

impl Counters {
    /// How many frames were lost for this reason.
    pub fn lost(&self, reason: Lost) -> u64 {
        self.lost[reason as usize]
    }

    /// Packets that came.
    pub fn packets_in(&self) -> u64 {
        self.interests_in + self.data_in + self.nacks_in + self.others_in
    }

    /// Frames that came and are not accounted for: 0, or something is wrong here.
    pub fn residual(&self) -> i64 {
        let incoming = Lost::ALL.into_iter().filter(|reason| reason.is_incoming());
        let lost: u64 = incoming.map(|reason| self.lost(reason)).sum();
        let whole = self.packets_in() - self.reassembled;
        self.frames_in as i64 - (whole + self.pieces_in + self.idle_in + lost) as i64
    }

    pub(crate) fn lose(&mut self, reason: Lost, frames: u64) {
        self.lost[reason as usize] += frames;
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
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
            (&mut self.pieces_in, other.pieces_in),
            (&mut self.idle_in, other.idle_in),
            (&mut self.reassembled, other.reassembled),
        ] {
            *mine += theirs;
        }
        self.lost.iter_mut().zip(other.lost).for_each(|(mine, theirs)| *mine += theirs);
    }
}
