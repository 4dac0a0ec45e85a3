//! The report of merged states.

use std::io::Read;
use std::sync::Arc;

use ringtap_engine::{Machine, Plan};
use ringtap_extract::Names;
use ringtap_flow::{FlowKey, FlowRecord, IpVersion};
use ringtap_stage::{Mark, Merger, Shard};
use ringtap_state::Row;
use ringtap_wire::Paths;

use super::counts::Counts;
use super::header::{Header, MergeError};
use super::inputs::Inputs;
use super::live::{Joiner, Live, is_live};
use super::tables::{CONVERSATIONS, CONVERSATIONS_LOST, SUMS, Sums};
use crate::analyses::Parts;
use crate::analyses::talkers::PAIRS;
use crate::analyses::volumes::{INTERVALS, PROTOCOLS, Volumes};
use crate::counts::place;
use crate::merger::MonitorMerger;
use crate::options::{Options, Setup};
use crate::outputs::Receivers;
use crate::partial::{Findings, Partial};
use crate::report::Report;

/// What the user chooses for the report of a merge.
#[derive(Clone, Debug)]
pub struct Choices {
    /// Number of failed attempts above which a source is a scanner.
    pub scan_threshold: u32,
    /// Number of failed attempts over UDP, less the answered ones, above which a source is a scanner.
    pub udp_scan_threshold: u32,
    /// Rows in each list.
    pub top: usize,
    /// Whether to compute a digest.
    pub digest: bool,
    /// The list that live flows get their applications from.
    pub names: Arc<Names>,
    /// Memory, bytes; `None`: a quarter of the machine's.
    pub memory_bytes: Option<u64>,
}

/// A report over several states.
#[derive(Debug)]
pub struct Merged {
    /// The plan of its tables.
    pub plan: Plan<Options>,
    /// The merged header.
    pub header: Header,
    /// Where the packets went.
    pub counts: Counts,
    /// The report.
    pub report: Report,
    /// Address pairs that several runs saw.
    pub shared_pairs: u64,
    /// Live flows that became part of another run's.
    pub joined_flows: u64,
}

/// The report over states.
///
/// # Errors
/// If a state is damaged or does not belong to the others, or if reading fails.
pub fn report<R: Read>(inputs: Vec<R>, choices: &Choices) -> Result<Merged, MergeError> {
    let mut inputs = Inputs::open(inputs)?;
    let header = inputs.header.clone();
    let app = Options {
        scan_threshold: choices.scan_threshold,
        udp_scan_threshold: choices.udp_scan_threshold,
        top: choices.top,
        digest: choices.digest,
        names: Arc::clone(&choices.names),
        ..Options::default()
    };
    let run = ringtap_engine::Options {
        source: header.runs.values().map(|run| run.probe.clone()).collect(),
        skeleton: Some(ringtap_skeleton::Skeleton::Reference),
        memory_bytes: choices.memory_bytes,
        ..ringtap_engine::Options::default()
    };
    header.settings.check_names(&choices.names)?;
    let (run, app) = header.settings.options(run, app)?;
    let plan = Plan::new(run, app, &Machine::this())?;
    let mut setup = Setup::of(&plan, &Arc::new(Paths::new()));
    setup.context.scope = header.scope();
    let mut restorer = Restorer::new(&setup, &header);
    for (at, table) in inputs.tables.clone().into_iter().enumerate() {
        inputs.merge(at, |row| restorer.load(table, row))?;
    }
    restorer.finish_flows();
    let Restorer { sums, volumes, conversations, parts, shared_pairs, joiner, .. } = restorer;
    let (mut parts, mut sums) = (parts, sums);
    let findings = Findings {
        volumes,
        series: None,
        conversations: Some((conversations, !header.lacks.contains_key(CONVERSATIONS_LOST))),
        flows: std::mem::take(&mut sums.flows),
        found: parts.end(),
        active: 0,
        state: None,
    };
    let mut merger = MonitorMerger::new(&setup, Receivers::default(), Arc::default());
    let mark = Mark::End { time_ns: header.until_ns };
    merger.on_partial(ONLY, &mark, Partial::End(Box::new(findings)));
    let mut report = merger.finish();
    if let Some(flows) = &mut report.flows {
        flows.active_peak = None;
    }
    let (counts, joined_flows) = (sums.counts, joiner.joined);
    Ok(Merged { plan, header, counts, report, shared_pairs, joined_flows })
}

const ONLY: Shard = Shard { index: 0, count: 1 };

/// The tables of a report.
struct Restorer<'a> {
    setup: &'a Setup,
    header: &'a Header,
    sums: Sums,
    volumes: Volumes,
    conversations: [u64; 2],
    /// The ends of the last conversation.
    last: Vec<u8>,
    parts: Parts,
    shared_pairs: u64,
    joiner: Joiner,
    names: Option<Arc<Names>>,
    /// All that was added up, at most [`MOST`], so that no sum in the report overflows.
    total: u64,
}

