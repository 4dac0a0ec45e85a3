//! The tables of a forwarder. Tables that packets change are bounded and allocated at the start.

mod access;
mod alone;
mod content;
mod entry;
mod index;
mod nonces;
mod own;
mod pit;
mod pool;
mod prefixes;
mod records;
mod routes;
mod store;
mod wheel;

pub use access::{Contents, NonceList, PendingInterests, Tables};
pub use alone::{ContentAlone, PitAlone};
pub(crate) use content::BYTES_PER_BLOCK as BYTES_PER_DATA_MIN;
pub use content::ContentStore;
pub use entry::{EntryState, INTERVAL_NS, InRecord, OutRecord, PitKey};
pub use nonces::DeadNonces;
pub(crate) use nonces::LIFE_NS as NONCE_LIFE_NS;
pub use own::OwnTables;
pub use pit::Pit;
pub use prefixes::COMPONENTS_MAX;
pub use prefixes::{NameKey, Prefixes};
pub(crate) use routes::{NextHop, PrefixTable};
pub use wheel::{TICK_NS, Wheel};

/// The index that means no entry.
const NONE: u32 = u32::MAX;
