//! The content store (CS): forwarded Data that answer later Interests.
//!
//! ```text
//!  tree of names:   /a ─┬─ /a/b ── /a/b/1 ● Data          found by hash, newest child first
//!                       └─ /a/c ● Data
//!  Data:            most recently used ⇄ … ⇄ least recently used, which is evicted first
//! ```
//!
//! It stores one Data per name; a new one replaces the old one. A look-up by prefix returns the
//! first match of a depth-first walk, newest children first, over at most [`VISITS_MAX`] nodes.
//!
//! Invariant: every leaf of the tree has a Data, so the eviction of Data leaves no unused nodes.

use crate::packets::{Data, Interest};

use super::NONE;
use super::index::Index;
use super::pool::Pool;
use super::prefixes::{COMPONENTS_MAX, Prefixes};
use super::store::{Store, Stored};

/// Maximum number of nodes that a look-up by prefix visits.
const VISITS_MAX: usize = 64;

/// Number of tree nodes per Data.
const NODES_PER_DATA: usize = 4;

#[derive(Debug)]
pub(crate) struct ContentStore {
    nodes: Pool<Node>,
    index: Index,
    data: Pool<Cached>,
    wires: Store,
    newest: u32,
    oldest: u32,
    len: usize,
    evicted: u64,
}

/// A node of the tree: a name of a Data, or a prefix of one.
#[derive(Debug)]
struct Node {
    hash: u64,
    components: u8,
    parent: u32,
    first_child: u32,
    newer_sibling: u32,
    older_sibling: u32,
    data: u32,
}

/// A stored Data.
#[derive(Debug)]
struct Cached {
    node: u32,
    wire: Stored,
    name_at: u16,
    fresh_until_ns: u64,
    newer: u32,
    older: u32,
}

