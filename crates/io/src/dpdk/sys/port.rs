//! A port: an opened device with its pools of buffers.
//!
//! Invariant: as long as a `Port` lives, its queues can be received from; no other `Port` has the same number.

use std::io;
use std::ptr::NonNull;

use super::{check, environment, raw};

/// What the whole device has lost since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Not read in time: the rings were full (`imissed`).
    pub missed: u64,
    /// Damaged, or not receivable for another reason (`ierrors`).
    pub errors: u64,
    /// How often no buffer was free (`rx_nombuf`).
    pub no_buffer: u64,
}

/// What a device says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) queues_most: u16,
    /// Whether it shares frames out over its queues.
    pub(crate) shares_out: bool,
    /// Whether it can send.
    pub(crate) sends: bool,
    pub(crate) driver: String,
}

/// What the device with this number says of itself.
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

/// Slots of the ring of frames to send, as wanted: most devices are opened to receive.
const SEND_RING: u16 = 512;

/// How a port is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) queues: u16,
    /// Buffers of each queue.
    pub(crate) mbufs: u32,
    /// Slots of each ring between device and driver, as wanted.
    pub(crate) ring: u16,
    pub(crate) promiscuous: bool,
    pub(crate) sends: bool,
}

/// Dropping it gives the device back, in its turn.
pub(crate) struct Port {
    device: Option<Configured>,
    number: u16,
    queues: u16,
    ring: u16,
}

impl Port {
    /// Opens the device with this number; what failed is said as well. The caller has its turn.
    pub(crate) fn open(number: u16, shape: &Shape) -> Result<Self, (&'static str, io::Error)> {
        let at = |doing| move |error| (doing, error);
        // SAFETY: DPDK checks the number, and refuses a port that runs.
        check(unsafe { raw::rt_configure(number, shape.queues) }).map_err(at("configuring it"))?;
        // From here on the port is ours, and closed if anything fails.
        let queues = shape.queues;
        let mut device = Configured { number, pools: Vec::new() };
        // SAFETY: a configured port that does not run.
        let ring = check(unsafe { raw::rt_ring_len(number, shape.ring) });
        let ring = ring.map_err(at("making rings"))? as u16;
        // A device may insist on longer rings; what is in a ring is in no burst.
        let each = shape.mbufs.max(2 * u32::from(ring));
        let send = shape.sends.then_some(2 * u32::from(SEND_RING));
        for (queue, mbufs) in (0..).zip((0..queues).map(|_| each).chain(send)) {
            let pool = Pool::new(number, queue, mbufs).map_err(at("making buffers"))?;
            device.pools.push(pool);
        }
        for (queue, pool) in (0..queues).zip(&device.pools) {
            // SAFETY: a configured port that does not run, one of its queues, and a pool that outlives it: `Configured`
            // closes before it drops its pools.
            let made = unsafe { raw::rt_receive_queue(number, queue, ring, pool.0.as_ptr()) };
            check(made).map_err(at("making a receive queue"))?;
        }
        if shape.sends {
            // SAFETY: as above; the queue was configured, as the device has one.
            let made = unsafe { raw::rt_send_queue(number, SEND_RING) };
            check(made).map_err(at("making a send queue"))?;
        }
        // SAFETY: a port with all queues made.
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

    /// What the device has lost, as far as its driver counts it.
    pub(crate) fn counters(&self) -> Counters {
        let mut counters = raw::Counters::default();
        // SAFETY: an open port; the shim writes one struct to the address of one. If it fails, all stay 0.
        unsafe { raw::rt_counters(self.number, &mut counters) };
        let raw::Counters { missed, errors, no_buffer } = counters;
        Counters { missed, errors, no_buffer }
    }

    /// How many frames wait in a queue, if the driver tells.
    pub(crate) fn waiting(&self, queue: u16) -> Option<usize> {
        // SAFETY: an open port; DPDK answers an error for what is no queue of it.
        usize::try_from(unsafe { raw::rt_waiting(self.number, queue) }).ok()
    }

    /// Whether there is a link; `None` if the device is gone.
    pub(crate) fn link(&self) -> Option<bool> {
        // SAFETY: an open port.
        let link = unsafe { raw::rt_link(self.number) };
        (link >= 0).then_some(link == 1)
    }

    /// The buffers that frames to send are put in.
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

/// A device that is ours. Dropping it, which needs a turn, closes it and frees its buffers.
struct Configured {
    number: u16,
    /// One a queue, and one to send from.
    pools: Vec<Pool>,
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: the port is ours, and nothing can use its number after this.
        unsafe { raw::rt_close(self.number) };
    }
}

/// Buffers.
struct Pool(NonNull<raw::Pool>);

// SAFETY: DPDK's pools may be used from any threads at a time.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    fn new(port: u16, queue: u16, mbufs: u32) -> io::Result<Self> {
        // SAFETY: it takes numbers.
        let pool = unsafe { raw::rt_pool(port, queue, mbufs) };
        // SAFETY: it asks for a number of this thread.
        let why = || io::Error::from_raw_os_error(unsafe { raw::rt_errno() });
        NonNull::new(pool).map(Self).ok_or_else(why)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the port that used it is closed (fields are dropped behind `Configured::drop`).
        unsafe { raw::rt_pool_free(self.0.as_ptr()) };
    }
}
