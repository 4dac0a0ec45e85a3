//! Options of the monitor, and the memory that they need.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringtap_base::greatest_divisor;
use ringtap_engine::{AppOptions, Memory, Plan, PlanError, within};
use ringtap_enrich::{Enrichment, EntryKind, Geo, STAGE_BYTES, WatchList};
use ringtap_extract::{Extractors, Names};
use ringtap_flow::{
    FlowStatistics, FlowTable, Metering, OCTETS_BYTES, PART_BYTES, SLICE_BYTES,
    part_statistics_bytes,
};
use ringtap_wire::{HashKey, Paths, Tunnels};
use serde::{Serialize, Serializer};

use crate::alerts::{AllowList, MOST_ALERT_BYTES, ScanLimits};
use crate::analyses::activity::{Limits, row_bytes};
use crate::analyses::changes::{ChangeLimits, OwnNetworks};
use crate::analyses::custom::Observers;
use crate::analyses::volumes::{MOST_INTERVALS, ROW_UNITS};
use crate::analyses::{Analyses, Context, Scope};
use crate::analyses::{applications, names};
use crate::held::HELD_BYTES;
use crate::resume::FRAME_MEMORY;
use crate::state::{Identity, STATE_FLOW_BYTES, part_bytes};

/// The default interval of an interface.
const LIVE_INTERVAL_NS: u64 = 60_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// The longest slices of flows on a page.
pub const PAGE_NS: u64 = 10 * SECOND_NS;
/// The threshold of P. Lee's, T. Bu's and G. Chandranmenon's paper for both kinds of scans.
const SCAN_THRESHOLD: u32 = 20;
/// Hosts that know many peers, as of games and file sharing, have fewer failed attempts over UDP.
const UDP_SCAN_THRESHOLD: u32 = 20;
/// Rows in each list of talkers.
const TOP: usize = 10;
/// The most of them.
pub const TOP_MOST: usize = 100_000;
/// Default limit of live flows.
const MOST_FLOWS_DEFAULT: u64 = 16 << 20;

/// Memory of each worker besides its lane. Measured with all analyses: 1.3 MB, mainly the talkers'
/// ports.
const WORKER_BYTES: u64 = 2 << 20;
/// Most memory of a live flow in the flow table, with its share of an index of the largest size and
/// its facts; and among the conversations.
const FLOW_BYTES: u64 = 128;
const CONVERSATION_BYTES: u64 = 100;

/// Part of the memory for tables that facts of flows may use, and their default limit: some 5
/// million names.
const FACTS_PART: u64 = 8;
const MOST_FACT_BYTES: u64 = 512 << 20;
/// Part of the memory for tables that the first packets, bursts and octets of live flows may use.
const STATISTICS_PART: u64 = 4;
/// First packets in the statistics of a flow, as of CESNET's PSTATS.
const STATISTICS_PACKETS: u8 = 30;

/// Part of the memory for tables that the lists of names may use, and their default limit.
const NAMES_PART: u64 = 32;
const MOST_NAME_BYTES: u64 = 128 << 20;
/// Part of the memory for tables that messages spread over several packets may use, and their default limit.
const PAYLOADS_PART: u64 = 32;
const MOST_PAYLOAD_BYTES: u64 = 64 << 20;

/// Part of the memory for payloads in which workers join messages, if there are events.
const EXCHANGES_PART: u64 = 4;

/// Part of the memory that larger lists may use, if they may change, and their most.
const LISTS_PART: u64 = 32;
const MOST_LIST_BYTES: u64 = 64 << 20;

/// Part of the memory for tables that alerts may use, and their least.
const ALERTS_PART: u64 = 64;
const LEAST_ALERT_BYTES: u64 = 256 << 10;

/// Part of the memory for tables that the rows of intervals may use.
const INTERVALS_PART: u64 = 4;
/// Bytes of a unit of an interval's row ([`ROW_UNITS`]): in the merger, the report and its text;
/// and in each worker.
const UNIT_BYTES: u64 = 240;
const WORKER_UNIT_BYTES: u64 = 60;
/// Protocols in each of [`MOST_INTERVALS`] intervals for which there is room, with enough memory.
const USUAL_PROTOCOLS: u64 = 16;
/// One row always has room.
const LEAST_UNITS: u64 = ROW_UNITS as u64 + 256;

