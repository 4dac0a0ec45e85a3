//! The memory of the content store: one pool of blocks for names and packets, so that one bound in
//! bytes holds for any mixture of both.
//!
//! ```text
//!  name with a Data:  | header, the first 64 bytes of the packet | ─▶ | next, 123 bytes | ─▶ …
//!  name without:      | header                                   |         each 128 bytes
//! ```
//!
//! A look-up compares the name with the bytes beside the header, so a match reads two cache lines.
//!
//! Invariant: memory is reserved at the start, and used from the first block on.

use crate::forwarder::tables::NONE;

/// Bytes of a packet beside the header of its name.
const HEAD: usize = 64;
/// Bytes of a packet in each further block.
const CHUNK: usize = 123;

/// Size of a block in bytes.
pub(super) const BLOCK: usize = 128;

const _: () = assert!(size_of::<Block>() == BLOCK);

/// The queue of a Data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Small,
    Main,
}

#[derive(Debug)]
#[repr(align(128))]
enum Block {
    Free { next: u32 },
    Node(Node),
    Chunk { next: u32, bytes: [u8; CHUNK] },
}

/// A node of the tree: a name of a Data, or a prefix of one. All but the bytes of the packet are in
/// the first cache line of the block.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Node {
    pub(super) hash: u64,
    /// The end of the freshness of its Data; 0: never fresh.
    pub(super) fresh_until_ns: u64,
    pub(super) parent: u32,
    /// The newest child.
    pub(super) first_child: u32,
    pub(super) newer_sibling: u32,
    pub(super) older_sibling: u32,
    /// The Data at or below this node that is fresh the longest, or none.
    pub(super) freshest: u32,
    /// Neighbours in the queue of Data.
    pub(super) newer: u32,
    pub(super) older: u32,
    /// The block of the packet's bytes after the first ones.
    pub(super) rest: u32,
    /// Length of the packet in bytes; 0: no Data.
    len: u16,
    /// Position of the name in the packet.
    name_at: u16,
    /// Number of components of the name.
    pub(super) components: u8,
    /// Number of uses since the Data was stored or moved, up to a maximum.
    pub(super) uses: u8,
    pub(super) queue: Queue,
    head: [u8; HEAD],
}

impl Node {
    /// A node without neighbours and without a Data.
    pub(super) fn new(hash: u64, components: usize, parent: u32) -> Self {
        Self {
            hash,
            fresh_until_ns: 0,
            parent,
            first_child: NONE,
            newer_sibling: NONE,
            older_sibling: NONE,
            freshest: NONE,
            newer: NONE,
            older: NONE,
            rest: NONE,
            len: 0,
            name_at: 0,
            components: components as u8,
            uses: 0,
            queue: Queue::Small,
            head: [0; HEAD],
        }
    }

    pub(super) fn has_data(&self) -> bool {
        self.len > 0
    }

    /// Number of blocks of this name and its packet.
    pub(super) fn blocks(&self) -> usize {
        1 + Blocks::chunks_of(self.len.into())
    }
}

#[derive(Debug)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// The block freed last; each refers to the one freed before.
    free: u32,
    used: usize,
    capacity: usize,
}

