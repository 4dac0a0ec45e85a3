//! A revision of the rules: immutable, replaced by the next one.

use std::fmt;
use std::net::IpAddr;

use super::bans::{Banned, Bans, Change};
use crate::levels::{Entry, Levels, LevelsDraft};
use crate::policy::Policy;
use crate::span::Span;
use crate::statement::{LineError, Statement, parse};

/// The most rules, and the most bans, of any limits: sums of bans have 32 bits.
pub const RULES_MOST: usize = 1 << 30;

/// An immutable set of rules and bans of one revision, with its look-ups.
#[derive(Clone, Debug)]
pub struct RuleSet {
    revision: u64,
    policy: Policy,
    limits: Limits,
    /// Number of the next rule.
    next_number: u64,
    /// The last one has priority.
    rules: Levels,
    /// The latest revision that moved a rule to another position.
    moved_at: u64,
    bans: Bans,
    /// What its transaction did to bans.
    ban_counts: BanCounts,
}

/// Limits of a rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most rules, and most bans.
    pub rules: usize,
    /// Most bytes of look-up structures for each address family.
    pub memory_bytes: usize,
}

impl Default for Limits {
    /// 4 million of each, 1 GiB a family.
    fn default() -> Self {
        Self { rules: 4 << 20, memory_bytes: 1 << 30 }
    }
}

/// Results of the `ban` and `unban` statements of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BanCounts {
    /// New bans.
    pub banned: u64,
    /// `ban` statements for banned spans: the older ban stays.
    pub already_banned: u64,
    /// Bans removed.
    pub unbanned: u64,
    /// `unban` statements for spans without a ban.
    pub not_banned: u64,
}

impl fmt::Display for BanCounts {
    /// `1 banned, 0 already banned`; empty without such statements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { banned, already_banned, unbanned, not_banned } = self;
        let (bans, unbans) = (banned + already_banned > 0, unbanned + not_banned > 0);
        if bans {
            write!(f, "{banned} banned, {already_banned} already banned")?;
        }
        if bans && unbans {
            f.write_str(", ")?;
        }
        if unbans {
            write!(f, "{unbanned} unbanned, {not_banned} not banned")?;
        }
        Ok(())
    }
}

/// Whether a packet passes, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it passes.
    pub passed: bool,
    /// The reason.
    pub reason: Reason,
}

/// The reason of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The source is banned.
    Banned,
    /// The rule at this position; removed rules keep theirs for a time.
    Rule(u32),
    /// No rule matched.
    Default,
}

/// Why a transaction was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// Not a statement.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The rule to remove does not exist.
    #[error("line {line}: no such rule \"{words}\"")]
    Absent {
        /// From 1.
        line: usize,
        /// The rule.
        words: String,
    },
    /// Too many rules or bans.
    #[error("line {line}: too many rules or bans: use at most {most} of each")]
    Many {
        /// From 1.
        line: usize,
        /// The limit.
        most: usize,
    },
    /// The look-up structures may exceed the memory limit.
    #[error("these rules may need {needs} bytes: use at most {most}")]
    Memory {
        /// Bytes that may be needed.
        needs: usize,
        /// Bytes allowed.
        most: usize,
    },
}

impl RuleSet {
    /// Revision 0: no rules, no bans.
    pub fn new(policy: Policy, limits: Limits) -> Self {
        Self {
            revision: 0,
            policy,
            limits,
            next_number: 1,
            rules: Levels::default(),
            moved_at: 0,
            bans: Bans::new(),
            ban_counts: BanCounts::default(),
        }
    }

    /// Applies all statements of a text in order and returns the next revision, or an error. Dropping the result makes
    /// this a dry run.
    pub fn transact(&self, text: &str) -> Result<Self, TransactionError> {
        self.apply(&parse(text)?)
    }

    /// Applies parsed statements with their lines, as [`transact`](Self::transact) does with those of a text.
    pub fn apply(&self, statements: &[(usize, Statement)]) -> Result<Self, TransactionError> {
        let mut draft = Draft::of(self);
        for (line, statement) in statements {
            draft.take(*line, statement)?;
        }
        draft.finish()
    }