/// The monitor's options.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// The analyses to run.
    #[serde(serialize_with = "analyses")]
    pub analyses: Analyses,
    /// The extractors for payloads; unused without flow records and events.
    #[serde(serialize_with = "extractors")]
    pub extract: Extractors,
    /// The list that flow records get their applications from; in JSON the number of its suffixes.
    #[serde(serialize_with = "names")]
    pub names: Arc<Names>,
    /// Definition of flows and timeouts.
    #[serde(flatten, serialize_with = "metering")]
    pub metering: Metering,
    /// Reporting interval in packet time, nanoseconds; `None`: the whole run, on interfaces 60 s.
    pub interval_ns: Option<u64>,
    /// Marks are also at multiples of this time, whole seconds in nanoseconds: outputs begin files there.
    #[serde(skip)]
    pub marks_ns: Option<u64>,
    /// Most live flows of all workers together; also the limit of scan attempts, hosts and pairs, and three quarters of
    /// that of conversations. `None`: from the memory.
    pub max_flows: Option<u64>,
    /// Number of failed attempts above which a source is a scanner.
    pub scan_threshold: u32,
    /// Number of failed attempts over UDP, less the answered ones, above which a source is a scanner.
    pub udp_scan_threshold: u32,
    /// Limits of a host in an interval; any limit enables activity.
    #[serde(skip_serializing_if = "has_none")]
    pub limits: Limits,
    /// What is a change of the user's own hosts; any limit enables the analysis.
    #[serde(skip_serializing_if = "has_no_changes")]
    pub change_limits: ChangeLimits,
    /// Most first packets in the statistics of a flow; `None` without the analysis, once the plan is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statistics_packets: Option<u8>,
    /// Most first octets of the payload of a direction, for its entropy in the statistics; 0 without the analysis, once the
    /// plan is made.
    #[serde(skip_serializing_if = "is_zero")]
    pub statistics_octets: u16,
    /// Rows in each list of talkers.
    pub top: usize,
    /// Whether there is an output for events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub events: bool,
    /// The watched entries, if any.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "watch")]
    pub watch: Option<Arc<WatchList>>,
    /// The rules that suppress alerts, if any.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "allow")]
    pub allow: Option<Arc<AllowList>>,
    /// What is added to records, events, alerts and the report, and replaced in them.
    #[serde(flatten, serialize_with = "enrichment")]
    pub enrichment: Enrichment,
    /// Whether to compute a digest of the report and the flow records.
    pub digest: bool,
    /// The run whose state is saved, if one is.
    #[serde(skip)]
    pub state: Option<Identity>,
    /// Whether open flows are kept for the next run.
    #[serde(skip)]
    pub keeps_open: bool,
    /// Whether settings may change while the run goes on ([`Reloads`](crate::Reloads)).
    #[serde(skip)]
    pub reloads: bool,
    /// Whether the report has charts.
    #[serde(skip)]
    pub charts: bool,
    /// Whether a page shows flows while the run goes on.
    #[serde(skip)]
    pub page: bool,
    /// What watches the packets, records and messages of the run.
    #[serde(skip)]
    pub observers: Observers,
    /// Chosen by the plan: bytes for the facts of live flows, of all workers together.
    #[serde(skip_serializing_if = "is_zero")]
    pub fact_bytes: u64,
    /// Chosen by the plan: bytes for the first packets, bursts and octets of live flows, of all workers together.
    #[serde(skip_serializing_if = "is_zero")]
    pub statistics_bytes: u64,
    /// Chosen by the plan: bytes for the lists of names of all workers together, and as many in the merger.
    #[serde(skip_serializing_if = "is_zero")]
    pub name_bytes: u64,
    /// Chosen by the plan: bytes for lists of names, networks, watched entries and rules, and databases, if they may change.
    #[serde(skip)]
    pub list_bytes: u64,
    /// Chosen by the plan: bytes for messages that are spread over several packets, of all readers together.
    #[serde(skip_serializing_if = "is_zero")]
    pub payload_bytes: u64,
    /// Chosen by the plan: units for the rows of intervals, 8 each, and 1 for each protocol in one.
    pub interval_units: u64,
    /// Chosen by the plan: bytes for the scans, hosts and watched entries that alerts follow; as many for suppressed ones.
    pub alert_bytes: u64,
    /// Chosen by the plan: most intervals whose activity is in the report.
    #[serde(skip_serializing_if = "is_zero")]
    pub max_activities: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            analyses: Analyses::ALL,
            extract: Extractors::ALL,
            names: Names::built_in(),
            metering: Metering::default(),
            interval_ns: None,
            marks_ns: None,
            max_flows: None,
            scan_threshold: SCAN_THRESHOLD,
            udp_scan_threshold: UDP_SCAN_THRESHOLD,
            limits: Limits::default(),
            change_limits: ChangeLimits::default(),
            statistics_packets: None,
            statistics_octets: 0,
            top: TOP,
            events: false,
            watch: None,
            allow: None,
            enrichment: Enrichment::default(),
            digest: false,
            state: None,
            keeps_open: false,
            reloads: false,
            charts: false,
            page: false,
            observers: Observers::default(),
            fact_bytes: 0,
            statistics_bytes: 0,
            name_bytes: 0,
            list_bytes: 0,
            payload_bytes: 0,
            interval_units: 0,
            alert_bytes: LEAST_ALERT_BYTES,
            max_activities: 0,
        }
    }
}