impl Blocks {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.min(NONE as usize);
        Self { blocks: Vec::with_capacity(capacity), free: NONE, used: 0, capacity }
    }

    /// Number of blocks, besides that of the name, for a packet of `len` bytes.
    pub(super) fn chunks_of(len: usize) -> usize {
        len.saturating_sub(HEAD).div_ceil(CHUNK)
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Number of unused blocks.
    pub(super) fn room(&self) -> usize {
        self.capacity - self.used
    }

    /// The node at a place; `None` if there is none.
    pub(super) fn get(&self, at: u32) -> Option<&Node> {
        match self.blocks.get(at as usize)? {
            Block::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Stores a node; `None` if there is no room.
    pub(super) fn add(&mut self, node: Node) -> Option<u32> {
        self.put(Block::Node(node))
    }

    fn put(&mut self, block: Block) -> Option<u32> {
        let at = self.free;
        if at != NONE {
            let Block::Free { next } = self.blocks[at as usize] else { return None };
            self.free = next;
            self.blocks[at as usize] = block;
            self.used += 1;
            return Some(at);
        }
        if self.blocks.len() == self.capacity {
            return None;
        }
        self.blocks.push(block);
        self.used += 1;
        Some(self.blocks.len() as u32 - 1)
    }

    /// Frees a block.
    pub(super) fn free(&mut self, at: u32) {
        self.blocks[at as usize] = Block::Free { next: self.free };
        self.free = at;
        self.used -= 1;
    }

    /// Stores a packet, whose name is at the position `name_at`, at a node. The node must have no
    /// packet; the caller must have checked the room.
    pub(super) fn set_packet(&mut self, at: u32, wire: &[u8], name_at: usize) {
        let (first, later) = wire.split_at(wire.len().min(HEAD));
        let mut rest = NONE;
        // From the last block to the first, so that each can refer to the next.
        for piece in later.chunks(CHUNK).rev() {
            let mut bytes = [0; CHUNK];
            bytes[..piece.len()].copy_from_slice(piece);
            rest = self.put(Block::Chunk { next: rest, bytes }).unwrap_or(NONE);
        }
        let node = &mut self[at];
        node.head[..first.len()].copy_from_slice(first);
        (node.rest, node.len, node.name_at) = (rest, wire.len() as u16, name_at as u16);
    }

    /// Removes the packet of a node.
    pub(super) fn remove_packet(&mut self, at: u32) {
        let node = &mut self[at];
        node.len = 0;
        let mut rest = std::mem::replace(&mut node.rest, NONE);
        while let Some(&Block::Chunk { next, .. }) = self.blocks.get(rest as usize) {
            self.free(rest);
            rest = next;
        }
    }

    /// The bytes of a node's packet, in pieces; the last one may be too long.
    fn pieces(&self, at: u32) -> impl Iterator<Item = &[u8]> {
        let node = &self[at];
        let mut rest = node.rest;
        let later = std::iter::from_fn(move || {
            let Some(Block::Chunk { next, bytes }) = self.blocks.get(rest as usize) else {
                return None;
            };
            rest = *next;
            Some(&bytes[..])
        });
        std::iter::once(&node.head[..]).chain(later)
    }

    /// Writes the packet of a node to `out`, replacing the contents.
    pub(super) fn read(&self, at: u32, out: &mut Vec<u8>) {
        out.clear();
        for piece in self.pieces(at) {
            out.extend_from_slice(piece);
        }
        out.truncate(self[at].len.into());
    }

    /// Whether the name of a node's packet begins with `name`.
    pub(super) fn has_name(&self, at: u32, name: &[u8]) -> bool {
        let node = &self[at];
        let (mut skip, mut left) = (usize::from(node.name_at), name);
        if skip + name.len() > node.len.into() {
            return false;
        }
        for piece in self.pieces(at) {
            let Some(piece) = piece.get(skip..) else {
                skip -= piece.len();
                continue;
            };
            skip = 0;
            let (now, later) = left.split_at(left.len().min(piece.len()));
            if !piece.starts_with(now) {
                return false;
            }
            left = later;
            if left.is_empty() {
                return true;
            }
        }
        left.is_empty()
    }

    /// Prefetches a block.
    #[inline]
    pub(super) fn prefetch(&self, at: u32) {
        if let Some(block) = self.blocks.get(at as usize) {
            ringtap_base::prefetch(block);
        }
    }
}

impl std::ops::Index<u32> for Blocks {
    type Output = Node;

    #[inline]
    fn index(&self, at: u32) -> &Node {
        match &self.blocks[at as usize] {
            Block::Node(node) => node,
            _ => unreachable!("block {at} holds no name"),
        }
    }
}

impl std::ops::IndexMut<u32> for Blocks {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut Node {
        match &mut self.blocks[at as usize] {
            Block::Node(node) => node,
            _ => unreachable!("block {at} holds no name"),
        }
    }
}

#[cfg(test)]
impl Blocks {
    /// All nodes and their places.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (u32, &Node)> {
        (0..self.blocks.len() as u32).filter_map(|at| Some((at, self.get(at)?)))
    }
}
