//! Counters of a forwarder, and the reasons for drops.

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Drop {
    /// Neither Interest nor Data, or malformed.
    Malformed,
    /// Received on an unknown face.
    NoFace,
    /// Its name has too many components.
    NameTooLong,
    /// Its hop limit is exhausted.
    HopLimit,
    /// Its name is under `/localhost`, and it was not received on a local face.
    Scope,
    /// A duplicate nonce: a loop.
    Loop,
    /// The PIT has no room for another entry.
    PitFull,
    /// Its face has the maximum number of pending Interests.
    FaceShare,
    /// The PIT has no room for another in- or out-record.
    RecordsFull,
    /// The strategy has no next hop for it.
    NoRoute,
    /// A retransmission within the suppression interval.
    Suppressed,
    /// A Data that satisfies no pending Interest.
    Unsolicited,
    /// A Nack that matches no Interest sent on that face.
    StrayNack,
    /// A short prefix for which another shard has no room. It was forwarded, but a Data in that
    /// shard may not satisfy it.
    ShadowFull,
}

/// Number of reasons.
const REASONS: usize = Drop::ALL.len();

impl Drop {
    /// All reasons.
    pub const ALL: [Self; 14] = [
        Self::Malformed,
        Self::NoFace,
        Self::NameTooLong,
        Self::HopLimit,
        Self::Scope,
        Self::Loop,
        Self::PitFull,
        Self::FaceShare,
        Self::RecordsFull,
        Self::NoRoute,
        Self::Suppressed,
        Self::Unsolicited,
        Self::StrayNack,
        Self::ShadowFull,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NoFace => "no-face",
            Self::NameTooLong => "name-too-long",
            Self::HopLimit => "hop-limit",
            Self::Scope => "scope",
            Self::Loop => "loop",
            Self::PitFull => "pit-full",
            Self::FaceShare => "face-share",
            Self::RecordsFull => "records-full",
            Self::NoRoute => "no-route",
            Self::Suppressed => "suppressed",
            Self::Unsolicited => "unsolicited",
            Self::StrayNack => "stray-nack",
            Self::ShadowFull => "shadow-full",
        }
    }
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests received.
    pub interests_in: u64,
    /// Data received.
    pub data_in: u64,
    /// Nacks received.
    pub nacks_in: u64,
    /// Interests sent.
    pub interests_out: u64,
    /// Data sent.
    pub data_out: u64,
    /// Nacks sent.
    pub nacks_out: u64,
    /// Interests answered from the content store.
    pub cs_hits: u64,
    /// Interests without a match in the content store.
    pub cs_misses: u64,
    /// Data evicted from the content store.
    pub cs_evicted: u64,
    /// Pending Interests that were satisfied.
    pub satisfied: u64,
    /// Interests of faces that a received Data satisfied: several of one name are one pending
    /// Interest, but each face of it counts here.
    pub exchanges: u64,
    /// Pending Interests that expired or were refused.
    pub unsatisfied: u64,
    /// Data whose PIT token identifies an entry of the Data's name.
    pub tokens_right: u64,
    /// Data whose PIT token is malformed, outdated, or of another name or shard.
    pub tokens_wrong: u64,
    /// Nonces evicted before their time, for lack of room.
    pub nonces_evicted: u64,
    dropped: [u64; REASONS],
}

impl Counters {
    /// Packets dropped for this reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.dropped[reason as usize]
    }

    #[inline]
    pub(crate) fn drop(&mut self, reason: Drop) {
        self.dropped[reason as usize] += 1;
    }

    /// Adds the counters of another forwarder.
    pub fn add(&mut self, other: &Self) {
        for (sum, value) in [
            (&mut self.interests_in, other.interests_in),
            (&mut self.data_in, other.data_in),
            (&mut self.nacks_in, other.nacks_in),
            (&mut self.interests_out, other.interests_out),
            (&mut self.data_out, other.data_out),
            (&mut self.nacks_out, other.nacks_out),
            (&mut self.cs_hits, other.cs_hits),
            (&mut self.cs_misses, other.cs_misses),
            (&mut self.cs_evicted, other.cs_evicted),
            (&mut self.satisfied, other.satisfied),
            (&mut self.exchanges, other.exchanges),
            (&mut self.unsatisfied, other.unsatisfied),
            (&mut self.tokens_right, other.tokens_right),
            (&mut self.tokens_wrong, other.tokens_wrong),
            (&mut self.nonces_evicted, other.nonces_evicted),
        ] {
            *sum += value;
        }
        self.dropped.iter_mut().zip(other.dropped).for_each(|(sum, value)| *sum += value);
    }
}
