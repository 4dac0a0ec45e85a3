//! What a run of the filter was to do, and what it did.

use std::collections::BTreeMap;

use crate::Policy;
use crate::RuleSet;
use ringtap_base::{Ledger, Stage, Usage};
use ringtap_io::capture::{Notice, Severity};
use ringtap_skeleton::Skeleton;
use serde::{Serialize, Serializer};

use super::judge::NotIp;
use super::tally::{Changes, Tally};
use ringtap_engine::{Books, Performance};

/// What shall run; a value that can be printed.
#[derive(Clone, Debug, Serialize)]
pub struct FilterPlan {
    /// The captures or the interface.
    pub source: Vec<String>,
    /// Where what passes goes.
    pub output: Option<String>,
    /// Where what does not pass goes.
    pub drops: Option<String>,
    /// What happens to frames that are not IP.
    pub not_ip: NotIp,
    /// The reference (one thread) or the farm; of interfaces, a worker a queue (multi-queue).
    #[serde(serialize_with = "name")]
    pub skeleton: Skeleton,
    /// Threads that judge.
    pub workers: usize,
    /// The port of control packets.
    pub control_port: Option<u16>,
    /// Whether a digest of all verdicts is made.
    pub digest: bool,
}

fn name<S: Serializer>(skeleton: &Skeleton, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(skeleton.name())
}

/// What became of the packets that passed.
pub(super) struct Handed {
    /// Written or sent.
    pub(super) written: u64,
    pub(super) lost: BTreeMap<&'static str, u64>,
}

/// What a run found.
#[derive(Debug, Serialize)]
pub struct FilterReport {
    /// What ran.
    pub plan: FilterPlan,
    /// What became of packets.
    #[serde(flatten)]
    pub standing: Standing,
    /// The books: in = out + dropped at each stage.
    #[serde(serialize_with = "books")]
    pub ledger: Ledger,
    /// How fast; it depends on the machine.
    pub performance: Performance,
    /// SHA-256 of a byte a packet, 1 if it passed, in the order of the input; if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdicts_sha256: Option<String>,
    /// What there is to say of the source.
    #[serde(serialize_with = "texts")]
    pub notices: Vec<Notice>,
    /// Why it ended though nobody asked it to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// What the filter has done so far.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// Where packets went.
    pub packets: Packets,
    /// The rules, and how often each decided.
    pub rules: Rules,
    /// Changes that control packets asked for.
    pub control: Control,
}

/// Packets by what became of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Packets {
    /// All that were judged.
    pub received: u64,
    /// Bytes of these on the wire.
    pub octets: u64,
    /// Those that passed.
    pub passed: u64,
    /// Of these, not IP.
    pub not_ip: u64,
    /// Those that did not pass, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Of those, for a capture of the drops, not written there: there was no room, or they have another link type.
    pub drops_not_written: u64,
}

/// The rules at the end.
#[derive(Clone, Debug, Serialize)]
pub struct Rules {
    /// Their revision.
    pub revision: u64,
    /// How many there are.
    pub rules: usize,
    /// How many bans.
    pub bans: usize,
    /// What happens to packets that no rule is about: `allow` or `deny`.
    pub default: &'static str,
    /// Bytes of the structures for look-ups.
    pub memory_bytes: usize,
    /// Rules that decided something, by number.
    pub counters: Vec<Row>,
    /// Packets whose source was banned.
    pub banned_packets: u64,
    /// Packets that no rule was about.
    pub default_packets: u64,
}

/// How often a rule decided.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its number.
    pub rule: u64,
    /// Its words; none if it stands no more.
    pub words: Option<String>,
    /// Packets.
    pub packets: u64,
}

/// What became of control packets.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Control {
    /// Transactions made.
    pub made: u64,
    /// Transactions refused.
    pub refused: u64,
    /// Not written by who has the key, or not for the first time: judged like any other packet.
    pub forged: u64,
    /// Why the last one was refused.
    pub why: Option<String>,
}

