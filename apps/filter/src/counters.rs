//! How often each rule decided. Every worker counts for itself; sums are taken at the end or at marks.

use std::collections::BTreeMap;

use super::ruleset::{Reason, RuleSet, Verdict};

/// What a worker counted, or several of them together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By place in the rules of the revision in use.
    rules: Vec<u64>,
    /// By number of the rule: of earlier revisions.
    before: BTreeMap<u64, u64>,
    banned: u64,
    by_default: u64,
    dropped_by_default: u64,
    passed: u64,
    dropped: u64,
}

/// What the report says of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number of the rule.
    pub rule: u64,
    /// Packets that it decided.
    pub packets: u64,
}

impl Counters {
    /// For the rules of a revision.
    pub fn new(set: &RuleSet) -> Self {
        Self { rules: vec![0; set.rules().len()], ..Self::default() }
    }

    /// Counts a verdict by the rules of the revision in use.
    #[inline]
    pub fn count(&mut self, verdict: &Verdict) {
        self.passed += u64::from(verdict.passed);
        self.dropped += u64::from(!verdict.passed);
        match verdict.reason {
            Reason::Banned => self.banned += 1,
            Reason::Rule(place) => self.rules[place as usize] += 1,
            Reason::Default => {
                self.by_default += 1;
                self.dropped_by_default += u64::from(!verdict.passed);
            }
        }
    }

    /// Another revision is in use: what was counted goes with the numbers of the rules.
    pub fn change(&mut self, old: &RuleSet, new: &RuleSet) {
        if old.same_rules(new) {
            return;
        }
        self.settle(old);
        self.rules = vec![0; new.rules().len()];
    }

    /// Adds what another worker counted; each is told the revision it had in use.
    pub fn add(&mut self, own: &RuleSet, mut other: Self, others: &RuleSet) {
        self.settle(own);
        other.settle(others);
        for (number, packets) in other.before {
            *self.before.entry(number).or_default() += packets;
        }
        self.banned += other.banned;
        self.by_default += other.by_default;
        self.dropped_by_default += other.dropped_by_default;
        self.passed += other.passed;
        self.dropped += other.dropped;
    }

    /// Rules that decided something, by their number; of the revision in use and of earlier ones.
    pub fn rows(&self, set: &RuleSet) -> Vec<Row> {
        let mut settled = self.clone();
        settled.settle(set);
        settled.before.into_iter().map(|(rule, packets)| Row { rule, packets }).collect()
    }

    /// Packets whose source was banned.
    pub fn banned(&self) -> u64 {
        self.banned
    }

    /// Packets that no rule was about.
    pub fn by_default(&self) -> u64 {
        self.by_default
    }

    /// Of these, those that did not pass.
    pub fn dropped_by_default(&self) -> u64 {
        self.dropped_by_default
    }

    /// Packets that a rule dropped.
    pub fn dropped_by_rule(&self) -> u64 {
        self.dropped - self.banned - self.dropped_by_default
    }

    /// Packets that passed.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Packets that did not.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn settle(&mut self, set: &RuleSet) {
        for (packets, entry) in self.rules.iter_mut().zip(set.rules()) {
            if *packets > 0 {
                *self.before.entry(entry.number).or_default() += std::mem::take(packets);
            }
        }
    }
}
