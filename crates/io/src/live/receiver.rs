//! One queue of an open interface: the face that all ways of receiving have.

use std::sync::Arc;
use std::time::Duration;

use ringtap_wire::LinkType;

use crate::live::counters::Counters;
use crate::live::description::Description;
use crate::live::dpdk::{self, DpdkReceiver};
use crate::live::error::OpenError;
use crate::live::frame::Frame;
use crate::live::interface::{Interface, State};
use crate::live::link::Link;
use crate::live::notice::Notice;
use crate::live::options::{Method, Options};
use crate::live::packet::{self, PacketReceiver};
use crate::live::xdp::{self, XdpReceiver};

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Frames wait.
    Frames,
    /// None came in time, or a signal came; the interface is like this.
    Nothing(State),
}

/// One queue of an open interface. It may be used from any one thread. Dropping all receivers of an
/// interface leaves it as it was.
pub struct Receiver {
    kind: Kind,
    name: Arc<str>,
    queue: u16,
    queues: u16,
    notices: Vec<Notice>,
    /// What the interface had lost when it was opened.
    before: Lost,
}

/// Frames that an interface lost before any receiver could see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// For want of room in the network card or its driver, as the driver says (`rx_missed_errors`,
    /// `rx_fifo_errors`).
    pub missed: u64,
    /// As the driver or the kernel says in a counter for several things (`rx_dropped`): no room in the
    /// driver (a veth's ring), or in the kernel's backlog of a processor.
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

/// Opens the interface called `name`: one receiver for each queue, in order. What there is to say of
/// it is with the first.
///
/// # Errors
/// If there is no such interface, if the process may not, if the kernel cannot.
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
    let queues = kinds.len() as u16;
    // As late as can be: what came before is none of ours.
    let before = kinds.first().and_then(Kind::lost).unwrap_or_default();
    let name = Arc::from(name);
    let receiver = |(kind, queue)| Receiver {
        kind,
        name: Arc::clone(&name),
        queue,
        queues,
        notices: std::mem::take(&mut notices),
        before,
    };
    let mut receivers: Vec<Receiver> = kinds.into_iter().zip(0..).map(receiver).collect();
    if let Some(first) = receivers.first_mut()
        && first.state() == State::Down
    {
        first.notices.push(Notice::Down { interface: name.to_string() });
    }
    Ok(receivers)
}

/// How many queues there must be, where the interface called `name` decides that and not [`Options::queues`]. A
/// device by DPDK is taken over to see.
///
/// # Errors
/// If there is no such interface, or the kernel does not say.
pub fn required_queues(name: &str, options: &Options) -> Result<Option<u32>, OpenError> {
    match options.method {
        Method::Packet => Ok(None),
        Method::Xdp => Ok(Some(Interface::open(name)?.receive_queues())),
        Method::Dpdk => dpdk::required_queues(name, options),
    }
}

/// The kernel's number of the interface called `name`; 0 of a device by DPDK.
///
/// # Errors
/// If there is no such interface, or the kernel does not say.
pub fn interface_index(name: &str, options: &Options) -> Result<u32, OpenError> {
    match options.method {
        Method::Packet | Method::Xdp => Ok(Interface::open(name)?.link.index),
        Method::Dpdk => Ok(0),
    }
}

impl Kind {
    /// What the interface has lost so far.
    fn lost(&self) -> Option<Lost> {
        match self {
            Self::Packet(_, interface) | Self::Xdp(_, interface) => {
                interface.look_again().ok()?.as_ref().map(Lost::of)
            }
            Self::Dpdk(one) => Some(Lost { missed: one.missed(), rx_dropped: 0 }),
        }
    }
}

impl Receiver {
    /// Lends up to `most` frames that wait, in place and in the order in which they came; returns how
    /// many, 0 at once if none waits. Fewer than `most` is no sign that no more wait.
    #[inline]
    pub fn burst(&mut self, most: usize, each: impl FnMut(Frame<'_>)) -> usize {
        match &mut self.kind {
            Kind::Packet(one, _) => one.burst(most, each),
            Kind::Xdp(one, _) => one.burst(most, each),
            Kind::Dpdk(one) => one.burst(most, each),
        }
    }

    /// The same, of frames up to a time alone, where [`Receiver::next_ns`] tells times.
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

    /// The time of the next frame, if one waits that can be seen; 0 where a frame gets its time when it is lent. By DPDK
    /// no frame can be seen before.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> Option<u64> {
        match &mut self.kind {
            Kind::Packet(one, _) => one.next_ns(),
            Kind::Xdp(one, _) => one.waits().then_some(0),
            Kind::Dpdk(_) => None,
        }
    }

