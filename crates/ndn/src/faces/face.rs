//! A face: one neighbour, one group of neighbours, or one program on this machine.

use crate::faces::counters::Counters;
use crate::faces::outgoing::Peer;
use crate::faces::remote::Remote;
use crate::faces::stream::Stream;

/// A face: its kind, its address and its counters.
#[derive(Debug)]
pub struct Face {
    pub(crate) remote: Remote,
    pub(crate) local: String,
    pub(crate) persistence: Persistence,
    pub(crate) mtu: usize,
    /// Number of faces created before this one, set by the table of faces. Face numbers are reused;
    /// serial numbers are not.
    pub(crate) serial: u64,
    /// Whether a local program receives the link header with the number of the face that received
    /// a packet (`faces/update`).
    pub(crate) has_local_fields: bool,
    /// Time of the last received frame, or of creation.
    pub(crate) used_ns: u64,
    /// Whether the face has a route.
    pub(crate) has_route: bool,
    pub(crate) counters: Counters,
    pub(crate) link: Link,
}

/// When a face is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// By command.
    Persistent,
    /// After an idle time, to make room, or when the other end closes it.
    OnDemand,
    /// By command; a later request for the face does not change this.
    Permanent,
}

impl Persistence {
    /// The number in the management protocol.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Persistent => 0,
            Self::OnDemand => 1,
            Self::Permanent => 2,
        }
    }
}

/// The transport of a face.
#[derive(Debug)]
pub(crate) enum Link {
    Datagrams { channel: u32, peer: Peer },
    Stream(Box<Stream>),
}

impl Face {
    /// A face that is created at this time.
    pub(crate) fn new(
        remote: Remote,
        local: String,
        persistence: Persistence,
        mtu: usize,
        now_ns: u64,
        link: Link,
    ) -> Self {
        Self {
            remote,
            local,
            persistence,
            mtu,
            serial: 0,
            has_local_fields: false,
            used_ns: now_ns,
            has_route: false,
            counters: Counters::default(),
            link,
        }
    }

    /// The remote end of the face.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// The local end in NFD's syntax.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// When the face is closed.
    pub fn persistence(&self) -> Persistence {
        self.persistence
    }

    /// The maximum size of a frame, in bytes.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// The counters of the face.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether the remote end is a program on this machine. As in NFD, UDP faces are never local:
    /// source addresses of datagrams can be forged. TCP faces are not either, whatever their addresses.
    pub fn is_local(&self) -> bool {
        matches!(self.remote, Remote::Program(_))
    }

    /// Whether a neighbour's packet created the face. Such a face counts against the limit of faces
    /// on demand, and may be evicted.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.persistence == Persistence::OnDemand && !self.is_local()
    }

    /// Whether a local program receives the number of the face that received a packet.
    pub fn has_local_fields(&self) -> bool {
        self.has_local_fields
    }

    /// Whether several neighbours receive a sent packet.
    pub fn is_shared(&self) -> bool {
        matches!(self.remote, Remote::Ethernet { to: None, .. } | Remote::Multicast { .. })
    }
}
