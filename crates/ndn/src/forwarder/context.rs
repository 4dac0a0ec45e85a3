//! What a worker has of its own besides the tables: faces, routes, strategies, counters, buffers.

use crate::packets::{Headers, Interest, Packet};

use crate::forwarder::counters::Counters;
use crate::forwarder::face::{FaceId, Faces};
use crate::forwarder::notice::Notice;
use crate::forwarder::scratch::Scratch;
use crate::forwarder::settings::Settings;
use crate::forwarder::strategy::Strategy;
use crate::forwarder::tables::{NameKey, NextHop, PrefixTable, Prefixes};
use crate::forwarder::token::Token;

/// What a worker has of its own in any case.
#[derive(Debug)]
pub struct Context {
    pub(crate) settings: Settings,
    /// Number of the shard; 0 if the tables are shared.
    pub(crate) shard: u8,
    /// Interests with CanBePrefix and fewer components are short prefixes; 0 without other shards.
    pub(crate) short_below: usize,
    pub(crate) notices: Vec<Notice>,
    pub(crate) key: NameKey,
    pub(crate) faces: Faces,
    pub(crate) fib: PrefixTable<Vec<NextHop>>,
    pub(crate) strategies: PrefixTable<Strategy>,
    pub(crate) counters: Counters,
    pub(crate) scratch: Scratch,
}

impl Context {
    /// The key of the hashes of names.
    pub fn key(&self) -> &NameKey {
        &self.key
    }

    /// Reads a packet and hashes the prefixes of its name; `None` if it is malformed.
    #[inline]
    pub fn read<'a>(&self, packet: &'a [u8], prefixes: &mut Prefixes) -> Option<Packet<'a>> {
        let read =
            Packet::read(packet).ok().filter(|_| packet.len() <= crate::packets::PACKET_MAX)?;
        prefixes.set(&self.key, read.name());
        Some(read)
    }

    /// Counts whether a packet's token is that of an entry for which `is_of` returns true. For a
    /// token of another shard, `is_elsewhere` decides.
    pub(crate) fn check_token(
        &mut self,
        headers: &Headers,
        is_elsewhere: bool,
        is_of: impl Fn((u32, u16)) -> bool,
    ) {
        if headers.token.as_bytes().is_empty() {
            return;
        }
        let right = Token::read(&headers.token)
            .filter(|token| token.shard == self.shard)
            .map_or(is_elsewhere, |token| is_of((token.entry, token.generation)));
        self.counters.tokens_right += u64::from(right);
        self.counters.tokens_wrong += u64::from(!right);
    }

    /// Sets `scratch.hops` to the next hops of an Interest for which `allowed` returns true: those
    /// of its name, or of the first name of its hint that has a route.
    pub(crate) fn look_up_hops(
        &mut self,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        without_hint: bool,
        allowed: impl Fn(&Faces, FaceId) -> bool,
    ) {
        let Self { fib, key, scratch, faces, .. } = self;
        let allowed = |hop: &&NextHop| allowed(faces, hop.face);
        scratch.hops.clear();
        if interest.hint.is_empty() || without_hint {
            let hops = fib.longest(&interest.name, prefixes).map_or(&[][..], |(_, hops)| hops);
            scratch.hops.extend(hops.iter().filter(allowed));
            return;
        }
        for name in interest.delegations() {
            if scratch.hint.set(key, &name)
                && let Some((_, hops)) = fib.longest(&name, &scratch.hint)
            {
                scratch.hops.extend(hops.iter().filter(allowed));
                return;
            }
        }
    }
}
