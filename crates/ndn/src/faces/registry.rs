//! The faces of a forwarder: creates and closes them, and sends packets on them.
//!
//! ```text
//!             ┌─ FaceTable: faces by number, counters, eviction
//!  Faces ─────┼─ Channels: datagram sockets ─── OwnQueues: those of single neighbours
//!             ├─ Streams: listeners, streams with buffered output
//!             └─ Poller: the watched sockets; the others share it
//! ```

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

use rustix::event::epoll::EventFlags;

use crate::packets::Headers;

use crate::faces::channel::Channel;
use crate::faces::channels::Channels;
use crate::faces::counters::{Counters, Lost};
use crate::faces::error::OpenError;
use crate::faces::face::{Face, Link, Persistence};
use crate::faces::listener::Listener;
use crate::faces::outgoing::Peer;
use crate::faces::own_queues::OwnQueues;
use crate::faces::queue::Queue;
use crate::faces::remote::Remote;
use crate::faces::settings::{MTU_MIN, Settings};
use crate::faces::streams::Streams;
use crate::faces::sys::Address;
use crate::faces::table::FaceTable;
use crate::faces::waiting::{Poller, Source};

/// All faces of a forwarder, and their sockets.
pub struct Faces {
    pub(crate) table: FaceTable,
    pub(crate) channels: Channels,
    own_queues: OwnQueues,
    pub(crate) streams: Streams,
    pub(crate) poller: Poller,
    /// Number of faces closed to make room for others.
    evicted: u64,
}