impl Options {
    /// The analyses that run: limits need activity, and a list is watched.
    fn on(&self) -> Analyses {
        let activity = self.analyses.activity || self.limits.any();
        let (watch, changes) = (self.watch.is_some(), self.change_limits.any());
        Analyses { activity, watch, changes, ..self.analyses }.with_needs()
    }

    /// The longest time that a record has, or a part of a flow.
    pub(crate) fn longest_part_ns(&self) -> Option<u64> {
        let active_ns = self.metering.timeouts.active_ns;
        let longest_ns = self.metering.cut_ns.unwrap_or(u64::MAX).min(active_ns);
        Some(longest_ns).filter(|ns| *ns < u64::MAX)
    }

    /// When scans are alerts.
    pub(crate) fn scan_limits(&self) -> ScanLimits {
        ScanLimits {
            thresholds: [self.scan_threshold, self.udp_scan_threshold],
            udp_idle_ns: self.metering.timeouts.udp_ns,
        }
    }

    /// Whether flow records are hashed: for a digest, now or after a merge.
    pub(crate) fn needs_record_digest(&self) -> bool {
        self.analyses.flows && (self.digest || self.state.is_some())
    }

    /// Most live flows, once the plan is made.
    pub fn max_flows(&self) -> u64 {
        self.max_flows.unwrap_or(1)
    }

    /// Number of intervals with room in the report, for this number of protocols in each.
    pub fn interval_rows(&self, protocols: u64) -> u64 {
        (self.interval_units / (ROW_UNITS as u64 + protocols)).min(MOST_INTERVALS as u64)
    }

    /// Most bytes of a live flow, by analysis: entries, their share of an index of the largest
    /// size, and each analysis' memory for a flow that shares no row with others.
    ///
    /// Measured as the slope of the peak resident memory of whole runs over --max-flows, from 1 to
    /// 2^19 + 1 and 2^20 + 1 (an index is largest one row beyond a power of two), over SYNs of 2 M
    /// forged sources: with the flow table alone, then with each analysis; the larger of both
    /// slopes. All together took 386 (IPv4) and 513 bytes (IPv6), because not everything is largest
    /// at the same time. For lasting IPv4 flows with common pairs it is less than 200.
    ///
    /// | | IPv4 | IPv6 | planned |
    /// |---|---|---|---|
    /// | flow table, with facts | 103 | 128 | 128 |
    /// | scans | 59 | 108 | 112 |
    /// | udp_scans, with room for an eighth of the flows | | | 14 |
    /// | talkers | 163 | 228 | 232 |
    /// | volumes: four thirds of the 68 bytes of a conversation | 91 | 91 | 100 |
    ///
    /// Not included: the room of expired flows of one IP version, which flows of the other cannot
    /// use.
    fn flow_bytes(&self) -> u64 {
        let on = self.analyses;
        let rows = [
            (on.need_flows(), FLOW_BYTES),
            (self.metering.cut_ns.is_some(), PART_BYTES),
            (self.slice_ns().is_some(), SLICE_BYTES),
            (on.volumes, CONVERSATION_BYTES),
            (self.state.is_some(), STATE_FLOW_BYTES),
            (self.saves_parts(), part_bytes(on)[0]),
        ];
        let core: u64 = rows.into_iter().filter_map(|(on, bytes)| on.then_some(bytes)).sum();
        (core + on.flow_bytes() + self.statistics_flow_bytes()).max(1)
    }
}

