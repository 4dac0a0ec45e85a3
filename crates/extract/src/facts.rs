//! The facts of a flow: values by kind, in the order in which they were first seen.
//!
//! ```text
//! | kind | length | value … | kind | length | value … | …        1, 2 and `length` bytes
//! ```

use crate::{Keep, Kind};

/// The result of adding a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The flow already has it.
    Known,
    /// The value was added and takes this many bytes.
    New(usize),
    /// The value replaced another one, and is now the last.
    Replaced {
        /// Bytes that it takes more, below 0 if less.
        more: isize,
        /// The position of the other one.
        at: usize,
    },
    /// The flow has the maximum number of this kind.
    Beyond,
    /// Values of this kind are not kept by flows.
    NotKept,
}

/// Values with their kinds, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Values(Vec<u8>);

/// The facts of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facts(Option<Box<Kept>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    values: Values,
    /// A place for each value, in order: a search reads few other bytes.
    places: Vec<Place>,
    /// The number of values of each kind.
    counts: [u8; Kind::KEPT.len()],
    /// Values left out because the flow had the maximum of their kind.
    beyond: u32,
}

impl Default for Kept {
    fn default() -> Self {
        let counts = [0; Kind::KEPT.len()];
        Self { values: Values::default(), places: Vec::new(), counts, beyond: 0 }
    }
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The kind in the upper 8 bits, a hash of the value in the others.
    tag: u32,
    /// The position of its header.
    at: u32,
}

/// Bytes of a value's header.
const HEAD: usize = 3;
/// Room for the first values of a flow.
const FIRST_BYTES: usize = 128;
const FIRST_VALUES: usize = 8;
/// Most bytes of values whose memory is kept for another flow.
const KEPT_BYTES: usize = 2_048;

/// Encoded values with their kinds.
#[inline]
fn all(mut rest: &[u8]) -> impl Iterator<Item = (Kind, &[u8])> {
    std::iter::from_fn(move || {
        let (&[kind, l0, l1], behind) = rest.split_first_chunk::<HEAD>()?;
        let (value, behind) = behind.split_at(usize::from(u16::from_le_bytes([l0, l1])));
        rest = behind;
        Some((Kind::from_number(kind)?, value))
    })
}

/// The values of a kind in encoded values.
#[inline]
fn of(mut rest: &[u8], kind: Kind) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let (&[own, l0, l1], behind) = rest.split_first_chunk::<HEAD>()?;
            let (value, behind) = behind.split_at(usize::from(u16::from_le_bytes([l0, l1])));
            rest = behind;
            if own == kind as u8 {
                return Some(value);
            }
        }
    })
}

impl Values {
    /// Appends a value, of which the first 65,535 bytes count.
    pub fn push(&mut self, kind: Kind, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        let [l0, l1] = (value.len() as u16).to_le_bytes();
        self.0.reserve(HEAD + value.len());
        self.0.extend_from_slice(&[kind as u8, l0, l1]);
        self.0.extend_from_slice(value);
    }

    /// Removes all, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Bytes of their memory.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values with their kinds, in order.
    pub fn all(&self) -> impl Iterator<Item = (Kind, &[u8])> {
        all(&self.0)
    }

    /// The values of a kind, in order.
    #[inline]
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &[u8]> {
        of(&self.0, kind)
    }

    /// The same kinds with other values: what `change` appends for each.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(Kind, &[u8], &mut Vec<u8>)) -> Self {
        let (mut mapped, mut value) = (Self::default(), Vec::new());
        for (kind, old) in self.all() {
            value.clear();
            change(kind, old, &mut value);
            mapped.push(kind, &value);
        }
        mapped
    }

    /// The first value of a kind.
    pub fn first(&self, kind: Kind) -> Option<&[u8]> {
        self.of(kind).next()
    }
}

