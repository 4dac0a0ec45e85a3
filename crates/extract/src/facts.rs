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
    /// It was added and takes this many bytes.
    New(usize),
    /// It replaced another value: the bytes that it takes more, below 0 if less.
    Replaced(isize),
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

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    values: Values,
    /// Values left out because the flow had the maximum of their kind.
    beyond: u32,
}

/// Bytes of a value's header.
const HEAD: usize = 3;

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
        self.0.push(kind as u8);
        self.0.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.0.extend_from_slice(value);
    }

    /// Removes all, and keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
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

    /// The first value of a kind.
    pub fn first(&self, kind: Kind) -> Option<&[u8]> {
        self.of(kind).next()
    }
}

impl Facts {
    /// True if there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Adds a value, of which the first 65,535 bytes count, unless it takes more than `room` bytes:
    /// then nothing is done, and the error is its size.
    ///
    /// # Errors
    /// There is not enough room.
    pub fn add(&mut self, kind: Kind, value: &[u8], room: usize) -> Result<Added, usize> {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        if kind.most() == 0 {
            return Ok(Added::NotKept);
        }
        let mut of_kind = 0;
        for known in self.values(kind) {
            if known == value {
                return Ok(Added::Known);
            }
            of_kind += 1;
        }
        if of_kind > 0 && kind.keep() == Keep::Last {
            return self.replace(kind, value, room);
        }
        if of_kind >= kind.most() {
            if let Some(kept) = &mut self.0 {
                kept.beyond = kept.beyond.saturating_add(1);
            }
            return Ok(Added::Beyond);
        }
        let bytes = HEAD + value.len() + if self.is_empty() { size_of::<Kept>() } else { 0 };
        if bytes > room {
            return Err(bytes);
        }
        let Kept { values, .. } = &mut **self.0.get_or_insert_default();
        values.push(kind, value);
        Ok(Added::New(bytes))
    }

    /// Replaces the value of a kind of which there is one.
    fn replace(&mut self, kind: Kind, value: &[u8], room: usize) -> Result<Added, usize> {
        let Some(kept) = &mut self.0 else { return Ok(Added::Known) };
        let mut rest = Values::default();
        kept.values
            .all()
            .filter(|(own, _)| *own != kind)
            .for_each(|(own, old)| rest.push(own, old));
        rest.push(kind, value);
        let more = rest.0.len().cast_signed() - kept.values.0.len().cast_signed();
        if more > 0 && more.unsigned_abs() > room {
            return Err(rest.0.len());
        }
        kept.values = rest;
        Ok(Added::Replaced(more))
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

    /// How many values were left out because the flow had the maximum of their kind; repeated ones count each time.
    pub fn beyond(&self) -> u32 {
        self.0.as_ref().map_or(0, |kept| kept.beyond)
    }

    /// All values as bytes, for digests: equal values are equal bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |kept| &kept.values.0)
    }

    /// The sum of the sizes that [`Facts::add`] returned.
    pub fn size(&self) -> usize {
        self.0.as_ref().map_or(0, |kept| size_of::<Kept>() + kept.values.0.len())
    }
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
    fn the_last_version_counts() {
        let mut facts = Facts::default();
        facts.add(Kind::TlsVersion, b"TLS 1.3", usize::MAX).unwrap();
        facts.add(Kind::Ja3, b"x", usize::MAX).unwrap();
        let size = facts.size();
        let added = facts.add(Kind::TlsVersion, b"DTLS 1.2", 1);
        assert_eq!((added, facts.size()), (Ok(Added::Replaced(1)), size + 1));
        assert_eq!(facts.add(Kind::TlsVersion, b"DTLS 1.2", 0), Ok(Added::Known));
        assert_eq!(facts.values(Kind::TlsVersion).collect::<Vec<_>>(), [b"DTLS 1.2"]);
        assert_eq!(facts.values(Kind::Ja3).collect::<Vec<_>>(), [b"x"]);
        assert_eq!(
            (facts.beyond(), facts.add(Kind::TlsVersion, b"a longer one", 2).is_err()),
            (0, true)
        );
    }

    #[test]
    fn without_room_nothing_is_added() {
        let mut facts = Facts::default();
        assert_eq!(facts.add(KIND, b"name", 10), Err(HEAD + 4 + size_of::<Kept>()));
        assert!(facts.is_empty() && facts.size() == 0);
        assert!(facts.add(KIND, b"", 1000).is_ok());
        assert_eq!(facts.add(KIND, b"name", 6), Err(7));
        assert_eq!(facts.values(KIND).collect::<Vec<_>>(), [b""]);
    }
}
