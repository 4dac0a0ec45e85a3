//! What is counted for a flow, as records have it.

use super::bursts::{Activity, Side};
use crate::fields::Fields;

/// What is counted for a flow, besides its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sums {
    pub(super) sides: [Side; 2],
    pub(super) activity: Activity,
    /// Bits of the sides whose bursts had no room.
    pub(super) cut: u8,
}

impl Sums {
    /// Bytes of [`Sums::save`], which leaves out `cut`.
    pub(super) const SAVED: usize = 2 * Side::SAVED + Activity::SAVED;

    /// Packets of both directions.
    pub(super) fn packets(&self) -> u64 {
        self.sides.iter().fold(0, |sum, side| sum.saturating_add(side.lengths.count()))
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.sides.iter().for_each(|side| side.save(out));
        self.activity.save(out);
    }

    pub(super) fn load(from: &mut Fields<'_>, cut: u8) -> Self {
        let (sides, activity) = ([(); 2].map(|()| Side::load(from)), Activity::load(from));
        Self { sides, activity, cut }
    }
}
