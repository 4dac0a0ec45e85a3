//! Interest: a request for a name, with a lifetime.
//!
//! ```text
//!  05 len | Name | CanBePrefix | MustBeFresh | ForwardingHint | Nonce | Lifetime | HopLimit | Parameters … |
//! ```

use crate::packets::write::{element_len, put, put_head, put_value, value_len};
use crate::packets::{Element, Elements, Error, Name, kind};

/// A view of an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest<'a> {
    /// The requested name: one component or more.
    pub name: Name<'a>,
    /// Whether a Data with a longer name satisfies the Interest.
    pub can_be_prefix: bool,
    /// Whether only fresh Data satisfies the Interest.
    pub must_be_fresh: bool,
    /// The forwarding hint: Name elements; empty without a hint.
    pub hint: &'a [u8],
    /// The nonce. It distinguishes a loop from a retransmission.
    pub nonce: Option<u32>,
    /// The lifetime in milliseconds: how long the Interest is pending.
    pub lifetime_ms: u64,
    /// Remaining hops.
    pub hop_limit: Option<u8>,
    /// The application parameters.
    pub parameters: Option<&'a [u8]>,
    /// The bytes of the whole packet.
    pub wire: &'a [u8],
    /// The value of the outer element.
    body: &'a [u8],
}

impl<'a> Interest<'a> {
    /// The default lifetime of an Interest, in milliseconds.
    pub const LIFETIME_MS: u64 = 4000;

    /// Parses an Interest; `wire` must hold exactly this packet.
    pub fn read(wire: &'a [u8]) -> Result<Self, Error> {
        let Element { kind: outer, value: body } = Element::only(wire)?;
        if outer != kind::INTEREST {
            return Err(Error::UnknownPacket);
        }
        let mut elements = Elements::of(body);
        let (name, digests) = Name::of(&elements.next().ok_or(Error::NoName)??)?;
        if name.is_empty() {
            return Err(Error::NoName);
        }
        let mut read = Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            hint: &[],
            nonce: None,
            lifetime_ms: Self::LIFETIME_MS,
            hop_limit: None,
            parameters: None,
            wire,
            body,
        };
        let mut latest = 0;
        for element in elements {
            let element = element?;
            match rank(element.kind) {
                Some(rank) if rank > latest => {
                    latest = rank;
                    read.read_element(&element)?;
                }
                _ if element.is_critical() => return Err(Error::Critical),
                _ => {}
            }
        }
        if digests != usize::from(read.parameters.is_some()) {
            return Err(Error::ParametersDigest);
        }
        Ok(read)
    }

    fn read_element(&mut self, element: &Element<'a>) -> Result<(), Error> {
        match element.kind {
            kind::CAN_BE_PREFIX => self.can_be_prefix = element.fixed::<0>().map(|_| true)?,
            kind::MUST_BE_FRESH => self.must_be_fresh = element.fixed::<0>().map(|_| true)?,
            kind::FORWARDING_HINT => self.hint = hint(element.value)?,
            kind::NONCE => self.nonce = Some(u32::from_be_bytes(element.fixed()?)),
            kind::INTEREST_LIFETIME => self.lifetime_ms = element.number()?,
            kind::HOP_LIMIT => self.hop_limit = Some(element.fixed::<1>()?[0]),
            kind::APPLICATION_PARAMETERS => self.parameters = Some(element.value),
            _ => {}
        }
        Ok(())
    }

    /// The names of the forwarding hint, in order.
    pub fn delegations(&self) -> impl Iterator<Item = Name<'a>> + use<'a> {
        Elements::of(self.hint)
            .flatten()
            .filter_map(|element| Name::of(&element).ok().map(|(name, _)| name))
    }

    /// Position of the name's components in [`Interest::wire`].
    #[inline]
    pub fn name_at(&self) -> usize {
        crate::packets::tlv::offset(self.wire, self.name.as_bytes())
    }

    /// Position of the hint's names in [`Interest::wire`]; 0 without a hint.
    #[inline]
    pub fn hint_at(&self) -> usize {
        if self.hint.is_empty() { 0 } else { crate::packets::tlv::offset(self.wire, self.hint) }
    }

    /// Appends the Interest to `out`, with the changes of a forwarder.
    pub fn rewrite(&self, changes: &Rewrite, out: &mut Vec<u8>) {
        let start = out.len();
        let stripped = changes.strip_hint && !self.hint.is_empty();
        if self.nonce == Some(changes.nonce) && !stripped {
            out.extend_from_slice(self.wire);
        } else {
            self.rebuild(changes, stripped, out);
        }
        if let Some(hops) = changes.hop_limit
            && let Some(position) = position(&out[start..], kind::HOP_LIMIT)
        {
            out[start + position] = hops;
        }
    }

    /// Appends the Interest element by element, with the new nonce; omits the hint if `stripped`.
    fn rebuild(&self, changes: &Rewrite, stripped: bool, out: &mut Vec<u8>) {
        let nonce = element_len(kind::NONCE, 4);
        let hint = if stripped { element_len(kind::FORWARDING_HINT, self.hint.len()) } else { 0 };
        let added = if self.nonce.is_none() { nonce } else { 0 };
        put_head(out, kind::INTEREST, self.body.len() + added - hint);
        let mut nonce_missing = true;
        let mut rest = self.body;
        while let Ok((element, after)) = Element::first(rest) {
            let bytes = &rest[..rest.len() - after.len()];
            // The nonce goes before the first known element that must follow it. Unknown elements
            // keep their place.
            let follows = rank(element.kind).is_some_and(|rank| rank >= NONCE_RANK);
            if nonce_missing && follows {
                put(out, kind::NONCE, &changes.nonce.to_be_bytes());
                nonce_missing = false;
            }
            let omit = element.kind == kind::NONCE && self.nonce.is_some()
                || element.kind == kind::FORWARDING_HINT && stripped;
            if !omit {
                out.extend_from_slice(bytes);
            }
            rest = after;
        }
        if nonce_missing {
            put(out, kind::NONCE, &changes.nonce.to_be_bytes());
        }
    }
}

