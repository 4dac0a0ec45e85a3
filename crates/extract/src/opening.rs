//! The bytes that a protocol's first payload can begin with, and tables of them for all protocols.
//!
//! ```text
//! payload   | 0 | 1 | 2 | 3 | 4 | 5 | …
//!             │       │           └─ table 2 ─┐
//!             │       └───────────── table 1 ─┼─ and ─▶ a bit for each protocol that is possible
//!             └───────────────────── table 0 ─┘
//! ```
//!
//! Three look-ups exclude most payloads without a branch, whatever the number of protocols.

/// A set of byte values.
#[derive(Clone, Copy)]
pub(crate) struct Bytes([u64; 4]);

impl Bytes {
    pub(crate) const NONE: Self = Self([0; 4]);
    pub(crate) const ANY: Self = Self([!0; 4]);

    pub(crate) const fn of(values: &[u8]) -> Self {
        let (mut set, mut at) = ([0; 4], 0);
        while at < values.len() {
            set[values[at] as usize / 64] |= 1 << (values[at] % 64);
            at += 1;
        }
        Self(set)
    }

    /// The values from `first` to `last`.
    pub(crate) const fn range(first: u8, last: u8) -> Self {
        let (mut set, mut value) = ([0; 4], first as usize);
        while value <= last as usize {
            set[value / 64] |= 1 << (value % 64);
            value += 1;
        }
        Self(set)
    }

    const fn contains(&self, value: usize) -> bool {
        self.0[value / 64] >> (value % 64) & 1 != 0
    }
}

/// Possible values of the first, third and sixth byte of a payload.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) first: Bytes,
    pub(crate) third: Bytes,
    pub(crate) sixth: Bytes,
}

impl Opening {
    pub(crate) const NEVER: Self =
        Self { first: Bytes::NONE, third: Bytes::NONE, sixth: Bytes::NONE };
}

/// The number of payload bytes that a look needs.
pub(crate) const LOOKED_AT: usize = 6;

/// The possible protocols for each value of the first, third and sixth byte.
pub(crate) struct Table([[u16; 256]; 3]);

impl Table {
    pub(crate) const EMPTY: Self = Self([[0; 256]; 3]);

    /// The table with a further protocol.
    pub(crate) const fn with(mut self, opening: Opening, bit: u32) -> Self {
        let sets = [opening.first, opening.third, opening.sixth];
        let mut place = 0;
        while place < 3 {
            let mut value = 0;
            while value < 256 {
                if sets[place].contains(value) {
                    self.0[place][value] |= 1 << bit;
                }
                value += 1;
            }
            place += 1;
        }
        self
    }

    /// The protocols that a payload with these first bytes can be.
    #[inline(always)]
    pub(crate) fn look(&self, head: &[u8; LOOKED_AT]) -> u16 {
        let [first, third, sixth] = &self.0;
        first[usize::from(head[0])] & third[usize::from(head[2])] & sixth[usize::from(head[5])]
    }
}

const PLACES: usize = 64;

/// The protocols of UDP ports, each port at the index given by its lower six bits.
pub(crate) struct Ports([(u16, u16); PLACES]);

impl Ports {
    pub(crate) const EMPTY: Self = {
        // A port is never at another port's place.
        let mut places = [(0, 0); PLACES];
        places[0] = (1, 0);
        Self(places)
    };

    /// The table with a further protocol.
    pub(crate) const fn with(mut self, ports: &[u16], bit: u32) -> Self {
        let mut at = 0;
        while at < ports.len() {
            let place = &mut self.0[ports[at] as usize % PLACES];
            assert!(place.1 == 0 || place.0 == ports[at], "two ports at one place");
            *place = (ports[at], place.1 | 1 << bit);
            at += 1;
        }
        self
    }

    #[inline(always)]
    pub(crate) fn look(&self, port: u16) -> u16 {
        let (own, protocols) = self.0[usize::from(port) % PLACES];
        protocols & 0_u16.wrapping_sub(u16::from(own == port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_combine_protocols() {
        const GREETING: Opening =
            Opening { first: Bytes::of(b"Hh"), third: Bytes::of(b"l"), sixth: Bytes::ANY };
        const DIGITS: Opening =
            Opening { first: Bytes::range(b'0', b'9'), third: Bytes::ANY, sixth: Bytes::of(b"\n") };
        const TABLE: Table = Table::EMPTY.with(GREETING, 0).with(DIGITS, 3).with(Opening::NEVER, 4);
        assert_eq!(TABLE.look(b"Hello!"), 1);
        assert_eq!(TABLE.look(b"hELLO!"), 0);
        assert_eq!(TABLE.look(b"12345\n"), 8);
        assert_eq!(TABLE.look(b"12345 "), 0);
    }

    #[test]
    fn ports_are_found_at_their_places_only() {
        const TABLE: Ports = Ports::EMPTY.with(&[53, 5353], 1).with(&[123], 2);
        let found: Vec<_> = (0..=u16::MAX).filter(|&port| TABLE.look(port) != 0).collect();
        assert_eq!(found, [53, 123, 5353]);
        assert_eq!((TABLE.look(5353), TABLE.look(123)), (2, 4));
    }
}
