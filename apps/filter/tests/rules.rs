//! Rules against a plain reading of them, transactions, dumps, and changes in the stream.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use ringtap_filter::Policy;
use ringtap_filter::rules::{
    Announced, Board, Counters, Limits, Reader, Reason, Rule, RuleSet, Span, Statement,
    TransactionError, parse,
};

fn empty() -> RuleSet {
    RuleSet::new(Policy::Deny, Limits::default())
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// What the words say, read from the last to the first.
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
                rules.remove(place.expect("only what stands is removed"));
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

/// Addresses that meet often: 40 of each family, at either end and in the middle of its space.
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
                    rules.remove(place.expect("it was drawn from these"));
                    Statement::Remove(rule)
                }
                6..=7 if from != Span::Any && !bans.contains(&from) => {
                    bans.push(from);
                    Statement::Ban(from)
                }
                8 if !bans.is_empty() => {
                    Statement::Unban(bans.swap_remove(which.index(bans.len())))
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
    fn rules_are_what_a_plain_reading_says(statements in statements(), cut in any::<prop::sample::Index>()) {
        let numbered: Vec<_> = (1..).zip(statements.iter().copied()).collect();
        // In two transactions, so that a part is kept and a part built anew.
        let (first, second) = numbered.split_at(cut.index(numbered.len() + 1));
        let set = empty().apply(first).unwrap().apply(second).unwrap();
        let words: String = statements.iter().map(|statement| format!("{statement}\n")).collect();
        let read = empty().transact(&words).unwrap();
        let dumped = empty().transact(&set.to_string()).unwrap();
        prop_assert_eq!(set.revision(), 2);
        for (v6, from, to) in [false, true].into_iter().flat_map(|v6| {
            (0..40).flat_map(move |from| (0..40).map(move |to| (v6, from, to)))
        }) {
            let (source, destination) = (address(v6, from), address(v6, to));
            let expected = naive(&statements, source, destination);
            for set in [&set, &read, &dumped] {
                let passed = set.verdict(source, destination).passed;
                prop_assert_eq!(passed, expected, "{} → {}", source, destination);
            }
        }
    }
}

#[test]
fn a_transaction_is_all_or_nothing() {
    let set = empty().transact("allow from 10.0.0.0/8\nban 10.0.0.7").unwrap();
    for (text, why) in [
        (
            "deny from 10.1.0.0/16\nremove deny from ::/0",
            "line 2: there is no \"deny from ::/0 to any\"",
        ),
        ("ban 10.0.0.8\n\nban 10.0.0.7", "line 3: 10.0.0.7 is banned since revision 1"),
        ("unban 10.0.0.9", "line 1: there is no \"ban 10.0.0.9\""),
        ("allow\nallow frm ::1", "line 2: \"frm\" was not expected"),
    ] {
        assert_eq!(set.transact(text).unwrap_err().to_string(), why);
    }
    assert_eq!((set.revision(), set.rules().len(), set.bans().len()), (1, 1, 1));
    let again = set.transact("remove allow from 10.0.0.0/8\nallow from 10.0.0.0/8").unwrap();
    assert_eq!(again.rules()[0].number, 2, "another rule, though of the same words");
    let next = set.transact("clear\ndefault allow").unwrap();
    assert_eq!((next.revision(), next.rules().len(), next.bans().len()), (2, 0, 0));
    assert_eq!(
        set.to_string(),
        "# revision 1\nclear\ndefault deny\nallow from 10.0.0.0/8 to any\nban 10.0.0.7\n"
    );
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
fn what_is_too_large_is_refused() {
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

#[test]
fn a_change_takes_effect_at_its_mark_in_every_worker() {
    let board = Board::new(empty(), 2);
    let mut announced = Announced::new(&board);
    let mut readers = [Reader::new(&board, 0), Reader::new(&board, 1)];
    let pass = |reader: &Reader| reader.rules().verdict(ip("10.0.0.1"), ip("10.0.0.2")).passed;
    assert_eq!(announced.next(&board, 0), None);
    assert_eq!(board.transact(|set| set.transact("allow")), Ok(1));
    assert_eq!(board.transact(|set| set.transact("ban 10.0.0.1")), Ok(2));
    assert!(board.transact(|set| set.transact("ban 10.0.0.1")).is_err());
    let marks: Vec<_> = std::iter::from_fn(|| announced.next(&board, 5)).collect();
    assert_eq!(marks.len(), 2);
    assert!(!pass(&readers[0]) && board.passed() == 0);
    assert_eq!(readers[0].on_mark(&board, &marks[0]).unwrap().revision(), 0);
    assert!(pass(&readers[0]) && !pass(&readers[1]) && board.passed() == 0);
    readers[0].on_mark(&board, &marks[1]);
    readers[1].on_mark(&board, &marks[0]);
    assert!(!pass(&readers[0]) && pass(&readers[1]) && board.passed() == 1);
    readers[1].on_mark(&board, &marks[1]);
    assert!(!pass(&readers[1]) && board.passed() == 2);
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
