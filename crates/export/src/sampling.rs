//! Packet sampling: collectors that receive the interval multiply their counts by it.

/// One of N packets; N is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Every Nth packet.
    Systematic(u32),
    /// Each packet with a probability of 1 in N.
    Random(u32),
}

impl Sampling {
    /// NetFlow v5 has 14 bits for N.
    pub(crate) const NETFLOW5_MOST: u32 = (1 << 14) - 1;

    /// The N.
    pub(crate) fn of(self) -> u32 {
        let (Self::Systematic(of) | Self::Random(of)) = self;
        of.max(1)
    }

    pub(crate) const fn is_random(self) -> bool {
        matches!(self, Self::Random(_))
    }

    /// NetFlow's number: 1 deterministic, 2 random.
    pub(crate) const fn mode(self) -> u8 {
        1 + self.is_random() as u8
    }
}
