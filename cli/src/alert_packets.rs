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
use ringtap_engine::{Plan, Recent};
use ringtap_export::formats::CommunityId;
use ringtap_export::{Notice, Output, WritePackets};
use ringtap_flow::FlowKey;
use ringtap_io::capture::{Frame, PcapngWriter};
use ringtap_monitor::report::Time;
use ringtap_program::atomic_file::{AtomicFile, Existing, Part};
use ringtap_program::leftovers;
use ringtap_terminal::numbers::of;
use ringtap_wire::{Decoder, HashKey, Paths, TunnelPorts};

use crate::extract::{id_of, packets_in};
use crate::outputs::packets_path;

/// Writes the files of a folder.
pub(crate) struct PacketFiles {
    file: AtomicFile,
    recent: Arc<Recent>,
    /// The names of interfaces, by their positions in the source; none in runs over files.
    interfaces: Vec<String>,
    key: HashKey,
    ports: TunnelPorts,
}

impl PacketFiles {
    /// The writers of all outputs that have packets.
    ///
    /// # Errors
    /// A folder in which no file can be created.
    pub(crate) fn open_all<A>(
        outputs: &[Output],
        plan: &Plan<A>,
        interfaces: &[String],
    ) -> anyhow::Result<Vec<Self>> {
        let Some(recent) = &plan.recent else { return Ok(Vec::new()) };
        let open = |output: &Output| {
            let of = |file| Self {
                file,
                recent: Arc::clone(recent),
                interfaces: interfaces.to_vec(),
                key: plan.hash_key(),
                ports: plan.options.tunnel_ports.clone(),
            };
            let file = Self::open(packets_path(output)?).map(of);
            Some(file.with_context(|| format!("opening the output {output}")))
        };
        outputs.iter().filter_map(open).collect()
    }

    /// Checks that a file can be created.
    fn open(path: PathBuf) -> io::Result<AtomicFile> {
        // A part is not the whole file.
        leftovers::finish(&path, |_| Ok(0), |_| path.clone());
        let mut file = AtomicFile::new(path, Existing::Next);
        file.begin()?;
        file.discard();
        Ok(file)
    }

    /// The temporary file, to be removed when the program exits early.
    pub(crate) fn part(&self) -> Part {
        self.file.part()
    }

    fn write_packets(&mut self, notice: &Notice) -> io::Result<()> {
        // A file depends on its own frames alone.
        let decoder = Decoder::new(self.key, Arc::new(Paths::none()));
        let mut decoder = decoder.with_tunnel_ports(self.ports.clone());
        let mut packets = self.recent.reader();
        let title = title(notice, packets.since_ns(), packets.too_long());
        let mut out = PcapngWriter::new(BufWriter::new(self.file.begin()?), &title);
        while let Some(next) =
            packets.next(|frame| flow_of(&mut decoder, frame, &notice.packets_of))
        {
            let mut comment = next.value.to_string();
            if next.overwritten > 0 {
                comment = format!("{comment} {}", overwritten(next.overwritten, "before this one"));
            }
            let interface = self.interfaces.get(next.interface).map_or("", String::as_str);
            out.write(&next.frame, interface, &comment)?;
        }
        let at_end = packets.overwritten_at_end();
        if at_end > 0 {
            out.comment(&overwritten(at_end, "at the end"));
        }
        out.finish()
    }

    fn write_file(&mut self, notice: &Notice) -> io::Result<u64> {
        self.write_packets(notice)?;
        self.file.set_name(self.file.path().with_file_name(name(notice)));
        self.file.finish_or_discard()?;
        Ok(self.file.last().and_then(|path| fs::metadata(path).ok()).map_or(0, |data| data.len()))
    }
}

impl WritePackets for PacketFiles {
    fn write(&mut self, notice: &Notice) -> io::Result<u64> {
        let written = self.write_file(notice);
        if written.is_err() {
            self.file.discard();
        }
        written
    }
}

/// What a comment says of frames that were overwritten too soon.
fn overwritten(frames: u64, place: &str) -> String {
    format!("{} of all hosts overwritten {place} while the file was written", of(frames, "packet"))
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

#[cfg(test)]
mod tests {
    use ringtap_engine::{Machine, Options, RecentBytes};
    use ringtap_export::Severity;

    use super::*;

    fn notice(kind: &'static str) -> Notice {
        Notice {
            json: "{}".into(),
            text: "an alert".into(),
            kind,
            severity: Severity::Medium,
            is_end: false,
            fields: vec![("id".into(), "7".into())],
            time_ns: 0,
            packets_of: vec![[10, 0, 0, 1].into()],
            lost_before: 0,
        }
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let name =
            |file: io::Result<fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
        let mut all: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
        all.sort();
        all
    }

    fn plan(seed: u64) -> Plan<ringtap_monitor::Options> {
        let options = Options { recent: Some(RecentBytes::Default), seed, ..Options::default() };
        Plan::new(options, ringtap_monitor::Options::default(), &Machine::this()).unwrap()
    }

    fn open(folder: &tempfile::TempDir, seed: u64) -> PacketFiles {
        let output = format!("packets:{}", folder.path().display());
        let output = Output::Alerts(output.parse().unwrap());
        let all = PacketFiles::open_all(&[output], &plan(seed), &["eth0".into()]);
        all.unwrap().remove(0)
    }

    #[test]
    fn a_file_that_cannot_be_named_leaves_nothing_and_the_next_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = open(&folder, 1);
        assert_eq!(names(&folder), <[&str; 0]>::default());
        fs::write(folder.path().join("19700101T000000Z-flood-7.pcapng"), "of another").unwrap();
        let too_long = Box::leak("x".repeat(300).into_boxed_str());
        assert!(files.write(&notice(too_long)).is_err());
        assert_eq!(names(&folder), ["19700101T000000Z-flood-7.pcapng"]);
        assert!(files.write(&notice("flood")).unwrap() > 0);
        let both = ["19700101T000000Z-flood-7.1.pcapng", "19700101T000000Z-flood-7.pcapng"];
        assert_eq!(names(&folder), both);
        assert_eq!(fs::read(folder.path().join(both[1])).unwrap(), b"of another");
    }

    #[test]
    fn tables_have_the_seed_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let keys = [1, 2].map(|seed| open(&folder, seed).key);
        assert_eq!(keys, [1, 2].map(|seed| plan(seed).hash_key()));
        assert_ne!(keys[0], keys[1]);
    }
}
