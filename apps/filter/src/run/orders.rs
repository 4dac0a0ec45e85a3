//! What can be asked of a filter that runs, by a word and a text.
//!
//! | word | text | what happens | answer |
//! |---|---|---|---|
//! | `apply` | statements | the next revision, or nothing | its number, and what became of bans |
//! | `replace` | statements | the same, in place of all rules and bans | the same |
//! | `check` | statements | nothing | whether `apply` would do, and what there would be |
//! | `check-replace` | statements | nothing | the same of `replace` |
//! | `explain` | source and destination | nothing | the verdict, and why |
//! | `list` | – | nothing | rules and bans, with numbers, revisions and counters |
//! | `dump` | – | nothing | statements that make the same rules again |
//! | `status` | – | nothing | revision and counters, JSON |
//!
//! Invariant: whatever is asked, rules change by whole transactions or not at all.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::{BanCounts, Board, RuleSet, Statement, TransactionError, parse};

use super::census::Census;
use super::report::Standing;

/// Carries out what is asked at the control socket.
#[derive(Clone, Copy)]
pub struct Orders<'a> {
    /// The rules.
    pub board: &'a Board,
    /// The workers' counters.
    pub census: &'a Census,
}

/// What came of an order.
#[derive(Debug)]
pub enum Done {
    /// A revision was made. It holds once [`Board::passed`] says so.
    Made {
        /// Its number.
        revision: u64,
        /// What its statements did to bans.
        bans: BanCounts,
    },
    /// An answer.
    Said(String),
    /// It is about counters, which the workers tell: [`Census::answer`] has them soon, and [`Orders::say`] puts them
    /// into words.
    Counters {
        /// The question for the census.
        question: u64,
        /// Whether rules are to be listed.
        list: bool,
    },
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// No such word.
    #[error(
        "there is no order {0:?}; there are apply, replace, check, check-replace, explain, list, dump, status"
    )]
    Unknown(String),
    /// The transaction was refused.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// Not two addresses.
    #[error("{0:?} is no source and destination, as in 192.0.2.1 192.0.2.2")]
    Addresses(String),
}

impl Orders<'_> {
    /// Carries out an order.
    pub fn carry_out(&self, word: &str, text: &str) -> Result<Done, OrderError> {
        let change = |replace| move |set: &RuleSet| transact(set, text, replace);
        match word {
            "apply" => self.make(change(false)),
            "replace" => self.make(change(true)),
            "check" => Ok(Done::Said(would_be(&change(false)(&self.board.newest())?))),
            "check-replace" => Ok(Done::Said(would_be(&change(true)(&self.board.newest())?))),
            "dump" => Ok(Done::Said(self.board.newest().to_string())),
            "list" => Ok(Done::Counters { question: self.census.ask(), list: true }),
            "status" => Ok(Done::Counters { question: self.census.ask(), list: false }),
            "explain" => {
                let (source, destination) =
                    pair(text).ok_or_else(|| OrderError::Addresses(text.trim().to_owned()))?;
                Ok(Done::Said(self.board.newest().explain(source, destination) + "\n"))
            }
            _ => Err(OrderError::Unknown(word.to_owned())),
        }
    }

    fn make(
        &self,
        change: impl FnOnce(&RuleSet) -> Result<RuleSet, TransactionError>,
    ) -> Result<Done, OrderError> {
        let mut bans = BanCounts::default();
        let revision = self.board.transact(|set| {
            let next = change(set)?;
            bans = next.ban_counts();
            Ok::<_, TransactionError>(next)
        })?;
        Ok(Done::Made { revision, bans })
    }

    /// Counters in words: a list of all rules and bans, or JSON.
    pub fn say(&self, standing: &Standing, list: bool) -> String {
        if !list {
            return serde_json::to_string_pretty(standing).unwrap_or_default() + "\n";
        }
        let set = self.board.newest();
        let counted: HashMap<u64, u64> =
            standing.rules.counters.iter().map(|row| (row.rule, row.packets)).collect();
        let mut text =
            format!("revision {}, {}\n", set.revision(), Statement::Default(set.policy()));
        for entry in set.rules() {
            let packets = counted.get(&entry.number).copied().unwrap_or(0);
            let _ = writeln!(
                text,
                "rule {} of revision {}: {}; packets: {packets}",
                entry.number, entry.revision, entry.rule
            );
        }
        for ban in set.bans() {
            let _ = writeln!(text, "ban of revision {}: {}", ban.revision, ban.span);
        }
        let (banned, default) = (standing.rules.banned_packets, standing.rules.default_packets);
        let _ = writeln!(text, "packets: {banned} by bans, {default} by no rule");
        text
    }
}

