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
//! An interface may take super-frames of some kinds only, and that may change. So one that it refuses
//! is cut, and so are those after it, [`CUT`] in all. The kernel may report a full queue by the same
//! error. Then the segments show which it is: if the output accepts the first ones at once, its queue
//! has room, so it has refused the super-frame. If it accepts none, the super-frame stays whole.
//!
//! Invariant: frames leave in order. A frame is sent when all of its segments are; memory is
//! bounded for any segment size.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use ringtap_io::live::{Frame, Marks, Offload, Segments, SendError, Sender, complete};
use serde::Serialize;

/// Frames of a burst.
pub(super) const BURST: usize = 256;

/// Bytes of a burst of the longest frames, which are super-frames of 64 KiB.
pub(super) const BURST_BYTES: usize = BURST << 16;

/// Segments staged at a time.
const STAGED: usize = 64;

/// Super-frames that are cut once the output has refused one.
const CUT: u32 = 64;

/// The destination of a batch.
pub(super) trait Output {
    /// Whether frames may have marks; constant.
    fn takes_marks(&self) -> bool;

    /// Lengths that it accepts for such a frame, in bytes.
    fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize>;

    /// Sends frames that have no marks; returns how many were accepted, counted from the first.
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError>;

    /// Sends frames with marks, as [`send`](Self::send) does without; an error for a super-frame that is refused.
    fn send_marked(&mut self, frames: &[(Marks, &[u8])]) -> Result<usize, SendError>;

    /// How often it had no room.
    fn refused(&mut self) -> u64;
}

impl Output for Sender {
    fn takes_marks(&self) -> bool {
        Self::takes_marks(self)
    }

    fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize> {
        Self::lengths(self, frame)
    }

    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
        Self::send(self, frames)
    }

    fn send_marked(&mut self, frames: &[(Marks, &[u8])]) -> Result<usize, SendError> {
        Self::send_marked(self, frames.iter().copied())
    }

    fn refused(&mut self) -> u64 {
        self.counters().refused
    }
}

/// Keeps its memory.
pub(super) struct Batch {
    /// Whether the output takes marks.
    takes_marks: bool,
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
    /// A batch for this output.
    pub(super) fn new(output: &impl Output) -> Self {
        Self {
            takes_marks: output.takes_marks(),
            bytes: Vec::new(),
            ends: Vec::new(),
            marks: Vec::new(),
            sent: 0,
            supers: VecDeque::new(),
            staged: Staged::default(),
            cut: 0,
            counters: SuperFrames::default(),
        }
    }

