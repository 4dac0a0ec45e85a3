//! One queue of an open interface: the face that both ways of receiving have.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ringtap_wire::LinkType;

use crate::counters::Counters;
use crate::error::OpenError;
use crate::frame::Frame;
use crate::interface::{Interface, State};
use crate::notice::Notice;
use crate::options::{Method, Options};
use crate::packet::{self, PacketReceiver};
use crate::xdp::{self, XdpReceiver};

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Frames wait.
    Frames,
    /// None came in time, or a signal came; the interface is like this.
    Nothing(State),
}

/// What a receiver turned out to be; shows itself in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The interface's name when it was opened.
    pub interface: String,
    /// Which queue this is, from 0.
    pub queue: u16,
    /// How many there are.
    pub queues: u16,
    /// How it receives.
    pub path: Path,
    /// Bytes for waiting frames, of this queue.
    pub memory: usize,
}

/// How frames come to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// AF_PACKET.
    Packet {
        /// Whether the network card stamps frames.
        hardware_time: bool,
    },
    /// AF_XDP.
    Xdp {
        /// The program runs in the driver, not in the stack.
        native: bool,
        /// The network card writes to our memory itself.
        zero_copy: bool,
        /// That memory lies in reserved huge pages.
        huge_pages: bool,
    },
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, queue, queues, path, memory } = self;
        write!(f, "{interface}, queue {} of {queues}: ", queue + 1)?;
        match path {
            Path::Packet { hardware_time } => {
                let clock = if *hardware_time { "hardware" } else { "kernel" };
                write!(f, "AF_PACKET, {clock} time")?;
            }
            Path::Xdp { native, zero_copy, huge_pages } => {
                let mode = if *native { "native" } else { "generic" };
                let copy = if *zero_copy { "zero-copy" } else { "copy" };
                let pages = if *huge_pages { ", huge pages" } else { "" };
                write!(f, "AF_XDP, {mode}, {copy}{pages}")?;
            }
        }
        write!(f, ", {} KiB", memory >> 10)
    }
}

/// One queue of an open interface. It may be used from any one thread. Dropping all receivers of an
/// interface leaves it as it was.
pub struct Receiver {
    kind: Kind,
    interface: Arc<Interface>,
    queue: u16,
    queues: u16,
    notices: Vec<Notice>,
}

enum Kind {
    Packet(PacketReceiver),
    Xdp(XdpReceiver),
}

/// Opens the interface called `name`: one receiver for each queue, in order. What there is to say of
/// it is with the first.
///
/// # Errors
/// If there is no such interface, if the process may not, if the kernel cannot.
pub fn open(name: &str, options: &Options) -> Result<Vec<Receiver>, OpenError> {
    let interface = Arc::new(Interface::open(name)?);
    let mut notices = Vec::new();
    let kinds: Vec<Kind> = match options.method {
        Method::Packet => {
            packet::open(&interface, options, &mut notices)?.into_iter().map(Kind::Packet).collect()
        }
        Method::Xdp => {
            xdp::open(&interface, options, &mut notices)?.into_iter().map(Kind::Xdp).collect()
        }
    };
    if interface.state() == State::Down {
        notices.push(Notice::Down { interface: name.to_owned() });
    }
    let queues = kinds.len() as u16;
    Ok(kinds
        .into_iter()
        .zip(0..)
        .map(|(kind, queue)| Receiver {
            kind,
            interface: Arc::clone(&interface),
            queue,
            queues,
            notices: std::mem::take(&mut notices),
        })
        .collect())
}

/// How many receive queues the interface called `name` has.
///
/// # Errors
/// If there is no such interface, or the kernel does not say.
pub fn receive_queues(name: &str) -> Result<u32, OpenError> {
    Ok(Interface::open(name)?.receive_queues())
}

impl Receiver {
    /// Lends up to `most` frames that wait, in place and in the order in which they came; returns how
    /// many, 0 at once if none waits. Fewer than `most` is no sign that no more wait.
    #[inline]
    pub fn burst(&mut self, most: usize, each: impl FnMut(Frame<'_>)) -> usize {
        match &mut self.kind {
            Kind::Packet(one) => one.burst(most, each),
            Kind::Xdp(one) => one.burst(most, each),
        }
    }

    /// Sleeps until frames wait, `timeout` is over or the thread gets a signal.
    pub fn wait(&mut self, timeout: Duration) -> Wake {
        let frames = match &mut self.kind {
            Kind::Packet(one) => one.wait(timeout),
            Kind::Xdp(one) => one.wait(timeout),
        };
        if frames { Wake::Frames } else { Wake::Nothing(self.state()) }
    }

    /// Lets no further frame come. Those that came wait still, in an AF_PACKET ring for up to
    /// [`Options::block_timeout`](crate::Options::block_timeout) before they are shown.
    pub fn shut(&mut self) {
        match &mut self.kind {
            Kind::Packet(one) => one.shut(),
            Kind::Xdp(one) => one.shut(self.queue.into()),
        }
    }

    /// How the interface is now; two system calls.
    pub fn state(&self) -> State {
        self.interface.state()
    }

    /// What became of the frames since the interface was opened; one system call.
    pub fn counters(&mut self) -> Counters {
        match &mut self.kind {
            Kind::Packet(one) => one.counters(),
            Kind::Xdp(one) => one.counters(),
        }
    }

    /// Which part of the room for waiting frames is taken, in sixteenths: 16 when it is full, and
    /// further frames are dropped.
    pub fn backlog(&self) -> u32 {
        let (taken, all) = match &self.kind {
            Kind::Packet(one) => one.backlog(),
            Kind::Xdp(one) => one.backlog(),
        };
        (taken * 16).checked_div(all).unwrap_or(0) as u32
    }

    /// How many frames the whole interface has lost since it was opened, for want of room in the
    /// network card or the driver: before any receiver could see them, and in no other counter.
    /// `None` if it is gone.
    pub fn missed(&self) -> Option<u64> {
        let now = self.interface.look_again().ok()??;
        Some(now.rx_missed.saturating_sub(self.interface.link.rx_missed))
    }

    /// What the first byte of each frame begins.
    pub fn link(&self) -> LinkType {
        match &self.kind {
            Kind::Packet(one) => one.link(),
            Kind::Xdp(_) => LinkType::ETHERNET,
        }
    }

    /// What this receiver turned out to be.
    pub fn describe(&self) -> Description {
        let (path, memory) = match &self.kind {
            Kind::Packet(one) => one.describe(),
            Kind::Xdp(one) => one.describe(),
        };
        Description {
            interface: self.interface.name().to_owned(),
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
