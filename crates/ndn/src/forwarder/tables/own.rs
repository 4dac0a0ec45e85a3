//! The tables of one thread.

use super::access::Tables;
use super::{ContentStore, DeadNonces, Pit};
use crate::forwarder::settings::Settings;
use crate::forwarder::token::Token;

/// The tables of one thread, or of several behind one lock.
#[derive(Debug)]
pub struct OwnTables {
    pub(crate) pit: Pit,
    pub(crate) content: ContentStore,
    pub(crate) dead: DeadNonces,
}

impl OwnTables {
    /// Empty tables.
    pub fn new(settings: &Settings) -> Self {
        Self {
            pit: Pit::new(settings.pit_capacity.min(Token::ENTRIES_MAX)),
            content: ContentStore::new(settings.cs_bytes),
            dead: DeadNonces::new(settings.dead_nonces),
        }
    }
}

impl Tables for OwnTables {
    type Pit = Pit;
    type Content = ContentStore;
    type Dead = DeadNonces;

    #[inline]
    fn parts(&mut self) -> (&mut Pit, &mut ContentStore, &mut DeadNonces) {
        (&mut self.pit, &mut self.content, &mut self.dead)
    }
}
