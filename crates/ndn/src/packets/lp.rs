//! The link protocol, NDNLPv2: headers and fragments of packets between neighbours.
//!
//! ```text
//!  64 len | Sequence | FragIndex | FragCount | PitToken | Nack {Reason} | … | CongestionMark | Fragment 50 |
//! ```
//!
//! FragIndex and Sequence increase together, so Sequence − FragIndex identifies the packet. Only
//! the first fragment carries the headers of the packet.

use crate::packets::write::{element_len, put, put_head, put_value, value_len};
use crate::packets::{Element, Elements, Error, kind};

/// Maximum number of fragments of a packet.
pub(crate) const FRAGMENTS_MAX: u64 = 64;

/// A view of a link packet. A bare Interest or Data is a link packet without headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LpPacket<'a> {
    /// Headers of the network packet.
    pub headers: Headers,
    /// The position of a fragment.
    pub fragment: Fragment,
    /// The network packet, or a fragment of it. `None`: the link packet carries none, for example
    /// only acknowledgements.
    pub payload: Option<&'a [u8]>,
}

/// The position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Sequence number of the fragment.
    pub sequence: u64,
    /// Index of the fragment in its packet, from 0.
    pub index: u8,
    /// Number of fragments of the packet, 1 to 64; 1: a complete packet.
    pub count: u8,
}

/// Link headers of a network packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// The PIT token. A Data or Nack carries it back to the sender of the Interest.
    pub token: PitToken,
    /// The Nack header: why the Interest is returned.
    pub nack: Option<NackReason>,
    /// The next hop, overriding the strategy.
    pub next_hop_face: Option<u64>,
    /// The receiving face, for local applications.
    pub incoming_face: Option<u64>,
    /// Whether the packet must not be cached (CachePolicy).
    pub no_cache: bool,
    /// The congestion mark; above 0: congestion.
    pub congestion_mark: u64,
}

/// A PIT token: 1 to 32 bytes that only their sender interprets; empty: no token.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PitToken {
    len: u8,
    bytes: [u8; 32],
}

impl PitToken {
    /// A token of these bytes; `None` if there are more than 32.
    pub fn new(token: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        bytes.get_mut(..token.len())?.copy_from_slice(token);
        Some(Self { len: token.len() as u8, bytes })
    }

    /// The bytes of the token.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl std::fmt::Debug for PitToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The reason of a Nack, in order of increasing severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NackReason {
    /// 50: congestion.
    Congestion,
    /// 100: a duplicate nonce.
    Duplicate,
    /// 150: no route.
    NoRoute,
    /// Any other reason, or none.
    #[default]
    Other,
}

impl NackReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Congestion, Self::Duplicate, Self::NoRoute, Self::Other];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Duplicate => "duplicate",
            Self::NoRoute => "no-route",
            Self::Other => "other",
        }
    }

    fn of(number: u64) -> Self {
        match number {
            50 => Self::Congestion,
            100 => Self::Duplicate,
            150 => Self::NoRoute,
            _ => Self::Other,
        }
    }

    fn number(self) -> Option<u64> {
        match self {
            Self::Congestion => Some(50),
            Self::Duplicate => Some(100),
            Self::NoRoute => Some(150),
            Self::Other => None,
        }
    }
}

impl<'a> LpPacket<'a> {
    /// Parses a link packet, or a bare Interest or Data; `wire` must hold exactly this packet.
    pub fn read(wire: &'a [u8]) -> Result<Self, Error> {
        let outer = Element::only(wire)?;
        let fragment = Fragment { sequence: 0, index: 0, count: 1 };
        let mut read = Self { headers: Headers::default(), fragment, payload: None };
        match outer.kind {
            kind::LP_PACKET => {}
            kind::INTEREST | kind::DATA => {
                read.payload = Some(wire);
                return Ok(read);
            }
            _ => return Err(Error::UnknownPacket),
        }
        let (mut sequence, mut index, mut count) = (None, 0, 1);
        for element in Elements::of(outer.value) {
            let element = element?;
            if read.payload.is_some() {
                // The fragment must be the last element.
                return Err(Error::Critical);
            }
            match element.kind {
                kind::SEQUENCE => sequence = Some(u64::from_be_bytes(element.fixed()?)),
                kind::FRAG_INDEX => index = element.number()?,
                kind::FRAG_COUNT => count = element.number()?,
                kind::FRAGMENT => read.payload = Some(element.value),
                _ => read.headers.read_element(&element)?,
            }
        }
        if count == 0 || count > FRAGMENTS_MAX || index >= count || count > 1 && sequence.is_none()
        {
            return Err(Error::BadFragment);
        }
        let sequence = sequence.unwrap_or(0);
        read.fragment = Fragment { sequence, index: index as u8, count: count as u8 };
        Ok(read)
    }
}

impl Headers {
    /// No headers.
    pub const NONE: Self = Self {
        token: PitToken { len: 0, bytes: [0; 32] },
        nack: None,
        next_hop_face: None,
        incoming_face: None,
        no_cache: false,
        congestion_mark: 0,
    };

