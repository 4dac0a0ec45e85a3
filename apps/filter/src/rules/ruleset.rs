//! A revision of the rules: never changed, only replaced by the next one.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use super::plane::{Plane, Rectangle};
use super::span::{Number, Span};
use super::statement::{LineError, Rule, Statement, parse};
use super::steps::{NONE, Shelf, Steps};
use crate::packet::Policy;

/// See the module.
#[derive(Clone, Debug)]
pub struct RuleSet {
    revision: u64,
    policy: Policy,
    limits: Limits,
    /// What the next rule will be called.
    next_number: u64,
    /// The last one counts first.
    rules: Arc<Vec<Entry>>,
    bans: Arc<Vec<Banned>>,
    v4: Arc<Plane<u32>>,
    v6: Arc<Plane<u128>>,
    banned_v4: Arc<Bans<u32>>,
    banned_v6: Arc<Bans<u128>>,
}

/// How large rules may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rules and bans, each.
    pub rules: usize,
    /// Bytes of the structures for look-ups, for each family of addresses.
    pub memory_bytes: usize,
}

impl Default for Limits {
    /// 4 million of each, 1 GiB a family.
    fn default() -> Self {
        Self { rules: 4 << 20, memory_bytes: 1 << 30 }
    }
}

/// A rule that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its words.
    pub rule: Rule,
    /// The revision that it came with.
    pub revision: u64,
    /// Its number, which no other rule ever gets.
    pub number: u64,
}

/// A ban that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Banned {
    /// Who may send to nobody.
    pub span: Span,
    /// The revision that it came with.
    pub revision: u64,
}

/// Whether a packet passes, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it passes.
    pub passed: bool,
    /// What decided; places are those in [`RuleSet::rules`] and [`RuleSet::bans`].
    pub reason: Reason,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The ban at this place.
    Banned(u32),
    /// The rule at this place.
    Rule(u32),
    /// No rule is about the packet.
    Default,
}

/// Why a transaction changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// Not a statement.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Nothing of these words stands.
    #[error("line {line}: there is no \"{words}\"")]
    Absent {
        /// From 1.
        line: usize,
        /// What was to be taken out.
        words: String,
    },
    /// The ban stands already.
    #[error("line {line}: {span} is banned since revision {revision}")]
    Twice {
        /// From 1.
        line: usize,
        /// Who is banned.
        span: Span,
        /// Since when.
        revision: u64,
    },
    /// More rules or bans than there may be.
    #[error("line {line}: there may be {most} rules and as many bans")]
    Many {
        /// From 1.
        line: usize,
        /// How many there may be.
        most: usize,
    },
    /// The structures for look-ups might take more than they may.
    #[error("these rules may take {needs} bytes, {most} are allowed")]
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
        let nothing = "no rectangles fit into any memory";
        Self {
            revision: 0,
            policy,
            limits,
            next_number: 1,
            rules: Arc::default(),
            bans: Arc::default(),
            v4: Arc::new(Plane::new(&[], usize::MAX).expect(nothing)),
            v6: Arc::new(Plane::new(&[], usize::MAX).expect(nothing)),
            banned_v4: Arc::new(Bans::new(&[], Span::v4)),
            banned_v6: Arc::new(Bans::new(&[], Span::v6)),
        }
    }

    /// The next revision: all statements of a text in their order, or an error and nothing. Whoever drops
    /// the result has made a dry run.
    pub fn transact(&self, text: &str) -> Result<Self, TransactionError> {
        self.apply(&parse(text)?)
    }

    /// The same, of statements with their lines.
    pub fn apply(&self, statements: &[(usize, Statement)]) -> Result<Self, TransactionError> {
        let mut draft = Draft::of(self);
        for (line, statement) in statements {
            draft.take(*line, statement)?;
        }
        draft.finish(self)
    }

    /// Whether a packet may pass. Source and destination are of one family, as in any packet; if they
    /// are not, no rule is about them.
    #[inline]
    pub fn verdict(&self, source: IpAddr, destination: IpAddr) -> Verdict {
        let (banned, rule) = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let (source, destination) = (source.to_bits(), destination.to_bits());
                (self.banned_v4.find(source), self.v4.topmost(source, destination))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (source, destination) = (source.to_bits(), destination.to_bits());
                (self.banned_v6.find(source), self.v6.topmost(source, destination))
            }
            (IpAddr::V4(source), _) => (self.banned_v4.find(source.to_bits()), None),
            (IpAddr::V6(source), _) => (self.banned_v6.find(source.to_bits()), None),
        };
        match (banned, rule) {
            (Some(ban), _) => Verdict { passed: false, reason: Reason::Banned(ban) },
            (None, Some(rule)) => {
                let passed = self.rules[rule as usize].rule.allow;
                Verdict { passed, reason: Reason::Rule(rule) }
            }
            (None, None) => {
                Verdict { passed: self.policy == Policy::Allow, reason: Reason::Default }
            }
        }
    }

    /// A verdict in words: `dropped: 192.0.2.7 banned at revision 812`.
    pub fn explain(&self, source: IpAddr, destination: IpAddr) -> String {
        let Verdict { passed, reason } = self.verdict(source, destination);
        let done = if passed { "accepted" } else { "dropped" };
        match reason {
            Reason::Banned(place) => {
                let Banned { span, revision } = &self.bans[place as usize];
                if *span == Span::from(source) {
                    format!("{done}: {source} banned at revision {revision}")
                } else {
                    format!("{done}: {source} banned by {span} at revision {revision}")
                }
            }
            Reason::Rule(place) => {
                let Entry { rule, revision, number } = &self.rules[place as usize];
                format!("{done}: rule {number} of revision {revision}: {rule}")
            }
            Reason::Default => format!(
                "{done}: no rule from {source} to {destination}, {}",
                Statement::Default(self.policy)
            ),
        }
    }

    /// Its number: that of the transactions before it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What happens to packets that no rule is about.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// All rules; later ones count before earlier ones.
    pub fn rules(&self) -> &[Entry] {
        &self.rules
    }

    /// Whether the rules are those of another revision: only bans or the default may differ.
    pub fn same_rules(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rules, &other.rules)
    }

    /// All bans.
    pub fn bans(&self) -> &[Banned] {
        &self.bans
    }

    /// Bytes of the structures for look-ups.
    pub fn memory_bytes(&self) -> usize {
        let planes = self.v4.memory() + self.v6.memory();
        planes + self.banned_v4.shelf.memory() + self.banned_v6.shelf.memory()
    }
}

