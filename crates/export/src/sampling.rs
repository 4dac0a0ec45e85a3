//! Which packets are metered, if not all: collectors that hear of it multiply what they count.

/// One of so many packets; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Every Nth one.
    Systematic(u32),
    /// Each with a chance of 1 in N.
    Random(u32),
}

impl Sampling {
    /// NetFlow v5 has 14 bits for the N.
    pub(crate) const NETFLOW5_MOST: u32 = (1 << 14) - 1;

    /// The N.
    pub(crate) fn of(self) -> u32 {
        let (Self::Systematic(of) | Self::Random(of)) = self;
        of.max(1)
    }

    pub(crate) const fn is_random(self) -> bool {
        matches!(self, Self::Random(_))
    }

    /// As NetFlow numbers it: 1 deterministic, 2 random.
    pub(crate) const fn mode(self) -> u8 {
        1 + self.is_random() as u8
    }
}
