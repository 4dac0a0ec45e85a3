//! The ledger: in = out + Σ dropped(reason) at every stage, and the output of one stage is the
//! input of the next. The residual is the difference and must be 0.

use std::collections::BTreeMap;

/// The counters of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// The stage's name.
    pub name: &'static str,
    /// Packets received.
    pub input: u64,
    /// Packets handed on; in the last stage, packets handled.
    pub output: u64,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// The stages in the order packets pass them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// First to last.
    pub stages: Vec<Stage>,
}

impl Ledger {
    /// Packets unaccounted for: Σ over stages of |in − out − dropped|, and over neighbouring
    /// stages of |out − in|.
    pub fn residual(&self) -> u64 {
        let within: u64 = self
            .stages
            .iter()
            .map(|s| s.input.abs_diff(s.output + s.dropped.values().sum::<u64>()))
            .sum();
        let between: u64 =
            self.stages.windows(2).map(|pair| pair[0].output.abs_diff(pair[1].input)).sum();
        within + between
    }

    /// All drops, by reason.
    pub fn dropped(&self) -> BTreeMap<&'static str, u64> {
        let mut all = BTreeMap::new();
        for (&reason, &n) in self.stages.iter().flat_map(|s| &s.dropped) {
            *all.entry(reason).or_insert(0) += n;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &'static str, input: u64, output: u64, dropped: u64) -> Stage {
        let dropped =
            if dropped > 0 { BTreeMap::from([("full", dropped)]) } else { BTreeMap::new() };
        Stage { name, input, output, dropped }
    }

    #[test]
    fn a_closed_ledger_has_no_residual() {
        let ledger = Ledger { stages: vec![stage("source", 10, 9, 1), stage("workers", 9, 9, 0)] };
        assert_eq!(ledger.residual(), 0);
        assert_eq!(ledger.dropped(), BTreeMap::from([("full", 1)]));
    }

    #[test]
    fn a_packet_lost_within_or_between_stages_shows() {
        let within = Ledger { stages: vec![stage("source", 10, 9, 0)] };
        let between =
            Ledger { stages: vec![stage("source", 10, 10, 0), stage("workers", 9, 9, 0)] };
        assert_eq!((within.residual(), between.residual()), (1, 1));
    }
}