impl fmt::Display for RuleSet {
    /// A dump: taken as a transaction it makes the same rules, whatever stood before.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# revision {}", self.revision)?;
        writeln!(f, "{}\n{}", Statement::Clear, Statement::Default(self.policy))?;
        self.rules.iter().try_for_each(|entry| writeln!(f, "{}", entry.rule))?;
        self.bans.iter().try_for_each(|banned| writeln!(f, "{}", Statement::Ban(banned.span)))
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

/// The next revision in the making. Places that were taken out stay empty until the end, so that
/// removing many costs no more than finding them.
struct Draft {
    policy: Policy,
    revision: u64,
    most: usize,
    next_number: u64,
    rules: Vec<Option<Entry>>,
    rules_standing: usize,
    changed: Changed,
    /// By words, the places of rules; made when the first one is to be removed.
    by_words: Option<hashbrown::HashMap<Rule, Vec<usize>>>,
    bans: hashbrown::HashMap<Span, u64>,
    bans_changed: bool,
}

/// What is to be built again.
#[derive(Default)]
struct Changed {
    rules: bool,
    v4: bool,
    v6: bool,
}

impl Changed {
    /// A rule that comes last leaves the places of all others: only its own families change.
    fn by_adding(&mut self, Rule { from, to, .. }: &Rule) {
        self.rules = true;
        self.v4 |= from.v4().is_some() && to.v4().is_some();
        self.v6 |= from.v6().is_some() && to.v6().is_some();
    }

    /// Where rules are taken out, those behind them move up, of whatever family.
    fn by_removing(&mut self) {
        *self = Self { rules: true, v4: true, v6: true };
    }
}

impl Draft {
    fn of(set: &RuleSet) -> Self {
        Self {
            policy: set.policy,
            revision: set.revision + 1,
            most: set.limits.rules,
            next_number: set.next_number,
            rules: set.rules.iter().copied().map(Some).collect(),
            rules_standing: set.rules.len(),
            changed: Changed::default(),
            by_words: None,
            bans: set.bans.iter().map(|banned| (banned.span, banned.revision)).collect(),
            bans_changed: false,
        }
    }

