//! The receive queues of an open device.

use std::sync::Arc;
use std::time::Duration;

use crate::dpdk::device::Device;
use crate::dpdk::eal;
use crate::dpdk::error::{OpenError, words};
use crate::dpdk::options::Options;
use crate::dpdk::queues::Queues;
use crate::dpdk::send::Sender;
use crate::dpdk::sys::burst::Burst;
use crate::dpdk::sys::environment;
use crate::dpdk::sys::outlet::Outlet;
use crate::dpdk::sys::port::{Counters, Port, Shape};

/// What a buffer takes: 2 KiB of frame, room before it, and DPDK's own headers.
const BUFFER: usize = 2432;
/// Buffers of a queue: those in the ring, in a burst and in the cache of a thread; and no more than the longest ring
/// and as many again can use.
const BUFFERS_LEAST: usize = 512;
const BUFFERS_MOST: usize = 8192;

/// Between two looks at a quiet queue.
const NAP: Duration = Duration::from_micros(200);

/// One received frame, where the driver put it; in one piece, which may be a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Bytes on the wire. A VLAN tag that was put back counts.
    pub original_len: u32,
    /// Captured bytes: all, up to 64 KiB.
    pub data: &'a [u8],
}

/// How a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Frames can come.
    Up,
    /// There is no link.
    Down,
    /// Taken out of the machine.
    Gone,
}

/// One queue of an open device. It may be used from any one thread. When all receivers and the sender are dropped, the
/// device is given back.
pub struct Receiver {
    burst: Burst,
    queue: u16,
    driver: Arc<str>,
    memory: usize,
    received: u64,
    /// Once it is shut: how many frames may still be lent, and what the device had lost then.
    shut: Option<(usize, Counters)>,
}

/// How many receive queues the device has. It starts DPDK's environment, with these arguments, and the device
/// stays taken over.
///
/// # Errors
/// If there is no such device, or DPDK cannot take it.
pub fn queues(name: &str, arguments: &[String]) -> Result<Queues, OpenError> {
    let device = Device::parse(name)?;
    eal::with(&device, arguments, || Ok(device.attach()?.queues))
}

/// Opens a device: one receiver for each queue, in order, and a sender if the device can send.
///
/// # Errors
/// If DPDK does not start, if there is no such device, if it is open already or does not do as it is told.
pub fn open(name: &str, options: &Options) -> Result<(Vec<Receiver>, Option<Sender>), OpenError> {
    let device = Device::parse(name)?;
    eal::with(&device, &options.arguments, || {
        let attached = device.attach()?;
        let name = || device.name().to_owned();
        let queues = options.queues.unwrap_or(attached.queues.usual());
        if !attached.queues.allow(queues) {
            let there = attached.queues;
            return Err(OpenError::Queues { name: name(), asked: queues, there });
        }
        let (mbufs, ring) = buffers(options.memory, queues)?;
        let sends = attached.facts.sends;
        let shape = Shape { queues, mbufs, ring, promiscuous: options.promiscuous, sends };
        let opened = Port::open(attached.port, &shape);
        let port = opened.map_err(|(doing, error)| OpenError::Port {
            name: name(),
            doing,
            why: words(&error, &environment::said()),
        })?;
        let (port, driver) = (Arc::new(port), Arc::from(attached.facts.driver.as_str()));
        let receiver = |queue| Receiver {
            burst: Burst::new(Arc::clone(&port), queue),
            queue,
            driver: Arc::clone(&driver),
            memory: mbufs as usize * BUFFER,
            received: 0,
            shut: None,
        };
        let sender = sends.then(|| Sender::new(Outlet::new(Arc::clone(&port))));
        Ok(((0..queues).map(receiver).collect(), sender))
    })
}

/// How many buffers a queue has, and how long its ring is to be.
fn buffers(memory: usize, queues: u16) -> Result<(u32, u16), OpenError> {
    let each = (memory / usize::from(queues.max(1)) / BUFFER).min(BUFFERS_MOST);
    if each < BUFFERS_LEAST {
        let needed = BUFFERS_LEAST * BUFFER * usize::from(queues);
        return Err(OpenError::TooLittleMemory { asked: memory, needed });
    }
    // The power of two that leaves as many buffers outside the ring.
    Ok((each as u32, 1 << (each / 2).ilog2()))
}

impl Receiver {
    /// Lends up to `most` frames that wait, in place and in the order in which they came; returns how many, 0 at once if
    /// none waits.
    #[inline]
    pub fn burst(&mut self, most: usize, mut each: impl FnMut(Frame<'_>)) -> usize {
        let most = self.shut.map_or(most, |(rest, _)| rest.min(most));
        let mut lent = 0;
        while lent < most && self.burst.fill() > 0 {
            for _ in 0..self.burst.left().min(most - lent) {
                self.burst.lend(|data, original_len| each(Frame { original_len, data }));
                lent += 1;
            }
        }
        self.received += lent as u64;
        if let Some((rest, _)) = &mut self.shut {
            *rest -= lent;
        }
        lent
    }

    /// Whether frames wait, at once or within about `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let ends = self.shut.is_some_and(|(rest, _)| rest == 0);
        let naps = timeout.as_nanos() / NAP.as_nanos();
        for _ in 0..naps {
            if !ends && self.burst.fill() > 0 {
                return true;
            }
            std::thread::sleep(NAP);
        }
        !ends && self.burst.fill() > 0
    }

    /// From now on no more frames are lent than a full ring has. The device itself goes on: what it loses from
    /// now on is none of ours.
    pub fn shut(&mut self) {
        let waiting = self.burst.left() + usize::from(self.burst.port().ring());
        let counters = self.burst.port().counters();
        self.shut.get_or_insert((waiting, counters));
    }

    /// Frames lent by `burst`.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// What the whole device has lost, as far as its driver counts it.
    pub fn counters(&self) -> Counters {
        self.shut.map_or_else(|| self.burst.port().counters(), |(_, counters)| counters)
    }

    /// How the device is.
    pub fn state(&self) -> State {
        match self.burst.port().link() {
            Some(true) => State::Up,
            Some(false) => State::Down,
            None => State::Gone,
        }
    }

    /// How many frames wait, and how many can; `(0, _)` where the driver does not tell.
    pub fn backlog(&self) -> (usize, usize) {
        let port = self.burst.port();
        (port.waiting(self.queue).unwrap_or(0), port.ring().into())
    }

    /// The driver's name.
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// Bytes of this queue's buffers.
    pub fn memory(&self) -> usize {
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_fit_their_memory() {
        for (memory, queues) in [(2 << 20, 1), (4 << 20, 2), (64 << 20, 3), (1 << 30, 1)] {
            let (mbufs, ring) = buffers(memory, queues).unwrap();
            assert!(mbufs as usize * BUFFER * usize::from(queues) <= memory);
            assert!(u32::from(ring) * 2 <= mbufs && mbufs < u32::from(ring) * 4 + 1, "{mbufs}");
        }
        assert_eq!(buffers(1 << 30, 1).unwrap(), (8192, 4096));
        let error = buffers(1 << 20, 1).unwrap_err();
        assert!(error.to_string().contains("1245184"), "{error}");
    }
}
