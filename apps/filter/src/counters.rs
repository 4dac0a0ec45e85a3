//! Counters of the rules that matched. Each worker has its own; sums are computed at the end or at
//! marks.

use std::collections::BTreeMap;

use super::ruleset::{Reason, RuleSet, Verdict};

/// The counters of a worker, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By position in the rules of the current revision.
    rules: Vec<u64>,
    /// By number of the rule, for rules of earlier revisions.
    before: BTreeMap<u64, u64>,
    banned: u64,
    by_default: u64,
    dropped_by_default: u64,
    passed: u64,
    dropped: u64,
}

/// A row of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number of the rule.
    pub rule: u64,
    /// Packets that it matched.
    pub packets: u64,
}

impl Counters {
    /// For the rules of a revision.
    pub fn new(set: &RuleSet) -> Self {
        Self { rules: vec![0; set.positions()], ..Self::default() }
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

    /// Switches to another revision: counters follow the numbers of the rules.
    pub fn change(&mut self, old: &RuleSet, new: &RuleSet) {
        if old.is_extended_by(new) {
            return self.rules.resize(new.positions(), 0);
        }
        self.settle(old);
        self.rules = vec![0; new.positions()];
    }

    /// Adds the counters of another worker; each with the revision it used.
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

    /// Rules that matched, by number; of the current and of earlier revisions.
    pub fn rows(&self, set: &RuleSet) -> Vec<Row> {
        let mut settled = self.clone();
        settled.settle(set);
        settled.before.into_iter().map(|(rule, packets)| Row { rule, packets }).collect()
    }

    /// Packets whose source was banned.
    pub fn banned(&self) -> u64 {
        self.banned
    }

    /// Packets without a matching rule.
    pub fn by_default(&self) -> u64 {
        self.by_default
    }

    /// Of these, packets that were dropped.
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

    /// Packets that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn settle(&mut self, set: &RuleSet) {
        for (packets, entry) in self.rules.iter_mut().zip(set.placed()) {
            if *packets > 0 {
                *self.before.entry(entry.number).or_default() += std::mem::take(packets);
            }
        }
    }
}
