//! The plan and the report of a filter run.

use std::collections::BTreeMap;

use crate::Policy;
use crate::RuleSet;
use ringtap_base::text::json_document;
use ringtap_base::{Ledger, Stage, Usage};
use ringtap_io::capture::{Notice, Severity};
use ringtap_io::live::{Options, SendOptions};
use ringtap_skeleton::Skeleton;
use serde::{Serialize, Serializer};

use super::batch::{BURST_BYTES, SuperFrames};
use super::counters::{Changes, PacketCounters};
use super::judge::NotIp;
use ringtap_engine::{LedgerReport, Performance};

/// The plan; a printable value.
#[derive(Clone, Debug, Serialize)]
pub struct FilterPlan {
    /// The captures or the interface.
    pub source: Vec<String>,
    /// Destination of passed packets.
    pub output: Option<String>,
    /// Destination of dropped packets.
    pub drops: Option<String>,
    /// Handling of frames without IP.
    pub not_ip: NotIp,
    /// The reference (one thread) or the farm; on interfaces, a worker a queue (multi-queue).
    #[serde(serialize_with = "name")]
    pub skeleton: Skeleton,
    /// Threads that judge.
    pub workers: usize,
    /// The port of control packets.
    pub control_port: Option<u16>,
    /// Whether a digest of all verdicts is made.
    pub digest: bool,
    /// Memory for frames; on interfaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffers: Option<Buffers>,
}

/// Most memory for frames between interfaces, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Buffers {
    /// Received frames that wait for a worker.
    pub received: u64,
    /// Passed frames of the workers' bursts.
    pub passed: u64,
    /// Frames on their way out, in sockets.
    pub sent: u64,
}

impl Buffers {
    /// The memory for this number of `directions`, and of `paths` in all of them together.
    pub fn new(directions: usize, paths: usize, received: &Options, sent: &SendOptions) -> Self {
        let all = |each: usize, number: usize| (each as u64).saturating_mul(number as u64);
        Self {
            received: all(received.memory, directions),
            passed: all(BURST_BYTES, paths),
            sent: all(sent.memory_most(), paths),
        }
    }
}

fn name<S: Serializer>(skeleton: &Skeleton, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(skeleton.name())
}

/// The outcome of passed packets.
pub(super) struct Handed {
    /// Written or sent.
    pub(super) written: u64,
    pub(super) lost: BTreeMap<&'static str, u64>,
}

/// The report of a run.
#[derive(Debug, Serialize)]
pub struct FilterReport {
    /// The plan.
    pub plan: FilterPlan,
    /// The counters.
    #[serde(flatten)]
    pub stats: FilterStats,
    /// The ledger: in = out + dropped at each stage.
    #[serde(serialize_with = "ledger_json")]
    pub ledger: Ledger,
    /// Super-frames that were sent; on interfaces. Each is a packet in all other counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub super_frames: Option<SuperFrames>,
    /// The speed.
    pub performance: Performance,
    /// SHA-256 over one byte for each packet, 1 if it passed, in the order of the input; if
    /// requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdicts_sha256: Option<String>,
    /// Diagnostics of the source.
    #[serde(serialize_with = "texts")]
    pub notices: Vec<Notice>,
    /// A stop was requested before the end of the captures.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Why it ended without being stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The counters of a filter.
#[derive(Clone, Debug, Serialize)]
pub struct FilterStats {
    /// Where packets went.
    pub packets: Packets,
    /// The rules with their counters.
    pub rules: Rules,
    /// Changes by control packets.
    pub control: Control,
}

/// Packets by outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Packets {
    /// All judged packets.
    pub received: u64,
    /// Bytes of these on the wire.
    pub octets: u64,
    /// Passed packets.
    pub passed: u64,
    /// Of these, packets without IP.
    pub not_ip: u64,
    /// Dropped packets, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Of those, packets missing in the capture of drops: no room, or another link type.
    pub drops_not_written: u64,
}

/// The rules at the end.
#[derive(Clone, Debug, Serialize)]
pub struct Rules {
    /// Their revision.
    pub revision: u64,
    /// Number of rules.
    pub rules: usize,
    /// Number of bans.
    pub bans: usize,
    /// The policy for packets without a matching rule: `allow` or `deny`.
    pub default: &'static str,
    /// Bytes of the look-up structures.
    pub memory_bytes: usize,
    /// Rules that matched, by number.
    pub counters: Vec<Row>,
    /// Packets whose source was banned.
    pub banned_packets: u64,
    /// Packets without a matching rule.
    pub default_packets: u64,
}

