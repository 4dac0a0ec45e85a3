//! `ringtap extract`: the packets of chosen flows, from captures to a capture.
//!
//! ```text
//! frame ─▶ Decoder ─▶ packet, and the packet in its tunnel ─▶ key known? ─▶ Community ID ─▶ chosen? ─▶ pcapng
//! ```

use std::collections::{HashMap, HashSet};
use std::io::BufWriter;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use ringtap_engine::Watch;
use ringtap_export::formats::CommunityId;
use ringtap_flow::FlowKey;
use ringtap_io::capture::{Frame, PcapngWriter};
use ringtap_program::atomic_file::{AtomicFile, Existing};
use ringtap_program::roles::Roles;
use ringtap_program::{privileges, sandbox};
use ringtap_terminal::console;
use ringtap_terminal::numbers::{count, of};
use ringtap_wire::{Decoded, Decoder, HashKey, PacketRecord, Paths};

use crate::args::ExtractArgs;
use crate::{signals, source};

static WATCH: Watch = Watch::new();

/// Frames that are read at once.
const BURST: usize = 256;

/// Flows whose ids are known, in about 8 MB; those of more are computed again.
const KNOWN_MOST: usize = 1 << 16;

pub(crate) fn run(args: &ExtractArgs) -> anyhow::Result<ExitCode> {
    source::check(&args.files)?;
    let existing = Existing::of(args.force, false);
    let mut roles = Roles::default();
    roles.reads("the input", &args.files);
    roles.writes("--write", Some(&args.write)).check(existing)?;
    sandbox::enter([args.write.as_path()].into_iter(), false)?;
    privileges::forbid_new();
    let result =
        signals::stoppable(&WATCH, || write(args, existing)).context("handling signals")?;
    signals::or_interrupted(WATCH.stopped(), result)
}

/// Writes the chosen packets.
fn write(args: &ExtractArgs, existing: Existing) -> anyhow::Result<ExitCode> {
    let doing = || format!("writing {}", args.write.display());
    let mut file = AtomicFile::claim(args.write.clone(), existing).with_context(doing)?;
    let out = BufWriter::new(file.begin().with_context(doing)?);
    let mut chosen = Chosen::new(&args.flow);
    let ids: Vec<_> = args.flow.iter().map(CommunityId::to_string).collect();
    let mut out = PcapngWriter::new(out, &format!("ringtap extract --flow {}", ids.join(",")))
        .with_context(doing)?;
    let mut files = source::reader(&args.files, &WATCH);
    let (mut read, mut written, mut failed) = (0_u64, 0_u64, None);
    while failed.is_none() && !WATCH.stopped() {
        let count = files.burst(BURST, |frame| {
            // After a failure the rest of the burst is not written.
            let Some(id) = chosen.of(&frame).filter(|_| failed.is_none()) else { return };
            // With one flow the section says it.
            let comment = if args.flow.len() > 1 { id.to_string() } else { String::new() };
            written += 1;
            failed = out.write(&frame, &comment).err();
        });
        read += count as u64;
        if count == 0 {
            break;
        }
    }
    match failed.map_or_else(|| out.flush(), Err) {
        Err(error) if file.is_stdout() && error.kind() == std::io::ErrorKind::BrokenPipe => {}
        result => result.with_context(doing)?,
    }
    drop(out);
    // Without its end the file is removed.
    if WATCH.stopped() {
        return Ok(ExitCode::SUCCESS);
    }
    file.finish().with_context(doing)?;
    let has_errors = source::print_notices(&files.take_notices());
    console::note(&format!("wrote {} of {}", count(written), of(read, "packet")));
    Ok(if has_errors { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Which packets are chosen.
struct Chosen {
    decoder: Decoder,
    ids: HashSet<[u8; CommunityId::LEN]>,
    /// The id of each key, if it is chosen. ICMP is not in it, because its id depends on the message.
    known: HashMap<FlowKey, Option<CommunityId>>,
}

impl Chosen {
    fn new(ids: &[CommunityId]) -> Self {
        Self {
            decoder: Decoder::new(HashKey::from_seed(0), Arc::new(Paths::default())),
            ids: ids.iter().map(|id| *id.as_bytes()).collect(),
            known: HashMap::new(),
        }
    }

    /// The chosen flow of a frame: that of its packet, or of the one in its tunnel.
    fn of(&mut self, frame: &Frame<'_>) -> Option<CommunityId> {
        let mut record = PacketRecord::EMPTY;
        let Frame { ts_ns, link, original_len, data } = *frame;
        let decoded = self.decoder.decode(link, ts_ns, data, original_len, &mut record);
        if let Decoded::NonIp(_) = decoded {
            return None;
        }
        let inner = self.decoder.inner(&record).copied();
        self.of_packet(&record).or_else(|| self.of_packet(&inner?))
    }

    fn of_packet(&mut self, packet: &PacketRecord) -> Option<CommunityId> {
        let key = FlowKey::of(packet);
        let is_icmp = matches!(packet.protocol, 1 | 58);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let id = CommunityId::of_key(key, if is_icmp { packet.dst_port } else { 0 });
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
