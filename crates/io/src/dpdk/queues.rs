//! The supported numbers of receive queues.

use std::fmt;

use crate::dpdk::sys::port::Facts;

/// The numbers of receive queues that a device supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// Exactly this number: each queue receives frames, so all must be read.
    Exactly(u16),
    /// Any number up to this; the device distributes frames by their addresses.
    UpTo(u16),
}

impl Queues {
    pub(crate) fn of(facts: &Facts) -> Self {
        if facts.shares_out {
            Self::UpTo(facts.queues_most)
        } else {
            Self::Exactly(facts.queues_most)
        }
    }

    /// The default number.
    pub(crate) fn usual(self) -> u16 {
        match self {
            Self::Exactly(all) => all,
            Self::UpTo(_) => 1,
        }
    }

    pub(crate) fn allow(self, requested: u16) -> bool {
        match self {
            Self::Exactly(all) => requested == all,
            Self::UpTo(most) => (1..=most).contains(&requested),
        }
    }
}

impl fmt::Display for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(1) => f.write_str("one queue"),
            Self::Exactly(all) => write!(f, "all {all} queues"),
            Self::UpTo(most) => write!(f, "1 to {most} queues"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_all_or_any() {
        assert!(Queues::Exactly(2).allow(2) && !Queues::Exactly(2).allow(1));
        assert!(Queues::UpTo(2).allow(1) && !Queues::UpTo(2).allow(3) && !Queues::UpTo(2).allow(0));
        assert_eq!((Queues::Exactly(2).usual(), Queues::UpTo(9).usual()), (2, 1));
    }
}