    /// Whether frames have a time before they are lent.
    pub(crate) fn stamps_frames(&self) -> bool {
        matches!(self.kind, Kind::Packet(..))
    }

    /// Sleeps until frames wait, `timeout` is over or the thread gets a signal.
    pub fn wait(&mut self, timeout: Duration) -> Wake {
        let frames = match &mut self.kind {
            Kind::Packet(one, _) => one.wait(timeout),
            Kind::Xdp(one, _) => one.wait(timeout),
            Kind::Dpdk(one) => one.wait(timeout),
        };
        if frames { Wake::Frames } else { Wake::Nothing(self.state()) }
    }

    /// Lets no further frame come. Those that came wait still, in an AF_PACKET ring for up to
    /// [`Options::block_timeout`](crate::live::Options::block_timeout) before they are shown. A DPDK device goes
    /// on, but no more frames are lent than its ring holds.
    pub fn shut(&mut self) {
        match &mut self.kind {
            Kind::Packet(one, _) => one.shut(),
            Kind::Xdp(one, _) => one.shut(self.queue.into()),
            Kind::Dpdk(one) => one.shut(),
        }
    }

    /// Whether frames wait that are not to be seen yet, as far as the kernel tells; one system call.
    pub(crate) fn owes(&mut self) -> bool {
        match &mut self.kind {
            Kind::Packet(one, _) => one.owes(),
            // What waits is to be seen at once.
            Kind::Xdp(..) | Kind::Dpdk(_) => false,
        }
    }

    /// How the interface is now; two system calls.
    pub fn state(&self) -> State {
        match &self.kind {
            Kind::Packet(_, interface) | Kind::Xdp(_, interface) => interface.state(),
            Kind::Dpdk(one) => one.state(),
        }
    }

    /// What became of the frames since the interface was opened; one system call.
    pub fn counters(&mut self) -> Counters {
        match &mut self.kind {
            Kind::Packet(one, _) => one.counters(),
            Kind::Xdp(one, _) => one.counters(),
            Kind::Dpdk(one) => one.counters(),
        }
    }

    /// Which part of the room for waiting frames is taken, in sixteenths: 16 when it is full, and
    /// further frames are dropped.
    pub fn backlog(&self) -> u32 {
        let (taken, all) = match &self.kind {
            Kind::Packet(one, _) => one.backlog(),
            Kind::Xdp(one, _) => one.backlog(),
            Kind::Dpdk(one) => one.backlog(),
        };
        (taken * 16).checked_div(all).unwrap_or(0) as u32
    }

    /// How many frames the whole interface has lost since it was opened, for want of room in the
    /// network card or the driver: before any receiver could see them, and in no other counter.
    /// `None` if it is gone.
    pub fn missed(&self) -> Option<u64> {
        self.lost().map(|lost| lost.missed)
    }

    /// The frames that the whole interface has lost since it was opened, before any receiver could see
    /// them. Of `rx_dropped` what all its receivers have [counted as well](Receiver::counted_twice) must be
    /// subtracted. `None` if it is gone.
    pub fn lost(&self) -> Option<Lost> {
        let now = self.kind.lost()?;
        Some(Lost {
            missed: now.missed.saturating_sub(self.before.missed),
            rx_dropped: now.rx_dropped.saturating_sub(self.before.rx_dropped),
        })
    }

    /// The most frames of [`Lost::rx_dropped`] that are in this receiver's own counters, too. AF_PACKET:
    /// frames with a VLAN tag that no protocol of the host took after they were seen here. AF_XDP: those
    /// that found no room.
    pub fn counted_twice(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Packet(one, _) => one.counted_twice(),
            Kind::Xdp(one, _) => one.counters().dropped.total(),
            Kind::Dpdk(_) => 0,
        }
    }

    /// What the first byte of each frame begins.
    pub fn link(&self) -> LinkType {
        match &self.kind {
            Kind::Packet(one, _) => one.link(),
            Kind::Xdp(..) | Kind::Dpdk(_) => LinkType::ETHERNET,
        }
    }

    /// The kernel's number of the interface; 0 of a device by DPDK.
    pub fn index(&self) -> u32 {
        match &self.kind {
            Kind::Packet(_, interface) | Kind::Xdp(_, interface) => interface.link.index,
            Kind::Dpdk(_) => 0,
        }
    }

    /// What this receiver turned out to be.
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

    /// What there was to say when the interface was opened; once.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }
}