impl Standing {
    pub(super) fn new(tally: &Tally, changes: Changes) -> Self {
        let counters = &tally.counters;
        let dropped = [
            ("banned", counters.banned()),
            ("rule", counters.dropped_by_rule()),
            ("default", counters.dropped_by_default()),
            ("not_ip", tally.not_ip[1]),
            ("no_address", tally.no_address),
            ("control", tally.control),
        ];
        let Changes { made, refused, forged, why } = changes;
        Self {
            packets: Packets {
                received: tally.packets,
                octets: tally.octets,
                passed: tally.passed(),
                not_ip: tally.not_ip[0],
                dropped: dropped.into_iter().filter(|&(_, n)| n > 0).collect(),
                drops_not_written: tally.drops_not_written,
            },
            rules: rules(tally),
            control: Control { made, refused, forged, why },
        }
    }
}

impl FilterReport {
    pub(super) fn new(
        plan: FilterPlan,
        tally: &Tally,
        changes: Changes,
        handed: Handed,
        before: &Usage,
    ) -> Self {
        let standing = Standing::new(tally, changes);
        let Packets { received: input, passed: output, .. } = standing.packets;
        let dropped = standing.packets.dropped.clone();
        let Handed { written, mut lost } = handed;
        lost.retain(|_, packets| *packets > 0);
        let stages = vec![
            Stage { name: "filter", input, output, dropped },
            Stage { name: "output", input: output, output: written, dropped: lost },
        ];
        Self {
            plan,
            standing,
            ledger: Ledger { stages },
            performance: Performance::since(before, tally.packets),
            verdicts_sha256: None,
            notices: Vec::new(),
            failure: None,
        }
    }

    /// What the files lost and said.
    pub(super) fn add_source(&mut self, damaged: u64, notices: Vec<Notice>) {
        self.notices = notices;
        self.add_stage("source", [("damaged", damaged)].into());
    }

    /// A stage before all others.
    pub(super) fn add_stage(&mut self, name: &'static str, mut lost: BTreeMap<&'static str, u64>) {
        lost.retain(|_, packets| *packets > 0);
        let output = self.standing.packets.received;
        let input = output + lost.values().sum::<u64>();
        self.ledger.stages.insert(0, Stage { name, input, output, dropped: lost });
    }

    /// Packets lost though no rule said so, by reason.
    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        let stages = self.ledger.stages.iter().filter(|stage| stage.name != "filter");
        stages.flat_map(|stage| stage.dropped.iter().map(|(&reason, &n)| (reason, n))).collect()
    }

    /// Whether an input could not be read, or the run ended by itself.
    pub fn failed(&self) -> bool {
        let bad = |notice: &Notice| notice.severity == Severity::Error;
        self.failure.is_some() || self.notices.iter().any(bad)
    }

    /// The whole as one JSON document. `version` is the program's.
    pub fn to_json(&self, version: &'static str) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Document<'a> {
            version: &'static str,
            #[serde(flatten)]
            report: &'a FilterReport,
        }
        serde_json::to_string_pretty(&Document { version, report: self })
    }
}

fn rules(tally: &Tally) -> Rules {
    let (set, counters) = (&*tally.rules, &tally.counters);
    Rules {
        revision: set.revision(),
        rules: set.rules().len(),
        bans: set.ban_count(),
        default: policy(set),
        memory_bytes: set.memory_bytes(),
        counters: rows(tally),
        banned_packets: counters.banned(),
        default_packets: counters.by_default(),
    }
}

/// Rules that decided something. Those that stand are in the order of their numbers.
fn rows(tally: &Tally) -> Vec<Row> {
    let standing = tally.rules.rules();
    let words = |number| {
        let place = standing.binary_search_by_key(&number, |entry| entry.number).ok()?;
        Some(standing[place].rule.to_string())
    };
    let rows = tally.counters.rows(&tally.rules).into_iter();
    rows.map(|row| Row { rule: row.rule, words: words(row.rule), packets: row.packets }).collect()
}

fn policy(set: &RuleSet) -> &'static str {
    match set.policy() {
        Policy::Allow => "allow",
        Policy::Deny => "deny",
    }
}

fn books<S: Serializer>(ledger: &Ledger, serializer: S) -> Result<S::Ok, S::Error> {
    Books::of(ledger).serialize(serializer)
}

fn texts<S: Serializer>(notices: &[Notice], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(notices.iter().map(ToString::to_string))
}