    /// Takes a frame to send by `output`, or returns why that is impossible.
    pub(super) fn push(
        &mut self,
        frame: &Frame<'_>,
        output: &impl Output,
    ) -> Result<(), &'static str> {
        let Frame { data, offload, .. } = *frame;
        if data.len() < frame.original_len as usize {
            return Err("cut");
        }
        let segments = match offload {
            Offload::Done => None,
            _ => Segments::of(data, offload).map_err(|_| "offload")?,
        };
        let lengths = output.lengths(data);
        match segments.map_or(data.len(), |segments| segments.longest()) {
            len if len > *lengths.end() => return Err("too_long"),
            len if len < *lengths.start() => return Err("too_short"),
            _ => {}
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(data);
        let copy = self.bytes.get_mut(begin..).unwrap_or_default();
        let marks = match segments {
            Some(segments) if self.takes_marks => Ok(segments.mark(copy).unwrap_or_default()),
            None if self.takes_marks => Marks::of(copy, offload),
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
    pub(super) fn send(&mut self, output: &mut impl Output) -> Result<Progress, SendError> {
        // The first super-frame that is not sent whole.
        let is_cut = |one: &&SuperFrame| self.cut > 0 || self.marks[one.at] == Marks::default();
        let till = self.supers.iter().find(is_cut).map_or(self.ends.len(), |one| one.at);
        let mut refused = None;
        if till > self.sent {
            match self.send_whole(till, output) {
                Err(SendError::SuperFrame { or_full }) => refused = Some(or_full),
                result => return result.map(|taken| Progress { taken, frames: taken }),
            }
        }
        let Some(&SuperFrame { at, segments }) = self.supers.front() else {
            return Ok(Progress { taken: 0, frames: 0 });
        };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let frame = &self.bytes[start..self.ends[at]];
        let full = output.refused();
        let taken = self.staged.send(frame, &segments, output)?;
        match refused {
            None => {}
            // The queue is full: the next call tries the super-frame whole again, or cuts only the
            // one that has been begun.
            Some(true) if taken == 0 => self.staged.clear(),
            Some(true) if output.refused() > full => self.cut = 1,
            Some(_) => self.cut = CUT,
        }
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
    fn send_whole(&mut self, till: usize, output: &mut impl Output) -> Result<usize, SendError> {
        let Self { takes_marks, bytes, ends, marks, sent, supers, counters, .. } = self;
        let start = sent.checked_sub(1).map_or(0, |before| ends[before]);
        let taken = if *takes_marks {
            let starts = std::iter::once(start).chain(ends[*sent..till].iter().copied());
            let mut frames = [(Marks::default(), &[][..]); BURST];
            let parts = starts.zip(&ends[*sent..till]).zip(&marks[*sent..till]);
            for (frame, ((start, &end), &marks)) in frames.iter_mut().zip(parts) {
                *frame = (marks, &bytes[start..end]);
            }
            let count = (till - *sent).min(BURST);
            output.send_marked(&frames[..count])?
        } else {
            send(bytes, start, &ends[*sent..till], output)?
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
        output: &mut impl Output,
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
        let taken = send(&self.bytes, start, &self.ends[self.sent..], output)?;
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
    output: &mut impl Output,
) -> Result<usize, SendError> {
    let mut frames = [&[][..]; BURST];
    for (frame, &end) in frames.iter_mut().zip(ends) {
        *frame = &bytes[start..end];
        start = end;
    }
    output.send(&frames[..ends.len().min(BURST)])
}

#[cfg(test)]
mod tests {
    use std::io;

    use ringtap_wire::LinkType;

    use super::*;

    /// Bytes of the headers of a super-frame, and of the payload of its segments.
    const HEADERS: usize = 14 + 20 + 20;
    const SIZE: usize = 1_000;

    /// Its answer to the next call.
    #[derive(Clone, Copy)]
    enum Answer {
        /// Accepts at most this number of frames; for frames without marks it has room at once.
        Takes(usize),
        /// Accepts at most this number of frames, but has no room at first.
        TakesLater(usize),
        RefusesSuperFrame {
            or_full: bool,
        },
        Fails,
    }
    use Answer::{Fails, RefusesSuperFrame, Takes, TakesLater};

    /// Answers each call by the next answer, and keeps the lengths of accepted frames.
    struct Scripted {
        answers: VecDeque<Answer>,
        accepted: Vec<usize>,
        refused: u64,
        /// How often it was asked whether it takes marks.
        asked: std::cell::Cell<u32>,
    }

    impl Scripted {
        fn new(answers: &[Answer]) -> Self {
            let answers = answers.iter().copied().collect();
            Self { answers, accepted: Vec::new(), refused: 0, asked: 0.into() }
        }

        fn answer(&mut self, lengths: &[usize]) -> Result<usize, SendError> {
            let answer = self.answers.pop_front().expect("an answer for each call");
            let count = match answer {
                Takes(count) => count,
                TakesLater(count) => {
                    self.refused += 1;
                    count
                }
                RefusesSuperFrame { or_full } => return Err(SendError::SuperFrame { or_full }),
                Fails => return Err(SendError::System(io::ErrorKind::Other.into())),
            };
            let count = count.min(lengths.len());
            self.accepted.extend(&lengths[..count]);
            Ok(count)
        }
    }

    impl Output for Scripted {
        fn takes_marks(&self) -> bool {
            self.asked.set(self.asked.get() + 1);
            true
        }

        fn lengths(&self, _: &[u8]) -> RangeInclusive<usize> {
            14..=1_514
        }

        fn send(&mut self, frames: &[&[u8]]) -> Result<usize, SendError> {
            self.answer(&frames.iter().map(|frame| frame.len()).collect::<Vec<_>>())
        }

        fn send_marked(&mut self, frames: &[(Marks, &[u8])]) -> Result<usize, SendError> {
            self.answer(&frames.iter().map(|(_, frame)| frame.len()).collect::<Vec<_>>())
        }

        fn refused(&mut self) -> u64 {
            self.refused
        }
    }

    /// TCP over IPv4 with that many bytes of payload.
    fn tcp(payload: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((40 + payload as u16).to_be_bytes());
        frame.extend([0, 1, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([1, 2, 0, 80, 0, 0, 0, 9, 0, 0, 0, 7, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        frame.resize(HEADERS + payload, 7);
        frame
    }

    /// A batch of super-frames with three segments each.
    fn batch(output: &Scripted, super_frames: usize) -> Batch {
        let mut batch = Batch::new(output);
        let data = tcp(3 * SIZE);
        let offload =
            Offload::Segments { size: SIZE as u16, tcp: true, ecn: false, checksum: None };
        for _ in 0..super_frames {
            let frame = Frame {
                link: LinkType::ETHERNET,
                ts_ns: 0,
                original_len: data.len() as u32,
                data: &data,
                offload,
            };
            batch.push(&frame, output).unwrap();
        }
        batch
    }

    /// Sends until nothing is left; at most as often as there are answers.
    fn send_all(batch: &mut Batch, output: &mut Scripted) -> SuperFrames {
        while batch.left() > 0 {
            batch.send(output).unwrap();
        }
        batch.counters()
    }

    const WHOLE: usize = HEADERS + 3 * SIZE;
    const SEGMENT: usize = HEADERS + SIZE;

    #[test]
    fn an_output_without_room_gets_super_frames_whole_later() {
        let full = RefusesSuperFrame { or_full: true };
        for answers in [
            // No room in the socket.
            &[Takes(0), TakesLater(0), Takes(2)][..],
            // A full queue refuses the segments, too.
            &[full, TakesLater(0), full, TakesLater(0), Takes(1), TakesLater(0), Takes(1)],
        ] {
            let mut output = Scripted::new(answers);
            let mut batch = batch(&output, 2);
            let counters = send_all(&mut batch, &mut output);
            assert_eq!(counters, SuperFrames { whole: 2, cut: 0, segments: 6 });
            assert_eq!(output.accepted, [WHOLE; 2]);
            assert!(output.answers.is_empty());
        }
    }

    #[test]
    fn a_full_queue_that_takes_segments_gets_only_these_cut() {
        let full = RefusesSuperFrame { or_full: true };
        let mut output = Scripted::new(&[full, TakesLater(1), Takes(2), Takes(2)]);
        let mut batch = batch(&output, 3);
        let counters = send_all(&mut batch, &mut output);
        assert_eq!(counters, SuperFrames { whole: 2, cut: 1, segments: 9 });
        assert_eq!(output.accepted, [SEGMENT, SEGMENT, SEGMENT, WHOLE, WHOLE]);
    }

    #[test]
    fn super_frames_after_a_refused_one_are_cut() {
        for or_full in [false, true] {
            let mut answers = vec![RefusesSuperFrame { or_full }];
            answers.extend([Takes(3); CUT as usize]);
            answers.push(Takes(1));
            let mut output = Scripted::new(&answers);
            let mut batch = batch(&output, CUT as usize + 1);
            let counters = send_all(&mut batch, &mut output);
            let all = u64::from(CUT);
            assert_eq!(counters, SuperFrames { whole: 1, cut: all, segments: 3 * all + 3 });
            assert_eq!(output.accepted.last(), Some(&WHOLE));
        }
    }

    #[test]
    fn an_error_of_a_frame_is_returned() {
        let mut output = Scripted::new(&[Fails]);
        let mut batch = batch(&output, 1);
        assert!(matches!(batch.send(&mut output), Err(SendError::System(_))));
        assert_eq!(batch.left(), 1);
    }

    #[test]
    fn an_output_is_asked_once_whether_it_takes_marks() {
        let mut output = Scripted::new(&[Takes(9)]);
        let mut batch = batch(&output, 9);
        send_all(&mut batch, &mut output);
        assert_eq!(output.asked.get(), 1);
    }
}