/// The largest sum of all numbers in a state; damaged ones may have more.
const MOST: u64 = 1 << 62;

impl<'a> Restorer<'a> {
    fn new(setup: &'a Setup, header: &'a Header) -> Self {
        let options = &setup.options;
        let on = options.analyses;
        Self {
            setup,
            header,
            sums: Sums::new(),
            volumes: Volumes::new(setup.volumes_interval_ns(), options.interval_units as usize),
            conversations: [0; 2],
            last: Vec::new(),
            parts: Parts::new(on, &setup.context, ONLY),
            shared_pairs: 0,
            joiner: Joiner::new(&options.metering),
            names: on.need_labels().then(|| Arc::clone(&options.names)),
            total: 0,
        }
    }

    fn count(&mut self, more: u64) -> Option<()> {
        self.total = self.total.checked_add(more).filter(|total| *total <= MOST)?;
        Some(())
    }

    fn load(
        &mut self,
        table: &'static ringtap_state::Schema,
        row: &Row<'_>,
    ) -> Result<(), MergeError> {
        let is_digest = *table == SUMS && Sums::is_digest(row);
        let added = if is_digest { Some(0) } else { row.added(table) };
        let loaded = if added.and_then(|added| self.count(added)).is_none() {
            None
        } else if *table == SUMS {
            self.sums.load(row)
        } else if *table == CONVERSATIONS {
            self.load_conversation(row)
        } else if *table == PROTOCOLS || *table == INTERVALS {
            self.volumes.load(table, row)
        } else if is_live(table) {
            self.load_live(table, row)
        } else {
            if *table == PAIRS {
                let [_, _, _, _, first, last, _] = row.numbers();
                self.shared_pairs += u64::from(first != last);
            }
            self.parts.load(table, row)
        };
        loaded.ok_or(MergeError::Damaged("a row is impossible"))
    }

    fn load_conversation(&mut self, row: &Row<'_>) -> Option<()> {
        let (ends, interval) = row.key().split_last_chunk::<8>()?;
        IpVersion::from_number(*ends.first()?)?;
        let protocol = match ends.last()? {
            6 => 0,
            17 => 1,
            _ => return None,
        };
        if self.last != ends {
            self.conversations[protocol] += 1;
            self.last.clear();
            self.last.extend_from_slice(ends);
        }
        let interval = u64::from_be_bytes(*interval);
        interval.checked_mul(self.header.settings.interval_ns.unwrap_or(1))?;
        self.volumes.count_conversations(interval, protocol, 1);
        Some(())
    }

    fn load_live(&mut self, table: &ringtap_state::Schema, row: &Row<'_>) -> Option<()> {
        let flow = Live::load(table, row)?;
        let FlowRecord { packets, octets, tcp, responses, .. } = &flow.record;
        let rtt_ns = tcp.map_or([0; 2], |tcp| tcp.rtt_ns);
        let times = responses.map_or([0; 2], |times| [times.sum_us, times.count.into()]);
        for number in [packets, octets, &rtt_ns, &times].into_iter().flatten() {
            self.count(*number)?;
        }
        let Self { setup, header, sums, parts, joiner, names, .. } = self;
        joiner.add(flow, &mut |flow| end(flow, setup, header, sums, parts, names.as_deref()))
    }

    fn finish_flows(&mut self) {
        let Self { setup, header, sums, parts, joiner, names, .. } = self;
        joiner.finish(&mut |flow| end(flow, setup, header, sums, parts, names.as_deref()));
    }
}

