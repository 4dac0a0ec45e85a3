//! Events of a flow in order: the letters of Zeek's `history`, each once for each direction.
//!
//! ```text
//! bits    3        2…0                  twelve entries of four bits, the earliest lowest
//!         | back | s 1, h 2, a 3, d 4, f 5, r 6 |      0: no more entries
//! ```

use std::fmt::{self, Write as _};

use ringtap_wire::{Flags, PacketRecord};

use crate::flags::{ACK, FIN, RST, SYN};

/// Indexed by the lower five control bits and the presence of data.
const LETTERS_OF: [u8; 64] = {
    let mut all = [0; 64];
    let mut at = 0;
    while at < 64 {
        let (flags, data) = (at as u8 & 31, at as u8 >> 5);
        let syn = flags & (SYN | ACK) == SYN;
        let syn_ack = flags & (SYN | ACK) == SYN | ACK;
        let bare = flags & (SYN | FIN | RST | ACK) == ACK && data == 0;
        let (fin, rst) = (flags & FIN != 0, flags & RST != 0);
        all[at] = syn as u8
            | (syn_ack as u8) << 1
            | (bare as u8) << 2
            | data << 3
            | (fin as u8) << 4
            | (rst as u8) << 5;
        at += 1;
    }
    all
};

/// Sixteen lanes of four bits, each 1.
const ONES: u64 = 0x1111_1111_1111_1111;
/// The lanes of a history.
const ENTRIES: u64 = (1 << (4 * History::MOST)) - 1;

/// Indexed as [`LETTERS_OF`]: the packet's letter in every lane; 0 if it has none; 7, which no history contains, if it has
/// several.
const LANES_OF: [u64; 64] = {
    let mut all = [0; 64];
    let mut at = 0;
    while at < 64 {
        let letters = LETTERS_OF[at];
        all[at] = match letters.count_ones() {
            0 => 0,
            1 => (letters.trailing_zeros() as u64 + 1) * ONES,
            _ => 7 * ONES,
        };
        at += 1;
    }
    all
};

/// The letters `s` SYN, `h` SYN with ACK, `a` ACK alone, `d` data, `f` FIN, `r` RST; upper case: from the initiator.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct History(u64);

impl History {
    /// Most letters: six in each direction.
    pub const MOST: usize = 12;

    const LETTERS: [u8; 6] = *b"shadfr";

    /// No letter.
    pub const EMPTY: Self = Self(0);

    /// The position of a packet's letters in the tables.
    #[inline(always)]
    const fn place_of(packet: &PacketRecord) -> usize {
        // Only TCP has control bits, so they also identify the protocol.
        let data = packet.flags.contains(Flags::DATA) as u8;
        ((packet.tcp_flags & 31) | (data << 5)) as usize
    }

    /// Whether a packet has letters that may be missing in the lower bits of `notes`, a history, in this direction.
    #[inline(always)]
    pub(crate) const fn may_grow(notes: u64, packet: &PacketRecord, side: usize) -> bool {
        // A lane is zero where an entry is the letter. Without a letter the four lanes above the entries are zero, so the
        // result is false.
        let letter = LANES_OF[Self::place_of(packet)];
        let lanes = (notes & ENTRIES) ^ letter ^ ((side as u64 * (ONES << 3)) & ENTRIES);
        lanes.wrapping_sub(ONES) & !lanes & (ONES << 3) == 0
    }

    /// Adds the letters of a packet.
    #[inline(never)]
    pub(crate) fn add(&mut self, packet: &PacketRecord, side: usize) {
        let letters = LETTERS_OF[Self::place_of(packet)];
        for number in (1..=6).filter(|number| letters >> (number - 1) & 1 != 0) {
            self.push(number, side);
        }
    }

    /// Adds one letter, 1 to 6, unless it is present in this direction; `side` is 0 from the
    /// initiator, 1 to it.
    fn push(&mut self, number: u8, side: usize) {
        let entry = u64::from(number) | (side as u64) << 3;
        let mut at = 0;
        while at < Self::MOST * 4 {
            match self.0 >> at & 15 {
                0 => {
                    self.0 |= entry << at;
                    return;
                }
                old if old == entry => return,
                _ => at += 4,
            }
        }
    }

    /// The letters in order.
    pub fn iter(self) -> impl Iterator<Item = char> {
        (0..Self::MOST).map_while(move |at| {
            let entry = (self.0 >> (4 * at) & 15) as u8;
            let letter = *Self::LETTERS.get(usize::from(entry & 7).checked_sub(1)?)?;
            Some(char::from(if entry & 8 == 0 { letter.to_ascii_uppercase() } else { letter }))
        })
    }

    /// Whether a letter, as in [`History`], is present.
    pub fn has(self, letter: char) -> bool {
        self.iter().any(|own| own == letter)
    }

    /// The letters of a text, in order; others are ignored. For tests and tools.
    pub fn of(text: &str) -> Self {
        let mut own = Self::EMPTY;
        for letter in text.bytes() {
            let at = Self::LETTERS.iter().position(|&l| l == letter.to_ascii_lowercase());
            if let Some(at) = at {
                own.push(at as u8 + 1, usize::from(letter.is_ascii_lowercase()));
            }
        }
        own
    }

    /// Appends the letters of later events; `turned`: the other direction is the initiator's there.
    #[must_use]
    pub(crate) fn with(mut self, later: Self, turned: bool) -> Self {
        for at in 0..Self::MOST {
            let entry = (later.0 >> (4 * at) & 15) as u8;
            if matches!(entry & 7, 1..=6) {
                self.push(entry & 7, usize::from(entry >> 3) ^ usize::from(turned));
            }
        }
        self
    }

    /// All letters as a number, for digests.
    pub const fn bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits & ENTRIES)
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|letter| f.write_char(letter))
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_may_grow_a_history_only_if_it_adds_a_letter_or_has_several() {
        for of in ["", "S", "ShA", "ShADadFfRr", "sHaAdDfFrRSh"] {
            let notes = History::of(of).bits() | 0xabcd << 48;
            for (at, letters) in LETTERS_OF.into_iter().enumerate() {
                let data = if at >> 5 == 1 { Flags::DATA } else { Flags(0) };
                let tcp_flags = at as u8 & 31;
                let packet = PacketRecord { tcp_flags, flags: data, ..PacketRecord::EMPTY };
                for side in 0..2 {
                    let before = History::from_bits(notes);
                    let mut after = before;
                    after.add(&packet, side);
                    let expected = after != before || letters.count_ones() > 1;
                    assert_eq!(
                        History::may_grow(notes, &packet, side),
                        expected,
                        "{of} {at} {side}"
                    );
                }
            }
        }
    }

    #[test]
    fn letters_are_kept_once_a_direction_in_order() {
        let all = "ShADadFfRrsH";
        assert_eq!(History::of(all).to_string(), all);
        assert_eq!(History::of("ShAAAaShDdDd").to_string(), "ShAaDd");
        assert_eq!(History::from_bits(History::of(all).bits()), History::of(all));
        assert_eq!(History::of("Sh").with(History::of("HaD"), false), History::of("ShHaD"));
        assert_eq!(History::of("S").with(History::of("HDs"), true), History::of("ShdS"));
        assert!(History::of("Sr").has('r') && !History::of("Sr").has('R'));
    }
}
