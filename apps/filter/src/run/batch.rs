//! Passed frames, copied from the kernel's buffers, until they are sent.
//!
//! Work that the sender of a frame left to the network card is done here: checksums when a frame is
//! copied, the segments of a super-frame when it is sent.
//!
//! ```text
//!  frames    │ frame │ frame │ super-frame                   │ frame │
//!  staged                    │ segment │ segment │ segment │            a few at a time
//! ```
//!
//! Invariant: frames leave in order. A frame is sent when all of its segments are; memory is
//! bounded for any segment size.

use std::collections::VecDeque;

use ringtap_io::live::{Frame, Offload, Segments, SendError, Sender, complete};

/// Frames of a burst.
pub(super) const BURST: usize = 256;

/// Segments staged at a time.
const STAGED: usize = 64;

/// Keeps its memory.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// End of each frame.
    ends: Vec<usize>,
    /// Number of frames sent.
    sent: usize,
    /// Super-frames not sent yet, with their positions among the frames.
    cuts: VecDeque<(usize, Segments)>,
    /// Segments of the first of them, once it is being sent.
    staged: Staged,
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
        match (segments, offload) {
            (Some(segments), _) => self.cuts.push_back((self.ends.len(), segments)),
            (None, Offload::Done) => {}
            (None, _) => {
                let copy = self.bytes.get_mut(begin..).unwrap_or_default();
                if complete(copy, offload).is_err() {
                    self.bytes.truncate(begin);
                    return Err("offload");
                }
            }
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Frames that are not sent yet.
    pub(super) fn left(&self) -> usize {
        self.ends.len() - self.sent
    }

    /// Sends as many as possible; returns the frames and segments that the output accepted, and the
    /// frames completed.
    pub(super) fn send(&mut self, sender: &mut Sender) -> Result<Progress, SendError> {
        let Self { bytes, ends, sent, cuts, staged } = self;
        let start = sent.checked_sub(1).map_or(0, |before| ends[before]);
        if let Some(&(at, segments)) = cuts.front()
            && at == *sent
        {
            let frame = &bytes[start..ends[at]];
            let taken = staged.send(frame, &segments, sender)?;
            let done = staged.sent == staged.ends.len() && staged.next == segments.count();
            if done {
                staged.clear();
                cuts.pop_front();
                *sent += 1;
            }
            return Ok(Progress { taken, frames: usize::from(done) });
        }
        let till = cuts.front().map_or(ends.len(), |&(at, _)| at);
        let taken = send(bytes, start, &ends[*sent..till], sender)?;
        *sent += taken;
        Ok(Progress { taken, frames: taken })
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.sent = 0;
        self.cuts.clear();
        self.staged.clear();
    }
}

/// The result of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Outgoing frames: a super-frame leaves as several.
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
