//! `ringtap extract`: the packets of chosen flows, from captures to a capture.
//!
//! ```text
//! with --where: files ─▶ a run of the monitor ─▶ records ─▶ selected? ─▶ keys and times
//!
//! frame ─▶ Decoder ─▶ packet, and the packet in its tunnel ─▶ key, Community ID ─▶ chosen? ─▶ pcapng
//! ```

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::BufWriter;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use clap::Parser;
use ringtap_engine::Watch;
use ringtap_export::formats::CommunityId;
use ringtap_flow::{FlowKey, FlowRecord, RecordSink, Sinks};
use ringtap_io::capture::{Frame, PcapngWriter};
use ringtap_program::atomic_file::{AtomicFile, Existing};
use ringtap_program::roles::Roles;
use ringtap_program::{privileges, sandbox};
use ringtap_query::Matcher;
use ringtap_terminal::Usage;
use ringtap_terminal::console::{self, print_message};
use ringtap_terminal::numbers::{count, of};
use ringtap_wire::{Decoded, Decoder, HashKey, PacketRecord, Paths, TunnelPorts};

use crate::args::{Cli, Command, ExtractArgs};
use crate::signals::INTERRUPTED;
use crate::{monitor, signals, source};

static WATCH: Watch = Watch::new();

/// Frames that are read at once.
const BURST: usize = 256;

/// Flows whose ids are known, in about 8 MB; those of more are computed again.
const KNOWN_MOST: usize = 1 << 16;

/// Flows that an expression may select, in about 100 MB.
const SELECTED_MOST: usize = 1_000_000;

pub(crate) fn run(args: &ExtractArgs) -> anyhow::Result<ExitCode> {
    source::check(&args.files)?;
    if args.filter.is_some() && !args.files.iter().all(|path| path.is_file()) {
        return Err(Usage::of("--where reads twice: use files, no pipes"));
    }
    let existing = Existing::of(args.force, false);
    let mut roles = Roles::default();
    roles.reads("the input", &args.files);
    roles.writes("--write", Some(&args.write)).check(existing)?;
    sandbox::enter([args.write.as_path()].into_iter(), false)?;
    privileges::forbid_new();
    let result = signals::stoppable(&WATCH, || {
        let flows = match &args.filter {
            Some(filter) => selected(args, &filter.matcher)?,
            None => Flows::default(),
        };
        if WATCH.stopped() { Ok(INTERRUPTED.into()) } else { write(args, flows, existing) }
    });
    result.context("handling signals")?
}

/// Flows that an expression selects, by their keys, with the lower end first.
type Flows = HashMap<FlowKey, Times>;

/// When a key belongs to chosen flows.
struct Times {
    /// The id of its first record. ICMP has one for each message.
    id: CommunityId,
    /// From first to last packets, nanoseconds since 1970; in order and apart.
    spans: Vec<RangeInclusive<u64>>,
}

/// What the workers have selected.
#[derive(Default)]
struct Selection {
    flows: Flows,
    count: usize,
}

/// Takes the records of a worker.
struct Selecting {
    filter: Matcher,
    selection: Arc<Mutex<Selection>>,
}

impl RecordSink for Selecting {
    fn take(&mut self, record: &FlowRecord) {
        if !self.filter.matches(record) {
            return;
        }
        let mut selection = self.selection.lock().unwrap_or_else(PoisonError::into_inner);
        selection.count += 1;
        if selection.count > SELECTED_MOST {
            WATCH.stop();
            return;
        }
        let new = || Times { id: CommunityId::of(record), spans: Vec::new() };
        let times = selection.flows.entry(lower_first(record.key)).or_insert_with(new);
        times.spans.push(record.first_ns..=record.last_ns);
    }
}

/// The flows of the files that the expression selects.
fn selected(args: &ExtractArgs, filter: &Matcher) -> anyhow::Result<Flows> {
    let words = ["ringtap", "monitor", "--idle-timeout=15m", "--active-timeout=0"];
    let words = words.map(OsString::from).into_iter();
    let files =
        args.files.iter().map(|file| [OsStr::new("--read="), file.as_ref()].into_iter().collect());
    let Some(Command::Monitor(mut flags)) = Cli::try_parse_from(words.chain(files))?.command else {
        return Err(Usage::of("no command"));
    };
    flags.tunnel_port.clone_from(&args.tunnel_port);
    let plan = monitor::plan(&flags, &[], &[], false)?;
    let selection = Arc::<Mutex<Selection>>::default();
    let sink = |_| {
        let (filter, selection) = (filter.clone(), Arc::clone(&selection));
        let records: Box<dyn RecordSink> = Box::new(Selecting { filter, selection });
        Sinks { records: Some(records), ..Sinks::default() }
    };
    let sinks = (0..plan.arrangement.workers).map(sink).collect();
    let outputs = ringtap_monitor::Outputs { sinks, ..ringtap_monitor::Outputs::default() };
    let mut outcome =
        ringtap_monitor::run(&plan, source::reader(&args.files, &WATCH), outputs, &WATCH)?;
    let Selection { mut flows, count } =
        std::mem::take(&mut *selection.lock().unwrap_or_else(PoisonError::into_inner));
    if count > SELECTED_MOST {
        anyhow::bail!("--where selects more than {SELECTED_MOST} flows: narrow the expression");
    }
    flows.values_mut().for_each(|times| join(&mut times.spans));
    // Those of the files are printed when the packets are read.
    outcome.run.notices.clear();
    for (kind, text) in monitor::messages::messages(&mut outcome) {
        print_message(kind, &text);
    }
    console::note(&of(count as u64, "flow").to_string());
    Ok(flows)
}