impl ContentStore {
    pub(crate) fn new(capacity: usize, bytes: usize) -> Self {
        let nodes = if capacity == 0 { 0 } else { capacity * NODES_PER_DATA + COMPONENTS_MAX };
        Self {
            nodes: Pool::new(nodes),
            index: Index::new(nodes),
            data: Pool::new(capacity),
            wires: Store::new(if capacity == 0 { 0 } else { Store::chunks_of(bytes) }),
            newest: NONE,
            oldest: NONE,
            len: 0,
            evicted: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Stores a Data, fresh for its freshness period. Evicts the least recently used Data if room
    /// is needed.
    pub(crate) fn put(&mut self, now_ns: u64, data: &Data<'_>, prefixes: &Prefixes) {
        let chunks = Store::chunks_of(data.wire.len());
        let name = data.name.as_bytes();
        if self.data.room() + self.len == 0 || name.is_empty() {
            return;
        }
        if let Some(at) = self.node_of(prefixes.full(), name, prefixes.components()) {
            let at = self.nodes[at].data;
            if at != NONE {
                self.evict(at);
            }
        }
        // Eviction may remove prefix nodes of the new name, so each round counts the missing ones.
        while self.wires.room() < chunks
            || self.data.room() == 0
            || self.nodes.room() < self.missing_nodes(prefixes, name)
        {
            if self.oldest == NONE {
                return;
            }
            self.evict(self.oldest);
            self.evicted += 1;
        }
        let Some(wire) = self.wires.put(data.wire) else { return };
        let fresh_ns = data.freshness_ms.saturating_mul(1_000_000);
        let cached = Cached {
            node: NONE,
            wire,
            name_at: data.name_at() as u16,
            fresh_until_ns: if fresh_ns == 0 { 0 } else { now_ns.saturating_add(fresh_ns) },
            newer: NONE,
            older: NONE,
        };
        let Some(at) = self.data.put(cached) else { return };
        self.link(at);
        self.len += 1;
        let node = self.create_nodes(prefixes, name, at);
        self.data[at].node = node;
        self.nodes[node].data = at;
    }

    /// Finds a Data that satisfies an Interest, and writes its bytes to `out`, replacing the
    /// contents. Returns false if there is none.
    pub(crate) fn look_up(
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
        let usable = |at: u32| {
            at != NONE && (!interest.must_be_fresh || self.data[at].fresh_until_ns > now_ns)
        };
        let found = if let Some((name, digest)) = interest.name.split_digest() {
            let before = components - 1;
            self.node_of(prefixes.hash(before), name.as_bytes(), before)
                .map(|node| self.nodes[node].data)
                .filter(|&at| usable(at))
                .filter(|&at| {
                    self.wires.read(self.data[at].wire, out);
                    Data::read(out).is_ok_and(|data| data.digest() == *digest)
                })
        } else {
            let node = self.node_of(prefixes.full(), interest.name.as_bytes(), components);
            match node {
                Some(node) if interest.can_be_prefix => self.first_usable_below(node, usable),
                Some(node) => Some(self.nodes[node].data).filter(|&at| usable(at)),
                None => None,
            }
        };
        let Some(at) = found else { return false };
        self.unlink(at);
        self.link(at);
        self.wires.read(self.data[at].wire, out);
        true
    }

    /// The first usable Data at or below the node `top`.
    fn first_usable_below(&self, top: u32, usable: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = top;
        for _ in 0..VISITS_MAX {
            let node = &self.nodes[at];
            if usable(node.data) {
                return Some(node.data);
            }
            if node.first_child != NONE {
                at = node.first_child;
                continue;
            }
            while at != top && self.nodes[at].older_sibling == NONE {
                at = self.nodes[at].parent;
            }
            if at == top {
                return None;
            }
            at = self.nodes[at].older_sibling;
        }
        None
    }

    /// The node of a name with this hash and number of components.
    fn node_of(&self, hash: u64, name: &[u8], components: usize) -> Option<u32> {
        self.index.candidates(hash).find(|&at| {
            let node = &self.nodes[at];
            if node.hash != hash || usize::from(node.components) != components {
                return false;
            }
            // The name of any Data below the node begins with the node's name.
            let mut leaf = node;
            while leaf.data == NONE {
                let Some(child) = self.nodes.get(leaf.first_child) else { return false };
                leaf = child;
            }
            let data = &self.data[leaf.data];
            self.wires.has(data.wire, data.name_at.into(), name)
        })
    }

    /// Number of nodes that the name needs and that do not exist.
    fn missing_nodes(&self, prefixes: &Prefixes, name: &[u8]) -> usize {
        let all = prefixes.components();
        let exists =
            |&n: &usize| self.node_of(prefixes.hash(n), &name[..prefixes.end(n)], n).is_some();
        all - (1..=all).rev().find(exists).unwrap_or(0)
    }

    /// Creates the missing nodes of a name; returns the node of the whole name. The Data must be
    /// stored already, because the nodes refer to its name.
    fn create_nodes(&mut self, prefixes: &Prefixes, name: &[u8], data: u32) -> u32 {
        let all = prefixes.components();
        let mut parent = NONE;
        let mut existing = 0;
        for n in (1..=all).rev() {
            if let Some(at) = self.node_of(prefixes.hash(n), &name[..prefixes.end(n)], n) {
                (parent, existing) = (at, n);
                break;
            }
        }
        for n in existing + 1..=all {
            let older_sibling = if parent == NONE { NONE } else { self.nodes[parent].first_child };
            let node = Node {
                hash: prefixes.hash(n),
                components: n as u8,
                parent,
                first_child: NONE,
                newer_sibling: NONE,
                older_sibling,
                data: if n == all { data } else { NONE },
            };
            let Some(at) = self.nodes.put(node) else { break };
            if older_sibling != NONE {
                self.nodes[older_sibling].newer_sibling = at;
            }
            if parent != NONE {
                self.nodes[parent].first_child = at;
            }
            self.index.insert(prefixes.hash(n), at);
            parent = at;
        }
        parent
    }

    /// Removes a Data, and the nodes that no other Data needs.
    fn evict(&mut self, at: u32) {
        self.unlink(at);
        self.wires.free(self.data[at].wire);
        let mut node = self.data[at].node;
        self.data.free(at);
        self.len -= 1;
        self.nodes[node].data = NONE;
        while node != NONE {
            let Node { hash, parent, first_child, newer_sibling, older_sibling, data, .. } =
                self.nodes[node];
            if first_child != NONE || data != NONE {
                break;
            }
            self.index.remove(hash, node);
            if older_sibling != NONE {
                self.nodes[older_sibling].newer_sibling = newer_sibling;
            }
            if newer_sibling != NONE {
                self.nodes[newer_sibling].older_sibling = older_sibling;
            } else if parent != NONE {
                self.nodes[parent].first_child = older_sibling;
            }
            self.nodes.free(node);
            node = parent;
        }
    }

    /// Makes a Data the most recently used one.
    fn link(&mut self, at: u32) {
        let older = self.newest;
        let cached = &mut self.data[at];
        (cached.newer, cached.older) = (NONE, older);
        match older {
            NONE => self.oldest = at,
            older => self.data[older].newer = at,
        }
        self.newest = at;
    }

    /// Removes a Data from the list by use.
    fn unlink(&mut self, at: u32) {
        let Cached { newer, older, .. } = self.data[at];
        match newer {
            NONE => self.newest = older,
            newer => self.data[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.data[older].newer = newer,
        }
    }
}
