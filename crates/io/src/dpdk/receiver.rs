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

/// Bytes of a buffer: 2 KiB of frame, room before it, and DPDK's headers.
const BUFFER: usize = 2432;
/// Range of buffers of a queue: those in the ring, in a burst and in a thread's cache; and no more than twice the
/// longest ring.
const BUFFERS_LEAST: usize = 512;
const BUFFERS_MOST: usize = 8192;

/// Time between two polls of an idle queue.
const NAP: Duration = Duration::from_micros(200);

/// One received frame in the driver's buffer; a frame in several pieces is copied into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Bytes on the wire, including a VLAN tag that was put back.
    pub original_len: u32,
    /// Captured bytes: all, up to 64 KiB.
    pub data: &'a [u8],
}

/// The state of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The link is up.
    Up,
    /// The link is down.
    Down,
    /// The device was removed.
    Gone,
}

/// One queue of an open device, used by one thread at a time. When all receivers and the sender are dropped, the device
/// is closed.
pub struct Receiver {
    burst: Burst,
    queue: u16,
    driver: Arc<str>,
    memory: usize,
    received: u64,
    /// After `shut`: how many frames may still be lent, and the device's losses at that time.
    shut: Option<(usize, Counters)>,
}

/// The number of receive queues that the device supports. Starts DPDK's environment with these arguments; the device
/// stays taken over.
///
/// # Errors
/// There is no such device, or DPDK cannot take it over.
pub fn queues(name: &str, arguments: &[String]) -> Result<Queues, OpenError> {
    let device = Device::parse(name)?;
    eal::with(&device, arguments, || Ok(device.attach()?.queues))
}

/// Opens a device: one receiver for each queue, in order, and a sender if the device can send.
///
/// # Errors
/// DPDK does not start, the device does not exist, is open already, or an operation fails.
pub fn open(name: &str, options: &Options) -> Result<(Vec<Receiver>, Option<Sender>), OpenError> {
    let device = Device::parse(name)?;
    eal::with(&device, &options.arguments, || {
        let attached = device.attach()?;
        let name = || device.name().to_owned();
        let queues = options.queues.unwrap_or(attached.queues.usual());
        if !attached.queues.allow(queues) {
            let supported = attached.queues;
            return Err(OpenError::Queues { name: name(), requested: queues, supported });
        }
        let (mbufs, ring) = buffers(options.memory, queues)?;
        let sends = attached.facts.sends;
        let shape = Shape { queues, mbufs, ring, promiscuous: options.promiscuous, sends };
        let opened = Port::open(attached.port, &shape);
        let port = opened.map_err(|(doing, error)| OpenError::Port {
            name: name(),
            doing,
            why: words(&error, &environment::logged()),
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

/// The number of buffers of a queue, and the length of its ring.
fn buffers(memory: usize, queues: u16) -> Result<(u32, u16), OpenError> {
    let each = (memory / usize::from(queues.max(1)) / BUFFER).min(BUFFERS_MOST);
    if each < BUFFERS_LEAST {
        let needed = BUFFERS_LEAST * BUFFER * usize::from(queues);
        return Err(OpenError::TooLittleMemory { requested: memory, needed });
    }
    // The power of two that leaves at least as many buffers outside the ring.
    Ok((each as u32, 1 << (each / 2).ilog2()))
}

impl Receiver {
    /// Lends up to `most` waiting frames, in place and in order of arrival. Returns their number; 0 at once if none
    /// waits.
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

    /// Waits up to about `timeout` for a frame; true if one waits.
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

    /// Stops receiving: from now on at most a full ring of frames is lent, and further losses of the device are not
    /// counted.
    pub fn shut(&mut self) {
        let waiting = self.burst.left() + usize::from(self.burst.port().ring());
        let counters = self.burst.port().counters();
        self.shut.get_or_insert((waiting, counters));
    }

    /// Frames lent by `burst`.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Losses of the whole device, as far as its driver counts them.
    pub fn counters(&self) -> Counters {
        self.shut.map_or_else(|| self.burst.port().counters(), |(_, counters)| counters)
    }

    /// The state of the device.
    pub fn state(&self) -> State {
        match self.burst.port().link() {
            Some(true) => State::Up,
            Some(false) => State::Down,
            None => State::Gone,
        }
    }

    /// The number of waiting frames, and the capacity; the first is 0 if the driver does not report it.
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