impl Options {
    /// Memory of a live flow for its statistics in parts and in states, and for its first octets of payload, bytes.
    fn statistics_flow_bytes(&self) -> u64 {
        let Some(packets) = self.statistics_packets.filter(|_| self.analyses.statistics) else {
            return 0;
        };
        let octets = self.statistics_octets;
        let row = FlowStatistics::most_bytes(packets, octets) as u64;
        // Of a state in parts there may be two.
        let rows = u64::from(self.state.is_some()) + u64::from(self.saves_parts());
        let part = part_statistics_bytes(packets, octets);
        let own = if octets > 0 { OCTETS_BYTES } else { 0 };
        own + row * rows + if self.metering.cut_ns.is_some() { part } else { 0 }
    }

    /// Bytes in which all workers together join messages.
    pub(crate) fn exchange_bytes(&self) -> u64 {
        if self.events { self.payload_bytes / EXCHANGES_PART } else { 0 }
    }

    /// What the analyses get of these options, once the plan is made.
    pub(crate) fn context(&self, hash_key: HashKey, shares: Vec<u32>) -> Context {
        Context {
            scope: Scope::Run,
            interval_ns: self.interval_ns,
            scan_threshold: self.scan_threshold,
            udp_scan_threshold: self.udp_scan_threshold,
            limits: self.limits,
            change_limits: self.change_limits,
            change_interval_ns: self.change_interval_ns(),
            own_networks: OwnNetworks(self.enrichment.networks.clone()),
            top: self.top,
            watch: self.watch.clone(),
            run: self.state.as_ref().map_or(0, |state| state.run),
            max_flows: self.max_flows(),
            name_bytes: self.name_bytes,
            max_activities: self.max_activities,
            hash_key,
            shares,
            suspects: Arc::default(),
            udp_suspects: Arc::default(),
        }
    }

    /// Whether the state is saved in parts.
    pub(crate) fn saves_parts(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.in_parts)
    }

    /// The interval in which changes of hosts are found.
    fn change_interval_ns(&self) -> u64 {
        self.interval_ns.unwrap_or(LIVE_INTERVAL_NS)
    }

    /// The length of slices of flows, if any are needed: states and changes of hosts by intervals, and a page by tens of
    /// seconds.
    pub fn slice_ns(&self) -> Option<u64> {
        let most_ns = self.page.then_some(PAGE_NS);
        if !self.saves_parts() && !self.change_limits.any() {
            return most_ns;
        }
        let interval_ns = self.change_interval_ns();
        let part = most_ns.and_then(|most_ns| part_of(interval_ns, most_ns, 1));
        Some(part.unwrap_or(interval_ns))
    }

    /// A distance of marks, at most `tick_ns` if that is a second, so that multiples of `marks_ns` and of `step_ns` have
    /// marks.
    fn with_marks(&self, tick_ns: u64, step_ns: Option<u64>) -> u64 {
        let Some(marks_ns) = self.marks_ns else { return tick_ns };
        let both_ns = greatest_divisor(marks_ns, step_ns.unwrap_or(0));
        if !both_ns.is_multiple_of(SECOND_NS)
            && let Some(part_ns) = part_of(both_ns, tick_ns, SECOND_NS)
        {
            return part_ns;
        }
        let whole = greatest_divisor(marks_ns / SECOND_NS, step_ns.unwrap_or(0) / SECOND_NS);
        let most = (tick_ns / SECOND_NS).clamp(1, whole.max(1));
        let divides = |part: &u64| whole.is_multiple_of(*part);
        (1..=most).rev().find(divides).unwrap_or(1) * SECOND_NS
    }

    /// Memory of the lists that may change.
    pub(crate) fn lists(&self) -> u64 {
        let watch = self.watch.as_ref().map_or(0, |list| list.memory());
        let allow = self.allow.as_ref().map_or(0, |list| list.memory());
        self.names.memory() as u64 + self.enrichment.memory() + watch + allow
    }

    /// Most labels of all lists of names of the run.
    pub(crate) fn most_labels(&self) -> usize {
        self.names.labels() * if self.reloads { 2 } else { 1 }
    }

    /// Memory of the volumes by application in each worker and the merger.
    fn application_bytes(&self, workers: u64) -> u64 {
        // A part has two kinds of them.
        let tables = workers * if self.saves_parts() { 3 } else { 1 } + 1;
        let rows = applications::most_bytes(self.most_labels()) * tables;
        if self.analyses.applications { rows } else { 0 }
    }
}

impl AppOptions for Options {
    const NAME: &'static str = "monitor";

    /// Measured, see docs/PERFORMANCE.md: with one or two analyses nearly half of everything.
    fn dispatch_share(&self) -> u32 {
        if self.on().names().len() > 2 { 250 } else { 420 }
    }

