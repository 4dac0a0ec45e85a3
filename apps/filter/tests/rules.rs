//! Rules against a direct interpretation, transactions, dumps, and changes in the stream.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use ringtap_filter::{
    BanCounts, Counters, Limits, Policy, Reader, Reason, Rule, RulePublisher, RuleSet, Span,
    Statement, TransactionError, parse,
};

fn empty() -> RuleSet {
    RuleSet::new(Policy::Deny, Limits::default())
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The verdict by a search from the last statement to the first.
fn naive(statements: &[Statement], source: IpAddr, destination: IpAddr) -> bool {
    let mut policy = Policy::Deny;
    let mut rules: Vec<Rule> = Vec::new();
    let mut bans: Vec<Span> = Vec::new();
    for statement in statements {
        match statement {
            Statement::Default(default) => policy = *default,
            Statement::Add(rule) => rules.push(*rule),
            Statement::Remove(rule) => {
                let place = rules.iter().rposition(|other| other == rule);
                rules.remove(place.expect("only existing rules are removed"));
            }
            Statement::Ban(span) => bans.push(*span),
            Statement::Unban(span) => bans.retain(|other| other != span),
            Statement::Clear => {
                rules.clear();
                bans.clear();
            }
        }
    }
    let about = |rule: &&Rule| rule.from.contains(source) && rule.to.contains(destination);
    !bans.iter().any(|ban| ban.contains(source))
        && rules.iter().rfind(about).map_or(policy == Policy::Allow, |rule| rule.allow)
}

/// Addresses that often coincide: 40 of each family, at either end and in the middle of its space.
fn address(v6: bool, at: u8) -> IpAddr {
    let at = at % 40;
    let (area, low) = (at / 10, u128::from(at % 10));
    let v6_base = [0, 0x2001_0db8 << 96, 1 << 64, u128::MAX - 9][usize::from(area % 4)];
    let v4_base = [0, 0x0a00_0000, 0xc000_0200, u32::MAX - 9][usize::from(area % 4)];
    if v6 {
        Ipv6Addr::from_bits(v6_base + low).into()
    } else {
        Ipv4Addr::from_bits(v4_base + low as u32).into()
    }
}

fn span() -> impl Strategy<Value = (u8, u8, u8)> {
    (0..4u8, any::<u8>(), any::<u8>())
}

fn to_span(v6: bool, (kind, a, b): (u8, u8, u8)) -> Span {
    let (a, b) = (address(v6, a), address(v6, b));
    let (first, last) = (a.min(b), a.max(b));
    match (kind, first, last) {
        (0, ..) => Span::Any,
        (1, first, _) => Span::from(first),
        (_, IpAddr::V4(first), IpAddr::V4(last)) => Span::V4(first, last),
        (_, IpAddr::V6(first), IpAddr::V6(last)) => Span::V6(first, last),
        _ => Span::Any,
    }
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let one = (0..20u8, any::<bool>(), any::<bool>(), span(), span(), any::<prop::sample::Index>());
    prop::collection::vec(one, 0..40).prop_map(|drawn| {
        let mut statements = Vec::new();
        let (mut rules, mut bans): (Vec<Rule>, Vec<Span>) = (Vec::new(), Vec::new());
        for (kind, v6, allow, from, to, which) in drawn {
            let (from, to) = (to_span(v6, from), to_span(v6, to));
            statements.push(match kind {
                0 if allow => Statement::Default(Policy::Allow),
                0 => Statement::Default(Policy::Deny),
                1 => {
                    rules.clear();
                    bans.clear();
                    Statement::Clear
                }
                2..=5 if !rules.is_empty() => {
                    let rule = *which.get(&rules);
                    let place = rules.iter().rposition(|other| *other == rule);
                    rules.remove(place.expect("drawn from the existing rules"));
                    Statement::Remove(rule)
                }
                6..=7 if from != Span::Any => {
                    // Some are banned already.
                    bans.push(from);
                    Statement::Ban(from)
                }
                8 if !bans.is_empty() => {
                    // Some are not banned.
                    Statement::Unban(bans[which.index(bans.len())])
                }
                _ => {
                    rules.push(Rule { allow, from, to });
                    Statement::Add(Rule { allow, from, to })
                }
            });
        }
        statements
    })
}

proptest! {
    #[test]
    fn rules_equal_a_direct_interpretation(statements in statements(), cut in any::<prop::sample::Index>()) {
        let numbered: Vec<_> = (1..).zip(statements.iter().copied()).collect();
        // In two transactions, so that a part is kept and a part is rebuilt.
        let (first, second) = numbered.split_at(cut.index(numbered.len() + 1));
        let set = empty().apply(first).unwrap().apply(second).unwrap();
        // One by one, so that there are levels of all sizes.
        let single = numbered.chunks(1).fold(empty(), |set, one| set.apply(one).unwrap());
        let words: String = statements.iter().map(|statement| format!("{statement}\n")).collect();
        let read = empty().transact(&words).unwrap();
        let dumped = empty().transact(&set.to_string()).unwrap();
        prop_assert_eq!(set.revision(), 2);
        for (v6, from, to) in [false, true].into_iter().flat_map(|v6| {
            (0..40).flat_map(move |from| (0..40).map(move |to| (v6, from, to)))
        }) {
            let (source, destination) = (address(v6, from), address(v6, to));
            let expected = naive(&statements, source, destination);
            for set in [&set, &single, &read, &dumped] {
                let passed = set.verdict(source, destination).passed;
                prop_assert_eq!(passed, expected, "{} → {}", source, destination);
            }
        }
    }
}

const BANN: &str =
    "line 3: unknown statement \"bann\": use default, allow, deny, remove, ban, unban or clear";

#[test]
fn a_transaction_is_all_or_nothing() {
    let set = empty().transact("allow from 10.0.0.0/8\nban 10.0.0.7").unwrap();
    for (text, why) in [
        (
            "deny from 10.1.0.0/16\nremove deny from ::/0",
            "line 2: no such rule \"deny from ::/0 to any\"",
        ),
        ("ban 10.0.0.8\n\nbann 10.0.0.9", BANN),
        ("allow\nallow frm ::1", "line 2: unexpected \"frm\""),
    ] {
        assert_eq!(set.transact(text).unwrap_err().to_string(), why);
    }
    assert_eq!((set.revision(), set.rule_count(), set.bans().len()), (1, 1, 1));
    let again = set.transact("remove allow from 10.0.0.0/8\nallow from 10.0.0.0/8").unwrap();
    assert_eq!(again.rules().next().unwrap().number, 2, "a new rule with the same text");
    let next = set.transact("clear\ndefault allow").unwrap();
    assert_eq!((next.revision(), next.rule_count(), next.bans().len()), (2, 0, 0));
    assert_eq!(
        set.to_string(),
        "# revision 1\nclear\ndefault deny\nallow from 10.0.0.0/8 to any\nban 10.0.0.7\n"
    );
}

#[test]
fn repeated_bans_and_unbans_change_nothing() {
    let counts = |banned, already_banned, unbanned, not_banned| BanCounts {
        banned,
        already_banned,
        unbanned,
        not_banned,
    };
    let set = empty().transact("ban 10.0.0.7\nban 10.0.0.8\nban 10.0.0.7").unwrap();
    assert_eq!(set.ban_counts(), counts(2, 1, 0, 0));
    assert_eq!(set.ban_counts().to_string(), "2 banned, 1 already banned");
    let set = set.transact("ban 10.0.0.7\nunban ::1").unwrap();
    assert_eq!(
        set.ban_counts().to_string(),
        "0 banned, 1 already banned, 0 unbanned, 1 not banned"
    );
    // The older ban stays.
    assert_eq!((set.revision(), set.bans()[0].revision, set.ban_count()), (2, 1, 2));
    let set = set.transact("unban 10.0.0.7\nunban 10.0.0.7\nban 10.0.0.7").unwrap();
    assert_eq!(set.ban_counts(), counts(1, 0, 1, 1));
    assert_eq!((set.bans()[1].revision, set.ban_count()), (3, 2));
    // The text counts, not the addresses.
    let set = set.transact("ban 10.0.0.0/24\nunban 10.0.0.9\nban 10.0.0.7/32").unwrap();
    assert_eq!(set.ban_counts(), counts(1, 1, 0, 1));
    let set = set.transact("clear\nban 10.0.0.7").unwrap();
    assert_eq!((set.ban_counts(), set.ban_count()), (counts(1, 0, 0, 0), 1));
    assert_eq!(set.transact("default allow").unwrap().ban_counts().to_string(), "");
}

/// A generator of numbers (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.roll() % most
    }

    /// An address of 32 or 128 bits: near the ends of the space, in a small network, or anywhere.
    fn bits(&mut self, v6: bool) -> u128 {
        let (small, wide) = (u128::from(self.below(2_000)), self.roll());
        let any = u128::from(wide) << 64 | u128::from(self.roll());
        let bits = match self.below(5) {
            0 => small,
            1 => u128::MAX - small,
            2..=3 => 0x2001_0db8_u128 << 96 | 0x0a00_0000 | small,
            _ => any,
        };
        if v6 { bits } else { u128::from(bits as u32) }
    }

    /// A prefix of any length, or a range, or an address.
    fn span(&mut self) -> Span {
        let v6 = self.below(3) == 0;
        let (a, b) = (self.bits(v6), self.bits(v6));
        let width = if v6 { 128 } else { 32 };
        let length = self.below(width + 1) as u32;
        let (first, last) = match self.below(40) {
            0 => return Span::Any,
            1..=2 => (a.min(b), a.max(b)),
            3..=12 => (a, a),
            13..=20 => {
                (a, a.saturating_add(u128::from(self.below(9))).min(u128::MAX >> (128 - width)))
            }
            _ => {
                let hosts = (u128::MAX >> (128 - width)).checked_shr(length).unwrap_or(0);
                (a & !hosts, a | hosts)
            }
        };
        if v6 {
            Span::V6(Ipv6Addr::from_bits(first), Ipv6Addr::from_bits(last))
        } else {
            Span::V4(Ipv4Addr::from_bits(first as u32), Ipv4Addr::from_bits(last as u32))
        }
    }
}