    fn read_element(&mut self, element: &Element<'_>) -> Result<(), Error> {
        match element.kind {
            kind::PIT_TOKEN => {
                let token = PitToken::new(element.value).filter(|token| token.len > 0);
                self.token = token.ok_or(Error::BadLength)?;
            }
            kind::NACK => self.nack = Some(reason(element.value)?),
            kind::NEXT_HOP_FACE => self.next_hop_face = Some(element.number()?),
            kind::INCOMING_FACE => self.incoming_face = Some(element.number()?),
            kind::CACHE_POLICY => {
                let inner = Element::first(element.value)?.0;
                self.no_cache = inner.kind == kind::CACHE_POLICY_TYPE && inner.number()? == 1;
            }
            kind::CONGESTION_MARK => self.congestion_mark = element.number()?,
            // Of the types 800 to 959, every fourth may be ignored; Ack is one of them.
            800..=959 if element.kind & 3 == 0 => {}
            _ => return Err(Error::Critical),
        }
        Ok(())
    }

    fn len(&self) -> usize {
        let token = self.token.as_bytes().len();
        let number = |kind, number| element_len(kind, value_len(number));
        let optional = |kind, face: Option<u64>| face.map_or(0, |face| number(kind, face));
        (if token > 0 { element_len(kind::PIT_TOKEN, token) } else { 0 })
            + self.nack.map_or(0, |reason| element_len(kind::NACK, nack_len(reason)))
            + optional(kind::INCOMING_FACE, self.incoming_face)
            + optional(kind::NEXT_HOP_FACE, self.next_hop_face)
            + if self.no_cache { element_len(kind::CACHE_POLICY, 5) } else { 0 }
            + match self.congestion_mark {
                0 => 0,
                mark => number(kind::CONGESTION_MARK, mark),
            }
    }

    fn write(&self, out: &mut Vec<u8>) {
        if !self.token.as_bytes().is_empty() {
            put(out, kind::PIT_TOKEN, self.token.as_bytes());
        }
        if let Some(reason) = self.nack {
            put_head(out, kind::NACK, nack_len(reason));
            if let Some(number) = reason.number() {
                put_value(out, kind::NACK_REASON, number);
            }
        }
        if let Some(face) = self.incoming_face {
            put_value(out, kind::INCOMING_FACE, face);
        }
        if let Some(face) = self.next_hop_face {
            put_value(out, kind::NEXT_HOP_FACE, face);
        }
        if self.no_cache {
            put_head(out, kind::CACHE_POLICY, 5);
            put_value(out, kind::CACHE_POLICY_TYPE, 1);
        }
        if self.congestion_mark > 0 {
            put_value(out, kind::CONGESTION_MARK, self.congestion_mark);
        }
    }
}

fn reason(value: &[u8]) -> Result<NackReason, Error> {
    for element in Elements::of(value) {
        let element = element?;
        if element.kind == kind::NACK_REASON {
            return Ok(NackReason::of(element.number()?));
        }
    }
    Ok(NackReason::Other)
}

fn nack_len(reason: NackReason) -> usize {
    reason.number().map_or(0, |number| element_len(kind::NACK_REASON, value_len(number)))
}

/// Appends a network packet with its link headers to `out`; without headers it is appended bare.
pub fn write_lp(headers: &Headers, packet: &[u8], out: &mut Vec<u8>) {
    let len = headers.len();
    if len == 0 {
        out.extend_from_slice(packet);
        return;
    }
    put_head(out, kind::LP_PACKET, len + element_len(kind::FRAGMENT, packet.len()));
    headers.write(out);
    put(out, kind::FRAGMENT, packet);
}

/// Splits a network packet into fragments of at most `mtu` bytes each, headers included. Writes
/// each fragment to `out`, replacing the contents, and passes it to `each`. Returns the number of
/// fragments; 0 if more than 64 are needed.
pub fn fragments(
    headers: &Headers,
    packet: &[u8],
    mtu: usize,
    first_sequence: u64,
    out: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> u64 {
    out.clear();
    write_lp(headers, packet, out);
    if out.len() <= mtu {
        each(out);
        return 1;
    }
    // Outer type and length: 4 bytes. Sequence: 10. Index and count: 3 each. Type and length of the
    // payload: 4.
    let room = mtu.saturating_sub(24 + headers.len());
    let count = packet.len().div_ceil(room.max(1)) as u64;
    if room == 0 || count > FRAGMENTS_MAX {
        return 0;
    }
    for (index, piece) in (0..count).zip(packet.chunks(room)) {
        let piece_headers = if index == 0 { *headers } else { Headers::default() };
        out.clear();
        let len = 10 + 3 + 3 + piece_headers.len() + element_len(kind::FRAGMENT, piece.len());
        put_head(out, kind::LP_PACKET, len);
        put(out, kind::SEQUENCE, &first_sequence.wrapping_add(index).to_be_bytes());
        put_value(out, kind::FRAG_INDEX, index);
        put_value(out, kind::FRAG_COUNT, count);
        piece_headers.write(out);
        put(out, kind::FRAGMENT, piece);
        each(out);
    }
    count
}