    fn worker_bytes(&self) -> u64 {
        let stage = if self.reloads { STAGE_BYTES } else { self.enrichment.stage_bytes() };
        let since = if self.saves_parts() { part_bytes(self.on())[1] } else { 0 };
        let kept = if self.keeps_open { FRAME_MEMORY } else { 0 };
        WORKER_BYTES + self.on().worker_bytes() + stage + since + kept
    }

    fn extractors(&self) -> Extractors {
        self.extract
    }

    fn payload_bytes(&self) -> u64 {
        self.payload_bytes - self.exchange_bytes()
    }

    fn segments(&self) -> bool {
        self.analyses.tcp
    }

    fn octets(&self) -> usize {
        self.statistics_octets.into()
    }

    /// By the timeouts and the interval; a sweep over all flows more often than every second would
    /// be expensive.
    fn tick_ns(&self) -> u64 {
        let tick_ns = self.metering.timeouts.tick_ns();
        // A part ends with its interval, and activity has few intervals at a time.
        let interval_ns = self.interval_ns.filter(|_| self.saves_parts() || self.on().activity);
        let tick_ns = interval_ns.map_or(tick_ns, |interval_ns| {
            // Multiples of the interval have marks, or all marks are at its multiples.
            part_of(interval_ns, tick_ns, SECOND_NS).unwrap_or_else(|| match interval_ns {
                1..SECOND_NS => seconds_of(interval_ns),
                _ => (interval_ns / interval_ns.div_ceil(tick_ns).max(1)).max(SECOND_NS),
            })
        });
        self.with_marks(tick_ns, interval_ns)
    }

    fn live_tick_ns(&self) -> u64 {
        // A part ends with its interval, or several if they are shorter than a second.
        let interval_ns =
            self.interval_ns.map(|ns| if self.saves_parts() { seconds_of(ns) } else { ns });
        let steps = [interval_ns, self.metering.cut_ns];
        let tick_ns = steps.into_iter().flatten().fold(self.tick_ns(), u64::min).max(SECOND_NS);
        let interval_ns = self.interval_ns.filter(|_| self.saves_parts());
        let tick_ns = self.with_marks(tick_ns, interval_ns);
        match greatest_divisor(tick_ns, interval_ns.unwrap_or(0)) {
            both_ns if both_ns >= SECOND_NS => both_ns,
            _ => tick_ns,
        }
    }