/// Rules and bans as plain lists.
#[derive(Clone, Default)]
struct Plain {
    rules: Vec<Rule>,
    /// Each with the revision that added it.
    bans: Vec<(u64, Span)>,
    counts: BanCounts,
}

impl Plain {
    fn take(&mut self, revision: u64, statement: &Statement) {
        match *statement {
            Statement::Default(_) => {}
            Statement::Add(rule) => self.rules.push(rule),
            Statement::Remove(rule) => {
                let place = self.rules.iter().rposition(|other| *other == rule);
                self.rules.remove(place.expect("only existing rules are removed"));
            }
            Statement::Ban(span) if self.bans.iter().any(|ban| ban.1 == span) => {
                self.counts.already_banned += 1;
            }
            Statement::Ban(span) => {
                self.bans.push((revision, span));
                self.counts.banned += 1;
            }
            Statement::Unban(span) => {
                let before = self.bans.len();
                self.bans.retain(|ban| ban.1 != span);
                let gone = self.bans.len() < before;
                self.counts.unbanned += u64::from(gone);
                self.counts.not_banned += u64::from(!gone);
            }
            Statement::Clear => {
                self.rules.clear();
                self.bans.clear();
            }
        }
    }

    fn passes(&self, source: IpAddr, destination: IpAddr) -> bool {
        let about = |rule: &&Rule| rule.from.contains(source) && rule.to.contains(destination);
        self.latest_ban(source).is_none()
            && self.rules.iter().rfind(about).is_none_or(|rule| rule.allow)
    }

