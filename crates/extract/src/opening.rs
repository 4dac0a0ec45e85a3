//! The bytes that a protocol's payloads can begin with, and tables of them for all protocols.
//!
//! ```text
//! payload   | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | …
//!             │       │           │       └─ table 3 ─┐
//!             │       │           └───────── table 2 ─┤
//!             │       └───────────────────── table 1 ─┼─ and ─▶ a bit for each opening that is possible
//!             └───────────────────────────── table 0 ─┘
//! ```
//!
//! Four look-ups exclude most payloads without a branch, whatever the number of protocols. A protocol may have several
//! openings; each has its own bit, so that bytes of different openings do not combine.

/// A set of byte values.
#[derive(Clone, Copy)]
pub(crate) struct Bytes([u64; 4]);

impl Bytes {
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

    /// The values of both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        let (Self([a, b, c, d]), Self([e, f, g, h])) = (self, other);
        Self([a | e, b | f, c | g, d | h])
    }

    /// For each value, whether the set has it.
    pub(crate) const fn table(&self) -> [bool; 256] {
        let (mut table, mut value) = ([false; 256], 0);
        while value < table.len() {
            table[value] = self.contains(value as u8);
            value += 1;
        }
        table
    }

    /// Whether the set has this value.
    pub(crate) const fn contains(&self, value: u8) -> bool {
        self.0[value as usize / 64] >> (value % 64) & 1 != 0
    }
}

/// Possible values of four bytes of a payload.
#[derive(Clone, Copy)]
pub(crate) struct Opening {
    pub(crate) first: Bytes,
    pub(crate) third: Bytes,
    pub(crate) sixth: Bytes,
    pub(crate) eighth: Bytes,
    /// The source port; `None`: any.
    pub(crate) from: Option<u16>,
    /// Two bytes at a place behind the eighth; `None`: any. For openings that are likely by the first bytes alone.
    pub(crate) behind: Option<(usize, [u8; 2])>,
    /// The first two bytes are the length of what follows, at least this. Compared in payloads of less than [`LOOKED_AT`]
    /// bytes, of which the other fields exclude few.
    pub(crate) least: Option<u16>,
}

impl Opening {
    /// Any bytes, for the fields that an opening does not restrict.
    pub(crate) const ANY: Self = Self {
        first: Bytes::ANY,
        third: Bytes::ANY,
        sixth: Bytes::ANY,
        eighth: Bytes::ANY,
        from: None,
        behind: None,
        least: None,
    };
}

/// The number of payload bytes that a look needs.
pub(crate) const LOOKED_AT: usize = 8;

/// Most openings of all protocols over one transport.
const OPENINGS_MAX: usize = 32;

/// The possible openings for each value of the four bytes, and the protocol of each opening.
pub(crate) struct Table {
    bits: [[u32; 256]; 4],
    protocols: [u8; OPENINGS_MAX],
    len: usize,
    /// The openings from one source port, and that port.
    from_port: u32,
    port: u16,
    /// The openings with bytes behind the eighth, and those bytes.
    with_behind: u32,
    behind: (usize, [u8; 2]),
    /// The openings with a length, and the least one.
    with_least: u32,
    least: u16,
}

impl Table {
    pub(crate) const EMPTY: Self = Self {
        bits: [[0; 256]; 4],
        protocols: [0; OPENINGS_MAX],
        len: 0,
        from_port: 0,
        port: 0,
        with_behind: 0,
        behind: (0, [0; 2]),
        with_least: 0,
        least: 0,
    };

    /// The table with the openings of a further protocol, given by its position in the list.
    pub(crate) const fn with(mut self, openings: &[Opening], protocol: u8) -> Self {
        let mut next = 0;
        while next < openings.len() {
            let Opening { first, third, sixth, eighth, from, behind, least } = openings[next];
            if let Some(port) = from {
                assert!(self.from_port == 0 || self.port == port, "one port is compared");
                self.from_port |= 1 << self.len;
                self.port = port;
            }
            if let Some(behind) = behind {
                assert!(self.with_behind == 0, "one opening has bytes behind the eighth");
                self.with_behind = 1 << self.len;
                self.behind = behind;
            }
            if let Some(least) = least {
                assert!(self.with_least == 0, "one opening has a length");
                self.with_least = 1 << self.len;
                self.least = least;
            }
            let sets = [first, third, sixth, eighth];
            let mut place = 0;
            while place < sets.len() {
                let mut value = 0;
                while value < 256 {
                    if sets[place].contains(value as u8) {
                        self.bits[place][value] |= 1 << self.len;
                    }
                    value += 1;
                }
                place += 1;
            }
            self.protocols[self.len] = protocol;
            self.len += 1;
            next += 1;
        }
        self
    }

    /// The openings that a payload with these first bytes from this port can have.
    #[inline(always)]
    pub(crate) fn look(&self, head: &[u8; LOOKED_AT], from: u16) -> u32 {
        let [first, third, sixth, eighth] = &self.bits;
        first[usize::from(head[0])]
            & third[usize::from(head[2])]
            & sixth[usize::from(head[5])]
            & eighth[usize::from(head[7])]
            & self.from(from)
    }