impl Facts {
    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.places.is_empty())
    }

    /// Removes all, and keeps a memory of ordinary size for the facts of another flow.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Some(kept) if kept.values.0.capacity() <= KEPT_BYTES => {
                kept.values.clear();
                kept.places.clear();
                kept.counts = [0; Kind::KEPT.len()];
                kept.beyond = 0;
            }
            kept => *kept = None,
        }
    }

    /// Adds a value, of which the first 65,535 bytes count, unless it takes more than `room` bytes:
    /// then nothing is done, and the error is its size.
    ///
    /// # Errors
    /// There is not enough room.
    pub fn add(&mut self, kind: Kind, value: &[u8], room: usize) -> Result<Added, usize> {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        let most = kind.most();
        if most == 0 {
            return Ok(Added::NotKept);
        }
        let tag = tag(kind, value);
        let (mut values, mut places) = (0, 0);
        if let Some(kept) = &mut self.0 {
            let of_kind = usize::from(kept.counts[kind as usize]);
            if of_kind > 0 && kept.has(tag, value) {
                return Ok(Added::Known);
            }
            if of_kind > 0 && kind.keep() == Keep::Last {
                return self.replace(kind, value, room);
            }
            if of_kind >= most {
                kept.beyond = kept.beyond.saturating_add(1);
                return Ok(Added::Beyond);
            }
            (values, places) = kept.lengths();
        }
        let bytes = memory(values + HEAD + value.len(), places + 1) - memory(values, places);
        if bytes > room {
            return Err(bytes);
        }
        self.0.get_or_insert_with(Kept::new).push(kind, value, tag);
        Ok(Added::New(bytes))
    }

    /// Replaces the value of a kind of which there is one.
    fn replace(&mut self, kind: Kind, value: &[u8], room: usize) -> Result<Added, usize> {
        let Some(kept) = &mut self.0 else { return Ok(Added::Known) };
        let at = kept.values.all().position(|(own, _)| own == kind).unwrap_or(0);
        let mut rest = Kept { beyond: kept.beyond, ..Kept::default() };
        kept.values
            .all()
            .filter(|(own, _)| *own != kind)
            .for_each(|(own, old)| rest.push(own, old, tag(own, old)));
        rest.push(kind, value, tag(kind, value));
        let [new, old] = [&rest, &**kept].map(|kept| {
            let (values, places) = kept.lengths();
            memory(values, places)
        });
        let more = new.cast_signed() - old.cast_signed();
        if more > 0 && more.unsigned_abs() > room {
            return Err(new);
        }
        **kept = rest;
        Ok(Added::Replaced { more, at })
    }

    /// All values with their kinds, in the order in which they were first seen.
    #[inline]
    pub fn all(&self) -> impl Iterator<Item = (Kind, &[u8])> {
        all(self.bytes())
    }

    /// The values of a kind, in the order in which they were first seen.
    #[inline]
    pub fn values(&self, kind: Kind) -> impl Iterator<Item = &[u8]> {
        of(self.bytes(), kind)
    }

    /// Whether there is a value of a kind.
    #[inline]
    pub fn has(&self, kind: Kind) -> bool {
        self.0
            .as_ref()
            .is_some_and(|kept| kept.counts.get(kind as usize).is_some_and(|&count| count > 0))
    }

    /// How many values were left out because the flow had the maximum of their kind; repeated ones count each time.
    pub fn beyond(&self) -> u32 {
        self.0.as_ref().map_or(0, |kept| kept.beyond)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |kept| kept.places.len())
    }

    /// The facts without the first `len` values, and without `beyond` of the values that were left out.
    #[must_use]
    pub fn since(&self, len: usize, beyond: u32) -> Self {
        let left_out = self.beyond().saturating_sub(beyond);
        let mut later = Self((left_out > 0).then(Kept::new));
        for (kind, value) in self.all().skip(len) {
            let _ = later.add(kind, value, usize::MAX);
        }
        if let Some(kept) = &mut later.0 {
            kept.beyond = left_out;
        }
        later
    }

    /// Adds the facts of a later part of the same flow, however many bytes they take.
    pub fn join(&mut self, later: &Self) {
        for (kind, value) in later.all() {
            // There is room for any value.
            let _ = match kind.keep() {
                // Also an equal one is now the last.
                Keep::Last if self.values(kind).next().is_some() => {
                    self.replace(kind, value, usize::MAX)
                }
                _ => self.add(kind, value, usize::MAX),
            };
        }
        if later.beyond() > 0 {
            let kept = self.0.get_or_insert_with(Kept::new);
            kept.beyond = kept.beyond.saturating_add(later.beyond());
        }
    }

    /// The same kinds with other values, as [`Values::map`] has them; equal ones become one.
    #[must_use]
    pub fn map(&self, change: impl FnMut(Kind, &[u8], &mut Vec<u8>)) -> Self {
        let mut mapped = Self(None);
        let Some(kept) = self.0.as_deref() else { return mapped };
        for (kind, value) in kept.values.map(change).all() {
            // There is room for any value.
            let _ = mapped.add(kind, value, usize::MAX);
        }
        if let Some(own) = &mut mapped.0 {
            own.beyond = kept.beyond;
        }
        mapped
    }

    /// The facts of these bytes, as [`Facts::bytes`] returned them, with this number of values left out; `None` if no
    /// facts have such bytes.
    pub fn restore(bytes: &[u8], beyond: u32) -> Option<Self> {
        let mut rest = bytes;
        let mut facts = Self(None);
        while !rest.is_empty() {
            let (&[kind, l0, l1], behind) = rest.split_first_chunk::<HEAD>()?;
            let (value, behind) = behind.split_at_checked(u16::from_le_bytes([l0, l1]).into())?;
            rest = behind;
            match facts.add(Kind::from_number(kind)?, value, usize::MAX) {
                Ok(Added::New(_)) => {}
                _ => return None,
            }
        }
        match &mut facts.0 {
            Some(kept) => kept.beyond = beyond,
            None if beyond > 0 => return None,
            None => {}
        }
        Some(facts)
    }

    /// All values as bytes, for digests: equal values are equal bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |kept| &kept.values.0)
    }

    /// The sum of the sizes that [`Facts::add`] returned.
    pub fn size(&self) -> usize {
        let (values, places) = self.0.as_ref().map_or((0, 0), |kept| kept.lengths());
        memory(values, places)
    }
}

