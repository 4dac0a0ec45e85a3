//! The words of verdicts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// More than twice the paper's effect.
    Stronger,
    /// Within the bounds of the claim: half of the paper's effect or more, mostly.
    Reproduced,
    /// The paper's effect, but short of the bound.
    Weaker,
    /// No effect or the opposite, or outside of bounds that accept no effect.
    Contradicted,
    /// The spread of the measurement includes several verdicts, or a setting cannot decide.
    Inconclusive,
    /// The machine lacks cores, shared caches or counters for it.
    NotPossibleHere,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 6] = [
        Self::Stronger,
        Self::Reproduced,
        Self::Weaker,
        Self::Contradicted,
        Self::Inconclusive,
        Self::NotPossibleHere,
    ];

    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stronger => "stronger",
            Self::Reproduced => "reproduced",
            Self::Weaker => "weaker",
            Self::Contradicted => "contradicted",
            Self::Inconclusive => "inconclusive",
            Self::NotPossibleHere => "not-possible-here",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
