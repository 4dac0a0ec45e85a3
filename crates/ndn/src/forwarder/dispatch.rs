//! Which worker handles a packet: by the first components of its name, or, if the workers share tables,
//! by its face.
//!
//! ```text
//!  /a/b/c, 2 components:   hash of /a/b ─▶ shard          /a: hash of /a
//! ```
//!
//! An Interest, its Data and its Nack reach the same shard if the Interest's name is not a *short
//! prefix*: with CanBePrefix, and fewer components than are hashed. For those see
//! [`Notice`](crate::forwarder::Notice).

use crate::packets::{Element, component, kind};

use crate::forwarder::face::FaceId;
use crate::forwarder::settings::Settings;
use crate::forwarder::tables::NameKey;

/// Assigns packets to workers.
#[derive(Clone, Debug)]
pub struct Dispatch {
    key: NameKey,
    /// Number of components that are hashed; `None`: the face decides.
    components: Option<usize>,
    workers: usize,
}

impl Dispatch {
    /// A dispatch to `workers` workers that own names, by [`Settings::dispatch_components`].
    pub fn by_name(settings: &Settings, workers: usize) -> Self {
        let components = Some(settings.dispatch_components.max(1));
        Self { components, ..Self::by_face(settings, workers) }
    }

    /// A dispatch to `workers` workers that share tables.
    pub fn by_face(settings: &Settings, workers: usize) -> Self {
        let key = NameKey::from_seed(settings.seed);
        Self { key, components: None, workers: workers.max(1) }
    }

    /// The worker, from 0, of a packet that was received on a face. Bytes without a name go to the
    /// first, because any can count them as malformed.
    #[inline]
    pub fn worker_of(&self, from: FaceId, packet: &[u8]) -> usize {
        let Some(components) = self.components else { return from.0 as usize % self.workers };
        let name = || {
            let outer = Element::only(packet).ok()?;
            let (first, _) = Element::first(outer.value).ok()?;
            (first.kind == kind::NAME).then_some(first.value)
        };
        name().map_or(0, |name| self.shard_of(name, components))
    }

    /// An implicit digest at the end of a name is not hashed: it is not part of the Data's name.
    #[inline]
    fn shard_of(&self, name: &[u8], components: usize) -> usize {
        let mut hash = self.key.root();
        let mut rest = name;
        for _ in 0..components {
            let Ok((component, after)) = Element::first(rest) else { break };
            if after.is_empty() && component.kind == component::IMPLICIT_DIGEST {
                break;
            }
            hash = self.key.append(hash, &rest[..rest.len() - after.len()]);
            rest = after;
        }
        ((u128::from(hash) * self.workers as u128) >> 64) as usize
    }
}
