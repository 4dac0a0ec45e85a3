//! Sources of frames to send, and batches of frames.

use ringtap_traffic::Generator;

use super::replay::Replay;
use super::source_frame::SourceFrame;
use crate::source;

/// The source of frames.
pub(super) enum Frames {
    Profile(Box<Generator>),
    Capture(Box<Replay>),
}

impl Frames {
    /// The next frame; `None` at the end.
    pub(super) fn next(&mut self) -> Option<SourceFrame<'_>> {
        match self {
            Self::Profile(generator) => {
                let frame = generator.next()?;
                Some(SourceFrame { ts_ns: frame.ts_ns, data: frame.data, cut: false })
            }
            Self::Capture(replay) => replay.next(),
        }
    }

    /// Prints the notices of the captures; returns whether all were read completely.
    pub(super) fn print_notices(&mut self) -> bool {
        let Self::Capture(replay) = self else { return true };
        !source::print_notices(&replay.take_notices())
    }

    /// Number of skipped frames that are not Ethernet.
    pub(super) fn not_ethernet(&self) -> u64 {
        match self {
            Self::Profile(_) => 0,
            Self::Capture(replay) => replay.not_ethernet,
        }
    }
}

/// Copies of frames that are sent together.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a copy of a frame; returns the copy.
    pub(super) fn push(&mut self, frame: &[u8]) -> &mut [u8] {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
        &mut self.bytes[start..]
    }

    /// Calls `change` with each frame.
    pub(super) fn each(&mut self, mut change: impl FnMut(&mut [u8])) {
        let mut start = 0;
        for &end in &self.ends {
            change(&mut self.bytes[start..end]);
            start = end;
        }
    }

    pub(super) fn slices(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.bytes[start..end]).collect()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_frames_apart() {
        let mut batch = Batch::default();
        for round in 0..2 {
            batch.push(&[1, 2])[0] = 9;
            batch.push(&[]);
            batch.push(&[3]);
            batch.each(|frame| frame.reverse());
            assert_eq!(batch.slices(), [&[2, 9][..], &[], &[3]], "{round}");
            batch.clear();
            assert_eq!(batch.len(), 0);
        }
    }
}
