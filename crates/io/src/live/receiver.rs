//! `Receiver`: one queue of an open interface, the common interface of all capture methods.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use ringtap_wire::LinkType;

use crate::live::counters::Counters;
use crate::live::description::Description;
use crate::live::dpdk::{self, DpdkReceiver};
use crate::live::error::OpenError;
use crate::live::frame::{Frame, Room};
use crate::live::interface::Interface;
use crate::live::link::Link;
use crate::live::notice::Notice;
use crate::live::options::{Method, Options};
use crate::live::packet::{self, PacketReceiver};
use crate::live::port_sender::PortSender;
use crate::live::send::Sender;
use crate::live::state::State;
use crate::live::xdp::{self, XdpReceiver};

/// Result of [`Receiver::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Frames wait.
    Frames,
    /// The timeout passed or a signal arrived; holds the state of the interface.
    Nothing(State),
}

/// One queue of an open interface. It can move between threads. When all receivers of an interface are dropped, the
/// interface is as it was before.
pub struct Receiver {
    kind: Kind,
    name: Arc<str>,
    queue: u16,
    queues: u16,
    notices: Vec<Notice>,
    /// Losses of the interface before it was opened.
    lost_before: Lost,
}

/// Frames that an interface lost before they reached a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Frames lost because the network card or its driver had no room (`rx_missed_errors` and `rx_fifo_errors`).
    pub missed: u64,
    /// Frames in the counter `rx_dropped` of the driver or kernel, which has several causes: no room in the driver (the
    /// ring of a veth) or in the kernel's backlog of a CPU.
    pub rx_dropped: u64,
}

impl Lost {
    fn of(link: &Link) -> Self {
        Self { missed: link.rx_missed, rx_dropped: link.rx_dropped }
    }
}

enum Kind {
    Packet(PacketReceiver, Arc<Interface>),
    Xdp(XdpReceiver, Arc<Interface>),
    Dpdk(Box<DpdkReceiver>),
}

/// Opens the interface called `name`. Returns one receiver for each queue, in order. The first receiver holds the
/// notices.
///
/// # Errors
/// If there is no such interface, if the process lacks the capabilities, or if the options are invalid or not supported.
pub fn open(name: &str, options: &Options) -> Result<Vec<Receiver>, OpenError> {
    let mut notices = Vec::new();
    let kinds: Vec<Kind> = match options.method {
        Method::Packet => {
            let interface = Arc::new(Interface::open(name)?);
            let queues = packet::open(&interface, options, &mut notices)?;
            queues.into_iter().map(|one| Kind::Packet(one, Arc::clone(&interface))).collect()
        }
        Method::Xdp => {
            let interface = Arc::new(Interface::open(name)?);
            let queues = xdp::open(&interface, options, &mut notices)?;
            queues.into_iter().map(|one| Kind::Xdp(one, Arc::clone(&interface))).collect()
        }
        Method::Dpdk => {
            let queues = dpdk::open(name, options)?;
            queues.into_iter().map(|one| Kind::Dpdk(Box::new(one))).collect()
        }
    };
    Ok(receivers(name, kinds, notices))
}

/// As [`open`], for a port.
pub(super) fn open_port(
    name: &str,
    ethertype: u16,
    options: &Options,
) -> Result<(Vec<Receiver>, PortSender), OpenError> {
    let mut notices = Vec::new();
    let interface = Arc::new(Interface::open(name)?);
    let (queues, sender) = xdp::open_port(&interface, ethertype, options, &mut notices)?;
    let kinds = queues.into_iter().map(|one| Kind::Xdp(one, Arc::clone(&interface))).collect();
    Ok((receivers(name, kinds, notices), sender))
}

/// The receivers of all queues; the first holds the notices.
fn receivers(name: &str, kinds: Vec<Kind>, mut notices: Vec<Notice>) -> Vec<Receiver> {
    let queues = kinds.len() as u16;
    // Read last, because earlier losses do not belong to these receivers.
    let lost_before = kinds.first().and_then(Kind::lost).unwrap_or_default();
    let name = Arc::from(name);
    let receiver = |(kind, queue)| Receiver {
        kind,
        name: Arc::clone(&name),
        queue,
        queues,
        notices: std::mem::take(&mut notices),
        lost_before,
    };
    let mut receivers: Vec<Receiver> = kinds.into_iter().zip(0..).map(receiver).collect();
    if let Some(first) = receivers.first_mut()
        && first.state() == State::Down
    {
        first.notices.push(Notice::Down { interface: name.to_string() });
    }
    receivers
}