/// The counter of a rule.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its number.
    pub rule: u64,
    /// Its text; `None` if it was removed.
    pub words: Option<String>,
    /// Packets.
    pub packets: u64,
}

/// Counters of control packets.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Control {
    /// Transactions made.
    pub made: u64,
    /// Transactions refused.
    pub refused: u64,
    /// Invalid tag, or a repeated sequence number: judged like any other packet.
    pub forged: u64,
    /// Why the last refused one was refused.
    pub why: Option<String>,
}

impl FilterStats {
    pub(super) fn new(packets: &PacketCounters, changes: Changes) -> Self {
        let counters = &packets.counters;
        let dropped = [
            ("banned", counters.banned()),
            ("rule", counters.dropped_by_rule()),
            ("default", counters.dropped_by_default()),
            ("not_ip", packets.not_ip[1]),
            ("no_address", packets.no_address),
            ("control", packets.control),
        ];
        let Changes { made, refused, forged, why } = changes;
        Self {
            packets: Packets {
                received: packets.packets,
                octets: packets.octets,
                passed: packets.passed(),
                not_ip: packets.not_ip[0],
                dropped: dropped.into_iter().filter(|&(_, n)| n > 0).collect(),
                drops_not_written: packets.drops_not_written,
            },
            rules: rules(packets),
            control: Control { made, refused, forged, why },
        }
    }
}

impl FilterReport {
    pub(super) fn new(
        plan: FilterPlan,
        packets: &PacketCounters,
        changes: Changes,
        handed: Handed,
        before: &Usage,
    ) -> Self {
        let stats = FilterStats::new(packets, changes);
        let Packets { received: input, passed: output, .. } = stats.packets;
        let dropped = stats.packets.dropped.clone();
        let Handed { written, mut lost } = handed;
        lost.retain(|_, packets| *packets > 0);
        let stages = vec![
            Stage { name: "filter", input, output, dropped },
            Stage { name: "output", input: output, output: written, dropped: lost },
        ];
        Self {
            plan,
            stats,
            ledger: Ledger { stages },
            super_frames: None,
            performance: Performance::since(before, packets.packets),
            verdicts_sha256: None,
            notices: Vec::new(),
            interrupted: false,
            failure: None,
        }
    }

    /// Adds the losses and notices of the files.
    pub(super) fn add_source(&mut self, damaged: u64, notices: Vec<Notice>) {
        self.notices = notices;
        self.add_stage("source", [("damaged", damaged)].into());
    }

    /// Adds a stage before all others.
    pub(super) fn add_stage(&mut self, name: &'static str, mut lost: BTreeMap<&'static str, u64>) {
        lost.retain(|_, packets| *packets > 0);
        let output = self.stats.packets.received;
        let input = output + lost.values().sum::<u64>();
        self.ledger.stages.insert(0, Stage { name, input, output, dropped: lost });
    }

    /// Packets lost other than by rules, by reason.
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
        serde_json::to_string_pretty(&Document { version, report: self }).map(json_document)
    }
}

fn rules(packets: &PacketCounters) -> Rules {
    let (set, counters) = (&*packets.rules, &packets.counters);
    Rules {
        revision: set.revision(),
        rules: set.rule_count(),
        bans: set.ban_count(),
        default: policy(set),
        memory_bytes: set.memory_bytes(),
        counters: rows(packets),
        banned_packets: counters.banned(),
        default_packets: counters.by_default(),
    }
}

/// Rules that matched. Existing rules are in the order of their numbers.
fn rows(packets: &PacketCounters) -> Vec<Row> {
    let words = |number| packets.rules.rule(number).map(|entry| entry.rule.to_string());
    let rows = packets.counters.rows(&packets.rules).into_iter();
    rows.map(|row| Row { rule: row.rule, words: words(row.rule), packets: row.packets }).collect()
}

fn policy(set: &RuleSet) -> &'static str {
    match set.policy() {
        Policy::Allow => "allow",
        Policy::Deny => "deny",
    }
}

fn ledger_json<S: Serializer>(ledger: &Ledger, serializer: S) -> Result<S::Ok, S::Error> {
    LedgerReport::of(ledger).serialize(serializer)
}

fn texts<S: Serializer>(notices: &[Notice], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(notices.iter().map(ToString::to_string))
}