    fn settle(&mut self, memory: &Memory) -> Result<(), PlanError> {
        self.analyses = self.on();
        let packets = self.statistics_packets.unwrap_or(STATISTICS_PACKETS);
        self.statistics_packets = self.analyses.statistics.then_some(packets);
        if !self.analyses.statistics {
            self.statistics_octets = 0;
        }
        let Analyses { flows, applications, names, passive_dns, watch, .. } = self.analyses;
        let others = self.analyses.custom.any() || !self.observers.all.is_empty();
        if !(flows || applications || names || passive_dns || watch || self.events || others) {
            self.extract = Extractors::NONE;
        }
        let reads_messages = self.observers.take_events() || self.analyses.need_events();
        // Also watch lists and limits of alerts, which are analyses now.
        let reads_flows = Analyses { flows: false, ..self.analyses }.need_flows();
        if reads_messages || reads_flows || self.keeps_open || self.needs_record_digest() {
            self.observers.wants = None;
        }
        within("number of rows", self.top as u64, 0, TOP_MOST as u64)?;
        if let Some(state) = &mut self.state {
            state.in_parts &= self.interval_ns.is_some() || memory.live;
        }
        if let Some(interval_ns) = self.interval_ns {
            within("interval in nanoseconds", interval_ns, 1, u64::MAX)?;
        }
        let intervals = Intervals {
            many: self.interval_ns.is_some() || memory.live,
            volumes: self.analyses.volumes,
            activity: self.analyses.activity,
            unit_bytes: UNIT_BYTES + WORKER_UNIT_BYTES * memory.workers,
            activity_bytes: row_bytes(self.top),
        };
        let flow_bytes = self.flow_bytes();
        // Suppressed alerts are followed, too.
        let trackers = if self.reloads || self.allow.is_some() { 2 } else { 1 };
        // The next lists, while these are used.
        let further = if self.reloads {
            // While entries of a watch list are joined with those before, there are three of it.
            let watch = self.watch.as_ref().map_or(0, |list| list.memory());
            2 * self.lists() + 3 * watch + (memory.bytes / LISTS_PART).min(MOST_LIST_BYTES)
        } else {
            0
        };
        self.list_bytes = self.lists() + further;
        let least = intervals.least_bytes()
            + self.application_bytes(memory.workers)
            + if memory.workers > 1 { HELD_BYTES } else { 0 }
            + self.list_bytes
            + LEAST_ALERT_BYTES * trackers;
        let rest = memory.beside(least + flow_bytes)? + flow_bytes;
        let rows = intervals.within(rest / INTERVALS_PART);
        let extracts = self.extract != Extractors::NONE;
        self.fact_bytes = if extracts { (rest / FACTS_PART).min(MOST_FACT_BYTES) } else { 0 };
        self.statistics_bytes = if self.analyses.statistics { rest / STATISTICS_PART } else { 0 };
        self.payload_bytes =
            if extracts { (rest / PAYLOADS_PART).min(MOST_PAYLOAD_BYTES) } else { 0 };
        self.name_bytes = if extracts && (names || passive_dns) {
            (rest / NAMES_PART).min(MOST_NAME_BYTES)
        } else {
            0
        };
        let more = (rest / ALERTS_PART / trackers).min(MOST_ALERT_BYTES - LEAST_ALERT_BYTES);
        self.alert_bytes = LEAST_ALERT_BYTES + more;
        self.interval_units = rows.units;
        self.max_activities = rows.activities;
        let in_parts = u64::from(self.saves_parts());
        let halves = u64::from(names) * (4 + in_parts * names::HALVES_OF_PART)
            + u64::from(passive_dns) * (4 + in_parts * 2);
        let beside = rows.bytes
            + self.fact_bytes
            + self.statistics_bytes
            + self.payload_bytes
            + halves * self.name_bytes / 2
            + more * trackers;
        let affordable = ((rest - beside) / flow_bytes).max(1);
        let most_flows = FlowTable::MOST as u64 * memory.workers;
        if let Some(flows) = self.max_flows {
            within("number of flows", flows, 1, most_flows)?;
        }
        self.max_flows = Some(match (self.max_flows, memory.requested) {
            (Some(flows), None) => flows,
            (Some(flows), Some(_)) => flows.min(affordable),
            (None, Some(_)) => affordable.min(most_flows),
            (None, None) => affordable.min(MOST_FLOWS_DEFAULT).min(most_flows),
        });
        if memory.live {
            self.interval_ns.get_or_insert(LIVE_INTERVAL_NS);
        }
        Ok(())
    }
}

/// The least multiple of a time that is at least a second.
fn seconds_of(time_ns: u64) -> u64 {
    time_ns.saturating_mul(SECOND_NS.div_ceil(time_ns.max(1)))
}

/// Most parts that [`part_of`] tries.
const MOST_PARTS: u64 = 100_000;

/// The longest part of a time, at most `most_ns` and at least `least_ns`, of which the time is a multiple, if there is one.
fn part_of(time_ns: u64, most_ns: u64, least_ns: u64) -> Option<u64> {
    let first = time_ns.div_ceil(most_ns.max(1)).max(1);
    let last = (time_ns / least_ns.max(1)).min(first.saturating_add(MOST_PARTS));
    let parts = (first..=last).find(|parts| time_ns.is_multiple_of(*parts))?;
    Some(time_ns / parts)
}

/// The rows of intervals of a run, and their memory.
struct Intervals {
    /// More than one row for the whole run.
    many: bool,
    volumes: bool,
    activity: bool,
    unit_bytes: u64,
    activity_bytes: u64,
}

/// Room for rows of intervals.
struct Rows {
    units: u64,
    activities: u64,
    /// Memory beyond [`Intervals::least_bytes`].
    bytes: u64,
}

impl Intervals {
    /// Least memory.
    fn least_bytes(&self) -> u64 {
        LEAST_UNITS * self.unit_bytes + if self.activity { self.activity_bytes } else { 0 }
    }

    /// The rows for which `bytes` are enough, beyond the least.
    fn within(&self, bytes: u64) -> Rows {
        let bytes = if self.many { bytes } else { 0 };
        let each = bytes / (u64::from(self.volumes) + u64::from(self.activity)).max(1);
        let most_units = MOST_INTERVALS as u64 * (ROW_UNITS as u64 + USUAL_PROTOCOLS);
        let units = if self.volumes { (each / self.unit_bytes).min(most_units) } else { 0 };
        let more = each / self.activity_bytes;
        let activities = if self.activity { more.min(MOST_INTERVALS as u64) } else { 0 };
        let bytes = units * self.unit_bytes + activities * self.activity_bytes;
        Rows {
            units: LEAST_UNITS + units,
            activities: activities + u64::from(self.activity),
            bytes,
        }
    }
}

