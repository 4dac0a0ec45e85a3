//! Compares the verdicts of two runs, claim by claim.

use serde::Serialize;

use crate::judge::{Judgement, of_run};
use crate::{ClaimKind, LabError, RunFolder, Verdict, catalogue};

/// Whether two verdicts on a claim agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Two decided verdicts that are neither equal nor near.
    Differs,
    /// `stronger` and `reproduced`, or `reproduced` and `weaker`: sizes of an effect differ between machines.
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
    /// Whether the verdicts differ on a claim that is not absolute. Absolute claims state the speed of the paper's machine,
    /// so they may differ between machines.
    pub fn is_contradiction(&self) -> bool {
        self.agreement == Agreement::Differs && self.here.kind != ClaimKind::Absolute
    }
}

/// The claims of two runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// A pair for each claim of the experiments that both have, in their order.
    pub pairs: Vec<Pair>,
    /// The experiments that one of them lacks.
    pub left_out: Vec<String>,
}

impl Comparison {
    /// Compares two runs.
    ///
    /// # Errors
    /// The rows of one cannot be read.
    pub fn of(expected: &RunFolder, here: &RunFolder) -> Result<Self, LabError> {
        let mut own = Self::default();
        for experiment in catalogue::experiments()? {
            let both = [of_run(expected, &experiment)?, of_run(here, &experiment)?];
            match both.each_ref().map(|run| run.rows.is_empty()) {
                [true, true] => continue,
                [false, false] => {}
                _ => {
                    own.left_out.push(experiment.id);
                    continue;
                }
            }
            let [expected, here] = both.map(|run| run.judgements);
            own.pairs.extend(expected.into_iter().zip(here).map(|(expected, here)| Pair {
                agreement: Agreement::of(expected.verdict, here.verdict),
                expected,
                here,
            }));
        }
        Ok(own)
    }

    /// How many pairs of these kinds of claims have each agreement.
    pub fn count(&self, kinds: &[ClaimKind]) -> [(Agreement, usize); 4] {
        let of = |pair: &&Pair| kinds.contains(&pair.here.kind);
        Agreement::ALL.map(|each| {
            let own = self.pairs.iter().filter(of).filter(|pair| pair.agreement == each);
            (each, own.count())
        })
    }

    /// Whether a measured claim has equal or neighbouring verdicts, and no claim has others.
    pub fn agrees(&self) -> bool {
        let [_, (_, near), (_, equal), _] = self.count(&[ClaimKind::Measured]);
        near + equal > 0 && !self.pairs.iter().any(Pair::is_contradiction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_verdicts_are_near_and_others_differ() {
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

    #[test]
    fn absolute_claims_may_differ_and_one_measured_claim_must_agree() {
        let pair = |kind, agreement| {
            let own = Judgement {
                id: "a-b-1".into(),
                experiment: "a/b".into(),
                claim: "one is faster".into(),
                kind,
                source: "1".into(),
                paper: "2 ×".into(),
                ours: "2 ×".into(),
                verdict: Verdict::Reproduced,
                reason: String::new(),
                judged: String::new(),
                predicted: String::new(),
            };
            Pair { agreement, expected: own.clone(), here: own }
        };
        let agrees = |pairs: &[(ClaimKind, Agreement)]| {
            let pairs = pairs.iter().map(|&(kind, agreement)| pair(kind, agreement)).collect();
            Comparison { pairs, left_out: Vec::new() }.agrees()
        };
        let (measured, absolute) = (ClaimKind::Measured, ClaimKind::Absolute);
        assert!(agrees(&[(measured, Agreement::Near), (absolute, Agreement::Differs)]));
        assert!(!agrees(&[(measured, Agreement::Agrees), (measured, Agreement::Differs)]));
        assert!(!agrees(&[(measured, Agreement::Undecided), (absolute, Agreement::Agrees)]));
        assert!(!agrees(&[]));
    }
}
