//! What shards send each other about [short prefixes](super::short_prefixes).

use crate::forwarder::face::FaceId;
use crate::packets::PitToken;

/// A change of a short prefix, for all other shards.
#[derive(Clone, Debug)]
pub struct Notice {
    /// When the change was made.
    pub(super) now_ns: u64,
    /// The Interest of the entry.
    pub(super) interest: Vec<u8>,
    pub(super) change: Change,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    /// The Interest is pending for a downstream face, until `expiry_ns`.
    Pending { from: FaceId, epoch: u32, expiry_ns: u64, token: PitToken },
    /// The entry was removed.
    Done(Option<Answer>),
}

/// A Data that satisfied an entry in one shard.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(super) data: Vec<u8>,
    /// The face that received it.
    pub(super) from: FaceId,
    pub(super) congestion_mark: u64,
    pub(super) may_store: bool,
    /// Faces to which it was sent. Others may have joined the entry in its own shard.
    pub(super) faces: Vec<FaceId>,
}
