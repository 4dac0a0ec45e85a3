//! Writes refused frames of the workers to a capture.
//!
//! ```text
//! worker 0 ─ ring ─┐
//! worker 1 ─ ring ─┴▶ writer ─▶ DROPS         a full ring: the frame is not written, counted
//! ```
//!
//! Invariant: a worker never waits for a disk.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use ringtap_io::live::Frame;
use ringtap_ring::{Consumer, InvalidCapacity, Kind, Producer, ring};
use ringtap_skeleton::{Node, Step};
use ringtap_wire::LinkType;

use super::sink::{FilterError, Sink};

/// Most waiting frames of each worker.
const WAITING: usize = 8_192;

/// Frames of a step.
const STEP: usize = 256;

/// A refused frame.
pub(super) struct Dropped {
    pub(super) link: LinkType,
    pub(super) ts_ns: u64,
    pub(super) original_len: u32,
    pub(super) data: Box<[u8]>,
}

impl Dropped {
    /// A copy.
    pub(super) fn of(frame: &Frame<'_>) -> Self {
        let &Frame { link, ts_ns, original_len, data, .. } = frame;
        Self { link, ts_ns, original_len, data: data.into() }
    }
}

/// Why the capture is incomplete.
pub(super) type Failure = Mutex<Option<FilterError>>;

/// Writes the frames from the workers' rings.
pub(super) struct DropsWriter<'a> {
    rings: Vec<Consumer<Dropped>>,
    sink: Sink,
    link: Option<LinkType>,
    failure: &'a Failure,
}

impl<'a> DropsWriter<'a> {
    /// Also returns the workers' ends of its rings.
    pub(super) fn new(
        workers: usize,
        out: Box<dyn Write + Send>,
        failure: &'a Failure,
    ) -> Result<(Self, Vec<Producer<Dropped>>), InvalidCapacity> {
        let rings = (0..workers).map(|_| ring(Kind::default(), WAITING, 1));
        let (producers, rings) = rings.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok((Self { rings, sink: Sink::new(out, "the drops"), link: None, failure }, producers))
    }

    fn write(&mut self) -> Result<usize, FilterError> {
        let Self { rings, sink, link, .. } = self;
        let mut written = 0;
        for ring in rings {
            for _ in 0..STEP {
                let Some(frame) = ring.pop() else { break };
                // All interfaces of a run have the same link type.
                let link = *link.get_or_insert(frame.link);
                sink.write(link, frame.ts_ns, frame.original_len, &frame.data)?;
                written += 1;
            }
            ring.flush();
        }
        Ok(written)
    }

    fn fail(&self, error: FilterError) -> Step {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        // The rings are dropped with it: workers detect that, and count unwritten frames.
        Step::Done
    }
}

impl Node for DropsWriter<'_> {
    fn step(&mut self) -> Step {
        let closed = self.rings.iter().all(Consumer::is_closed);
        match self.write() {
            Err(error) => self.fail(error),
            Ok(0) if closed => match self.sink.close(self.link.unwrap_or(LinkType::ETHERNET)) {
                Ok(()) => Step::Done,
                Err(error) => self.fail(error),
            },
            Ok(0) => Step::Idle,
            Ok(_) => Step::Worked,
        }
    }

    fn name(&self) -> String {
        "drops".into()
    }
}
