//! The content store (CS): forwarded Data that answer later Interests.
//!
//! ```text
//!  tree of names:   /a ─┬─ /a/b ── /a/b/1 ● Data          found by hash, newest child first
//!                       └─ /a/c ● Data
//!  queues of Data:  small and main, which decide what is evicted
//! ```
//!
//! It stores one Data per name; a new one replaces the old one. A look-up by prefix returns the
//! first match of a depth-first walk, newest children first, over at most [`VISITS_MAX`] nodes. If
//! the Data must be fresh, the one below the prefix that is fresh the longest comes first.
//!
//! Invariants: every leaf of the tree has a Data, so the eviction of Data leaves no unused nodes. If
//! a node's `freshest` is a Data, so is that of each node between them.

mod blocks;
mod ghosts;
mod names;
mod queues;
#[cfg(test)]
mod tests;

use crate::packets::{Data, Interest};

use super::NONE;
use super::access::Contents;
use super::prefixes::Prefixes;
use blocks::{BLOCK, Blocks, Node, Queue};
use ghosts::Ghosts;
use names::Names;
use queues::Queues;

/// Maximum number of nodes that a look-up by prefix visits.
const VISITS_MAX: usize = 64;

/// Bytes of the store for each block: the block, its places in the index and among the ghosts.
pub(crate) const BYTES_PER_BLOCK: usize = BLOCK + names::BYTES_PER_BLOCK + ghosts::BYTES_PER_BLOCK;

/// A content store of one thread.
#[derive(Debug)]
pub struct ContentStore {
    blocks: Blocks,
    names: Names,
    queues: Queues,
    ghosts: Ghosts,
    len: usize,
    evicted: u64,
}

impl ContentStore {
    /// A content store of at most `bytes` bytes, of packets and all that they need here.
    pub fn new(bytes: usize) -> Self {
        let blocks = Blocks::new(bytes / BYTES_PER_BLOCK);
        Self {
            names: Names::new(blocks.capacity()),
            queues: Queues::new(),
            ghosts: Ghosts::new(blocks.capacity()),
            blocks,
            len: 0,
            evicted: 0,
        }
    }

    /// Number of stored Data.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no Data are stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of used bytes.
    pub fn bytes(&self) -> usize {
        self.blocks.used() * BYTES_PER_BLOCK
    }

    /// Number of Data evicted to make room.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Prefetches the place of a name in the index.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.names.prefetch(hash);
    }

    /// Prefetches the node of a name; its place in the index must be loaded.
    #[inline]
    pub(crate) fn prefetch_node(&self, hash: u64) {
        self.names.candidates(hash).for_each(|at| self.blocks.prefetch(at));
    }

    /// The first usable Data at or below the node `top`.
    fn first_usable_below(&self, top: u32, usable: impl Fn(&Node) -> bool) -> Option<u32> {
        let mut at = top;
        for _ in 0..VISITS_MAX {
            let node = &self.blocks[at];
            if usable(node) {
                return Some(at);
            }
            if node.first_child != NONE {
                at = node.first_child;
                continue;
            }
            while at != top && self.blocks[at].older_sibling == NONE {
                at = self.blocks[at].parent;
            }
            if at == top {
                return None;
            }
            at = self.blocks[at].older_sibling;
        }
        None
    }

    /// The node of a name with this hash and number of components.
    fn node_of(&self, hash: u64, name: &[u8], components: usize) -> Option<u32> {
        self.names.candidates(hash).find(|&at| {
            let node = &self.blocks[at];
            node.hash == hash
                && usize::from(node.components) == components
                && self.data_below(at).is_some_and(|leaf| self.blocks.has_name(leaf, name))
        })
    }

    /// A Data at or below a node; its name begins with the node's name.
    fn data_below(&self, mut at: u32) -> Option<u32> {
        while !self.blocks.get(at)?.has_data() {
            at = self.blocks[at].first_child;
        }
        Some(at)
    }

    /// The node of this name, if it has a Data.
    fn data_of(&self, hash: u64, name: &[u8], components: usize) -> Option<u32> {
        self.node_of(hash, name, components).filter(|&at| self.blocks[at].has_data())
    }

    /// Creates the missing nodes of a name, for which there must be room; returns the node of the
    /// whole name.
    fn create_nodes(&mut self, prefixes: &Prefixes, name: &[u8]) -> Option<u32> {
        let all = prefixes.components();
        let node = |n: usize| self.node_of(prefixes.hash(n), &name[..prefixes.end(n)], n);
        let existing = (1..=all).rev().find_map(|n| node(n).map(|at| (at, n)));
        let (mut parent, existing) = existing.unwrap_or((NONE, 0));
        for n in existing + 1..=all {
            let at = self.blocks.add(Node::new(prefixes.hash(n), n, parent))?;
            if parent != NONE {
                let older = std::mem::replace(&mut self.blocks[parent].first_child, at);
                self.blocks[at].older_sibling = older;
                if older != NONE {
                    self.blocks[older].newer_sibling = at;
                }
            }
            self.names.insert(prefixes.hash(n), at);
            parent = at;
        }
        Some(parent)
    }

    /// Sets the end of the freshness of a stored Data.
    fn set_fresh(&mut self, at: u32, until_ns: u64) {
        self.blocks[at].fresh_until_ns = until_ns;
        let mut above = if until_ns > 0 { at } else { NONE };
        while above != NONE {
            let freshest = self.blocks[above].freshest;
            if self.blocks.get(freshest).is_some_and(|other| other.fresh_until_ns >= until_ns) {
                break;
            }
            self.blocks[above].freshest = at;
            above = self.blocks[above].parent;
        }
    }

    /// Removes a Data to make room.
    fn evict(&mut self, at: u32) {
        let node = &self.blocks[at];
        if node.queue == Queue::Small {
            self.ghosts.put(node.hash, node.blocks());
        }
        self.evicted += 1;
        self.remove(at);
        self.prefetch_victims();
    }

    /// Prefetches what the next two evictions read. Each step reads what earlier calls have
    /// prefetched.
    fn prefetch_victims(&self) {
        let Self { blocks, names, queues, .. } = self;
        let Some(next) = blocks.get(queues.oldest()) else { return };
        if let Some(parent) = blocks.get(next.parent) {
            names.prefetch(parent.hash);
            blocks.prefetch(parent.parent);
        }
        if let Some(later) = blocks.get(next.newer) {
            names.prefetch(later.hash);
            [later.parent, later.rest, later.newer].into_iter().for_each(|at| blocks.prefetch(at));
        }
    }

    /// Removes a Data, and the nodes that no other Data needs.
    fn remove(&mut self, at: u32) {
        self.queues.remove(&mut self.blocks, at);
        self.blocks.remove_packet(at);
        self.len -= 1;
        let mut above = at;
        while above != NONE && self.blocks[above].freshest == at {
            self.blocks[above].freshest = NONE;
            above = self.blocks[above].parent;
        }
        let mut unused = at;
        while unused != NONE {
            let node = &self.blocks[unused];
            if node.first_child != NONE || node.has_data() {
                break;
            }
            let parent = node.parent;
            self.remove_node(unused);
            unused = parent;
        }
    }

    /// Removes a node without children from the tree and from the index.
    fn remove_node(&mut self, at: u32) {
        let node = &self.blocks[at];
        let (parent, newer, older) = (node.parent, node.newer_sibling, node.older_sibling);
        self.names.remove(node.hash, at);
        if older != NONE {
            self.blocks[older].newer_sibling = newer;
        }
        if newer != NONE {
            self.blocks[newer].older_sibling = older;
        } else if parent != NONE {
            self.blocks[parent].first_child = older;
        }
        self.blocks.free(at);
    }
}

