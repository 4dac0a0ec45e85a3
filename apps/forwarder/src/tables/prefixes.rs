//! The hashes of a name's prefixes, all in one pass.
//!
//! ```text
//!  /a/b/c:   hash of /, of /a, of /a/b, of /a/b/c       each continues the one before
//! ```

use ringtap_ndn::Name;

/// Components that a name may have.
pub const COMPONENTS_MAX: usize = 64;

/// The secret of the hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameKey([u64; 2]);

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

    /// The hash of a name with one more component, given by all its bytes.
    #[inline]
    pub(crate) fn append(&self, hash: u64, component: &[u8]) -> u64 {
        let mut hash = hash ^ component.len() as u64;
        let mut words = component.chunks_exact(8);
        for word in &mut words {
            // The length is 8: it cannot fail.
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            hash = fold(hash ^ word, self.0[1]);
        }
        let mut last = [0; 8];
        let rest = words.remainder();
        last[..rest.len()].copy_from_slice(rest);
        fold(hash ^ u64::from_le_bytes(last), self.0[0])
    }

    /// A hash and a number together.
    #[inline]
    pub(crate) fn with(&self, hash: u64, number: u64) -> u64 {
        fold(hash ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), self.0[1])
    }

    /// The hash of the first component, by which names are shared out.
    #[inline]
    pub(crate) fn first_component(&self, name: &Name<'_>) -> u64 {
        let mut components = name.components();
        components.next();
        let len = name.as_bytes().len() - components.bytes_left();
        self.append(self.root(), &name.as_bytes()[..len])
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

/// The prefixes of a name: where they end and their hashes.
#[derive(Clone, Debug)]
pub(crate) struct Prefixes {
    hashes: [u64; COMPONENTS_MAX + 1],
    ends: [u16; COMPONENTS_MAX + 1],
    components: usize,
}

impl Prefixes {
    pub(crate) fn new() -> Self {
        Self { hashes: [0; COMPONENTS_MAX + 1], ends: [0; COMPONENTS_MAX + 1], components: 0 }
    }

    /// Takes the prefixes of `name`; false if there are too many.
    #[inline]
    pub(crate) fn set(&mut self, key: &NameKey, name: &Name<'_>) -> bool {
        let bytes = name.as_bytes();
        self.hashes[0] = key.root();
        self.components = 0;
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
        true
    }

    /// How many components there are.
    #[inline]
    pub(crate) fn components(&self) -> usize {
        self.components
    }

    /// The hash of the first so many components.
    #[inline]
    pub(crate) fn hash(&self, components: usize) -> u64 {
        self.hashes[components]
    }

    /// The hash of the whole name.
    #[inline]
    pub(crate) fn full(&self) -> u64 {
        self.hashes[self.components]
    }

    /// How many bytes the first so many components have.
    #[inline]
    pub(crate) fn end(&self, components: usize) -> usize {
        self.ends[components].into()
    }
}