/// Ends a live flow, as the end of a run does.
fn end(
    flow: Live,
    setup: &Setup,
    header: &Header,
    sums: &mut Sums,
    parts: &mut Parts,
    names: Option<&Names>,
) {
    let mut record = flow.end(header.until_ns, &setup.options.metering.timeouts);
    if let Some(names) = names {
        let FlowKey { protocol, src_port, dst_port, .. } = record.key;
        record.application = names.application(protocol, [src_port, dst_port], &record.facts);
    }
    sums.flows.ended[place(record.end_reason)] += 1;
    sums.flows.digest.iter_mut().for_each(|digest| digest.add(&record));
    parts.on_record(&record);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ringtap_flow::{Class, Path};

    use super::super::header::{Run, Settings, Span};
    use super::super::image::{Content, image, saved, tables_of};
    use super::super::merge_states;
    use super::*;

    /// A state of one live flow of 7 packets, of which a slice has 2; `ended`: of a whole run.
    fn state(number: u64, content: Content, ended: bool) -> Vec<u8> {
        state_with(number, content, ended, true)
    }

    fn state_with(number: u64, content: Content, ended: bool, server_ports: bool) -> Vec<u8> {
        let Content { by_time, timed, reverse_paths } = content;
        let options = Options { names: Names::built_in(), ..Options::default() };
        let machine = Machine { cores: 1, allowed_cores: vec![0], memory_bytes: 1 << 30 };
        let plan = Plan::new(ringtap_engine::Options::default(), options, &machine).unwrap();
        let span = Span { first: 0, last: 0, from_ns: 0, until_ns: 9 };
        let run = Run { probe: "a".into(), parts: vec![span], ended, interrupted: false };
        let mut settings = serde_json::to_value(Settings::of(&plan)).unwrap();
        // As older programs wrote them.
        if !server_ports {
            settings.as_object_mut().unwrap().remove("server_ports");
        }
        if !timed {
            settings.as_object_mut().unwrap().remove("timed");
        }
        if !reverse_paths {
            settings.as_object_mut().unwrap().remove("reverse_paths");
        }
        if !by_time {
            settings.as_object_mut().unwrap().remove("by_time");
        }
        let header = Header {
            settings: serde_json::from_value(settings).unwrap(),
            runs: BTreeMap::from([(format!("{number:016x}"), run)]),
            until_ns: 9,
            lacks: BTreeMap::new(),
        };
        let key = FlowKey {
            version: IpVersion::V4,
            src: [1; 16],
            dst: [2; 16],
            src_port: 53,
            dst_port: 9,
            protocol: 17,
        };
        let slice = FlowRecord { packets: [2, 0], octets: [200, 0], ..FlowRecord::new(key) };
        let back = Path { vlan_tags: 1, ..Path::default() };
        let record = FlowRecord {
            packets: [7, 0],
            octets: [700, 0],
            reverse_path: reverse_paths.then(|| Box::new(back)),
            ..slice.clone()
        };
        let tables = tables_of(saved(plan.app.analyses), content);
        image(&serde_json::to_vec(&header).unwrap(), &tables, |table, rows| {
            let live = Live { run: number, class: Class::Udp, record: record.clone() };
            match is_live(table) {
                true if timed => live.save(rows),
                true => live.save_untimed(rows),
                false => {}
            }
            if by_time {
                Parts::save_slice(table, &slice, number, rows);
            }
        })
        .unwrap()
    }

    /// Packets of the source, and of all applications together, with the number of flows.
    fn volumes(states: &[Vec<u8>]) -> Result<(u64, u64, u64), MergeError> {
        let choices = Choices {
            scan_threshold: 1,
            udp_scan_threshold: 1,
            top: 10,
            digest: false,
            names: Names::built_in(),
            memory_bytes: Some(64 << 20),
        };
        let merged = report(states.iter().map(|state| &state[..]).collect(), &choices)?;
        let sections = merged.report.sections;
        let source = sections.talkers.unwrap().by_octets.source[0].volume.packets;
        let all = sections.applications.unwrap();
        let rows = all.rows.iter().map(|row| row.volume).chain([all.unlabelled]);
        let (packets, flows) =
            rows.fold((0, 0), |sum, row| (sum.0 + row.packets, sum.1 + row.flows));
        Ok((source, packets, flows))
    }

    #[test]
    fn live_flows_add_their_volume_where_no_row_has_it() {
        // Of a whole run applications are counted by flows, of a part by slices.
        let now = Content::NOW;
        let fourth = Content { reverse_paths: false, ..now };
        let third = Content { timed: false, ..fourth };
        let first = Content { by_time: false, ..third };
        for content in [now, fourth, third] {
            assert_eq!(volumes(&[state(1, content, true)]).unwrap(), (2, 7, 1));
            assert_eq!(volumes(&[state(1, content, false)]).unwrap(), (2, 2, 1));
        }
        // In older states live flows have all of their packets.
        for ended in [true, false] {
            assert_eq!(volumes(&[state(1, first, ended)]).unwrap(), (7, 7, 1));
        }
        let mut copy = Vec::new();
        for content in [now, fourth, third] {
            let two = [state(1, content, false), state(2, content, true)];
            copy.clear();
            merge_states(two.iter().map(|state| &state[..]).collect(), &mut copy).unwrap();
            assert_eq!(volumes(&[copy.clone()]).unwrap(), volumes(&two).unwrap());
        }
        let by_time = Content { by_time: false, ..now };
        let timed = Content { timed: false, ..now };
        for (older, name) in [(by_time, "by_time"), (timed, "timed"), (fourth, "reverse_paths")] {
            let error = volumes(&[state(1, now, true), state(2, older, true)]).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
        let older = state_with(2, now, true, false);
        assert_eq!(volumes(std::slice::from_ref(&older)).unwrap(), (2, 7, 1));
        let error = volumes(&[state(1, now, true), older]).unwrap_err();
        assert!(error.to_string().contains("server_ports"), "{error}");
    }
}
