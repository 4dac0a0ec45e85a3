//! What was done, and what was not done, with the reason.

/// Why a packet went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Drop {
    /// It is neither Interest nor Data, or not well formed.
    Malformed,
    /// It came by a face that there is not.
    NoFace,
    /// Its name has too many components.
    NameTooLong,
    /// It was on its way too long.
    HopLimit,
    /// It is for this machine alone, and came from another.
    Scope,
    /// It was seen before.
    Loop,
    /// There is no room for another pending Interest.
    PitFull,
    /// Its face has as many Interests pending as one face may have.
    FaceShare,
    /// There is no room for who asks, or whom was asked.
    RecordsFull,
    /// The strategy knows nowhere to send it.
    NoRoute,
    /// It came again too soon.
    Suppressed,
    /// A Data that nobody asked for.
    Unsolicited,
    /// A Nack that answers nothing that was sent there.
    StrayNack,
}

/// How many reasons there are.
const REASONS: usize = Drop::ALL.len();

impl Drop {
    /// All reasons.
    pub const ALL: [Self; 13] = [
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
    ];

    /// As reports call it.
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
        }
    }
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests that came.
    pub interests_in: u64,
    /// Data that came.
    pub data_in: u64,
    /// Nacks that came.
    pub nacks_in: u64,
    /// Interests sent.
    pub interests_out: u64,
    /// Data sent.
    pub data_out: u64,
    /// Nacks sent.
    pub nacks_out: u64,
    /// Interests answered from the content store.
    pub cs_hits: u64,
    /// Interests that the content store had no answer for.
    pub cs_misses: u64,
    /// Data that made room for others.
    pub cs_evicted: u64,
    /// Pending Interests that were answered.
    pub satisfied: u64,
    /// Pending Interests that were not.
    pub unsatisfied: u64,
    /// Packets whose token led to the entry.
    pub tokens_right: u64,
    /// Packets whose token was not ours, out of date, or of another name.
    pub tokens_wrong: u64,
    /// Nonces forgotten before their time, for lack of room.
    pub nonces_evicted: u64,
    dropped: [u64; REASONS],
}

impl Counters {
    /// How many packets were dropped for this reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.dropped[reason as usize]
    }

    #[inline]
    pub(crate) fn drop(&mut self, reason: Drop) {
        self.dropped[reason as usize] += 1;
    }

    /// Adds those of another forwarder.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in [
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
            (&mut self.unsatisfied, other.unsatisfied),
            (&mut self.tokens_right, other.tokens_right),
            (&mut self.tokens_wrong, other.tokens_wrong),
            (&mut self.nonces_evicted, other.nonces_evicted),
        ] {
            *mine += theirs;
        }
        self.dropped.iter_mut().zip(other.dropped).for_each(|(mine, theirs)| *mine += theirs);
    }
}