impl Faces {
    /// Opens the sockets. No faces exist at first.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let poller = Poller::new()?;
        let mtus = settings.ethernet.iter().map(|ethernet| ethernet.mtu);
        let mtus = mtus.chain(settings.multicast.iter().map(|multicast| multicast.mtu));
        if let Some(mtu) = mtus.chain([settings.udp_mtu]).flatten().find(|&mtu| mtu < MTU_MIN) {
            return Err(OpenError::Mtu(mtu));
        }
        Ok(Self {
            table: FaceTable::new(&settings),
            channels: Channels::open(&settings, poller.clone())?,
            own_queues: OwnQueues::new(settings.udp_offload, poller.clone()),
            streams: Streams::open(&settings, poller.clone())?,
            poller,
            evicted: 0,
        })
    }

    /// Accepts programs on this socket.
    pub fn listen(&mut self, socket: UnixListener, path: &str) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        self.streams.listen(Listener::programs(socket.into(), path))
    }

    /// Returns the number of the existing face to a neighbour, or of a new one, and whether it is
    /// new.
    pub fn add(
        &mut self,
        remote: &Remote,
        persistence: Persistence,
    ) -> Result<(u32, bool), OpenError> {
        if let &Remote::Tcp(to) = remote {
            return self.streams.connect(&mut self.table, to, persistence);
        }
        let (channel, to) = self.channels.channel_to(remote)?;
        if let Some(face) = self.channels[channel].face_of(&to) {
            self.table.extend_persistence(face, persistence);
            return Ok((face, false));
        }
        let face = self.connect(channel, to, remote.clone(), persistence, 0);
        self.close_unused(channel);
        Ok((face.ok_or(OpenError::Full(self.table.faces_max))?, true))
    }

    /// Creates a face for an unknown neighbour that sent a packet; `None` if the channel accepts
    /// none or was closed, or there is no room.
    pub(crate) fn add_on_demand(
        &mut self,
        channel: u32,
        from: Address,
        now_ns: u64,
    ) -> Option<u32> {
        let remote = self.channels.open.get(channel)?.unknown_remote(&from)?;
        if !self.table.has_room_on_demand() {
            return None;
        }
        self.connect(channel, from, remote, Persistence::OnDemand, now_ns)
    }

    /// Creates a face on a datagram channel; `None` if all faces are in use.
    fn connect(
        &mut self,
        at: u32,
        to: Address,
        remote: Remote,
        persistence: Persistence,
        now_ns: u64,
    ) -> Option<u32> {
        let channel = &mut self.channels[at];
        let mtu = channel.mtu_to(&remote);
        let link = Link::Datagrams { channel: at, peer: Peer { to, mtu, sequence: 0 } };
        let face = Face::new(remote, channel.local(), persistence, mtu, now_ns, link);
        let is_shared = face.is_shared();
        let number = self.table.add(face)?;
        channel.connect(to, number, is_shared);
        Some(number)
    }

    /// Closes a face; returns false if it does not exist. Its counters remain in [`Faces::total`].
    pub fn close(&mut self, face: u32) -> bool {
        let Some(mut closed) = self.table.remove(face) else { return false };
        match &mut closed.link {
            Link::Datagrams { channel, peer } => {
                self.channels[*channel].disconnect(&peer.to, face);
                self.table.others.add(&self.own_queues.close(face));
                self.close_unused(*channel);
            }
            // Closing the socket removes it from epoll.
            Link::Stream(stream) => {
                self.table.others.count_lost(Lost::Disconnected, stream.unsent());
            }
        }
        true
    }

    /// Closes a channel that was opened for a face, if it has none.
    fn close_unused(&mut self, channel: u32) {
        if self.channels[channel].is_unused() {
            flush(&mut self.channels[channel], &mut self.table);
            self.table.others.add(&self.channels.close(channel));
        }
    }

    /// The face to evict before an unknown neighbour of a channel can get one; `None` if there is
    /// room or no such face, or if the channel accepts no unknown neighbours or was closed.
    pub(crate) fn next_to_evict(&mut self, channel: u32) -> Option<u32> {
        let channel = self.channels.open.get(channel)?;
        if channel.accepts_unknown { self.table.next_for_sender() } else { None }
    }

    /// Closes a face to make room for another.
    pub(crate) fn evict(&mut self, face: u32) {
        self.evicted += u64::from(self.close(face));
    }

    /// Number of faces evicted to make room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The face with this number.
    pub fn get(&self, face: u32) -> Option<&Face> {
        self.table.get(face)
    }

    /// All faces with their numbers, in order of number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Face)> {
        self.table.iter()
    }

    /// Number of faces.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no faces.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of faces on demand: those that neighbours' packets created.
    pub fn on_demand(&self) -> usize {
        self.table.on_demand()
    }

    /// The sum of the counters of all faces, including closed ones.
    pub fn total(&self) -> Counters {
        self.table.total()
    }

    /// Number of datagrams that the kernel dropped before they could be read.
    pub fn kernel_drops(&mut self) -> u64 {
        self.channels.kernel_drops() + self.own_queues.kernel_drops()
    }

    /// The addresses of all sockets in NFD's syntax; with AF_XDP also its mode.
    pub fn listening(&self) -> impl Iterator<Item = String> {
        let names = self.streams.listeners.iter().map(|listener| listener.name.clone());
        self.channels.open.iter().map(|(_, channel)| channel.describe()).chain(names)
    }

    /// Removes and returns warnings from opening the sockets.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.channels.open.iter_mut().flat_map(|(_, channel)| channel.take_warnings()).collect()
    }

    /// Ends a wait for packets when this event happens. It is not read.
    pub(crate) fn watch_doorbell(&self, event: impl AsFd) -> io::Result<()> {
        self.poller.watch(event, Source::Doorbell, EventFlags::IN | EventFlags::ET)
    }

    /// Whether other threads can send on a face, too.
    pub(crate) fn is_for_threads(&self, face: u32) -> bool {
        match self.get(face).map(|face| &face.link) {
            Some(Link::Datagrams { channel, .. }) => {
                self.channels.open.get(*channel).is_some_and(|one| one.outgoing.is_for_threads())
            }
            Some(Link::Stream(_)) | None => false,
        }
    }

    /// The queue of a source of datagrams, and its channel. `None` if its face was closed.
    pub(crate) fn queue(&mut self, source: Source) -> Option<(u32, &mut Queue)> {
        match source {
            Source::Channel(at) => Some((at, &mut self.channels.open.get_mut(at)?.queue)),
            Source::Neighbour(face) => self.own_queues.get_mut(face),
            _ => None,
        }
    }

    /// Gives a UDP neighbour a queue of its own, if there is room for one ([`OwnQueues::open`]).
    pub(crate) fn separate(&mut self, face: u32, to: Option<SocketAddr>, now_ns: u64) {
        let Self { table, channels, own_queues, .. } = self;
        let Some(&Link::Datagrams { channel, ref peer }) = table.get(face).map(|face| &face.link)
        else {
            return;
        };
        let shared = (channel, &channels[channel]);
        table.others.add(&own_queues.open(face, shared, peer.to, to, now_ns));
    }

    /// Sends a packet on a face, fragmented if necessary. Frames are buffered until
    /// [`Faces::flush`], or until the buffer is full.
    pub fn send(&mut self, number: u32, headers: &Headers, packet: &[u8]) {
        let Self { table, channels, streams, .. } = self;
        let Some(face) = table.get_mut(number) else {
            table.others.frames_out += 1;
            return table.others.count_lost(Lost::Gone, 1);
        };
        face.counters.count_out(headers, packet);
        let without;
        let headers = match headers.incoming_face {
            Some(_) if !face.has_local_fields => {
                without = Headers { incoming_face: None, ..*headers };
                &without
            }
            _ => headers,
        };
        let Face { link, counters, .. } = face;
        match link {
            Link::Stream(stream) => streams.send(number, stream, counters, headers, packet),
            Link::Datagrams { channel, peer } => {
                let channel = &mut channels[*channel];
                if channel.outgoing.send(number, peer, counters, headers, packet) {
                    flush(channel, table);
                }
            }
        }
    }

    /// Sends a packet that a worker returned on a face with this serial number.
    pub(crate) fn send_if_same(
        &mut self,
        number: u32,
        serial: u64,
        headers: &Headers,
        packet: &[u8],
    ) {
        let is_same = self.table.is_same(number, serial);
        self.send(if is_same { number } else { 0 }, headers, packet);
    }

    /// Sends all buffered frames.
    pub fn flush(&mut self) {
        let Self { channels, table, .. } = self;
        for (_, channel) in channels.open.iter_mut() {
            if !channel.outgoing.is_empty() {
                flush(channel, table);
            }
        }
        self.streams.flush(&mut self.table);
    }
}

/// Sends the buffered frames of a channel.
fn flush(channel: &mut Channel, table: &mut FaceTable) {
    channel.outgoing.flush(|face, reason| table.count_lost(face, reason));
}
