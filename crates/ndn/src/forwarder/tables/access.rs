//! What the pipelines need of the tables, whether one thread owns them or several share them.

use crate::packets::{Data, Interest, PitToken};

use super::entry::{EntryState, InRecord, OutRecord, PitKey};
use super::prefixes::{NameKey, Prefixes};
use crate::forwarder::face::FaceId;

/// The tables that packets change.
pub trait Tables {
    /// Pending Interests.
    type Pit: PendingInterests;
    /// The content store.
    type Content: Contents;
    /// The dead nonce list.
    type Dead: NonceList;

    /// The three tables.
    fn parts(&mut self) -> (&mut Self::Pit, &mut Self::Content, &mut Self::Dead);
}

/// Pending Interests. An entry is identified by a number until it is removed.
pub trait PendingInterests {
    /// The pending entry with this key.
    fn find(&mut self, key: &PitKey<'_>) -> Option<u32>;

    /// Inserts an entry and a copy of its Interest; the key must be new. `None` if there is no
    /// room.
    fn insert(
        &mut self,
        key: &PitKey<'_>,
        components: usize,
        interest: &Interest<'_>,
    ) -> Option<u32>;

    /// Removes an entry and its records.
    fn remove(&mut self, at: u32);

    /// Appends to `found` all entries that a Data satisfies: those of its exact name, of its
    /// prefixes with CanBePrefix, and of its name with the implicit digest.
    fn satisfied_by(
        &mut self,
        key: &NameKey,
        data: &Data<'_>,
        prefixes: &Prefixes,
        found: &mut Vec<u32>,
    );

    /// The state of an entry.
    fn state(&self, at: u32) -> &EntryState;

    /// The state of an entry, to be changed.
    fn state_mut(&mut self, at: u32) -> &mut EntryState;

    /// The hash of an entry's name.
    fn hash(&self, at: u32) -> u64;

    /// The entry and the generation in the tokens of an entry.
    fn token(&self, at: u32) -> (u32, u16);

    /// Writes the Interest of an entry to `out`, replacing the contents.
    fn interest(&self, at: u32, out: &mut Vec<u8>);

    /// How often a face with this number was removed.
    fn epoch(&self, face: FaceId) -> u32;

    /// Number of pending Interests of a face; shadows are not counted.
    fn pending_of(&self, face: FaceId) -> usize;

    /// The valid in-records of an entry.
    fn in_records(&self, at: u32) -> impl Iterator<Item = &InRecord>;

    /// The out-records of an entry.
    fn out_records(&self, at: u32) -> impl Iterator<Item = &OutRecord>;

    /// Adds or updates the in-record of a face; returns false if there is no room.
    fn set_in_record(
        &mut self,
        at: u32,
        face: FaceId,
        nonce: u32,
        expiry_ns: u64,
        token: PitToken,
    ) -> bool;

    /// Removes the in-record of a face; returns the nonce and the token of its Interest.
    fn remove_in_record(&mut self, at: u32, face: FaceId) -> Option<(u32, PitToken)>;

    /// The out-record of a face.
    fn out_mut(&mut self, at: u32, face: FaceId) -> Option<&mut OutRecord>;

    /// Adds or updates the out-record of a face; returns false if there is no room.
    fn set_out_record(
        &mut self,
        at: u32,
        face: FaceId,
        nonce: u32,
        now_ns: u64,
        expiry_ns: u64,
    ) -> bool;

    /// Whether a face has an in-record in an entry.
    #[inline]
    fn has_in_record(&self, at: u32, face: FaceId) -> bool {
        self.in_records(at).any(|record| record.face == face)
    }
}

/// A content store.
pub trait Contents {
    /// Stores a Data, fresh for its freshness period.
    fn put(&mut self, now_ns: u64, data: &Data<'_>, prefixes: &Prefixes);

    /// Finds a Data that satisfies an Interest, and writes its bytes to `out`, replacing the
    /// contents. Returns false if there is none.
    fn look_up(
        &mut self,
        now_ns: u64,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        out: &mut Vec<u8>,
    ) -> bool;
}

/// A dead nonce list. `hash` combines a name and a nonce.
pub trait NonceList {
    /// Whether a nonce is stored.
    fn has(&self, now_ns: u64, hash: u64) -> bool;

    /// Stores a nonce.
    fn put(&mut self, now_ns: u64, hash: u64);
}
