//! The first octets of the payload of a flow, for their entropy.

use super::chains::{Chain, Chains, Room};
use crate::fields::Fields;

/// Most first octets of the payload of a direction.
pub const OCTETS_MOST: u16 = 1_024;

/// The lists of live flows.
pub(super) type OctetChains = Chains<u8, 60>;

/// The first octets of a live flow, by direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveOctets {
    sides: [Chain; 2],
    /// Most octets of a direction.
    most: u16,
    /// Bits of the directions whose octets had no room.
    cut: u8,
}

impl LiveOctets {
    pub(super) const fn new(most: u16) -> Self {
        Self { sides: [Chain::NONE; 2], most, cut: 0 }
    }

    /// Adds the payload of the next packet, as far as the direction has less than the most octets.
    pub(super) fn add(&mut self, side: usize, payload: &[u8], all: &mut OctetChains, room: &Room) {
        let chain = &mut self.sides[side];
        let left = usize::from(self.most).saturating_sub(chain.len());
        if self.cut >> side & 1 == 0
            && !payload.iter().take(left).all(|octet| all.push(chain, *octet, room))
        {
            self.cut |= 1 << side;
        }
    }

    /// The octets as records have them.
    pub(super) fn octets(&self, all: &OctetChains) -> Octets {
        let sides = self.sides.each_ref().map(|chain| all.list(chain));
        Octets { most: self.most, cut: self.cut, sides }
    }

    /// The octets of a flow of another run, as far as there is room.
    pub(super) fn of(saved: &Octets, all: &mut OctetChains, room: &Room) -> Self {
        let mut own = Self::new(saved.most);
        for (side, octets) in saved.sides.iter().enumerate() {
            own.add(side, octets, all, room);
        }
        // Behind an octet that is missing there are none.
        own.cut |= saved.cut;
        own
    }

    pub(super) fn release(&mut self, all: &mut OctetChains) {
        self.sides.iter_mut().for_each(|chain| all.clear(chain));
        self.cut = 0;
    }
}

/// The first octets of a record, by direction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Octets {
    /// Most octets of a direction.
    most: u16,
    /// Bits of the directions whose octets had no room.
    cut: u8,
    sides: [Vec<u8>; 2],
}

impl Octets {
    /// Most bytes of [`Octets::save`] with this many octets of a direction.
    pub(super) const fn saved(most: u16) -> usize {
        2 + 1 + 2 * 2 + 2 * most as usize
    }

    /// Memory with this many octets of a direction, in lists that may have twice the room.
    pub(super) const fn bytes(most: u16) -> usize {
        size_of::<Self>() + 4 * most as usize
    }

    /// The entropy of a direction, as [`FlowStatistics::entropy`](super::FlowStatistics::entropy) says.
    pub(super) fn entropy(&self, direction: usize) -> Option<u8> {
        let octets = &self.sides[direction];
        let all = octets.len() as f64;
        let mut counts = [0_u16; 256];
        octets.iter().for_each(|octet| counts[usize::from(*octet)] += 1);
        let counts = counts.into_iter().filter(|count| *count > 0).map(f64::from);
        let bits: f64 = counts.map(|count| count / all * (all / count).log2()).sum();
        // The conversion saturates.
        (!octets.is_empty()).then_some((bits * 32.0).round() as u8)
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.cut != 0
    }

    pub(super) fn turn(&mut self) {
        self.sides.swap(0, 1);
        self.cut = (self.cut & 1) << 1 | self.cut >> 1 & 1;
    }

    /// Adds those of a later piece of the flow. Behind an octet that is missing there are none.
    pub(super) fn join(&mut self, later: &Self) {
        for (side, own) in self.sides.iter_mut().enumerate() {
            let room = usize::from(self.most).saturating_sub(own.len());
            if self.cut >> side & 1 == 0 {
                own.extend(later.sides[side].iter().take(room));
                if later.cut >> side & 1 != 0 && later.sides[side].len() < room {
                    self.cut |= 1 << side;
                }
            }
        }
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        out.extend(self.most.to_le_bytes());
        out.push(self.cut);
        self.sides.iter().for_each(|own| out.extend((own.len() as u16).to_le_bytes()));
        self.sides.iter().for_each(|own| out.extend(own));
    }

    /// Splits off the octets at the beginning of these bytes; `None` if no octets have such bytes.
    pub(super) fn split_from(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, mut rest) = bytes.split_at_checked(Self::saved(0))?;
        let from = &mut Fields(head);
        let most = u16::from_le_bytes(from.take());
        let [cut] = from.take();
        let lengths = [u16::from_le_bytes(from.take()), u16::from_le_bytes(from.take())];
        let mut sides = [Vec::new(), Vec::new()];
        for (own, len) in sides.iter_mut().zip(lengths) {
            let (octets, after) = rest.split_at_checked(usize::from(len))?;
            (len <= most).then_some(())?;
            own.extend_from_slice(octets);
            rest = after;
        }
        (cut < 4).then_some((Self { most, cut, sides }, rest))
    }
}
