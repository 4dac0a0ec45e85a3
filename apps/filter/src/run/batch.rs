//! Passed frames, copied from the kernel's buffers, until they are sent.
//!
//! The sender of a frame may have left its checksum, and the cutting of a super-frame, to the network
//! card. If the output takes marks, the frame leaves with them, whole, and the kernel or the card does
//! the rest. Otherwise that is done here: checksums when a frame is copied, segments when it is sent.
//!
//! ```text
//!  frames    │ frame │ frame │ super-frame                   │ frame │
//!  staged                    │ segment │ segment │ segment │            a few at a time, if it is cut
//! ```
//!
//! An interface may take super-frames of some kinds only, and that may change. It does not report
//! why it refuses a frame. So one that it refuses is cut, and so are those after it, [`CUT`] in all.
//!
//! Invariant: frames leave in order. A frame is sent when all of its segments are; memory is
//! bounded for any segment size.

use std::collections::VecDeque;

use ringtap_io::live::{Frame, Marks, Offload, Segments, SendError, Sender, complete};
use serde::Serialize;

/// Frames of a burst.
pub(super) const BURST: usize = 256;

/// Segments staged at a time.
const STAGED: usize = 64;

/// Super-frames that are cut once the output has refused one.
const CUT: u32 = 64;

/// Keeps its memory.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// End of each frame.
    ends: Vec<usize>,
    /// Marks of each frame.
    marks: Vec<Marks>,
    /// Number of frames sent.
    sent: usize,
    /// Super-frames not sent yet.
    supers: VecDeque<SuperFrame>,
    /// Segments of the first of them, once it is being sent in segments.
    staged: Staged,
    /// Number of super-frames that are cut before one is sent whole again.
    cut: u32,
    /// Super-frames sent so far.
    counters: SuperFrames,
}

#[derive(Clone, Copy)]
struct SuperFrame {
    /// Its position among the frames.
    at: usize,
    segments: Segments,
}

/// Counters of super-frames that were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SuperFrames {
    /// Sent whole.
    pub whole: u64,
    /// Cut and sent.
    pub cut: u64,
    /// Segments of both.
    pub segments: u64,
}

impl SuperFrames {
    pub(super) fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.cut += other.cut;
        self.segments += other.segments;
    }
}

/// Segments of one super-frame.
#[derive(Default)]
struct Staged {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Number of segments sent.
    sent: usize,
    /// Number of segments of the super-frame sent or staged.
    next: usize,
}

