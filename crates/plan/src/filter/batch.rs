//! Frames that passed, copied from where the kernel lent them, until they are sent.

use ringtap_live::{SendError, Sender};

/// Frames of a burst.
pub(super) const BURST: usize = 256;

/// See the module. Its memory stays.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
    /// Frames sent of these.
    sent: usize,
}

impl Batch {
    pub(super) fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    /// Frames that are still to be sent.
    pub(super) fn left(&self) -> usize {
        self.ends.len() - self.sent
    }

    /// Sends what it can of them; how many.
    pub(super) fn send(&mut self, sender: &mut Sender) -> Result<usize, SendError> {
        let Self { bytes, ends, sent } = self;
        let mut frames = [&[][..]; BURST];
        let mut start = sent.checked_sub(1).map_or(0, |before| ends[before]);
        let rest = &ends[*sent..];
        for (frame, &end) in frames.iter_mut().zip(rest) {
            *frame = &bytes[start..end];
            start = end;
        }
        let count = sender.send(&frames[..rest.len().min(BURST)])?;
        *sent += count;
        Ok(count)
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.sent = 0;
    }
}