/// The options, and shared state of all workers and the merger of a run.
#[derive(Clone)]
pub struct Setup {
    /// The options, with all choices made.
    pub(crate) options: Options,
    /// Which packets of tunnels make flows, talkers and scans; equal to the decoder's setting.
    pub(crate) tunnels: Tunnels,
    /// The encapsulations of packets, as numbered by the decoders.
    pub(crate) paths: Arc<Paths>,
    /// What the analyses get of it.
    pub(crate) context: Context,
}

impl Setup {
    /// A setup whose packets have no encapsulation, unless [`Setup::of`] gives their paths.
    pub fn new(options: Options, hash_key: HashKey, shares: Vec<u32>) -> Self {
        let context = options.context(hash_key, shares);
        Self { options, tunnels: Tunnels::Inner, paths: Arc::default(), context }
    }

    /// The setup of a plan.
    pub fn of(plan: &Plan<Options>, paths: &Arc<Paths>) -> Self {
        Self {
            tunnels: plan.options.tunnels,
            paths: Arc::clone(paths),
            ..Self::new(plan.app.clone(), plan.hash_key(), plan.arrangement.shares.clone())
        }
    }

    /// The interval of volumes.
    pub(crate) fn volumes_interval_ns(&self) -> Option<u64> {
        self.options.interval_ns.filter(|_| self.options.analyses.volumes)
    }
}

fn analyses<S: Serializer>(analyses: &Analyses, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(analyses.names())
}

fn extractors<S: Serializer>(extract: &Extractors, s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(extract.names())
}

fn names<S: Serializer>(names: &Arc<Names>, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(names.len() as u64)
}

fn watch<S: Serializer>(list: &Option<Arc<WatchList>>, s: S) -> Result<S::Ok, S::Error> {
    let count = |kind| list.as_ref().map_or(0, |list| list.count(kind));
    s.collect_map([
        ("names", count(EntryKind::Name)),
        ("fingerprints", count(EntryKind::Fingerprint)),
        ("networks", count(EntryKind::Network)),
    ])
}

fn allow<S: Serializer>(list: &Option<Arc<AllowList>>, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(list.as_ref().map_or(0, |list| list.rules().len() as u64))
}

fn enrichment<S: Serializer>(enrichment: &Enrichment, s: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown {
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        anonymise: bool,
        /// The number of networks.
        #[serde(skip_serializing_if = "Option::is_none")]
        networks: Option<usize>,
        /// The types of databases.
        #[serde(skip_serializing_if = "Option::is_none")]
        geo: Option<Vec<String>>,
        /// The number of prefixes of vendors.
        #[serde(skip_serializing_if = "Option::is_none")]
        vendors: Option<usize>,
        /// The number of names of VLANs.
        #[serde(skip_serializing_if = "Option::is_none")]
        vlans: Option<usize>,
    }
    let Enrichment { networks, geo, vendors, vlans, interfaces: _, anonymiser } = enrichment;
    let types = |geo: &Arc<Geo>| geo.types().into_iter().map(str::to_owned).collect();
    Shown {
        anonymise: anonymiser.is_some(),
        networks: networks.as_ref().map(|networks| networks.count()),
        geo: geo.as_ref().map(types),
        vendors: vendors.as_ref().map(|vendors| vendors.count()),
        vlans: vlans.as_ref().map(|vlans| vlans.count()),
    }
    .serialize(s)
}

fn metering<S: Serializer>(metering: &Metering, s: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown {
        uniflow: bool,
        vlan_in_key: bool,
        timeouts: BTreeMap<String, u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cut_ns: Option<u64>,
    }
    let Metering { timeouts, uniflow, vlan_in_key, cut_ns } = *metering;
    let named = |(name, ns): (&str, u64)| match name {
        "general" => ("idle_ns".into(), ns),
        "maxlife" => ("active_ns".into(), ns),
        _ => (name.replace('.', "_") + "_ns", ns),
    };
    let timeouts = timeouts.named().into_iter().map(named).collect();
    Shown { uniflow, vlan_in_key, timeouts, cut_ns }.serialize(s)
}

fn has_none(limits: &Limits) -> bool {
    !limits.any()
}

fn has_no_changes(limits: &ChangeLimits) -> bool {
    !limits.any()
}

fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}

#[cfg(test)]
mod tests {
    use ringtap_engine::Machine;

    use super::*;

