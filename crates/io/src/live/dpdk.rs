//! A receiver for one queue of a DPDK device.
//!
//! A device has one set of counters. The receiver of its first queue returns them. All frames are Ethernet frames.

use std::time::Duration;

use ringtap_wire::LinkType;

use crate::live::counters::{Counters, Dropped};
use crate::live::description::Path;
use crate::live::error::OpenError;
use crate::live::frame::Frame;
use crate::live::offload::Offload;
use crate::live::options::Options;
use crate::live::state::State;

/// Receives the frames of one queue.
pub(crate) struct DpdkReceiver {
    queue: crate::dpdk::Receiver,
    /// Whether this is the first queue, which returns the counters of the device.
    first: bool,
    /// Longest part of a frame that is lent, in bytes.
    snap: usize,
}

/// Opens all queues.
pub(crate) fn open(name: &str, options: &Options) -> Result<Vec<DpdkReceiver>, OpenError> {
    let requested = crate::dpdk::Options {
        queues: options.queues,
        memory: options.memory,
        promiscuous: options.promiscuous,
        arguments: options.dpdk_arguments.clone(),
    };
    let (queues, _) = crate::dpdk::open(name, &requested)?;
    let snap = options.snap.map_or(usize::MAX, |snap| snap as usize);
    let receiver = |(number, queue)| DpdkReceiver { queue, first: number == 0, snap };
    Ok(queues.into_iter().enumerate().map(receiver).collect())
}

/// The required number of queues, if the device determines it.
pub(crate) fn required_queues(name: &str, options: &Options) -> Result<Option<u32>, OpenError> {
    use crate::dpdk::Queues;
    Ok(match crate::dpdk::queues(name, &options.dpdk_arguments)? {
        Queues::Exactly(queues) | Queues::UpTo(queues @ 1) => Some(queues.into()),
        Queues::UpTo(_) => None,
    })
}

impl DpdkReceiver {
    #[inline]
    pub(crate) fn burst(&mut self, most: usize, mut each: impl FnMut(Frame<'_>)) -> usize {
        // One time per burst: DPDK has no arrival times of single frames.
        let ts_ns = ringtap_base::now_ns();
        let snap = self.snap;
        self.queue.burst(most, |frame| {
            each(Frame {
                ts_ns,
                link: LinkType::ETHERNET,
                original_len: frame.original_len,
                data: frame.data.get(..snap).unwrap_or(frame.data),
                offload: Offload::Done,
            });
        })
    }

    pub(crate) fn wait(&mut self, timeout: Duration) -> bool {
        self.queue.wait(timeout)
    }

    pub(crate) fn shut(&mut self) {
        self.queue.shut();
    }

    pub(crate) fn state(&self) -> State {
        match self.queue.state() {
            crate::dpdk::State::Up => State::Up,
            crate::dpdk::State::Down => State::NoCarrier,
            crate::dpdk::State::Gone => State::Gone,
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut dropped = Dropped::default();
        if self.first {
            let lost = self.queue.counters();
            (dropped.errors, dropped.no_buffer) = (lost.errors, lost.no_buffer);
        }
        Counters { received: self.queue.received(), dropped, freezes: 0 }
    }

    /// Frames that the whole device has missed.
    pub(crate) fn missed(&self) -> u64 {
        self.queue.counters().missed
    }

    pub(crate) fn backlog(&self) -> (usize, usize) {
        self.queue.backlog()
    }

    pub(crate) fn describe(&self) -> (Path, usize) {
        (Path::Dpdk { driver: self.queue.driver().to_owned() }, self.queue.memory())
    }
}