/// The changes that a forwarder makes to an Interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The remaining hops; ignored if the Interest has no hop limit.
    pub hop_limit: Option<u8>,
    /// The nonce: the Interest's own, or a new one if it has none.
    pub nonce: u32,
    /// Whether to remove the forwarding hint.
    pub strip_hint: bool,
}

const NONCE_RANK: u8 = 4;

/// The place of an element in the specified order; `None`: not an element of an Interest.
fn rank(element: u32) -> Option<u8> {
    Some(match element {
        kind::CAN_BE_PREFIX => 1,
        kind::MUST_BE_FRESH => 2,
        kind::FORWARDING_HINT => 3,
        kind::NONCE => NONCE_RANK,
        kind::INTEREST_LIFETIME => 5,
        kind::HOP_LIMIT => 6,
        kind::APPLICATION_PARAMETERS => 7,
        kind::INTEREST_SIGNATURE_INFO => 8,
        kind::INTEREST_SIGNATURE_VALUE => 9,
        _ => return None,
    })
}

/// Checks a forwarding hint: one name or more. Returns it unchanged.
fn hint(value: &[u8]) -> Result<&[u8], Error> {
    let mut names = 0;
    for element in Elements::of(value) {
        let element = element?;
        match element.kind {
            kind::NAME => names += usize::from(!Name::read(element.value)?.is_empty()),
            _ if element.is_critical() => return Err(Error::Critical),
            _ => {}
        }
    }
    if names == 0 { Err(Error::NoName) } else { Ok(value) }
}

/// Position of the value of the first element of this type in a packet.
fn position(packet: &[u8], kind: u32) -> Option<usize> {
    let mut rest = Element::first(packet).ok()?.0.value;
    while let Ok((element, after)) = Element::first(rest) {
        if element.kind == kind {
            return Some(packet.len() - after.len() - element.value.len());
        }
        rest = after;
    }
    None
}

/// An Interest to write.
#[derive(Clone, Copy, Debug)]
pub struct NewInterest<'a> {
    /// The requested name.
    pub name: Name<'a>,
    /// Whether a Data with a longer name satisfies the Interest.
    pub can_be_prefix: bool,
    /// Whether only fresh Data satisfies the Interest.
    pub must_be_fresh: bool,
    /// The names of the forwarding hint; empty: no hint.
    pub hint: &'a [Name<'a>],
    /// The nonce; a forwarder adds a missing one.
    pub nonce: Option<u32>,
    /// Lifetime in milliseconds; `None`: 4000.
    pub lifetime_ms: Option<u64>,
    /// Remaining hops; `None`: no limit.
    pub hop_limit: Option<u8>,
}

impl<'a> NewInterest<'a> {
    /// An Interest for exactly this name, with a nonce and no other fields.
    pub fn new(name: Name<'a>, nonce: u32) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            hint: &[],
            nonce: Some(nonce),
            lifetime_ms: None,
            hop_limit: None,
        }
    }

    /// Appends the packet to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let name = self.name.as_bytes();
        let names = |name: &Name<'_>| element_len(kind::NAME, name.as_bytes().len());
        let hint: usize = self.hint.iter().map(names).sum();
        let len = element_len(kind::NAME, name.len())
            + if self.can_be_prefix { 2 } else { 0 }
            + if self.must_be_fresh { 2 } else { 0 }
            + if hint > 0 { element_len(kind::FORWARDING_HINT, hint) } else { 0 }
            + self.nonce.map_or(0, |_| 6)
            + self.lifetime_ms.map_or(0, |ms| 2 + value_len(ms))
            + self.hop_limit.map_or(0, |_| 3);
        put_head(out, kind::INTEREST, len);
        put(out, kind::NAME, name);
        if self.can_be_prefix {
            put(out, kind::CAN_BE_PREFIX, &[]);
        }
        if self.must_be_fresh {
            put(out, kind::MUST_BE_FRESH, &[]);
        }
        if hint > 0 {
            put_head(out, kind::FORWARDING_HINT, hint);
            self.hint.iter().for_each(|name| put(out, kind::NAME, name.as_bytes()));
        }
        if let Some(nonce) = self.nonce {
            put(out, kind::NONCE, &nonce.to_be_bytes());
        }
        if let Some(ms) = self.lifetime_ms {
            put_value(out, kind::INTEREST_LIFETIME, ms);
        }
        if let Some(hops) = self.hop_limit {
            put(out, kind::HOP_LIMIT, &[hops]);
        }
    }
}