/// The memory of facts with these bytes of values and this number of places.
fn memory(values: usize, places: usize) -> usize {
    if places == 0 {
        return 0;
    }
    let places = places.max(FIRST_VALUES) * size_of::<Place>();
    size_of::<Kept>() + values.max(FIRST_BYTES) + places
}

impl Kept {
    /// Bytes of values, and number of places.
    fn lengths(&self) -> (usize, usize) {
        (self.values.0.len(), self.places.len())
    }

    fn new() -> Box<Self> {
        let values = Values(Vec::with_capacity(FIRST_BYTES));
        Box::new(Self { values, places: Vec::with_capacity(FIRST_VALUES), ..Self::default() })
    }

    fn push(&mut self, kind: Kind, value: &[u8], tag: u32) {
        self.places.push(Place { tag, at: self.values.0.len() as u32 });
        self.values.push(kind, value);
        self.counts[kind as usize] += 1;
    }

    /// Whether a value of this tag is there.
    fn has(&self, tag: u32, value: &[u8]) -> bool {
        let is = |own: &Place| own.tag == tag && self.value(own) == Some(value);
        // Places of a chunk are compared at a time.
        let any = |chunk: &[Place; 8]| chunk.iter().fold(false, |any, own| any | (own.tag == tag));
        let (chunks, rest) = self.places.as_chunks();
        chunks.iter().any(|chunk| any(chunk) && chunk.iter().any(is)) || rest.iter().any(is)
    }

    fn value(&self, place: &Place) -> Option<&[u8]> {
        let (&[_, l0, l1], behind) = self.values.0.get(place.at as usize..)?.split_first_chunk()?;
        behind.get(..usize::from(u16::from_le_bytes([l0, l1])))
    }
}

/// Bits of the hash in a tag.
const HASH_BITS: u32 = 24;