    /// Whether a packet may pass. Source and destination must be of one family; otherwise no rule
    /// matches.
    #[inline]
    pub fn verdict(&self, source: IpAddr, destination: IpAddr) -> Verdict {
        let (banned, rule) = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let (source, destination) = (source.to_bits(), destination.to_bits());
                (self.bans.v4.contains(source), self.rules.topmost_v4(source, destination))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (source, destination) = (source.to_bits(), destination.to_bits());
                (self.bans.v6.contains(source), self.rules.topmost_v6(source, destination))
            }
            (IpAddr::V4(source), _) => (self.bans.v4.contains(source.to_bits()), None),
            (IpAddr::V6(source), _) => (self.bans.v6.contains(source.to_bits()), None),
        };
        match (banned, rule) {
            (true, _) => Verdict { passed: false, reason: Reason::Banned },
            (false, Some((rule, passed))) => Verdict { passed, reason: Reason::Rule(rule) },
            (false, None) => {
                Verdict { passed: self.policy == Policy::Allow, reason: Reason::Default }
            }
        }
    }

    /// A verdict as text: `dropped: 192.0.2.7 banned at revision 812`.
    pub fn explain(&self, source: IpAddr, destination: IpAddr) -> String {
        let Verdict { passed, reason } = self.verdict(source, destination);
        let done = if passed { "accepted" } else { "dropped" };
        match reason {
            Reason::Banned => match self.latest_ban(source) {
                Some(Banned { span, revision }) if span != Span::from(source) => {
                    format!("{done}: {source} banned by {span} at revision {revision}")
                }
                Some(Banned { revision, .. }) => {
                    format!("{done}: {source} banned at revision {revision}")
                }
                None => format!("{done}: {source} banned"),
            },
            Reason::Rule(place) => {
                let Entry { rule, revision, number } = self.rules.entry(place as usize);
                format!("{done}: rule {number} of revision {revision}: {rule}")
            }
            Reason::Default => format!(
                "{done}: no rule from {source} to {destination}, {}",
                Statement::Default(self.policy)
            ),
        }
    }

    /// Its number, which is the number of transactions before it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The policy for packets without a matching rule.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// All rules; later ones have priority.
    pub fn rules(&self) -> impl Iterator<Item = &Entry> + Clone {
        self.rules.entries()
    }

    /// Number of rules.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// Number of positions of rules.
    pub(crate) fn positions(&self) -> usize {
        self.rules.positions()
    }

    /// The rules of all positions, removed ones included.
    pub(crate) fn placed(&self) -> impl Iterator<Item = &Entry> {
        self.rules.placed()
    }

    /// The rule with a number, if it exists.
    pub fn rule(&self, number: u64) -> Option<&Entry> {
        self.rules.place_of(number).map(|place| self.rules.entry(place))
    }

    /// Whether all rules of a later revision that are here, too, have the same positions.
    pub fn is_extended_by(&self, later: &Self) -> bool {
        self.moved_at == later.moved_at && self.positions() <= later.positions()
    }

    /// Number of bans.
    pub fn ban_count(&self) -> usize {
        self.bans.len()
    }

    /// All bans, by revision, then by span. Collects and sorts them.
    pub fn bans(&self) -> Vec<Banned> {
        let mut bans: Vec<Banned> = self.bans.iter().collect();
        bans.sort_unstable_by_key(|ban| (ban.revision, ban.span));
        bans
    }

    /// What its transaction did to bans.
    pub fn ban_counts(&self) -> BanCounts {
        self.ban_counts
    }

    /// Bytes of the look-up structures, including parts shared with other revisions.
    pub fn memory_bytes(&self) -> usize {
        self.rules.memory() + self.bans.memory()
    }

    /// The latest of the bans of a source. Reads all bans.
    fn latest_ban(&self, source: IpAddr) -> Option<Banned> {
        let bans = self.bans.iter().filter(|ban| ban.span.contains(source));
        bans.max_by_key(|ban| (ban.revision, ban.span))
    }
}

impl fmt::Display for RuleSet {
    /// A dump: as a transaction it makes the same rules, independent of the rules before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# revision {}", self.revision)?;
        writeln!(f, "{}\n{}", Statement::Clear, Statement::Default(self.policy))?;
        self.rules().try_for_each(|entry| writeln!(f, "{}", entry.rule))?;
        self.bans().iter().try_for_each(|banned| writeln!(f, "{}", Statement::Ban(banned.span)))
    }
}

