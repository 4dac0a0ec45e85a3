//! Two runs beside each other: on which claims do they agree?

use std::collections::BTreeMap;

use serde::Serialize;

use crate::judge::{Judgement, judge};
use crate::{ClaimKind, LabError, RunFolder, Verdict, catalogue};

/// Whether two verdicts on a claim agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// One shows the paper's effect and the other none, or they are further apart.
    Differs,
    /// Neighbours, such as `stronger` and `reproduced`: the same effect with another size, as on another machine.
    Near,
    /// The same verdict.
    Agrees,
    /// At least one of them does not decide.
    Undecided,
}

/// A claim in two runs, both judged by today's claims.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Whether they agree.
    pub agreement: Agreement,
    /// Of the run that is expected.
    pub expected: Judgement,
    /// Of the other one.
    pub here: Judgement,
}

impl Agreement {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Differs, Self::Near, Self::Agrees, Self::Undecided];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Near => "near",
            Self::Agrees => "agrees",
            Self::Undecided => "undecided",
        }
    }

    /// Compares two verdicts.
    pub fn of(one: Verdict, other: Verdict) -> Self {
        use Verdict::{Inconclusive, NotPossibleHere, Reproduced, Stronger, Weaker};
        // Verdicts are in the order from stronger to contradicted.
        match (one.min(other), one.max(other)) {
            (_, Inconclusive | NotPossibleHere) => Self::Undecided,
            (one, other) if one == other => Self::Agrees,
            (Stronger, Reproduced) | (Reproduced, Weaker) => Self::Near,
            _ => Self::Differs,
        }
    }
}

impl Pair {
    /// Whether the pair speaks against one of the runs: what the paper's machine did at its own speed is no claim about
    /// another one.
    pub fn counts(&self) -> bool {
        self.here.kind != ClaimKind::Absolute
    }
}

/// Compares two runs: a pair for each claim of the experiments that both have, in their order.
///
/// # Errors
/// The rows of one cannot be read.
pub fn compare(expected: &RunFolder, here: &RunFolder) -> Result<Vec<Pair>, LabError> {
    let mut pairs = Vec::new();
    for experiment in catalogue::experiments()? {
        let both = [expected.measured(&experiment)?, here.measured(&experiment)?];
        if both.iter().any(Vec::is_empty) {
            continue;
        }
        let [expected, here] = both.map(|rows| judge(&experiment, &rows));
        pairs.extend(expected.into_iter().zip(here).map(|(expected, here)| Pair {
            agreement: Agreement::of(expected.verdict, here.verdict),
            expected,
            here,
        }));
    }
    Ok(pairs)
}

/// How many pairs agree, differ and so on.
pub fn counts(pairs: &[Pair]) -> BTreeMap<Agreement, usize> {
    let mut counts: BTreeMap<_, _> = Agreement::ALL.into_iter().map(|each| (each, 0)).collect();
    for pair in pairs {
        *counts.entry(pair.agreement).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_another_size_are_near_and_none_differs() {
        use Verdict::{Contradicted, Inconclusive, NotPossibleHere, Reproduced, Stronger, Weaker};
        for (one, other, agreement) in [
            (Stronger, Stronger, Agreement::Agrees),
            (Contradicted, Contradicted, Agreement::Agrees),
            (Stronger, Reproduced, Agreement::Near),
            (Weaker, Reproduced, Agreement::Near),
            (Stronger, Weaker, Agreement::Differs),
            (Weaker, Contradicted, Agreement::Differs),
            (Reproduced, Contradicted, Agreement::Differs),
            (Inconclusive, Inconclusive, Agreement::Undecided),
            (NotPossibleHere, Reproduced, Agreement::Undecided),
            (Contradicted, Inconclusive, Agreement::Undecided),
        ] {
            assert_eq!(Agreement::of(one, other), agreement, "{one} {other}");
            assert_eq!(Agreement::of(other, one), agreement, "{other} {one}");
        }
    }
}