    fn latest_ban(&self, source: IpAddr) -> Option<(u64, Span)> {
        self.bans.iter().filter(|ban| ban.1.contains(source)).max().copied()
    }

    /// Compares a revision with this: its bans, and its verdicts at the edges of some of them and
    /// elsewhere.
    fn check(&self, set: &RuleSet, dice: &mut Dice) {
        let mut bans = self.bans.clone();
        bans.sort_unstable();
        let found: Vec<_> = set.bans().iter().map(|ban| (ban.revision, ban.span)).collect();
        assert_eq!(found, bans);
        assert_eq!(set.ban_count(), bans.len());
        for _ in 0..40 {
            let span = match self.bans.len() as u64 {
                0 => dice.span(),
                len => self.bans[dice.below(len) as usize].1,
            };
            let near = |first: u128, last: u128, end: u128| {
                [
                    first,
                    last,
                    first.saturating_sub(1),
                    last.saturating_add(1).min(end),
                    first / 2 + end / 2,
                ]
            };
            let ends: Vec<IpAddr> = match span {
                Span::Any => vec![ip("0.0.0.0"), ip("255.255.255.255"), ip("::"), ip("ffff::")],
                Span::V4(first, last) => {
                    near(first.to_bits().into(), last.to_bits().into(), u32::MAX.into())
                        .map(|at| Ipv4Addr::from_bits(at as u32).into())
                        .into()
                }
                Span::V6(first, last) => near(first.to_bits(), last.to_bits(), u128::MAX)
                    .map(|at| Ipv6Addr::from_bits(at).into())
                    .into(),
            };
            let v6 = dice.below(2) == 0;
            let other = dice.bits(v6);
            let elsewhere: IpAddr = match v6 {
                true => Ipv6Addr::from_bits(other).into(),
                false => Ipv4Addr::from_bits(other as u32).into(),
            };
            for source in ends.into_iter().chain([elsewhere]) {
                let low = dice.below(2_000) as u32;
                let destination: IpAddr = match source {
                    IpAddr::V4(_) => Ipv4Addr::from_bits(low).into(),
                    IpAddr::V6(_) => Ipv6Addr::from_bits(low.into()).into(),
                };
                let passed = set.verdict(source, destination).passed;
                assert_eq!(passed, self.passes(source, destination), "{source} → {destination}");
                let explanation = set.explain(source, destination);
                match self.latest_ban(source) {
                    None => assert!(!explanation.contains("banned"), "{explanation}"),
                    Some((revision, span)) if span == Span::from(source) => {
                        assert_eq!(
                            explanation,
                            format!("dropped: {source} banned at revision {revision}")
                        );
                    }
                    Some((revision, span)) => assert_eq!(
                        explanation,
                        format!("dropped: {source} banned by {span} at revision {revision}")
                    ),
                }
            }
        }
    }
}