impl Contents for ContentStore {
    // Evicts Data if room is needed. A Data larger than the store is ignored.
    fn put(&mut self, now_ns: u64, data: &Data<'_>, prefixes: &Prefixes) {
        let (name, components) = (data.name.as_bytes(), prefixes.components());
        // Evictions can remove all prefixes of the name, so each of them may need a node.
        let needed = components + Blocks::chunks_of(data.wire.len());
        if needed > self.blocks.capacity() || components == 0 || data.wire.len() > u16::MAX.into() {
            return;
        }
        let (mut queue, mut uses) = (Queue::Small, 0);
        if let Some(old) = self.data_of(prefixes.full(), name, components) {
            Queues::use_data(&mut self.blocks, old);
            (queue, uses) = (self.blocks[old].queue, self.blocks[old].uses);
            self.remove(old);
        } else if self.ghosts.take(prefixes.full()) {
            queue = Queue::Main;
        }
        while self.blocks.room() < needed {
            let Some(victim) = self.queues.victim(&mut self.blocks) else { return };
            self.evict(victim);
        }
        let Some(at) = self.create_nodes(prefixes, name) else { return };
        self.blocks.set_packet(at, data.wire, data.name_at());
        (self.blocks[at].queue, self.blocks[at].uses) = (queue, uses);
        self.queues.add(&mut self.blocks, at);
        self.len += 1;
        let fresh_ns = data.freshness_ms.saturating_mul(1_000_000);
        self.set_fresh(at, if fresh_ns == 0 { 0 } else { now_ns.saturating_add(fresh_ns) });
    }

    fn look_up(
        &mut self,
        now_ns: u64,
        interest: &Interest<'_>,
        prefixes: &Prefixes,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.len == 0 {
            return false;
        }
        let components = prefixes.components();
        let name = interest.name.as_bytes();
        let usable = |node: &Node| {
            node.has_data() && (!interest.must_be_fresh || node.fresh_until_ns > now_ns)
        };
        let found = if let Some((name, digest)) = interest.name.split_digest() {
            let before = components - 1;
            self.node_of(prefixes.hash(before), name.as_bytes(), before)
                .filter(|&at| usable(&self.blocks[at]))
                .filter(|&at| {
                    self.blocks.read(at, out);
                    Data::read(out).is_ok_and(|data| data.digest() == *digest)
                })
        } else {
            match self.node_of(prefixes.full(), name, components) {
                Some(node) if interest.can_be_prefix => {
                    let freshest = self.blocks[node].freshest;
                    let is_fresh = |node: &Node| interest.must_be_fresh && usable(node);
                    match self.blocks.get(freshest).is_some_and(is_fresh) {
                        true => Some(freshest),
                        false => self.first_usable_below(node, usable),
                    }
                }
                node => node.filter(|&node| usable(&self.blocks[node])),
            }
        };
        let Some(at) = found else { return false };
        Queues::use_data(&mut self.blocks, at);
        self.blocks.read(at, out);
        true
    }
}