/// Sorts times, and joins those that overlap.
fn join(times: &mut Vec<RangeInclusive<u64>>) {
    times.sort_unstable_by_key(|own| *own.start());
    times.dedup_by(|next, own| {
        let overlaps = next.start() <= own.end();
        if overlaps {
            *own = *own.start()..=*own.end().max(next.end());
        }
        overlaps
    });
}

/// Writes the chosen packets.
fn write(args: &ExtractArgs, flows: Flows, existing: Existing) -> anyhow::Result<ExitCode> {
    let doing = || format!("writing {}", args.write.display());
    let mut file = AtomicFile::claim(args.write.clone(), existing).with_context(doing)?;
    let out = BufWriter::new(file.begin().with_context(doing)?);
    let has_comments = args.flow.len() + flows.len() > 1;
    let ports = args.tunnel_port.clone().unwrap_or_default();
    let mut chosen = Chosen::new(&args.flow, flows, ports);
    let mut out = PcapngWriter::new(out, &title(args));
    let mut files = source::reader(&args.files, &WATCH);
    let (mut read, mut written, mut failed) = (0_u64, 0_u64, None);
    while failed.is_none() && !WATCH.stopped() {
        let count = files.burst(BURST, |frame| {
            // After a failure the rest of the burst is not written.
            let Some(id) = chosen.of(&frame).filter(|_| failed.is_none()) else { return };
            // With one flow the section says it.
            let comment = if has_comments { id.to_string() } else { String::new() };
            written += 1;
            failed = out.write(&frame, "", &comment).err();
        });
        read += count as u64;
        if count == 0 {
            break;
        }
    }
    match failed.map_or_else(|| out.finish(), Err) {
        Err(error) if file.is_stdout() && error.kind() == std::io::ErrorKind::BrokenPipe => {}
        result => result.with_context(doing)?,
    }
    // Without its end the file is removed.
    if WATCH.stopped() {
        return Ok(INTERRUPTED.into());
    }
    file.finish().with_context(doing)?;
    let has_errors = source::print_notices(&files.take_notices());
    console::note(&format!("wrote {} of {}", count(written), of(read, "packet")));
    Ok(if has_errors { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What the section says of its packets.
fn title(args: &ExtractArgs) -> String {
    let ids: Vec<_> = args.flow.iter().map(CommunityId::to_string).collect();
    match &args.filter {
        Some(filter) => format!("ringtap extract --where '{}'", filter.text),
        None => format!("ringtap extract --flow {}", ids.join(",")),
    }
}

/// The key in that direction whose source is the lower end.
fn lower_first(key: FlowKey) -> FlowKey {
    let turned = key.reversed();
    if (turned.src, turned.src_port) < (key.src, key.src_port) { turned } else { key }
}

/// The packet of a frame, and the one in its tunnel; none without IP.
pub(crate) fn packets_in(decoder: &mut Decoder, frame: &Frame<'_>) -> [Option<PacketRecord>; 2] {
    let mut record = PacketRecord::EMPTY;
    let Frame { ts_ns, link, original_len, data } = *frame;
    match decoder.decode(link, ts_ns, data, original_len, &mut record) {
        Decoded::NonIp(_) => [None; 2],
        _ => [Some(record), decoder.inner(&record).copied()],
    }
}

/// The id of a packet's flow.
pub(crate) fn id_of(key: FlowKey, packet: &PacketRecord) -> CommunityId {
    CommunityId::of_key(key, if is_icmp(packet) { packet.dst_port } else { 0 })
}

fn is_icmp(packet: &PacketRecord) -> bool {
    matches!(packet.protocol, 1 | 58)
}

/// Which packets are chosen.
struct Chosen {
    decoder: Decoder,
    ids: HashSet<[u8; CommunityId::LEN]>,
    flows: Flows,
    /// The id of each key, if it is chosen. ICMP is not in it, because its id depends on the message.
    known: HashMap<FlowKey, Option<CommunityId>>,
}

impl Chosen {
    fn new(ids: &[CommunityId], flows: Flows, ports: TunnelPorts) -> Self {
        let decoder = Decoder::new(HashKey::from_seed(0), Arc::new(Paths::default()));
        Self {
            decoder: decoder.with_tunnel_ports(ports),
            ids: ids.iter().map(|id| *id.as_bytes()).collect(),
            flows,
            known: HashMap::new(),
        }
    }

    /// The chosen flow of a frame: that of its packet, or of the one in its tunnel.
    fn of(&mut self, frame: &Frame<'_>) -> Option<CommunityId> {
        let packets = packets_in(&mut self.decoder, frame);
        packets.iter().flatten().find_map(|packet| self.of_packet(packet))
    }

    fn of_packet(&mut self, packet: &PacketRecord) -> Option<CommunityId> {
        let key = FlowKey::of(packet);
        if self.ids.is_empty() { self.selected(key, packet.ts_ns) } else { self.named(key, packet) }
    }

    /// The flow if an expression selects it.
    fn selected(&self, key: FlowKey, ts_ns: u64) -> Option<CommunityId> {
        let Times { id, spans } = self.flows.get(&lower_first(key))?;
        let begun = spans.partition_point(|span| *span.start() <= ts_ns);
        (begun > 0 && ts_ns <= *spans[begun - 1].end()).then_some(*id)
    }

    /// The flow if its id is given.
    fn named(&mut self, key: FlowKey, packet: &PacketRecord) -> Option<CommunityId> {
        let is_icmp = is_icmp(packet);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let id = id_of(key, packet);
        let id = self.ids.contains(id.as_bytes()).then_some(id);
        if !is_icmp {
            if self.known.len() >= KNOWN_MOST {
                self.known.clear();
            }
            self.known.insert(key, id);
        }
        id
    }
}
