//! Requests to a running filter, each a word and a text.
//!
//! | word | text | effect | answer |
//! |---|---|---|---|
//! | `apply` | statements | the next revision, or nothing | its number, and the results for bans |
//! | `replace` | statements | the same, replacing all rules and bans | the same |
//! | `check` | statements | nothing | whether `apply` would succeed, and the result |
//! | `check-replace` | statements | nothing | the same for `replace` |
//! | `explain` | source and destination | nothing | the verdict, and why |
//! | `list` | – | nothing | rules and bans, with numbers, revisions and counters |
//! | `dump` | – | nothing | statements that restore the rules |
//! | `status` | – | nothing | revision and counters, JSON |
//!
//! Invariant: rules change by whole transactions or not at all.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::{BanCounts, RulePublisher, RuleSet, Statement, TransactionError, parse};
use ringtap_base::text::json_document;

use super::report::FilterStats;
use super::snapshot::StatsSnapshot;

/// Executes requests of the control socket.
#[derive(Clone, Copy)]
pub struct Requests<'a> {
    /// The rules.
    pub publisher: &'a RulePublisher,
    /// The workers' counters.
    pub snapshot: &'a StatsSnapshot,
}

/// The result of a request.
#[derive(Debug)]
pub enum Done {
    /// A revision was made. All workers use it once [`RulePublisher::passed`] returns it.
    Changed {
        /// Its number.
        revision: u64,
        /// The results of its statements for bans.
        bans: BanCounts,
    },
    /// An answer.
    Text(String),
    /// A request for counters, which the workers provide: [`StatsSnapshot::reply`] returns them
    /// soon, and [`Requests::format_stats`] formats them.
    Counters {
        /// The number of the snapshot request.
        request: u64,
        /// Whether to list rules.
        list: bool,
    },
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// An unknown word.
    #[error(
        "unknown request {0:?}: use apply, replace, check, check-replace, explain, list, dump or status"
    )]
    Unknown(String),
    /// The transaction was refused.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// Not two addresses.
    #[error("invalid source and destination {0:?}: use two addresses, as in 192.0.2.1 192.0.2.2")]
    Addresses(String),
}

impl Requests<'_> {
    /// Executes a request.
    pub fn execute(&self, word: &str, text: &str) -> Result<Done, RequestError> {
        let change = |replace| move |set: &RuleSet| transact(set, text, replace);
        match word {
            "apply" => self.make(change(false)),
            "replace" => self.make(change(true)),
            "check" => Ok(Done::Text(would_be(&change(false)(&self.publisher.newest())?))),
            "check-replace" => Ok(Done::Text(would_be(&change(true)(&self.publisher.newest())?))),
            "dump" => Ok(Done::Text(self.publisher.newest().to_string())),
            "list" => Ok(Done::Counters { request: self.snapshot.request(), list: true }),
            "status" => Ok(Done::Counters { request: self.snapshot.request(), list: false }),
            "explain" => {
                let (source, destination) =
                    pair(text).ok_or_else(|| RequestError::Addresses(text.trim().to_owned()))?;
                Ok(Done::Text(self.publisher.newest().explain(source, destination) + "\n"))
            }
            _ => Err(RequestError::Unknown(word.to_owned())),
        }
    }

    fn make(
        &self,
        change: impl FnOnce(&RuleSet) -> Result<RuleSet, TransactionError>,
    ) -> Result<Done, RequestError> {
        let mut bans = BanCounts::default();
        let revision = self.publisher.transact(|set| {
            let next = change(set)?;
            bans = next.ban_counts();
            Ok::<_, TransactionError>(next)
        })?;
        Ok(Done::Changed { revision, bans })
    }

    /// Counters as text: a list of all rules and bans, or JSON.
    pub fn format_stats(&self, stats: &FilterStats, list: bool) -> String {
        if !list {
            return json_document(serde_json::to_string_pretty(stats).unwrap_or_default()) + "\n";
        }
        let set = self.publisher.newest();
        let counted: HashMap<u64, u64> =
            stats.rules.counters.iter().map(|row| (row.rule, row.packets)).collect();
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
        let (banned, default) = (stats.rules.banned_packets, stats.rules.default_packets);
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

/// A line with the results for bans, if there was such a statement.
pub fn bans_line(bans: &BanCounts) -> String {
    if *bans == BanCounts::default() { String::new() } else { format!("{bans}\n") }
}

fn would_be(set: &RuleSet) -> String {
    format!(
        "revision {} would have {} rules, {} bans, {} bytes for look-ups\n{}",
        set.revision(),
        set.rule_count(),
        set.ban_count(),
        set.memory_bytes(),
        bans_line(&set.ban_counts()),
    )
}

fn pair(text: &str) -> Option<(IpAddr, IpAddr)> {
    let mut words = text.split_whitespace().map(ringtap_base::parse_address);
    let pair = (words.next()??, words.next()??);
    words.next().is_none().then_some(pair)
}

#[cfg(test)]
mod tests {
    use crate::Limits;
    use crate::Policy;

    use super::*;

    #[test]
    fn a_request_changes_all_or_nothing_and_errors_have_reasons() {
        let publisher = RulePublisher::new(RuleSet::new(Policy::Deny, Limits::default()), 1);
        let snapshot = StatsSnapshot::new(1);
        let requests = Requests { publisher: &publisher, snapshot: &snapshot };
        let answer = |word, text| match requests.execute(word, text) {
            Ok(Done::Text(text)) => text,
            Ok(Done::Changed { revision, bans }) => {
                format!("made {revision} {bans}").trim_end().to_owned()
            }
            Ok(Done::Counters { .. }) => "counters".into(),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            answer("apply", "allow from 10.0.0.0/8\nban 10.0.0.7"),
            "made 1 1 banned, 0 already banned"
        );
        assert!(
            answer("apply", "allow\nbann 10.0.0.8")
                .starts_with("line 2: unknown statement \"bann\": ")
        );
        assert_eq!(
            answer("explain", "10.0.0.7 10.1.1.1"),
            "dropped: 10.0.0.7 banned at revision 1\n"
        );
        assert_eq!(
            answer("check-replace", "allow to ::1").split(',').next(),
            Some("revision 2 would have 1 rules")
        );
        let again = answer("check", "ban 10.0.0.7\nban 10.0.0.8\nban 10.0.0.8");
        assert!(again.starts_with("revision 2 would have 1 rules, 2 bans, "), "{again}");
        assert!(again.ends_with("\n1 banned, 2 already banned\n"), "{again}");
        let dump = answer("dump", "");
        assert_eq!(answer("replace", "default allow"), "made 2");
        assert_eq!(publisher.newest().rule_count() + publisher.newest().ban_count(), 0);
        // A separate line put in front would shift the lines of errors.
        assert_eq!(
            answer("replace", "\nremove allow"),
            "line 2: no such rule \"allow from any to any\""
        );
        assert_eq!(answer("apply", &dump), "made 3 1 banned, 0 already banned");
        assert_eq!(answer("apply", "unban ::1"), "made 4 0 unbanned, 1 not banned");
        assert_eq!(
            answer("explain", "10.0.0.8 10.1.1.1"),
            "accepted: rule 2 of revision 3: allow from 10.0.0.0/8 to any\n"
        );
        for text in ["", "10.0.0.1", "10.0.0.1 x", "10.0.0.1 10.0.0.2 10.0.0.3"] {
            assert!(requests.execute("explain", text).is_err());
        }
        assert!(answer("reboot", "").starts_with("unknown request \"reboot\""));
    }
}
