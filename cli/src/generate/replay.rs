//! Replay of capture files: their frames, once or repeatedly.
//!
//! ```text
//!  round 1   files ─▶ chunk, chunk, chunk …   kept while they fit
//!  round 2   if all are kept, the same chunks; else the files again
//!  times     ├ round 1 ┤ gap ├ round 2 ┤ gap …     continuous; gap: the mean interval of frames
//! ```
//!
//! Invariant: memory is bounded; frames that are not Ethernet are counted and skipped.

use std::path::{Path, PathBuf};

use ringtap_engine::Watch;
use ringtap_io::capture::{Chunk, Place};
use ringtap_io::capture::{Files, Notice};
use ringtap_wire::LinkType;

use super::source_frame::SourceFrame;
use crate::source;
use ringtap_terminal::Usage;

/// Most chunks of 256 KiB that are kept for further rounds.
const KEPT_MOST: usize = 1024;

pub(super) struct Replay {
    paths: Vec<PathBuf>,
    watch: &'static Watch,
    files: Files,
    /// The chunks read in this round, if they are kept; else the current chunk.
    chunks: Vec<Chunk>,
    keep: bool,
    kept_most: usize,
    /// Whether a whole round is kept.
    all_kept: bool,
    /// The next chunk and position.
    chunk: usize,
    at: usize,
    rounds_left: u64,
    frames_left: u64,
    times: Times,
    first_round: bool,
    notices: Vec<Notice>,
    /// Frames of other link types.
    pub(super) not_ethernet: u64,
}

impl Replay {
    /// Replays all files `rounds` times (0: without end), at most `most` frames.
    pub(super) fn new(
        paths: &[PathBuf],
        rounds: u64,
        most: u64,
        watch: &'static Watch,
    ) -> anyhow::Result<Self> {
        let again = rounds != 1;
        let once_only = |path: &&PathBuf| path.as_os_str() == "-" || is_pipe(path);
        if let Some(path) = paths.iter().find(once_only).filter(|_| again) {
            let path = path.display();
            return Err(Usage::of(format!("{path} can be read only once: omit --loop")));
        }
        Ok(Self {
            paths: paths.to_vec(),
            watch,
            files: source::files(paths, watch)?,
            chunks: vec![Chunk::new()],
            keep: again,
            kept_most: KEPT_MOST,
            all_kept: false,
            chunk: 0,
            at: 0,
            rounds_left: if rounds == 0 { u64::MAX } else { rounds },
            frames_left: most,
            times: Times::default(),
            first_round: true,
            notices: Vec::new(),
            not_ethernet: 0,
        })
    }

    /// The next frame; `None` at the end.
    pub(super) fn next(&mut self) -> Option<SourceFrame<'_>> {
        if self.frames_left == 0 {
            return None;
        }
        let place = self.find()?;
        self.frames_left -= 1;
        let data = self.chunks[self.chunk].data(&place);
        let cut = data.len() < place.original_len as usize;
        Some(SourceFrame { ts_ns: self.times.of(place.ts_ns), data, cut })
    }

    /// Notices of the files since the last call.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        self.collect_notices();
        self.notices.retain(|notice| !source::is_stop(notice));
        std::mem::take(&mut self.notices)
    }

    /// The next Ethernet frame of this round or a later one.
    fn find(&mut self) -> Option<Place> {
        loop {
            while let Some(place) = self.chunks[self.chunk].places.get(self.at).copied() {
                self.at += 1;
                if place.link == LinkType::ETHERNET {
                    return Some(place);
                }
                self.not_ethernet += 1;
            }
            if !self.next_chunk() && !self.next_round() {
                return None;
            }
        }
    }

    /// Advances to the next chunk; false at the end of the round.
    fn next_chunk(&mut self) -> bool {
        if self.all_kept {
            let more = self.chunk + 1 < self.chunks.len();
            self.chunk += usize::from(more);
            self.at = if more { 0 } else { self.at };
            return more;
        }
        if self.keep && self.chunks.len() == self.kept_most {
            self.keep = false;
            self.chunks.truncate(1);
            self.chunk = 0;
        }
        if self.keep && !self.chunks[self.chunk].places.is_empty() {
            self.chunks.push(Chunk::new());
            self.chunk += 1;
        }
        self.at = 0;
        self.files.read(&mut self.chunks[self.chunk]) > 0
    }

    /// Begins the next round; false if there is none, or it is empty.
    fn next_round(&mut self) -> bool {
        self.collect_notices();
        self.first_round = false;
        self.rounds_left = self.rounds_left.saturating_sub(1);
        if self.rounds_left == 0 || self.times.end_round() == 0 || self.watch.stopped() {
            return false;
        }
        if self.keep {
            self.all_kept = true;
        } else {
            self.files = source::reader(&self.paths, self.watch);
        }
        (self.chunk, self.at) = (0, 0);
        self.all_kept || self.next_chunk()
    }

    /// Collects notices of the first round; later rounds repeat them.
    fn collect_notices(&mut self) {
        let notices = self.files.take_notices();
        if self.first_round {
            self.notices.extend(notices);
        }
    }
}

fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

/// Timestamps that continue from round to round.
#[derive(Default)]
struct Times {
    /// The earliest and the latest timestamp of this round.
    range: Option<(u64, u64)>,
    frames: u64,
    shift_ns: u64,
}

impl Times {
    /// The continued timestamp of a frame.
    fn of(&mut self, ts_ns: u64) -> u64 {
        let (first, last) = self.range.unwrap_or((ts_ns, ts_ns));
        self.range = Some((first.min(ts_ns), last.max(ts_ns)));
        self.frames += 1;
        ts_ns.saturating_add(self.shift_ns)
    }

    /// Ends a round; returns its number of frames.
    fn end_round(&mut self) -> u64 {
        let frames = std::mem::take(&mut self.frames);
        if let Some((first, last)) = self.range.take() {
            let span = last - first;
            let gap = span / frames.saturating_sub(1).max(1);
            self.shift_ns = self.shift_ns.saturating_add(span).saturating_add(gap);
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use ringtap_io::capture::PcapWriter;

    use super::*;

    static WATCH: Watch = Watch::new();

    #[test]
    fn rounds_are_the_same_whether_chunks_are_kept_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.pcap");
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = PcapWriter::new(file, LinkType::ETHERNET, 65_535);
        // Three chunks.
        for number in 0..500_u32 {
            let frame = [number.to_be_bytes(); 350].concat();
            writer.write(u64::from(number) * 10, 1_400 + number % 2, &frame).unwrap();
        }
        writer.flush().unwrap();
        for kept_most in [1, 2, 3, 4] {
            let mut replay = Replay::new(std::slice::from_ref(&path), 3, 1_499, &WATCH).unwrap();
            replay.kept_most = kept_most;
            for number in 0..1_499 {
                let sent = replay.next().unwrap();
                assert_eq!(sent.ts_ns, number * 10, "{kept_most}");
                assert_eq!(sent.data[..4], (number as u32 % 500).to_be_bytes(), "{kept_most}");
                assert_eq!(sent.cut, number % 2 == 1);
            }
            assert!(replay.next().is_none() && replay.take_notices().is_empty());
            assert!(replay.chunks.len() <= kept_most);
        }
    }

    #[test]
    fn a_missing_file_is_an_error_and_nothing_is_replayed() {
        let (here, missing) = ("Cargo.toml".into(), "no-such.pcap".into());
        let error = Replay::new(&[here, missing], 1, u64::MAX, &WATCH).err().unwrap().to_string();
        assert_eq!(error, "opening no-such.pcap: no such file");
    }

    #[test]
    fn an_unreadable_file_ends_the_replay_and_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "no capture").unwrap();
        let mut replay = Replay::new(&[path], 0, u64::MAX, &WATCH).unwrap();
        assert!(replay.next().is_none() && replay.next().is_none());
        assert_eq!((replay.take_notices().len(), replay.take_notices().len()), (1, 0));
    }

    #[test]
    fn timestamps_continue_from_round_to_round() {
        let mut times = Times::default();
        let round = |times: &mut Times| [100, 140, 120, 160].map(|ts| times.of(ts));
        assert_eq!(round(&mut times), [100, 140, 120, 160]);
        assert_eq!(times.end_round(), 4);
        assert_eq!(round(&mut times), [180, 220, 200, 240]);
        times.end_round();
        assert_eq!(round(&mut times), [260, 300, 280, 320]);
        assert_eq!(Times::default().end_round(), 0);
    }
}
