//! The tables of a forwarder. Tables that packets change are bounded and allocated at the start.

mod access;
mod alone;
mod buckets;
mod content;
mod index;
mod nonces;
mod pit;
mod pool;
mod prefixes;
mod records;
mod routes;
mod store;
mod wheel;

pub(crate) use access::{Contents, NonceList, OwnTables, PendingInterests, Tables};
pub use alone::{ContentAlone, PitAlone};
pub(crate) use buckets::{Buckets, Held, LocalPart};
pub(crate) use content::{BYTES_PER_BLOCK as BYTES_PER_DATA_MIN, ContentStore};
pub(crate) use nonces::{DeadNonces, LIFE_NS as NONCE_LIFE_NS};
pub(crate) use pit::{Pit, PitKey};
pub use prefixes::COMPONENTS_MAX;
pub(crate) use prefixes::{NameKey, Prefixes};
pub(crate) use routes::{NextHop, PrefixTable};

/// The index that means no entry.
const NONE: u32 = u32::MAX;