/// The required number of queues, if the interface called `name` determines it; `None` if [`Options::queues`] can
/// choose. This attaches a DPDK device.
///
/// # Errors
/// If there is no such interface, or if its properties cannot be read.
pub fn required_queues(name: &str, options: &Options) -> Result<Option<u32>, OpenError> {
    match options.method {
        Method::Packet => Ok(None),
        Method::Xdp => Ok(Some(Interface::open(name)?.receive_queues())),
        Method::Dpdk => dpdk::required_queues(name, options),
    }
}

/// The kernel's index and description (ifAlias) of the interface called `name`; 0 and none for a DPDK device.
///
/// # Errors
/// If there is no such interface, or if its properties cannot be read.
pub fn interface_number(name: &str, options: &Options) -> Result<(u32, String), OpenError> {
    match options.method {
        Method::Packet | Method::Xdp => {
            let link = Interface::open(name)?.link;
            Ok((link.index, link.alias))
        }
        Method::Dpdk => Ok((0, String::new())),
    }
}

impl Kind {
    /// All losses of the interface; `None` if it is gone.
    fn lost(&self) -> Option<Lost> {
        match self {
            Self::Packet(_, interface) | Self::Xdp(_, interface) => {
                interface.current_link().ok()?.as_ref().map(Lost::of)
            }
            Self::Dpdk(one) => Some(Lost { missed: one.missed(), rx_dropped: 0 }),
        }
    }
}