    fn take(&mut self, line: usize, statement: &Statement) -> Result<(), TransactionError> {
        let many = TransactionError::Many { line, most: self.most };
        match statement {
            Statement::Default(policy) => self.policy = *policy,
            Statement::Add(_) if self.rules_standing >= self.most => return Err(many),
            Statement::Add(rule) => {
                if let Some(by_words) = &mut self.by_words {
                    by_words.entry(*rule).or_default().push(self.rules.len());
                }
                let (revision, number) = (self.revision, self.next_number);
                self.rules.push(Some(Entry { rule: *rule, revision, number }));
                self.next_number += 1;
                self.rules_standing += 1;
                self.changed.by_adding(rule);
            }
            Statement::Remove(rule) => {
                let place = self.by_words().get_mut(rule).and_then(Vec::pop);
                let absent = || TransactionError::Absent { line, words: rule.to_string() };
                self.rules[place.ok_or_else(absent)?] = None;
                self.rules_standing -= 1;
                self.changed.by_removing();
            }
            Statement::Ban(span) => {
                if let Some(&revision) = self.bans.get(span) {
                    return Err(TransactionError::Twice { line, span: *span, revision });
                }
                if self.bans.len() >= self.most {
                    return Err(many);
                }
                self.bans.insert(*span, self.revision);
                self.bans_changed = true;
            }
            Statement::Unban(span) => {
                let words = || Statement::Ban(*span).to_string();
                let absent = || TransactionError::Absent { line, words: words() };
                self.bans.remove(span).ok_or_else(absent)?;
                self.bans_changed = true;
            }
            Statement::Clear => {
                self.rules.clear();
                self.rules_standing = 0;
                self.changed.by_removing();
                self.by_words = None;
                self.bans.clear();
                self.bans_changed = true;
            }
        }
        Ok(())
    }

    fn by_words(&mut self) -> &mut hashbrown::HashMap<Rule, Vec<usize>> {
        let rules = &self.rules;
        self.by_words.get_or_insert_with(|| {
            let mut by_words: hashbrown::HashMap<Rule, Vec<usize>> = hashbrown::HashMap::new();
            for (place, entry) in rules.iter().enumerate() {
                if let Some(entry) = entry {
                    by_words.entry(entry.rule).or_default().push(place);
                }
            }
            by_words
        })
    }

    /// Builds what has changed, and shares the rest.
    fn finish(self, before: &RuleSet) -> Result<RuleSet, TransactionError> {
        let Self { policy, revision, next_number, .. } = self;
        let mut set = RuleSet { policy, revision, next_number, ..before.clone() };
        let Changed { rules, v4, v6 } = self.changed;
        if rules {
            let rules: Vec<Entry> = self.rules.into_iter().flatten().collect();
            let most = set.limits.memory_bytes;
            let refused = |needs| TransactionError::Memory { needs, most };
            if v4 {
                set.v4 =
                    Arc::new(Plane::new(&rectangles(&rules, Span::v4), most).map_err(refused)?);
            }
            if v6 {
                set.v6 =
                    Arc::new(Plane::new(&rectangles(&rules, Span::v6), most).map_err(refused)?);
            }
            set.rules = Arc::new(rules);
        }
        if self.bans_changed {
            let mut bans: Vec<Banned> =
                self.bans.into_iter().map(|(span, revision)| Banned { span, revision }).collect();
            // Whatever order the table had; of several bans the latest explains.
            bans.sort_unstable_by_key(|ban| (ban.revision, ban.span));
            set.banned_v4 = Arc::new(Bans::new(&bans, Span::v4));
            set.banned_v6 = Arc::new(Bans::new(&bans, Span::v6));
            set.bans = Arc::new(bans);
        }
        Ok(set)
    }
}

fn rectangles<A: Number>(
    rules: &[Entry],
    numbers: impl Fn(&Span) -> Option<(A, A)>,
) -> Vec<Rectangle<A>> {
    let rules = (0..).zip(rules);
    rules
        .filter_map(|(value, Entry { rule, .. })| {
            Some(Rectangle { from: numbers(&rule.from)?, to: numbers(&rule.to)?, value })
        })
        .collect()
}

/// The bans of a family.
#[derive(Debug)]
struct Bans<A> {
    shelf: Shelf<A>,
    steps: Steps,
}

impl<A: Number> Bans<A> {
    fn new(bans: &[Banned], numbers: impl Fn(&Span) -> Option<(A, A)>) -> Self {
        let spans: Vec<_> = (0..)
            .zip(bans)
            .filter_map(|(value, banned)| {
                numbers(&banned.span).map(|(first, last)| (first, last, value))
            })
            .collect();
        let mut shelf = Shelf::new();
        let steps = shelf.add(&spans);
        shelf.shrink();
        Self { shelf, steps }
    }

    #[inline]
    fn find(&self, source: A) -> Option<u32> {
        Some(self.shelf.value(self.steps, source)).filter(|&ban| ban != NONE)
    }
}