/// The tag of a value. Different values may have equal tags; then the values are compared.
fn tag(kind: Kind, value: &[u8]) -> u32 {
    let step =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = value.as_chunks().0;
    let hash =
        words.iter().fold(value.len() as u64, |hash, word| step(hash, u64::from_le_bytes(*word)));
    // The last bytes, of which some may be in a word before.
    let last = match (value.last_chunk::<8>(), value.first_chunk::<4>(), value.last_chunk::<4>()) {
        (Some(last), ..) => u64::from_le_bytes(*last),
        (_, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => value.iter().fold(0, |last, &byte| last << 8 | u64::from(byte)),
    };
    (kind as u32) << HASH_BITS | (step(hash, last) >> (64 - HASH_BITS)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind::DnsQueryName;

    #[test]
    fn distinct_values_are_kept_in_order_up_to_a_bound() {
        let mut facts = Facts::default();
        let mut size = 0;
        for number in [3_u8, 1, 3, 2, 1] {
            if let Added::New(bytes) = facts.add(KIND, &[number; 5], usize::MAX).unwrap() {
                size += bytes;
            }
        }
        assert_eq!(facts.values(KIND).collect::<Vec<_>>(), [[3; 5], [1; 5], [2; 5]]);
        assert_eq!(facts.size(), size);
        for number in 0..20 {
            let added = facts.add(KIND, &[number; 5], usize::MAX).unwrap();
            assert_eq!(added == Added::Beyond, number >= 16, "{number}: {added:?}");
        }
        assert_eq!(facts.values(KIND).count(), 16);
    }

    #[test]
    fn values_are_found_whatever_their_length_and_kind() {
        let mut facts = Facts::default();
        let text = [7; 40];
        for len in 0..16 {
            for kind in [KIND, Kind::DnsAnswers, Kind::HttpHost] {
                let first = facts.add(kind, &text[..len], usize::MAX);
                assert!(matches!(first, Ok(Added::New(_))), "{kind:?} {len}: {first:?}");
                assert_eq!(facts.add(kind, &text[..len], 0), Ok(Added::Known));
            }
        }
        assert!(facts.values(KIND).map(<[u8]>::len).eq(0..16));
        // Equal tags of different values.
        let tags: std::collections::BTreeMap<_, _> =
            (0..20_000_u32).map(|number| (tag(KIND, &number.to_le_bytes()), number)).collect();
        let of = |number: &u32| tag(KIND, &number.to_le_bytes());
        let twin = (0..20_000).find(|number| tags[&of(number)] != *number);
        let [one, other] = twin.map_or([1, 2], |number| [number, tags[&of(&number)]]);
        let mut facts = Facts::default();
        for number in [one, other] {
            let added = facts.add(KIND, &number.to_le_bytes(), usize::MAX);
            assert!(matches!(added, Ok(Added::New(_))), "{added:?}");
        }
    }

    #[test]
    fn the_last_version_counts() {
        let mut facts = Facts::default();
        facts.add(Kind::TlsVersion, b"TLS 1.3", usize::MAX).unwrap();
        facts.add(Kind::Ja3, &[b'x'; FIRST_BYTES], usize::MAX).unwrap();
        let size = facts.size();
        let added = facts.add(Kind::TlsVersion, b"DTLS 1.2", 1);
        assert_eq!((added, facts.size()), (Ok(Added::Replaced { more: 1, at: 0 }), size + 1));
        assert_eq!(facts.add(Kind::TlsVersion, b"DTLS 1.2", 0), Ok(Added::Known));
        assert_eq!(facts.values(Kind::TlsVersion).collect::<Vec<_>>(), [b"DTLS 1.2"]);
        assert_eq!(facts.values(Kind::Ja3).collect::<Vec<_>>(), [[b'x'; FIRST_BYTES]]);
        assert_eq!(
            (facts.beyond(), facts.add(Kind::TlsVersion, b"a longer one", 2).is_err()),
            (0, true)
        );
    }

    #[test]
    fn facts_are_restored_from_their_bytes() {
        let mut facts = Facts::default();
        for value in 0..40_u8 {
            facts.add(KIND, &[value], usize::MAX).unwrap();
        }
        assert!(facts.beyond() > 0);
        assert_eq!(Facts::restore(facts.bytes(), facts.beyond()), Some(facts.clone()));
        assert_eq!(Facts::restore(&[], 0), Some(Facts::default()));
        let bytes = facts.bytes();
        let twice = [bytes, bytes].concat();
        for wrong in [&bytes[..bytes.len() - 1], &twice, &[255, 0, 0], &[0]] {
            assert_eq!(Facts::restore(wrong, 0), None);
        }
        assert_eq!(Facts::restore(&[], 1), None);
    }

    #[test]
    fn memory_is_used_again() {
        let mut facts = Facts::default();
        facts.clear();
        assert_eq!(facts, Facts::default());
        for len in [5, 3_000] {
            let mut fresh = Facts::default();
            facts.add(KIND, &vec![1; len], usize::MAX).unwrap();
            facts.clear();
            assert!(facts.is_empty() && facts.size() == 0 && facts.bytes().is_empty());
            for value in [b"one", b"two"] {
                let added = fresh.add(KIND, value, usize::MAX);
                assert_eq!(facts.add(KIND, value, usize::MAX), added);
            }
            assert_eq!((&facts, facts.size()), (&fresh, fresh.size()));
        }
    }

    #[test]
    fn without_room_nothing_is_added() {
        let mut facts = Facts::default();
        assert_eq!(facts.add(KIND, b"name", 10), Err(memory(0, 1)));
        assert!(facts.is_empty() && facts.size() == 0);
        // The first values have the memory of the first one.
        assert_eq!(facts.add(KIND, b"", 1000), Ok(Added::New(memory(0, 1))));
        assert_eq!(facts.add(KIND, b"name", 0), Ok(Added::New(0)));
        let more = HEAD + 2 * HEAD + 4;
        assert_eq!(facts.add(KIND, &[1; FIRST_BYTES], more - 1), Err(more));
        assert_eq!(facts.values(KIND).collect::<Vec<_>>(), [&b""[..], b"name"]);
    }
}
