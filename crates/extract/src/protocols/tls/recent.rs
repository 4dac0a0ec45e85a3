//! Fingerprints of recent hellos.
//!
//! Most hellos of a network come from a few programs, and fingerprints cost three digests. They follow from lists of
//! numbers in the hello, so the lists of recent hellos are kept with their fingerprints, and compared as a whole.
//!
//! ```text
//! numbers | version | length | cipher … | length | extension … | …        at most 255, else they are not kept
//! ```
//!
//! Bounds: [`PLACES`] lists of clients and of servers, fewer if the memory given to [`Recent::new`] does not suffice; a list
//! replaces the one at its place.

use std::hash::{BuildHasher, Hasher};

use super::fingerprint::{self, Digests};
use super::hello::{ClientHello, ServerHello};
use crate::hashing::Hashing;

/// Most lists that are kept.
const PLACES: usize = 256;
/// Most numbers of a list.
const NUMBERS_MAX: usize = 255;

/// Fingerprints of recent hellos.
pub(crate) struct Recent {
    hashing: Hashing,
    clients: Table<Digests>,
    servers: Table<[u8; 32]>,
    /// The numbers of the current hello.
    numbers: Numbers,
}

impl Recent {
    /// No fingerprints; all together take at most `memory` bytes.
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            hashing: Hashing::default(),
            clients: Table::new(memory / 2),
            servers: Table::new(memory / 2),
            numbers: Numbers::NONE,
        }
    }

    /// The digests of a client's hello.
    pub(super) fn client(&mut self, hello: &ClientHello<'_>) -> Digests {
        let compute = || fingerprint::digests(hello);
        match self.numbers.set_client(hello) {
            Some(()) => self.clients.find(&self.hashing, &self.numbers, compute),
            None => compute(),
        }
    }

    /// The JA3S of a server's hello.
    pub(super) fn server(&mut self, hello: &ServerHello<'_>) -> [u8; 32] {
        let compute = || fingerprint::ja3s(hello);
        match self.numbers.set_server(hello) {
            Some(()) => self.servers.find(&self.hashing, &self.numbers, compute),
            None => compute(),
        }
    }
}

/// Lists with their fingerprints, each at a place given by its hash.
struct Table<V>(Box<[Slot<V>]>);

/// Bytes, and what follows from them.
type Slot<V> = Option<(Box<[u8]>, V)>;

impl<V: Copy> Table<V> {
    const ENTRY_BYTES: usize = size_of::<Slot<V>>() + 2 * NUMBERS_MAX;

    fn new(memory: usize) -> Self {
        let places = (memory / Self::ENTRY_BYTES).min(PLACES);
        Self((0..places).map(|_| None).collect())
    }

    /// The fingerprints of a list; `compute` is called if they are not there.
    fn find(&mut self, hashing: &Hashing, numbers: &Numbers, compute: impl FnOnce() -> V) -> V {
        let mut hasher = hashing.build_hasher();
        hasher.write(numbers.bytes());
        let place = (hasher.finish() as usize).checked_rem(self.0.len());
        match place.and_then(|place| self.0.get_mut(place)) {
            None => compute(),
            Some(Some((own, value))) if **own == *numbers.bytes() => *value,
            Some(place) => place.insert((numbers.bytes().into(), compute())).1,
        }
    }
}

/// The numbers from which fingerprints follow.
struct Numbers {
    bytes: [u8; 2 * NUMBERS_MAX],
    len: u16,
}

impl Numbers {
    const NONE: Self = Self { bytes: [0; 2 * NUMBERS_MAX], len: 0 };

    /// Stores the numbers of a client; `None`: there are too many.
    fn set_client(&mut self, hello: &ClientHello<'_>) -> Option<()> {
        self.len = 0;
        self.push(hello.version)?;
        self.list(hello.ciphers())?;
        self.list(hello.extensions.types())?;
        self.list(hello.groups())?;
        self.list(hello.point_formats())?;
        self.list(hello.signature_algorithms())
    }

    /// Stores the numbers of a server; `None`: there are too many.
    fn set_server(&mut self, hello: &ServerHello<'_>) -> Option<()> {
        self.len = 0;
        self.push(hello.version)?;
        self.push(hello.cipher)?;
        self.list(hello.extensions.types())
    }

    /// Appends a list with its length, so that no lists have the numbers of others.
    fn list(&mut self, mut list: impl Iterator<Item = u16>) -> Option<()> {
        let start = usize::from(self.len);
        self.push(0)?;
        list.try_for_each(|number| self.push(number))?;
        let len = self.len - start as u16;
        self.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        Some(())
    }

    fn push(&mut self, number: u16) -> Option<()> {
        let place = self.bytes.get_mut(usize::from(self.len)..)?.first_chunk_mut()?;
        *place = number.to_ne_bytes();
        self.len += 2;
        Some(())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}