impl From<IpAddr> for Span {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::V4(address, address),
            IpAddr::V6(address) => Self::V6(address, address),
        }
    }
}

/// The next revision while it is built.
struct Draft<'a> {
    before: &'a RuleSet,
    policy: Policy,
    next_number: u64,
    rules: Option<LevelsDraft<'a>>,
    bans: BansDraft,
}

impl<'a> Draft<'a> {
    fn of(before: &'a RuleSet) -> Self {
        let RuleSet { policy, next_number, .. } = *before;
        Self { before, policy, next_number, rules: None, bans: BansDraft::of(before) }
    }

    fn take(&mut self, line: usize, statement: &Statement) -> Result<(), TransactionError> {
        let (revision, most) = (self.before.revision + 1, self.before.limits.rules);
        match statement {
            Statement::Default(policy) => self.policy = *policy,
            Statement::Add(rule) => {
                let number = self.next_number;
                if !self.rules().add(Entry { rule: *rule, revision, number }, most) {
                    return Err(TransactionError::Many { line, most });
                }
                self.next_number += 1;
            }
            Statement::Remove(rule) => {
                if !self.rules().remove(rule) {
                    return Err(TransactionError::Absent { line, words: rule.to_string() });
                }
            }
            Statement::Ban(span) => {
                if !self.bans.ban(*span, revision, most) {
                    return Err(TransactionError::Many { line, most });
                }
            }
            Statement::Unban(span) => self.bans.unban(*span),
            Statement::Clear => {
                self.rules().clear();
                self.bans.clear();
            }
        }
        Ok(())
    }

    fn rules(&mut self) -> &mut LevelsDraft<'a> {
        self.rules.get_or_insert_with(|| LevelsDraft::of(&self.before.rules))
    }

    /// Builds changed parts, and shares the others.
    fn finish(self) -> Result<RuleSet, TransactionError> {
        let Self { before, policy, next_number, .. } = self;
        let revision = before.revision + 1;
        let mut set = RuleSet { policy, revision, next_number, ..before.clone() };
        if let Some(draft) = self.rules {
            let most = set.limits.memory_bytes;
            let finished = draft.finish(most);
            let (rules, moved) =
                finished.map_err(|needs| TransactionError::Memory { needs, most })?;
            set.rules = rules;
            set.moved_at = if moved { revision } else { before.moved_at };
        }
        set.ban_counts = self.bans.counts;
        set.bans = self.bans.base.changed(self.bans.changes.into_iter());
        Ok(set)
    }
}

/// Bans while they change: the initial bans, and the changes.
struct BansDraft {
    base: Bans,
    changes: hashbrown::HashMap<Span, Change>,
    bans: usize,
    counts: BanCounts,
}

impl BansDraft {
    fn of(set: &RuleSet) -> Self {
        let (base, bans) = (set.bans.clone(), set.bans.len());
        Self { base, changes: hashbrown::HashMap::new(), bans, counts: BanCounts::default() }
    }

    /// Bans a span, unless there are too many bans. An existing ban stays unchanged.
    fn ban(&mut self, span: Span, revision: u64, most: usize) -> bool {
        let Self { base, changes, bans, counts } = self;
        let change = changes.entry(span).or_insert_with(|| Change::none(base.get(span)));
        if change.after.is_some() {
            counts.already_banned += 1;
        } else if *bans >= most.min(RULES_MOST) {
            return false;
        } else {
            change.after = Some(revision);
            counts.banned += 1;
            *bans += 1;
        }
        true
    }

    /// Removes a ban, if it exists.
    fn unban(&mut self, span: Span) {
        let Self { base, changes, bans, counts } = self;
        let change = changes.entry(span).or_insert_with(|| Change::none(base.get(span)));
        if change.after.take().is_some() {
            counts.unbanned += 1;
            *bans -= 1;
        } else {
            counts.not_banned += 1;
        }
    }

    fn clear(&mut self) {
        self.base = Bans::new();
        self.changes.clear();
        self.bans = 0;
    }
}
