//! The hashes of all prefixes of a name, computed in one pass.
//!
//! ```text
//!  /a/b/c:   hash of /, of /a, of /a/b, of /a/b/c       each continues the one before
//! ```

use crate::packets::Name;

/// Maximum number of components of a name or prefix.
pub const COMPONENTS_MAX: usize = 64;

/// The key of the name hash.
#[derive(Clone, Copy, Debug)]
pub struct NameKey([u64; 2]);

impl NameKey {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mix = |seed: u64| {
            let z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6a09_e667_f3bc_c908;
            fold(z, 0xbf58_476d_1ce4_e5b9) | 1
        };
        Self([mix(seed.wrapping_add(1)), mix(seed.wrapping_add(2))])
    }

    /// The hash of the name without components.
    pub(crate) fn root(&self) -> u64 {
        self.0[0]
    }

    /// The hash of a name with one more component. `component` holds all its bytes, including type
    /// and length.
    #[inline]
    pub fn append(&self, hash: u64, component: &[u8]) -> u64 {
        let mut hash = hash ^ component.len() as u64;
        let (words, _) = component.as_chunks::<8>();
        for word in words {
            hash = fold(hash ^ u64::from_le_bytes(*word), self.0[1]);
        }
        // The last eight bytes may overlap the words above. The length is part of the hash, so each
        // byte still changes the result.
        let last = component
            .last_chunk()
            .map_or_else(|| short_bytes(component), |w| u64::from_le_bytes(*w));
        fold(hash ^ last, self.0[0])
    }

    /// Combines a hash with a number.
    #[inline]
    pub(crate) fn with(&self, hash: u64, number: u64) -> u64 {
        fold(hash ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.0[1])
    }
}

/// Fewer than 8 bytes as a number, which is unique among inputs of the same length.
#[inline(always)]
fn short_bytes(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk(), bytes) {
        (Some(first), Some(last), _) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        (_, _, &[first, .., last]) => {
            u64::from_le_bytes([first, bytes[bytes.len() / 2], last, 0, 0, 0, 0, 0])
        }
        (_, _, &[only]) => only.into(),
        _ => 0,
    }
}

/// The two halves of a 128-bit product, combined by xor.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

/// The prefixes of a name: their ends and hashes.
#[derive(Clone, Debug)]
pub struct Prefixes {
    hashes: [u64; COMPONENTS_MAX + 1],
    ends: [u16; COMPONENTS_MAX + 1],
    components: usize,
    fits: bool,
}

impl Prefixes {
    pub(crate) fn new() -> Self {
        let (hashes, ends) = ([0; COMPONENTS_MAX + 1], [0; COMPONENTS_MAX + 1]);
        Self { hashes, ends, components: 0, fits: true }
    }

    /// Computes the prefixes of `name`; returns false if it has more than [`COMPONENTS_MAX`]
    /// components.
    #[inline]
    pub(crate) fn set(&mut self, key: &NameKey, name: &Name<'_>) -> bool {
        let bytes = name.as_bytes();
        self.hashes[0] = key.root();
        self.components = 0;
        self.fits = false;
        let mut components = name.components();
        let mut start = 0;
        while components.next().is_some() {
            if self.components == COMPONENTS_MAX {
                return false;
            }
            let end = bytes.len() - components.bytes_left();
            let hash = key.append(self.hashes[self.components], &bytes[start..end]);
            self.components += 1;
            self.hashes[self.components] = hash;
            self.ends[self.components] = end as u16;
            start = end;
        }
        self.fits = true;
        true
    }

    /// Whether the name has at most [`COMPONENTS_MAX`] components.
    #[inline]
    pub(crate) fn fits(&self) -> bool {
        self.fits
    }

    /// Number of components.
    #[inline]
    pub fn components(&self) -> usize {
        self.components
    }

    /// The hash of the first `components` components.
    #[inline]
    pub fn hash(&self, components: usize) -> u64 {
        self.hashes[components]
    }

    /// The hash of the whole name.
    #[inline]
    pub fn full(&self) -> u64 {
        self.hashes[self.components]
    }

    /// Length in bytes of the first `components` components.
    #[inline]
    pub fn end(&self, components: usize) -> usize {
        self.ends[components].into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_byte_of_a_component_changes_the_hash() {
        let key = NameKey::from_seed(1);
        let mut seen = HashSet::new();
        for len in 0..40 {
            // The bytes of a component include its type and length.
            let mut component = vec![0; 2 + len];
            (component[0], component[1]) = (8, len as u8);
            assert!(seen.insert(key.append(7, &component)), "{len}");
            for at in 2..2 + len {
                for bit in 0..8 {
                    component[at] = 1 << bit;
                    assert!(seen.insert(key.append(7, &component)), "{len} {at} {bit}");
                }
                component[at] = 0;
            }
        }
    }
}