impl Batch {
    /// Takes a frame to send by `sender`, or returns why that is impossible.
    pub(super) fn push(&mut self, frame: &Frame<'_>, sender: &Sender) -> Result<(), &'static str> {
        let Frame { data, offload, .. } = *frame;
        if data.len() < frame.original_len as usize {
            return Err("cut");
        }
        let segments = match offload {
            Offload::Done => None,
            _ => Segments::of(data, offload).map_err(|_| "offload")?,
        };
        let lengths = sender.lengths(data);
        match segments.map_or(data.len(), |segments| segments.longest()) {
            len if len > *lengths.end() => return Err("too_long"),
            len if len < *lengths.start() => return Err("too_short"),
            _ => {}
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(data);
        let copy = self.bytes.get_mut(begin..).unwrap_or_default();
        let takes_marks = sender.takes_marks();
        let marks = match segments {
            Some(segments) if takes_marks => Ok(segments.mark(copy).unwrap_or_default()),
            None if takes_marks => Marks::of(copy, offload),
            Some(_) => Ok(Marks::default()),
            None => complete(copy, offload).map(|()| Marks::default()),
        };
        let Ok(marks) = marks else {
            self.bytes.truncate(begin);
            return Err("offload");
        };
        if let Some(segments) = segments {
            self.supers.push_back(SuperFrame { at: self.ends.len(), segments });
        }
        self.ends.push(self.bytes.len());
        self.marks.push(marks);
        Ok(())
    }

    /// Frames that are not sent yet.
    pub(super) fn left(&self) -> usize {
        self.ends.len() - self.sent
    }

    pub(super) fn counters(&self) -> SuperFrames {
        self.counters
    }

    /// Sends as many as possible; returns the frames and segments that the output accepted, and the
    /// frames completed.
    pub(super) fn send(&mut self, sender: &mut Sender) -> Result<Progress, SendError> {
        // The first super-frame that is not sent whole.
        let is_cut = |one: &&SuperFrame| self.cut > 0 || self.marks[one.at] == Marks::default();
        let till = self.supers.iter().find(is_cut).map_or(self.ends.len(), |one| one.at);
        if till > self.sent {
            let first = self.supers.front().is_some_and(|one| one.at == self.sent);
            match self.send_whole(till, sender) {
                // A frame that the kernel finds invalid, or for which it has no room.
                Ok(0) | Err(SendError::System(_)) if first => self.cut = CUT,
                result => return result.map(|taken| Progress { taken, frames: taken }),
            }
        }
        let Some(&SuperFrame { at, segments }) = self.supers.front() else {
            return Ok(Progress { taken: 0, frames: 0 });
        };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let frame = &self.bytes[start..self.ends[at]];
        let taken = self.staged.send(frame, &segments, sender)?;
        let done = self.staged.is_done(&segments);
        if done {
            self.staged.clear();
            self.supers.pop_front();
            self.sent += 1;
            self.cut = self.cut.saturating_sub(1);
            self.counters.cut += 1;
            self.counters.segments += segments.count() as u64;
        }
        Ok(Progress { taken, frames: usize::from(done) })
    }

    /// Sends frames up to a position as they are; returns their number.
    fn send_whole(&mut self, till: usize, sender: &mut Sender) -> Result<usize, SendError> {
        let Self { bytes, ends, marks, sent, supers, counters, .. } = self;
        let start = sent.checked_sub(1).map_or(0, |before| ends[before]);
        let taken = if sender.takes_marks() {
            let starts = std::iter::once(start).chain(ends[*sent..till].iter().copied());
            let mut frames = [(Marks::default(), &[][..]); BURST];
            let parts = starts.zip(&ends[*sent..till]).zip(&marks[*sent..till]);
            for (frame, ((start, &end), &marks)) in frames.iter_mut().zip(parts) {
                *frame = (marks, &bytes[start..end]);
            }
            let count = (till - *sent).min(BURST);
            sender.send_marked(frames[..count].iter().copied())?
        } else {
            send(bytes, start, &ends[*sent..till], sender)?
        };
        *sent += taken;
        while let Some(one) = supers.pop_front_if(|one| one.at < *sent) {
            counters.whole += 1;
            counters.segments += one.segments.count() as u64;
        }
        Ok(taken)
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.marks.clear();
        self.sent = 0;
        self.supers.clear();
        self.staged.clear();
    }
}

/// The result of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Outgoing frames: a super-frame that is cut leaves as several.
    pub(super) taken: usize,
    /// Received frames.
    pub(super) frames: usize,
}

impl Staged {
    fn send(
        &mut self,
        frame: &[u8],
        segments: &Segments,
        sender: &mut Sender,
    ) -> Result<usize, SendError> {
        if self.sent == self.ends.len() {
            self.bytes.clear();
            self.ends.clear();
            self.sent = 0;
            let till = (self.next + STAGED).min(segments.count());
            for index in self.next..till {
                segments.append(frame, index, &mut self.bytes);
                self.ends.push(self.bytes.len());
            }
            self.next = till;
        }
        let start = self.sent.checked_sub(1).map_or(0, |before| self.ends[before]);
        let taken = send(&self.bytes, start, &self.ends[self.sent..], sender)?;
        self.sent += taken;
        Ok(taken)
    }

    /// Whether all segments are sent.
    fn is_done(&self, segments: &Segments) -> bool {
        self.sent == self.ends.len() && self.next == segments.count()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        (self.sent, self.next) = (0, 0);
    }
}

/// Sends contiguous frames up to there; returns their number.
fn send(
    bytes: &[u8],
    mut start: usize,
    ends: &[usize],
    sender: &mut Sender,
) -> Result<usize, SendError> {
    let mut frames = [&[][..]; BURST];
    for (frame, &end) in frames.iter_mut().zip(ends) {
        *frame = &bytes[start..end];
        start = end;
    }
    sender.send(&frames[..ends.len().min(BURST)])
}