    fn machine() -> Machine {
        Machine { cores: 2, allowed_cores: vec![0, 1], memory_bytes: 8 << 30 }
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            Plan::new(ringtap_engine::Options::default(), options, &machine())
                .unwrap_err()
                .to_string()
        };
        assert!(with(|o| o.max_flows = Some(0)).contains("flows"));
        assert!(with(|o| o.interval_ns = Some(0)).contains("interval"));
        assert!(with(|o| o.top = 100_001).contains("rows"));
    }

    #[test]
    fn multiples_of_the_time_between_files_have_marks() {
        let tick = |rotate_s: u64, interval_s: Option<u64>| {
            let interval_ns = interval_s.map(|interval_s| interval_s * SECOND_NS);
            let analyses = Analyses { activity: true, ..Analyses::ALL };
            let marks_ns = Some(rotate_s * SECOND_NS);
            Options { analyses, interval_ns, marks_ns, ..Options::default() }.tick_ns() / SECOND_NS
        };
        assert_eq!(Options::default().tick_ns(), 15 * SECOND_NS);
        for (rotate_s, interval_s, is) in [
            (300, None, 15),
            (1, None, 1),
            (100, None, 10),
            (97, None, 1),
            (90, Some(60), 15),
            (100, Some(60), 10),
            (7, Some(60), 1),
        ] {
            assert_eq!(tick(rotate_s, interval_s), is, "{rotate_s} {interval_s:?}");
        }
    }

    #[test]
    fn parts_of_states_end_at_marks_and_slices_with_them() {
        let second = SECOND_NS;
        for interval_ns in [
            100_000_000,
            700_000_000,
            second,
            2_500_000_000,
            61 * second,
            100 * second,
            3600 * second,
        ] {
            for (marks_ns, page) in [(None, true), (None, false), (Some(300 * second), false)] {
                let state = Identity { run: 1, probe: "a".into(), in_parts: true };
                let (state, interval_ns) = (Some(state), Some(interval_ns));
                let options = Options { state, interval_ns, marks_ns, page, ..Options::default() };
                let interval_ns = interval_ns.unwrap_or(1);
                for tick_ns in [options.tick_ns(), options.live_tick_ns()] {
                    let is_aligned = interval_ns.is_multiple_of(tick_ns)
                        || tick_ns.is_multiple_of(interval_ns)
                        // No second has a whole number of these.
                        || marks_ns.is_some() && interval_ns == 700_000_000;
                    assert!(is_aligned && tick_ns >= second, "{interval_ns}: {tick_ns}");
                }
                let slice_ns = options.slice_ns().unwrap();
                assert!(interval_ns.is_multiple_of(slice_ns), "{interval_ns}: {slice_ns}");
                assert!(if page { slice_ns <= PAGE_NS } else { slice_ns == interval_ns });
                let flow_bytes = |state| Options { state, ..options.clone() }.flow_bytes();
                assert!(flow_bytes(options.state.clone()) > flow_bytes(None));
            }
        }
        let page = Options { page: true, ..Options::default() };
        assert_eq!((page.slice_ns(), Options::default().slice_ns()), (Some(PAGE_NS), None));
        assert_eq!(page.flow_bytes() - Options::default().flow_bytes(), SLICE_BYTES);
    }

    #[test]
    fn limits_enable_activity() {
        let mut options = Options::default();
        assert!(!options.on().activity);
        options.limits.set("dst-pps", 1).unwrap();
        let plan = Plan::new(ringtap_engine::Options::default(), options, &machine()).unwrap();
        assert!(plan.app.analyses.activity && plan.app.max_activities > 0);
    }

    #[test]
    fn memory_bounds_flows() {
        let flows = |analyses, memory_bytes, workers| {
            let run = ringtap_engine::Options {
                memory_bytes: Some(memory_bytes),
                workers: Some(workers),
                ..ringtap_engine::Options::default()
            };
            let app = Options { analyses, ..Options::default() };
            Plan::new(run, app, &machine()).map(|plan| plan.app.max_flows())
        };
        let all = flows(Analyses::ALL, 1 << 30, 1).unwrap();
        let few = flows("flows".parse().unwrap(), 1 << 30, 1).unwrap();
        assert!(all * 586 + (20 << 20) < 1 << 30 && few > 4 * all, "{all}, {few}");
        assert!(flows(Analyses::ALL, 1 << 30, 64).unwrap() < all, "rings take memory, too");
        let error = flows(Analyses::ALL, 1 << 20, 1).unwrap_err().to_string();
        assert!(error.starts_with("invalid memory limit 1M: use at least "), "{error}");
    }
}
