//! The packets of alerts: a file for each alert that begins, from the frames in memory.
//!
//! ```text
//! merger ─ Notice ─▶ thread of the output ─▶ PacketFiles ─▶ .alert.pcapng.PID-RANDOM.part ─▶ TIME-KIND-ID.pcapng
//!                    Recent ─ frames of its host or pair ───┘
//! ```
//!
//! Invariants: a file is complete or absent, and replaces none; the run does not wait for it.

use std::fs;
use std::io::{self, BufWriter};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use ringtap_engine::{Options, Recent};
use ringtap_export::formats::CommunityId;
use ringtap_export::{Notice, Output, WritePackets};
use ringtap_flow::FlowKey;
use ringtap_io::capture::{Frame, PcapngWriter};
use ringtap_monitor::report::Time;
use ringtap_program::atomic_file::{AtomicFile, Existing, Part};
use ringtap_program::leftovers;
use ringtap_terminal::numbers::of;
use ringtap_wire::{Decoder, HashKey, TunnelPorts};

use crate::extract::{id_of, packets_in};
use crate::outputs::packets_path;

/// What a packet's comment says, after the id of its flow, if earlier ones were overwritten too soon.
const GAP: &str = "packets before this one were overwritten while the file was written";

/// Writes the files of a folder.
pub(crate) struct PacketFiles {
    file: AtomicFile,
    recent: Arc<Recent>,
    decoder: Decoder,
}

impl PacketFiles {
    /// The writers of all outputs that have packets.
    ///
    /// # Errors
    /// A folder in which no file can be created.
    pub(crate) fn open_all(outputs: &[Output], options: &Options) -> anyhow::Result<Vec<Self>> {
        let Some(recent) = &options.recent else { return Ok(Vec::new()) };
        let open = |output: &Output| {
            let file = Self::open(packets_path(output)?, recent, options.tunnel_ports.clone());
            Some(file.with_context(|| format!("opening the output {output}")))
        };
        outputs.iter().filter_map(open).collect()
    }

    fn open(path: PathBuf, recent: &Arc<Recent>, ports: TunnelPorts) -> io::Result<Self> {
        // A part is not the whole file.
        leftovers::finish(&path, |_| Ok(0), |_| path.clone());
        let mut file = AtomicFile::new(path, Existing::Next);
        file.begin()?;
        file.part().remove();
        let decoder = Decoder::new(HashKey::from_seed(0), Arc::default());
        Ok(Self { file, recent: Arc::clone(recent), decoder: decoder.with_tunnel_ports(ports) })
    }

    /// The temporary file, to be removed when the program exits early.
    pub(crate) fn part(&self) -> Part {
        self.file.part()
    }

    fn write_packets(&mut self, notice: &Notice) -> io::Result<()> {
        let Self { file, recent, decoder } = self;
        let mut packets = recent.reader();
        let title = title(notice, packets.since_ns(), packets.too_long());
        let mut out = PcapngWriter::new(BufWriter::new(file.begin()?), &title)?;
        while let Some(next) = packets.next(|frame| flow_of(decoder, frame, &notice.packets_of)) {
            let mut comment = next.value.to_string();
            if next.has_gap {
                comment = format!("{comment} {GAP}");
            }
            out.write(&next.frame, &comment)?;
        }
        out.flush()
    }
}

impl WritePackets for PacketFiles {
    fn write(&mut self, notice: &Notice) -> io::Result<u64> {
        if let Err(error) = self.write_packets(notice) {
            self.part().remove();
            return Err(error);
        }
        self.file.set_name(self.file.path().with_file_name(name(notice)));
        self.file.finish()?;
        Ok(self.file.last().and_then(|path| fs::metadata(path).ok()).map_or(0, |data| data.len()))
    }
}

/// The flow of the frame's packet, or of the one in its tunnel, that has all of these addresses.
fn flow_of(decoder: &mut Decoder, frame: &Frame<'_>, hosts: &[IpAddr]) -> Option<CommunityId> {
    packets_in(decoder, frame).into_iter().flatten().find_map(|packet| {
        let key = FlowKey::of(&packet);
        let ends = [key.source(), key.destination()];
        hosts.iter().all(|host| ends.contains(host)).then(|| id_of(key, &packet))
    })
}

/// What the file says of itself.
fn title(notice: &Notice, since_ns: Option<u64>, too_long: u64) -> String {
    let hosts: Vec<_> = notice.packets_of.iter().map(IpAddr::to_string).collect();
    let (text, hosts) = (&notice.text, hosts.join(" and "));
    let since = since_ns.map_or("the start of the run".into(), |ns| Time(ns).to_string());
    let title = format!("{text}; packets of {hosts}, from {since} on");
    match too_long {
        0 => title,
        frames => {
            format!("{title}, without {} of all hosts that were too long", of(frames, "frame"))
        }
    }
}

/// The name of its file: the time of the alert, its kind and its number in the run.
fn name(notice: &Notice) -> String {
    let time = Time(notice.time_ns).to_string();
    let time: String = time.chars().filter(char::is_ascii_alphanumeric).take(15).collect();
    let id = notice.fields.iter().find(|(name, _)| name == "id").map_or("0", |(_, id)| id);
    format!("{time}Z-{}-{id}.pcapng", notice.kind)
}
