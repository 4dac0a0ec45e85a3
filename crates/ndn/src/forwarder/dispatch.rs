//! Which shard handles a packet, by the first components of its name.
//!
//! ```text
//!  /a/b/c, 2 components:   hash of /a/b ─▶ shard          /a: hash of /a
//! ```
//!
//! An Interest, its Data and its Nack reach the same shard if the Interest's name is not a *short
//! prefix*: with CanBePrefix, and fewer components than are hashed. For those see
//! [`Notice`](crate::forwarder::Notice).

use crate::packets::{Element, Name, component, kind};

use crate::forwarder::settings::Settings;
use crate::forwarder::tables::NameKey;

/// Assigns packets to shards.
#[derive(Clone, Debug)]
pub struct Dispatch {
    key: NameKey,
    components: usize,
    shards: usize,
}

impl Dispatch {
    /// A dispatch to `shards` shards by [`Settings::dispatch_components`].
    pub fn new(settings: &Settings, shards: usize) -> Self {
        let components = settings.dispatch_components.max(1);
        Self { key: NameKey::from_seed(settings.seed), components, shards: shards.max(1) }
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// The shard of a name, from 0. An implicit digest at its end is not hashed: it is not part of
    /// the Data's name.
    #[inline]
    pub fn shard_of(&self, name: &Name<'_>) -> usize {
        self.shard_of_bytes(name.as_bytes())
    }

    /// The shard of a packet; 0 for bytes without a name, because any shard can count them as
    /// malformed.
    #[inline]
    pub fn shard_of_packet(&self, packet: &[u8]) -> usize {
        let name = || {
            let outer = Element::only(packet).ok()?;
            let (first, _) = Element::first(outer.value).ok()?;
            (first.kind == kind::NAME).then_some(first.value)
        };
        name().map_or(0, |name| self.shard_of_bytes(name))
    }

    #[inline]
    fn shard_of_bytes(&self, name: &[u8]) -> usize {
        let mut hash = self.key.root();
        let mut rest = name;
        for _ in 0..self.components {
            let Ok((component, after)) = Element::first(rest) else { break };
            if after.is_empty() && component.kind == component::IMPLICIT_DIGEST {
                break;
            }
            hash = self.key.append(hash, &rest[..rest.len() - after.len()]);
            rest = after;
        }
        ((u128::from(hash) * self.shards as u128) >> 64) as usize
    }
}
