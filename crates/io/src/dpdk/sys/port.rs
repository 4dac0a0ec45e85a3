//! A port: an opened device with its pools of buffers.
//!
//! Invariant: while a `Port` exists, its queues can receive, and no other `Port` has the same number.

use std::io;
use std::ptr::NonNull;

use super::{check, environment, raw};

/// Losses of the whole device since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames not read in time: the rings were full (`imissed`).
    pub missed: u64,
    /// Frames that were damaged or could not be received (`ierrors`).
    pub errors: u64,
    /// How often no buffer was free (`rx_nombuf`).
    pub no_buffer: u64,
}

/// Properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) queues_most: u16,
    /// True if the device can distribute frames over its queues.
    pub(crate) shares_out: bool,
    /// True if the device can send.
    pub(crate) sends: bool,
    pub(crate) driver: String,
}

/// Reads the properties of the device with this number.
pub(crate) fn facts(port: u16) -> io::Result<Facts> {
    let mut device =
        raw::Device { queues_most: 0, shares_out: 0, send_queues_most: 0, driver: [0; 42] };
    // SAFETY: DPDK checks the number; the shim writes one struct to the address of one.
    check(unsafe { raw::rt_describe(port, &mut device) })?;
    let name = device.driver.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(Facts {
        queues_most: device.queues_most,
        shares_out: device.shares_out != 0,
        sends: device.send_queues_most > 0,
        driver: String::from_utf8_lossy(name).into_owned(),
    })
}

/// Requested slots of the send ring: most devices are opened to receive.
const SEND_RING: u16 = 512;

/// The parameters of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) queues: u16,
    /// Buffers of each queue.
    pub(crate) mbufs: u32,
    /// Requested slots of each ring between device and driver.
    pub(crate) ring: u16,
    pub(crate) promiscuous: bool,
    pub(crate) sends: bool,
}

/// Dropping it closes the device; this takes the lock of the environment.
pub(crate) struct Port {
    device: Option<Configured>,
    number: u16,
    queues: u16,
    ring: u16,
}

impl Port {
    /// Opens the device with this number; the error names the step that failed. The caller holds the lock of the
    /// environment.
    pub(crate) fn open(number: u16, shape: &Shape) -> Result<Self, (&'static str, io::Error)> {
        let at = |doing| move |error| (doing, error);
        // SAFETY: DPDK checks the number, and refuses a port that runs.
        check(unsafe { raw::rt_configure(number, shape.queues) }).map_err(at("configuring it"))?;
        // From here on the port belongs to this function, and is closed if a step fails.
        let queues = shape.queues;
        let mut device = Configured { number, pools: Vec::new() };
        // SAFETY: a configured port that does not run.
        let ring = check(unsafe { raw::rt_ring_len(number, shape.ring) });
        let ring = ring.map_err(at("making rings"))? as u16;
        // A device may require longer rings; buffers in a ring are not available for bursts.
        let each = shape.mbufs.max(2 * u32::from(ring));
        let send = shape.sends.then_some(2 * u32::from(SEND_RING));
        for (queue, mbufs) in (0..).zip((0..queues).map(|_| each).chain(send)) {
            let pool = Pool::new(number, queue, mbufs).map_err(at("making buffers"))?;
            device.pools.push(pool);
        }
        for (queue, pool) in (0..queues).zip(&device.pools) {
            // SAFETY: a configured port that does not run, one of its queues, and a pool that lives longer:
            // `Configured` closes the port before it drops its pools.
            let made = unsafe { raw::rt_receive_queue(number, queue, ring, pool.0.as_ptr()) };
            check(made).map_err(at("making a receive queue"))?;
        }
        if shape.sends {
            // SAFETY: as above; the send queue is configured, because the device has one.
            let made = unsafe { raw::rt_send_queue(number, SEND_RING) };
            check(made).map_err(at("making a send queue"))?;
        }
        // SAFETY: a port with all of its queues set up.
        check(unsafe { raw::rt_go(number, shape.promiscuous.into()) })
            .map_err(at("starting it"))?;
        Ok(Self { device: Some(device), number, queues, ring })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Slots of each queue's ring.
    pub(crate) fn ring(&self) -> u16 {
        self.ring
    }

    /// Losses of the device, as far as its driver counts them.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = raw::Counters::default();
        // SAFETY: an open port; the shim writes one struct to the address of one. If it fails, all values stay 0.
        unsafe { raw::rt_counters(self.number, &mut counters) };
        let raw::Counters { missed, errors, no_buffer } = counters;
        Counters { missed, errors, no_buffer }
    }

    /// Number of frames that wait in a queue, if the driver reports it.
    pub(crate) fn waiting(&self, queue: u16) -> Option<usize> {
        // SAFETY: an open port; DPDK returns an error for an invalid queue.
        usize::try_from(unsafe { raw::rt_waiting(self.number, queue) }).ok()
    }

    /// Returns true if the link is up; `None` if the device is gone.
    pub(crate) fn link(&self) -> Option<bool> {
        // SAFETY: an open port.
        let link = unsafe { raw::rt_link(self.number) };
        (link >= 0).then_some(link == 1)
    }

    /// The buffers for frames to send.
    pub(super) fn send_pool(&self) -> Option<*mut raw::Pool> {
        let pools = &self.device.as_ref()?.pools;
        pools.get(usize::from(self.queues)).map(|pool| pool.0.as_ptr())
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _turn = environment::turn();
        self.device = None;
    }
}

/// A configured device. Dropping it closes the device and frees its buffers; the caller holds the lock of the
/// environment.
struct Configured {
    number: u16,
    /// One for each queue, and one for sending.
    pools: Vec<Pool>,
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: the port belongs to this value, and its number is not used after this.
        unsafe { raw::rt_close(self.number) };
    }
}

/// A pool of buffers.
struct Pool(NonNull<raw::Pool>);

// SAFETY: any threads may use DPDK's pools at the same time.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    fn new(port: u16, queue: u16, mbufs: u32) -> io::Result<Self> {
        // SAFETY: takes only numbers.
        let pool = unsafe { raw::rt_pool(port, queue, mbufs) };
        // SAFETY: returns a number of this thread.
        let why = || io::Error::from_raw_os_error(unsafe { raw::rt_errno() });
        NonNull::new(pool).map(Self).ok_or_else(why)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the port that used it is closed (fields are dropped after `Configured::drop`).
        unsafe { raw::rt_pool_free(self.0.as_ptr()) };
    }
}
