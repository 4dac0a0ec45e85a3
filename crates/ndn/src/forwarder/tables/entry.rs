//! The parts of a PIT entry that the pipelines use: its key, its state and its records.

use crate::packets::{Interest, NackReason, PitToken};

use super::prefixes::Prefixes;
use crate::forwarder::face::FaceId;

/// The initial suppression interval.
pub const INTERVAL_NS: u32 = 10_000_000;

/// The key of an entry.
#[derive(Clone, Copy, Debug)]
pub struct PitKey<'a> {
    /// The hash of the name.
    pub hash: u64,
    /// The name.
    pub name: &'a [u8],
    /// The forwarding hint.
    pub hint: &'a [u8],
    /// Whether CanBePrefix is set.
    pub can_be_prefix: bool,
    /// Whether MustBeFresh is set.
    pub must_be_fresh: bool,
}

impl<'a> PitKey<'a> {
    /// The key of an Interest; `prefixes` are those of its name.
    #[inline]
    pub(crate) fn of(interest: &Interest<'a>, prefixes: &Prefixes) -> Self {
        Self {
            hash: prefixes.full(),
            name: interest.name.as_bytes(),
            hint: interest.hint,
            can_be_prefix: interest.can_be_prefix,
            must_be_fresh: interest.must_be_fresh,
        }
    }
}

/// The part of a PIT entry that the pipelines use.
#[derive(Clone, Copy, Debug)]
pub struct EntryState {
    /// The latest expiry of its in-records.
    pub expiry_ns: u64,
    /// Orders entries by their creation.
    pub number: u64,
    /// The suppression interval of best-route: retransmissions within this time of the last
    /// Interest sent are suppressed.
    pub interval_ns: u32,
    /// CanBePrefix of its Interests.
    pub can_be_prefix: bool,
    /// MustBeFresh of its Interests.
    pub must_be_fresh: bool,
    /// Whether it is a short prefix, which all shards know.
    pub short: bool,
    /// Whether it is the shadow of another shard's entry.
    pub shadow: bool,
}

impl EntryState {
    /// The state of a new entry.
    pub const NEW: Self = Self {
        expiry_ns: 0,
        number: 0,
        interval_ns: INTERVAL_NS,
        can_be_prefix: false,
        must_be_fresh: false,
        short: false,
        shadow: false,
    };
}

/// An in-record: a downstream face and its latest Interest.
#[derive(Clone, Copy, Debug)]
pub struct InRecord {
    /// The face.
    pub face: FaceId,
    /// The nonce of its latest Interest.
    pub nonce: u32,
    /// When it expires.
    pub expiry_ns: u64,
    /// The token of its latest Interest.
    pub token: PitToken,
    /// The face's epoch when the record was created.
    pub epoch: u32,
}

/// An out-record: an upstream face and the latest Interest sent on it.
#[derive(Clone, Copy, Debug)]
pub struct OutRecord {
    /// The face.
    pub face: FaceId,
    /// The nonce of the latest Interest that was sent on it.
    pub nonce: u32,
    /// When that was sent.
    pub sent_ns: u64,
    /// When it expires.
    pub expiry_ns: u64,
    /// The suppression interval of multicast, for this face.
    pub interval_ns: u32,
    /// The reason of the Nack received on this face, if any.
    pub nack: Option<NackReason>,
}