impl Receiver {
    /// Lends up to `most` waiting frames in place, in order of arrival. Returns their number: 0 at once if no frame
    /// waits. More frames may wait even if it returns fewer than `most`.
    #[inline]
    pub fn burst(&mut self, most: usize, each: impl FnMut(Frame<'_>)) -> usize {
        match &mut self.kind {
            Kind::Packet(one, _) => one.burst(most, each),
            Kind::Xdp(one, _) => one.burst(most, each),
            Kind::Dpdk(one) => one.burst(most, each),
        }
    }

    /// As [`Receiver::burst`], but AF_PACKET lends only frames up to the time `until_ns`.
    #[inline]
    pub(crate) fn burst_until(
        &mut self,
        until_ns: u64,
        most: usize,
        each: impl FnMut(Frame<'_>),
    ) -> usize {
        match &mut self.kind {
            Kind::Packet(one, _) => one.burst_until(until_ns, most, each),
            Kind::Xdp(..) | Kind::Dpdk(_) => self.burst(most, each),
        }
    }

    /// Time of the next frame; `None` if no frame is visible. AF_XDP returns 0, because a frame gets its time when it is
    /// lent. DPDK always returns `None`.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> Option<u64> {
        match &mut self.kind {
            Kind::Packet(one, _) => one.next_ns(),
            Kind::Xdp(one, _) => one.waits().then_some(0),
            Kind::Dpdk(_) => None,
        }
    }

    /// Whether each frame has a timestamp before it is lent.
    pub(crate) fn stamps_frames(&self) -> bool {
        matches!(self.kind, Kind::Packet(..))
    }

    /// Sleeps until frames wait, `timeout` passes or the thread gets a signal.
    pub fn wait(&mut self, timeout: Duration) -> Wake {
        let frames = match &mut self.kind {
            Kind::Packet(one, _) => one.wait(timeout),
            Kind::Xdp(one, _) => one.wait(timeout),
            Kind::Dpdk(one) => one.wait(timeout),
        };
        if frames { Wake::Frames } else { Wake::Nothing(self.state()) }
    }

    /// The socket that is readable while frames wait, for poll or epoll. `None` for DPDK.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Packet(one, _) => Some(one.socket()),
            Kind::Xdp(one, _) => Some(one.socket()),
            Kind::Dpdk(_) => None,
        }
    }

    /// Removes and returns the sender on this queue, if [`Options::sends`] requested one.
    ///
    /// # Errors
    /// If the interface is gone.
    pub fn take_sender(&mut self) -> Result<Option<Sender>, OpenError> {
        let sender = match &mut self.kind {
            Kind::Xdp(one, _) => one.take_sender(),
            Kind::Packet(..) | Kind::Dpdk(_) => None,
        };
        sender.map(|sender| Sender::over(&self.name, sender)).transpose()
    }

    /// Stops receiving. Frames that arrived before can still be read. AF_PACKET may show them only after
    /// [`Options::block_timeout`](crate::live::Options::block_timeout). A DPDK device continues, but `burst` lends at
    /// most as many further frames as the device's ring holds.
    pub fn shut(&mut self) {
        match &mut self.kind {
            Kind::Packet(one, _) => one.shut(),
            Kind::Xdp(one, _) => one.shut(self.queue.into()),
            Kind::Dpdk(one) => one.shut(),
        }
    }

    /// Whether the kernel has counted frames that were not lent yet; they may not be visible yet. One system call.
    pub(crate) fn has_unread(&mut self) -> bool {
        match &mut self.kind {
            Kind::Packet(one, _) => one.has_unread(),
            // Waiting frames are visible at once.
            Kind::Xdp(..) | Kind::Dpdk(_) => false,
        }
    }

    /// Current state of the interface; two system calls.
    pub fn state(&self) -> State {
        match &self.kind {
            Kind::Packet(_, interface) | Kind::Xdp(_, interface) => interface.state(),
            Kind::Dpdk(one) => one.state(),
        }
    }

    /// Counters since the interface was opened; one system call.
    pub fn counters(&mut self) -> Counters {
        match &mut self.kind {
            Kind::Packet(one, _) => one.counters(),
            Kind::Xdp(one, _) => one.counters(),
            Kind::Dpdk(one) => one.counters(),
        }
    }

    /// Fill level of the memory for waiting frames, in sixteenths, 0 to 16. At 16 further frames are dropped.
    pub fn backlog(&self) -> u32 {
        let (used, all) = match &self.kind {
            Kind::Packet(one, _) => one.backlog(),
            Kind::Xdp(one, _) => one.backlog(),
            Kind::Dpdk(one) => one.backlog(),
        };
        (used * 16).checked_div(all).unwrap_or(0) as u32
    }

    /// Frames that the whole interface has lost since it was opened because the network card or driver had no room. They
    /// did not reach a receiver and are in no other counter. `None` if the interface is gone.
    pub fn missed(&self) -> Option<u64> {
        self.lost().map(|lost| lost.missed)
    }

    /// Frames that the whole interface has lost since it was opened, before they reached a receiver. The caller must
    /// subtract [`Receiver::counted_twice`] of all its receivers from `rx_dropped`. `None` if the interface is gone.
    pub fn lost(&self) -> Option<Lost> {
        let now = self.kind.lost()?;
        Some(Lost {
            missed: now.missed.saturating_sub(self.lost_before.missed),
            rx_dropped: now.rx_dropped.saturating_sub(self.lost_before.rx_dropped),
        })
    }

    /// Upper bound of the frames in [`Lost::rx_dropped`] that are in this receiver's counters, too. AF_PACKET: frames
    /// with a VLAN tag that were received here but that no protocol handler of the host accepted. AF_XDP: dropped frames.
    pub fn counted_twice(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Packet(one, _) => one.counted_twice(),
            Kind::Xdp(one, _) => one.counters().dropped.total(),
            Kind::Dpdk(_) => 0,
        }
    }

    /// The interface, unless it is a DPDK device, and the room for a frame.
    pub(crate) fn interface(&self) -> Option<(&Interface, Room)> {
        match &self.kind {
            Kind::Packet(one, interface) => Some((interface, Room::Block(one.longest_whole()))),
            Kind::Xdp(one, interface) => Some((interface, Room::Buffer(one.longest()))),
            Kind::Dpdk(_) => None,
        }
    }

    /// Link type of the frames.
    pub fn link(&self) -> LinkType {
        match &self.kind {
            Kind::Packet(one, _) => one.link(),
            Kind::Xdp(..) | Kind::Dpdk(_) => LinkType::ETHERNET,
        }
    }

    /// The kernel's index of the interface; 0 for a DPDK device.
    pub fn index(&self) -> u32 {
        match &self.kind {
            Kind::Packet(_, interface) | Kind::Xdp(_, interface) => interface.link.index,
            Kind::Dpdk(_) => 0,
        }
    }

    /// Capture path and properties of this receiver.
    pub fn describe(&self) -> Description {
        let (path, memory) = match &self.kind {
            Kind::Packet(one, _) => one.describe(),
            Kind::Xdp(one, _) => one.describe(),
            Kind::Dpdk(one) => one.describe(),
        };
        Description {
            interface: self.name.to_string(),
            queue: self.queue,
            queues: self.queues,
            path,
            memory,
        }
    }

    /// Removes and returns the notices from opening the interface.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}