/// Many transactions, most of them small, over some thousand bans, so that blocks are
/// divided and joined.
#[test]
fn long_sequences_of_changes_equal_plain_lists() {
    for seed in 0..3 {
        let dice = &mut Dice(seed);
        let mut set = RuleSet::new(Policy::Allow, Limits::default());
        let mut plain = Plain::default();
        // Spans banned at some time, many of them still banned.
        let mut known: Vec<Span> = Vec::new();
        let mut kept = Vec::new();
        for turn in 0..150 {
            plain.counts = BanCounts::default();
            let revision = set.revision() + 1;
            let mut statements = Vec::new();
            if dice.below(80) == 0 {
                statements.push(Statement::Clear);
            }
            let size = [1, 1, 1, 4, 40, 700][dice.below(6) as usize];
            // More bans than unbans, then the reverse.
            let unbans = if turn % 100 < 60 { 3 } else { 8 };
            for _ in 0..size {
                let old = |dice: &mut Dice| known[dice.below(known.len() as u64) as usize];
                statements.push(match dice.below(12) {
                    11 if !known.is_empty() => Statement::Ban(old(dice)),
                    10 => Statement::Unban(dice.span()),
                    kind if kind < unbans && !known.is_empty() => Statement::Unban(old(dice)),
                    _ => {
                        let span = dice.span();
                        known.push(span);
                        Statement::Ban(span)
                    }
                });
            }
            statements.iter().for_each(|statement| plain.take(revision, statement));
            if dice.below(6) == 0 {
                let to = match plain.rules.len() {
                    0..=9 => Span::Any,
                    _ => Span::V4(
                        Ipv4Addr::from_bits(0),
                        Ipv4Addr::from_bits(dice.below(2_000) as u32),
                    ),
                };
                let (from, allow) = (dice.span(), dice.below(2) == 0);
                let rule = Rule { allow, from, to };
                let both = |span: &Span| matches!(span, Span::V6(..)) && to != Span::Any;
                let statement = match plain.rules.first() {
                    Some(first) if dice.below(2) == 0 => Statement::Remove(*first),
                    _ if both(&from) => Statement::Default(Policy::Allow),
                    _ => Statement::Add(rule),
                };
                plain.take(revision, &statement);
                statements.push(statement);
            }
            let numbered: Vec<_> = (1..).zip(statements).collect();
            set = set.apply(&numbered).unwrap();
            assert_eq!(set.ban_counts(), plain.counts);
            plain.check(&set, dice);
            if turn % 25 == 0 {
                kept.push((set.clone(), plain.clone()));
            }
        }
        // Earlier revisions are unchanged.
        for (set, plain) in kept {
            plain.check(&set, dice);
        }
    }
}