    /// The openings among these that the bytes behind the eighth allow.
    #[inline(always)]
    pub(crate) fn confirmed(&self, openings: u32, payload: &[u8]) -> u32 {
        if openings & self.with_behind == 0 { openings } else { self.compare(openings, payload) }
    }

    #[cold]
    fn compare(&self, openings: u32, payload: &[u8]) -> u32 {
        let (place, bytes) = self.behind;
        let is_there = payload.get(place..).is_some_and(|rest| rest.starts_with(&bytes));
        if is_there { openings } else { openings & !self.with_behind }
    }

    /// The openings that a payload with fewer bytes can have.
    #[inline(always)]
    pub(crate) fn look_at_start(&self, start: &[u8], from: u16) -> u32 {
        let place = |place: usize, at: usize| match start.get(at) {
            Some(&byte) => self.bits[place][usize::from(byte)],
            None => !0,
        };
        let any = u32::from(!start.is_empty()).wrapping_neg();
        let is_short = start.first_chunk().is_some_and(|len| u16::from_be_bytes(*len) < self.least);
        let long = !(self.with_least & u32::from(is_short).wrapping_neg());
        any & place(0, 0) & place(1, 2) & place(2, 5) & place(3, 7) & self.from(from) & long
    }

    #[inline(always)]
    fn from(&self, port: u16) -> u32 {
        !self.from_port | u32::from(port == self.port).wrapping_neg()
    }

    /// The protocols of these openings, a bit for each position in the list.
    pub(crate) fn protocols(&self, mut openings: u32) -> u16 {
        let mut protocols = 0;
        while openings != 0 {
            protocols |= 1 << self.protocols[openings.trailing_zeros() as usize];
            openings &= openings - 1;
        }
        protocols
    }

    /// The openings of these protocols.
    pub(crate) fn openings(&self, protocols: u16) -> u32 {
        let of = |at: &usize| protocols >> self.protocols[*at] & 1 != 0;
        (0..self.len).filter(of).fold(0, |openings, at| openings | 1 << at)
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

    /// Whether a protocol has this port.
    #[inline(always)]
    pub(crate) fn has(&self, port: u16) -> bool {
        self.0[usize::from(port) % PLACES].0 == port
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
    fn tables_combine_openings() {
        const GREETINGS: &[Opening] = &[
            Opening { first: Bytes::of(b"Hh"), third: Bytes::of(b"l"), ..Opening::ANY },
            Opening { first: Bytes::of(b"b"), eighth: Bytes::of(b"!"), ..Opening::ANY },
        ];
        const DIGITS: &[Opening] =
            &[Opening { first: Bytes::range(b'0', b'9'), sixth: Bytes::of(b"\n"), ..Opening::ANY }];
        const TABLE: Table = Table::EMPTY.with(GREETINGS, 1).with(&[], 2).with(DIGITS, 4);
        let look = |head: &[u8; 8]| TABLE.protocols(TABLE.look(head, 1));
        assert_eq!((look(b"Hello..."), look(b"bye byes"), look(b"bye bye!")), (2, 0, 2));
        assert_eq!((look(b"12345\n.."), look(b"12345 .."), look(b"h234l\n.!")), (16, 0, 0));
        assert_eq!((TABLE.openings(2), TABLE.openings(16), TABLE.openings(4)), (3, 4, 0));
        let start = |start: &[u8]| TABLE.protocols(TABLE.look_at_start(start, 1));
        assert_eq!((start(b""), start(b"he"), start(b"hex"), start(b"b")), (0, 2, 0, 2));
        assert_eq!((start(b"12345"), start(b"12345 ")), (16, 0));
    }

    #[test]
    fn an_opening_may_have_a_source_port() {
        const GREETING: &[Opening] =
            &[Opening { first: Bytes::of(b"w"), from: Some(22), ..Opening::ANY }];
        const TABLE: Table = Table::EMPTY.with(GREETING, 0).with(&[Opening::ANY], 1);
        assert_eq!((TABLE.look(b"welcome ", 22), TABLE.look(b"welcome ", 23)), (3, 2));
        assert_eq!((TABLE.look_at_start(b"we", 22), TABLE.look_at_start(b"we", 21)), (3, 2));
    }

    #[test]
    fn the_beginning_of_an_opening_may_have_a_length() {
        const MESSAGE: &[Opening] =
            &[Opening { first: Bytes::range(0, 1), least: Some(12), ..Opening::ANY }];
        const TABLE: Table = Table::EMPTY.with(&[Opening::ANY], 0).with(MESSAGE, 1);
        let start = |start: &[u8]| TABLE.protocols(TABLE.look_at_start(start, 1));
        assert_eq!((start(&[0]), start(&[0, 12]), start(&[1, 0, 9])), (3, 3, 3));
        assert_eq!((start(&[0, 11]), start(&[0; 7])), (1, 1));
    }

    #[test]
    fn ports_are_found_at_their_places_only() {
        const TABLE: Ports = Ports::EMPTY.with(&[53, 5353], 1).with(&[123], 2);
        let found: Vec<_> = (0..=u16::MAX).filter(|&port| TABLE.look(port) != 0).collect();
        assert_eq!(found, [53, 123, 5353]);
        assert_eq!((TABLE.look(5353), TABLE.look(123)), (2, 4));
    }
}
