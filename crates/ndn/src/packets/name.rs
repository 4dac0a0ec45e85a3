//! Names: views of consecutive components.
//!
//! Invariant: a [`Name`] was checked at construction, so its components are well formed.

use crate::packets::{Element, Elements, Error, kind};

/// Types of components.
pub mod component {
    #![allow(missing_docs, reason = "the names are the specification's")]
    pub const IMPLICIT_DIGEST: u32 = 1;
    pub const PARAMETERS_DIGEST: u32 = 2;
    pub const GENERIC: u32 = 8;
    pub const KEYWORD: u32 = 32;
    pub const SEGMENT: u32 = 50;
    pub const BYTE_OFFSET: u32 = 52;
    pub const VERSION: u32 = 54;
    pub const TIMESTAMP: u32 = 56;
    pub const SEQUENCE: u32 = 58;
}

/// A component: its type and value.
pub type Component<'a> = Element<'a>;

/// A name: the bytes of its components, without the type and length of the Name element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// The name without components.
    pub const EMPTY: Self = Self(&[]);

    /// Parses the value of a Name element; checks all components.
    #[inline]
    pub fn read(value: &'a [u8]) -> Result<Self, Error> {
        Self::counted(value).map(|(name, _)| name)
    }

    /// As [`Name::read`]; also returns the number of ParametersSha256Digest components.
    #[inline]
    pub(crate) fn counted(value: &'a [u8]) -> Result<(Self, usize), Error> {
        let mut digests = 0;
        for read in Elements::of(value) {
            let component = read?;
            let is_digest = component.kind <= component::PARAMETERS_DIGEST;
            if component.kind > 0xffff || is_digest && component.value.len() != 32 {
                return Err(Error::BadComponent);
            }
            digests += usize::from(component.kind == component::PARAMETERS_DIGEST);
        }
        Ok((Self(value), digests))
    }

    /// Parses a Name element; also returns the number of ParametersSha256Digest components.
    pub(crate) fn of(element: &Element<'a>) -> Result<(Self, usize), Error> {
        if element.kind == kind::NAME { Self::counted(element.value) } else { Err(Error::NoName) }
    }

    /// The bytes of the components.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Whether the name has no components.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The components in order.
    #[inline]
    pub fn components(&self) -> Components<'a> {
        Components(self.0)
    }

    /// Whether this name equals `other` or is a prefix of it. Components are self-delimiting, so a
    /// comparison of bytes is enough.
    pub fn is_prefix_of(&self, other: &Name<'_>) -> bool {
        other.0.starts_with(self.0)
    }

    /// Splits off an implicit digest at the end of the name: returns the name before it and the
    /// digest; `None` if the last component is not an implicit digest.
    pub fn split_digest(&self) -> Option<(Self, &'a [u8; 32])> {
        // Type 1, length 32. A longer component may end in the same bytes, so a component must
        // start here.
        let at = self.0.len().checked_sub(34)?;
        let (before, last) = self.0.split_at(at);
        let ([1, 32], digest) = last.split_first_chunk()? else { return None };
        let aligned = self.components().offsets().any(|offset| offset == at);
        Some((Self(before), digest.try_into().ok()?)).filter(|_| aligned)
    }
}

/// The components of a name.
#[derive(Clone, Debug)]
pub struct Components<'a>(&'a [u8]);

impl<'a> Components<'a> {
    /// The position of each component, in bytes from the start of the name.
    pub fn offsets(self) -> impl Iterator<Item = usize> + 'a {
        let total = self.0.len();
        let mut rest = self;
        std::iter::from_fn(move || {
            let at = total - rest.0.len();
            rest.next().map(|_| at)
        })
    }

    /// Number of bytes that are not iterated yet.
    pub fn bytes_left(&self) -> usize {
        self.0.len()
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    #[inline]
    fn next(&mut self) -> Option<Component<'a>> {
        // The name was checked at construction. An error would end the iteration.
        let (component, rest) = Element::first(self.0).ok()?;
        self.0 = rest;
        Some(component)
    }
}