/// A large level that shrinks and grows by single statements, compared with plain lists.
#[test]
fn random_changes_of_a_large_set_equal_plain_lists() {
    for seed in 1..=3 {
        let dice = &mut Dice(seed);
        let mut plain = Plain::default();
        let span = |dice: &mut Dice, v6| loop {
            let span = dice.span();
            let is_v6 = matches!(span, Span::V6(..));
            if span == Span::Any || is_v6 == v6 {
                return span;
            }
        };
        let rule = |dice: &mut Dice| {
            let v6 = dice.below(3) == 0;
            Rule { allow: dice.below(2) == 0, from: span(dice, v6), to: span(dice, v6) }
        };
        let first: Vec<_> = (1..3_000).map(|line| (line, Statement::Add(rule(dice)))).collect();
        let mut set = RuleSet::new(Policy::Allow, Limits::default()).apply(&first).unwrap();
        first.iter().for_each(|(_, statement)| plain.take(1, statement));
        let mut counters = Counters::new(&set);
        let mut kept = Vec::new();
        let mut judged = 0;
        for turn in 0..300 {
            plain.counts = BanCounts::default();
            let statements: Vec<_> = (0..=dice.below(3) as usize)
                .map(|line| {
                    let statement = match dice.below(10) {
                        0..=4 => {
                            let at = dice.below(plain.rules.len() as u64) as usize;
                            Statement::Remove(plain.rules[at])
                        }
                        5..=6 => Statement::Add(rule(dice)),
                        7..=8 => Statement::Ban(loop {
                            // Not most addresses.
                            match dice.span() {
                                Span::V4(first, last) if first == last => {
                                    break Span::V4(first, last);
                                }
                                Span::V6(first, last) if first == last => {
                                    break Span::V6(first, last);
                                }
                                _ => {}
                            }
                        }),
                        _ if !plain.bans.is_empty() => Statement::Unban(
                            plain.bans[dice.below(plain.bans.len() as u64) as usize].1,
                        ),
                        _ => Statement::Default(Policy::Allow),
                    };
                    plain.take(set.revision() + 1, &statement);
                    (line, statement)
                })
                .collect();
            let next = set.apply(&statements).unwrap();
            counters.change(&set, &next);
            set = next;
            assert!(set.rules().map(|entry| entry.rule).eq(plain.rules.iter().copied()), "{turn}");
            assert_eq!(set.rule_count(), plain.rules.len());
            plain.check(&set, dice);
            // Within rules that exist and within some that were removed, both at their edges.
            for _ in 0..60 {
                let Rule { from, to, .. } = match dice.below(2) {
                    0 => plain.rules[dice.below(plain.rules.len() as u64) as usize],
                    _ => match first[dice.below(first.len() as u64) as usize].1 {
                        Statement::Add(rule) => rule,
                        _ => continue,
                    },
                };
                let mut within = |span: Span, v6: bool| match span {
                    Span::V4(first, last) => [first, last][dice.below(2) as usize].into(),
                    Span::V6(first, last) => [first, last][dice.below(2) as usize].into(),
                    Span::Any if v6 => ip("2001:db8::1"),
                    Span::Any => ip("192.0.2.1"),
                };
                let v6 = [from, to].iter().any(|span| matches!(span, Span::V6(..)));
                let (source, destination) = (within(from, v6), within(to, v6));
                let verdict = set.verdict(source, destination);
                assert_eq!(
                    verdict.passed,
                    plain.passes(source, destination),
                    "{source} → {destination}"
                );
                counters.count(&verdict);
                judged += 1;
            }
            if turn % 60 == 0 {
                kept.push((set.clone(), plain.clone()));
            }
        }
        let by_rule: u64 = counters.rows(&set).iter().map(|row| row.packets).sum();
        assert_eq!(by_rule + counters.banned() + counters.by_default(), judged);
        // Earlier revisions are unchanged.
        for (set, plain) in kept {
            plain.check(&set, dice);
        }
    }
}

#[test]
fn verdicts_are_explained() {
    let set = empty().transact("allow from 192.0.2.0/24 to 10.0.0.0/8").unwrap();
    let set = set.transact("ban 192.0.2.7\nban 192.0.2.64/26").unwrap();
    let explain = |from, to| set.explain(ip(from), ip(to));
    assert_eq!(explain("192.0.2.7", "10.0.0.1"), "dropped: 192.0.2.7 banned at revision 2");
    assert_eq!(
        explain("192.0.2.70", "10.0.0.1"),
        "dropped: 192.0.2.70 banned by 192.0.2.64/26 at revision 2"
    );
    assert_eq!(
        explain("192.0.2.8", "10.0.0.1"),
        "accepted: rule 1 of revision 1: allow from 192.0.2.0/24 to 10.0.0.0/8"
    );
    assert_eq!(
        explain("192.0.2.8", "11.0.0.1"),
        "dropped: no rule from 192.0.2.8 to 11.0.0.1, default deny"
    );
}