fn transact(set: &RuleSet, text: &str, replace: bool) -> Result<RuleSet, TransactionError> {
    let mut statements = parse(text)?;
    if replace {
        statements.insert(0, (0, Statement::Clear));
    }
    set.apply(&statements)
}

/// A line about what became of bans, if a statement was about them.
pub fn bans_line(bans: &BanCounts) -> String {
    if *bans == BanCounts::default() { String::new() } else { format!("{bans}\n") }
}

fn would_be(set: &RuleSet) -> String {
    format!(
        "revision {} would have {} rules, {} bans, {} bytes for look-ups\n{}",
        set.revision(),
        set.rules().len(),
        set.ban_count(),
        set.memory_bytes(),
        bans_line(&set.ban_counts()),
    )
}

fn pair(text: &str) -> Option<(IpAddr, IpAddr)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    let pair = (words.next()??, words.next()??);
    words.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use crate::Limits;
    use crate::Policy;

    use super::*;

    #[test]
    fn orders_change_all_or_nothing_and_say_why() {
        let board = Board::new(RuleSet::new(Policy::Deny, Limits::default()), 1);
        let census = Census::new(1);
        let orders = Orders { board: &board, census: &census };
        let said = |word, text| match orders.carry_out(word, text) {
            Ok(Done::Said(text)) => text,
            Ok(Done::Made { revision, bans }) => {
                format!("made {revision} {bans}").trim_end().to_owned()
            }
            Ok(Done::Counters { .. }) => "counters".into(),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            said("apply", "allow from 10.0.0.0/8\nban 10.0.0.7"),
            "made 1 1 banned, 0 already banned"
        );
        assert_eq!(
            said("apply", "allow\nbann 10.0.0.8").split(';').next(),
            Some("line 2: \"bann\" is no statement")
        );
        assert_eq!(
            said("explain", "10.0.0.7 10.1.1.1"),
            "dropped: 10.0.0.7 banned at revision 1\n"
        );
        assert_eq!(
            said("check-replace", "allow to ::1").split(',').next(),
            Some("revision 2 would have 1 rules")
        );
        let again = said("check", "ban 10.0.0.7\nban 10.0.0.8\nban 10.0.0.8");
        assert!(again.starts_with("revision 2 would have 1 rules, 2 bans, "), "{again}");
        assert!(again.ends_with("\n1 banned, 2 already banned\n"), "{again}");
        let dump = said("dump", "");
        assert_eq!(said("replace", "default allow"), "made 2");
        assert_eq!(board.newest().rules().len() + board.newest().ban_count(), 0);
        // A line of its own for what was put in front would shift those of errors.
        assert_eq!(
            said("replace", "\nremove allow"),
            "line 2: there is no \"allow from any to any\""
        );
        assert_eq!(said("apply", &dump), "made 3 1 banned, 0 already banned");
        assert_eq!(said("apply", "unban ::1"), "made 4 0 unbanned, 1 not banned");
        assert_eq!(
            said("explain", "10.0.0.8 10.1.1.1"),
            "accepted: rule 2 of revision 3: allow from 10.0.0.0/8 to any\n"
        );
        for text in ["", "10.0.0.1", "10.0.0.1 x", "10.0.0.1 10.0.0.2 10.0.0.3"] {
            assert!(orders.carry_out("explain", text).is_err());
        }
        assert!(said("reboot", "").starts_with("there is no order \"reboot\""));
    }
}
