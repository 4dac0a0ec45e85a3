//! Frames that passed, copied from where the kernel lent them, until they are sent.
//!
//! What the sender of a frame left to the network card is done here: checksums when a frame is copied, the segments of a
//! super-frame when it is its turn to be sent.
//!
//! ```text
//!  frames    │ frame │ frame │ super-frame                   │ frame │
//!  staged                    │ segment │ segment │ segment │            a few at a time
//! ```
//!
//! Invariant: frames leave in their order. A frame is sent when all of its segments are; memory is bounded whatever the
//! size of segments.

use std::collections::VecDeque;

use ringtap_io::live::{Frame, Offload, Segments, SendError, Sender, complete};

/// Frames of a burst.
pub(super) const BURST: usize = 256;

/// Segments that are staged at a time.
const STAGED: usize = 64;

/// Its memory stays.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
    /// Frames sent of these.
    sent: usize,
    /// Super-frames that are not sent yet, with their places among the frames.
    cuts: VecDeque<(usize, Segments)>,
    /// Segments of the first of them, once it is its turn.
    staged: Staged,
}

/// Segments of one super-frame.
#[derive(Default)]
struct Staged {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Segments sent of these.
    sent: usize,
    /// Segments sent or staged of the super-frame.
    next: usize,
}

impl Batch {
    /// Takes a frame that `sender` is to send, or says why that cannot be.
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

    /// Frames that are still to be sent.
    pub(super) fn left(&self) -> usize {
        self.ends.len() - self.sent
    }

    /// Sends what it can of them; how many frames and segments the output has taken, and how many frames are sent by
    /// that.
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

/// What a call sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progress {
    /// Frames as they leave: a super-frame leaves as several.
    pub(super) taken: usize,
    /// Frames as they came.
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

/// Sends frames that lie one after the other and end there; how many.
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