#[test]
fn rules_over_a_limit_are_refused() {
    let limits = Limits { rules: 2, memory_bytes: 1 << 20 };
    let set = RuleSet::new(Policy::Deny, limits);
    let error = set.transact("allow\ndeny\nallow").unwrap_err();
    assert_eq!(error, TransactionError::Many { line: 3, most: 2 });
    let limits = Limits { rules: 100_000, memory_bytes: 1 << 20 };
    let set = RuleSet::new(Policy::Deny, limits);
    let text: String = (0..100_000u32)
        .map(|n| {
            let to = Ipv4Addr::from_bits(n * 7);
            format!("allow from {to} to {to}-{}\n", Ipv4Addr::from_bits(u32::MAX - n))
        })
        .collect();
    let error = set.transact(&text).unwrap_err();
    assert!(matches!(error, TransactionError::Memory { most: 1_048_576, .. }), "{error}");
}

/// A transaction may happen before the workers start.
#[test]
fn a_new_reader_uses_the_newest_revision() {
    let publisher = RulePublisher::new(empty(), 1);
    assert_eq!(publisher.transact(|set| set.transact("ban 10.0.0.1")), Ok(1));
    let reader = Reader::new(&publisher, 0);
    assert_eq!((reader.rules().revision(), publisher.passed()), (1, 1));
}

#[test]
fn counters_follow_their_rules_through_revisions() {
    let first = empty().transact("allow to 10.0.0.1\nallow to 10.0.0.2").unwrap();
    let second = first.transact("remove allow to 10.0.0.1\nban 10.0.0.9").unwrap();
    let mut counters = Counters::new(&first);
    let count = |counters: &mut Counters, set: &RuleSet, from: &str, to: &str| {
        counters.count(&set.verdict(ip(from), ip(to)));
    };
    count(&mut counters, &first, "10.0.0.3", "10.0.0.1");
    count(&mut counters, &first, "10.0.0.3", "10.0.0.2");
    counters.change(&first, &second);
    count(&mut counters, &second, "10.0.0.3", "10.0.0.1");
    count(&mut counters, &second, "10.0.0.3", "10.0.0.2");
    count(&mut counters, &second, "10.0.0.9", "10.0.0.2");
    let mut sum = Counters::new(&first);
    count(&mut sum, &first, "10.0.0.3", "10.0.0.1");
    sum.add(&first, counters, &second);
    let rows: Vec<_> = sum.rows(&first).iter().map(|row| (row.rule, row.packets)).collect();
    assert_eq!(rows, [(1, 2), (2, 2)]);
    assert_eq!((sum.banned(), sum.by_default(), sum.passed(), sum.dropped()), (1, 1, 4, 2));
}

#[test]
fn a_verdict_names_the_latest_rule() {
    let text = "allow from 10.0.0.0/8\ndeny from 10.0.0.0/9\nallow from 10.0.0.1";
    let set = empty().transact(text).unwrap();
    let reason = |from| set.verdict(ip(from), ip("10.9.9.9")).reason;
    assert_eq!(reason("10.0.0.1"), Reason::Rule(2));
    assert_eq!(reason("10.0.0.2"), Reason::Rule(1));
    assert_eq!(reason("10.200.0.1"), Reason::Rule(0));
    assert_eq!(reason("11.0.0.1"), Reason::Default);
    assert_eq!(parse(text).unwrap().len(), 3);
}

#[test]
fn a_change_has_passed_once_every_worker_uses_it() {
    let publisher = RulePublisher::new(empty(), 2);
    let mut readers = [Reader::new(&publisher, 0), Reader::new(&publisher, 1)];
    let pass = |reader: &Reader| reader.rules().verdict(ip("10.0.0.1"), ip("10.0.0.2")).passed;
    assert!(readers[0].renew(&publisher).is_none());
    assert_eq!(publisher.transact(|set| set.transact("allow")), Ok(1));
    assert_eq!(readers[0].renew(&publisher).unwrap().revision(), 0);
    assert!(pass(&readers[0]) && !pass(&readers[1]) && publisher.passed() == 0);
    assert_eq!(publisher.transact(|set| set.transact("ban 10.0.0.1")), Ok(2));
    assert!(publisher.transact(|set| set.transact("bann 10.0.0.1")).is_err());
    assert!(readers[1].renew(&publisher).is_some());
    assert!(pass(&readers[0]) && !pass(&readers[1]) && publisher.passed() == 1);
    assert!(readers[0].renew(&publisher).is_some());
    assert!(!pass(&readers[0]) && publisher.passed() == 2);
}
