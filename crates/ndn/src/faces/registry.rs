//! The registry of all faces: creates, finds and closes faces, and sends packets on them.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;

use crate::packets::{FRAME_MAX, Headers, PACKET_MAX, write_lp};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::faces::channel::{Channel, Kind};
use crate::faces::channels::Channels;
use crate::faces::counters::{Counters, Lost};
use crate::faces::egress::Sent;
use crate::faces::error::OpenError;
use crate::faces::eviction::Eviction;
use crate::faces::face::{Face, Link, Persistence};
use crate::faces::listener::Listener;
use crate::faces::outgoing::{Outgoing, Peer};
use crate::faces::remote::Remote;
use crate::faces::settings::{EthernetMethod, Settings};
use crate::faces::sys::Address;
use crate::faces::waiting::Source;

/// The first face number; NFD reserves the numbers below.
pub(crate) const FIRST: u32 = 256;

/// Default MTU over UDP in bytes: fits into an Ethernet frame with tunnel headers.
const UDP_MTU: usize = 1420;

/// The smallest MTU in bytes with which 64 fragments can hold a packet.
pub const MTU_MIN: usize = 240;

/// All faces of a forwarder.
pub struct Faces {
    pub(crate) epoll: OwnedFd,
    pub(crate) channels: Channels,
    /// Datagrams that the kernel dropped in queues that are closed.
    pub(crate) closed_drops: u64,
    /// Sockets to which programs and neighbours connect.
    pub(crate) listeners: Vec<Listener>,
    pub(crate) settings: Settings,
    /// By face number minus [`FIRST`].
    pub(crate) faces: Vec<Option<Box<Face>>>,
    /// Number of open faces.
    count: usize,
    /// Number of faces ever created.
    created: u64,
    /// Number of open faces that neighbours' packets created.
    on_demand: usize,
    pub(crate) eviction: Eviction,
    /// Numbers of closed faces, the first closed first.
    free: VecDeque<u32>,
    /// The faces with a receive queue of their own.
    pub(crate) own_queues: Vec<u32>,
    /// Number of programs that ever connected.
    programs: u64,
    /// Stream faces with buffered output.
    to_flush: Vec<u32>,
    /// Counters of closed faces, of received frames without a face, and of packets sent to faces
    /// that do not exist.
    pub(crate) others: Counters,
}

impl Faces {
    /// Opens the sockets. No faces exist at first.
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let mut faces = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC).map_err(io::Error::from)?,
            channels: Channels::default(),
            closed_drops: 0,
            listeners: Vec::new(),
            faces: Vec::new(),
            count: 0,
            created: 0,
            on_demand: 0,
            eviction: Eviction::default(),
            free: VecDeque::new(),
            own_queues: Vec::new(),
            programs: 0,
            to_flush: Vec::new(),
            others: Counters::default(),
            settings: settings.clone(),
        };
        let mtus = settings.ethernet.iter().map(|ethernet| ethernet.mtu);
        let mtus = mtus.chain(settings.multicast.iter().map(|multicast| multicast.mtu));
        if let Some(mtu) = mtus.chain([settings.udp_mtu]).flatten().find(|&mtu| mtu < MTU_MIN) {
            return Err(OpenError::Mtu(mtu));
        }
        for &at in &settings.udp {
            let channel = faces.open_udp(at)?;
            faces.channels[channel].accepts_unknown = true;
        }
        for ethernet in &settings.ethernet {
            let channel = faces.open_ethernet(&ethernet.interface, ethernet.method)?;
            let opened = &mut faces.channels[channel];
            opened.mtu = ethernet.mtu;
            opened.accepts_unknown = ethernet.strangers;
        }
        for multicast in &settings.multicast {
            let channel = faces.open_multicast(&multicast.interface, multicast.group)?;
            faces.channels[channel].mtu = multicast.mtu;
        }
        faces.channels.iter_mut().for_each(|channel| channel.is_temporary = false);
        for &at in &settings.tcp {
            let listener = Listener::tcp(at).map_err(|source| OpenError::Tcp { at, source })?;
            faces.put_listener(listener)?;
        }
        for &at in &settings.websocket {
            let open = Listener::websocket(at);
            let listener = open.map_err(|source| OpenError::WebSocket { at, source })?;
            faces.put_listener(listener)?;
        }
        Ok(faces)
    }

    /// Accepts programs on this socket.
    pub fn listen(&mut self, socket: UnixListener, path: &str) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        self.put_listener(Listener::programs(socket.into(), path))
    }

    fn put_listener(&mut self, listener: Listener) -> io::Result<()> {
        self.watch(&listener.socket, Source::Listener(self.listeners.len() as u32))?;
        self.listeners.push(listener);
        Ok(())
    }

    /// Returns the number of the existing face to a neighbour, or of a new one, and whether it is
    /// new.
    pub fn add(
        &mut self,
        remote: &Remote,
        persistence: Persistence,
    ) -> Result<(u32, bool), OpenError> {
        let (channel, to) = match remote {
            &Remote::Udp(at) => (self.udp_for(at)?, Address::of(&at)),
            Remote::Ethernet { interface, to } => {
                let channel = self.ethernet_for(interface)?;
                let to = self.channels[channel].neighbour(*to).ok_or(OpenError::Program)?;
                (channel, to)
            }
            Remote::Multicast { group, interface } => {
                let channel = self.multicast_for(*group, interface.as_deref())?;
                let Kind::Multicast { group, .. } = &self.channels[channel].kind else {
                    return Err(OpenError::NoGroup(*group));
                };
                (channel, Address::of(group))
            }
            &Remote::Tcp(to) => return self.add_tcp(to, persistence),
            Remote::WebSocket(_) | Remote::Program(_) => return Err(OpenError::Program),
        };
        if let Some(face) = self.channels[channel].face_of(&to) {
            self.extend_persistence(face, persistence);
            return Ok((face, false));
        }
        let face = self.connect(channel, to, remote.clone(), persistence, 0);
        self.close_unused(channel);
        Ok((face.ok_or(OpenError::Full(self.settings.faces_max))?, true))
    }

    /// Gives an existing face the persistence of a further request for it.
    pub(crate) fn extend_persistence(&mut self, number: u32, persistence: Persistence) {
        if let Some(face) = self.get_mut(number)
            && persistence != Persistence::OnDemand
            && face.persistence != Persistence::Permanent
        {
            let was_on_demand = face.is_on_demand();
            face.persistence = persistence;
            self.on_demand -= usize::from(was_on_demand);
            self.place(number);
        }
    }

    /// Closes a face; returns false if it does not exist. Its counters remain in [`Faces::total`].
    pub fn close(&mut self, face: u32) -> bool {
        let Some(mut closed) = self.slot(face).and_then(Option::take) else { return false };
        if let Link::Stream(stream) = &mut closed.link {
            closed.counters.count_lost(Lost::Disconnected, stream.unsent());
        }
        self.others.add(&closed.counters);
        self.free.push_back(face);
        self.count -= 1;
        self.on_demand -= usize::from(closed.is_on_demand());
        self.eviction.remove(face, &closed);
        match &closed.link {
            Link::Datagrams { channel, peer, queue } => {
                self.channels[*channel].disconnect(&peer.to);
                if self.channels[*channel].group == Some(face) {
                    self.channels[*channel].group = None;
                }
                if let Some(queue) = queue {
                    self.close_own(face, queue, &peer.to);
                }
                self.close_unused(*channel);
            }
            // Closing the socket removes it from epoll.
            Link::Stream(_) => {}
        }
        true
    }

    /// Closes a channel that was opened for a face, if it has none.
    fn close_unused(&mut self, number: usize) {
        if !self.channels[number].is_temporary || self.channels[number].has_faces() {
            return;
        }
        self.flush_channel(number);
        if let Some(mut closed) = self.channels.remove(number) {
            self.count_unread(&closed.queue);
            self.closed_drops += closed.kernel_drops();
            // Workers may close their ends of the socket later.
            let _ = epoll::delete(&self.epoll, &closed.queue.socket);
        }
    }

    /// The face with this number.
    pub fn get(&self, face: u32) -> Option<&Face> {
        face_in(&self.faces, face)
    }

    /// All faces with their numbers, in order of number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Face)> {
        (FIRST..).zip(&self.faces).filter_map(|(number, face)| Some((number, face.as_deref()?)))
    }

    /// Number of faces.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Number of faces on demand: those that neighbours' packets created.
    pub fn on_demand(&self) -> usize {
        self.on_demand
    }

    /// Maximum number of faces on demand.
    pub fn on_demand_max(&self) -> usize {
        self.settings.on_demand_max()
    }

    /// Whether there are no faces.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The sum of the counters of all faces, including closed ones.
    pub fn total(&self) -> Counters {
        let mut total = self.others;
        self.iter().for_each(|(_, face)| total.add(&face.counters));
        total
    }

    /// The addresses of all sockets in NFD's syntax; with AF_XDP also its mode.
    pub fn listening(&self) -> impl Iterator<Item = String> {
        let names = self.listeners.iter().map(|listener| listener.name.clone());
        self.channels.iter().map(Channel::describe).chain(names)
    }

    /// Removes and returns warnings from opening the sockets.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.channels.iter_mut().flat_map(Channel::take_warnings).collect()
    }

    /// Sets whether a local program receives the number of the face that received a packet. Returns
    /// false if the face does not exist or is not of a local program.
    pub fn set_local_fields(&mut self, face: u32, enabled: bool) -> bool {
        let Some(face) = self.get_mut(face).filter(|face| face.is_local()) else { return false };
        face.has_local_fields = enabled;
        true
    }

    /// Sends a packet on a face, fragmented if necessary. Frames are buffered until
    /// [`Faces::flush`], or until the buffer is full.
    pub fn send(&mut self, number: u32, headers: &Headers, packet: &[u8]) {
        let Self { faces, channels, others, to_flush, .. } = self;
        let at = number.wrapping_sub(FIRST) as usize;
        let Some(face) = faces.get_mut(at).and_then(Option::as_deref_mut) else {
            others.frames_out += 1;
            return others.count_lost(Lost::Gone, 1);
        };
        face.count_out(headers, packet);
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
            Link::Stream(stream) => {
                counters.frames_out += 1;
                match stream.append(|out| write_lp(headers, packet, out)) {
                    Ok(len) => counters.octets_out += len as u64,
                    Err(reason) => counters.count_lost(reason, 1),
                }
                if !std::mem::replace(&mut stream.listed, true) {
                    to_flush.push(number);
                }
            }
            Link::Datagrams { channel, peer, .. } => {
                let at = *channel;
                if channels[at].outgoing.send(number, peer, counters, headers, packet) {
                    self.flush_channel(at);
                }
            }
        }
    }

    /// The numbers of channels that were opened or closed since the last call.
    pub(crate) fn take_changed_channels(&mut self) -> BTreeSet<usize> {
        self.channels.take_changed()
    }

    /// The sending half of a channel, for another thread; `None` if it is closed or only this thread
    /// can send on it.
    pub(crate) fn outgoing(&self, channel: usize) -> Option<Outgoing> {
        self.channels.get(channel)?.outgoing.for_thread()
    }

    /// Whether other threads can send on a face, too.
    pub(crate) fn is_for_threads(&self, face: u32) -> bool {
        match self.get(face).map(|face| &face.link) {
            Some(Link::Datagrams { channel, .. }) => {
                self.channels.get(*channel).is_some_and(|one| one.outgoing.is_for_threads())
            }
            Some(Link::Stream(_)) | None => false,
        }
    }

    /// Ends a wait for packets when this event happens. It is not read.
    pub(crate) fn watch_doorbell(&self, event: impl AsFd) -> io::Result<()> {
        let data = EventData::new_u64(Source::Doorbell.token());
        Ok(epoll::add(&self.epoll, event, data, EventFlags::IN | EventFlags::ET)?)
    }

    /// Sends a packet that a worker returned on a face with this serial number.
    pub(crate) fn send_if_same(
        &mut self,
        number: u32,
        serial: u64,
        headers: &Headers,
        packet: &[u8],
    ) {
        let is_same = self.get(number).is_some_and(|face| face.serial == serial);
        self.send(if is_same { number } else { 0 }, headers, packet);
    }

    /// Adds the counters of packets that a worker sent.
    pub(crate) fn add_sent(&mut self, sent: &Sent) {
        match self.get_mut(sent.face).filter(|face| face.serial == sent.serial) {
            Some(face) => face.counters.add(&sent.counters),
            None => self.others.add(&sent.counters),
        }
    }

    /// Sends all buffered frames.
    pub fn flush(&mut self) {
        for number in 0..self.channels.end() {
            if self.channels.get_mut(number).is_some_and(|channel| !channel.outgoing.is_empty()) {
                self.flush_channel(number);
            }
        }
        while let Some(face) = self.to_flush.pop() {
            self.flush_stream(face);
        }
    }

    fn flush_channel(&mut self, channel: usize) {
        let Self { channels, faces, others, .. } = self;
        channels[channel].outgoing.flush(|face, reason| {
            let at = face.wrapping_sub(FIRST) as usize;
            match faces.get_mut(at).and_then(Option::as_deref_mut) {
                Some(face) => face.count_lost(reason),
                None => others.count_lost(reason, 1),
            }
        });
    }

    /// Sends the buffered output of a stream. If some is left, epoll watches the socket for room.
    /// A closed connection is detected on reading.
    pub(crate) fn flush_stream(&mut self, number: u32) {
        let at = number.wrapping_sub(FIRST) as usize;
        let Some(face) = self.faces.get_mut(at).and_then(Option::as_deref_mut) else { return };
        let Link::Stream(stream) = &mut face.link else { return };
        stream.listed = false;
        let is_blocked = stream.flush().unwrap_or(false);
        if is_blocked != stream.wants_write {
            stream.wants_write = is_blocked;
            let flags = if is_blocked { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            let source = EventData::new_u64(Source::Stream(number).token());
            if let Some(socket) = stream.connection.socket() {
                // This fails only for a socket that is not watched.
                let _ = epoll::modify(&self.epoll, socket, source, flags);
            }
        }
    }

    /// Whether all faces are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= self.settings.faces_max
    }

    /// Pauses accepting connections until the next [`Faces::listen_again`], to avoid a busy loop
    /// while none can be accepted.
    pub(crate) fn pause_listener(&mut self, at: usize) {
        if let Some(listener) = self.listeners.get_mut(at) {
            listener.paused = true;
            let _ = epoll::delete(&self.epoll, &listener.socket);
        }
    }

    /// Resumes accepting connections, where it was paused.
    pub(crate) fn listen_again(&mut self) {
        for at in 0..self.listeners.len() {
            if self.listeners[at].paused {
                let source = Source::Listener(at as u32);
                let watched = self.watch(&self.listeners[at].socket, source);
                self.listeners[at].paused = watched.is_err();
            }
        }
    }

    /// Creates a face for an unknown neighbour that sent a packet; `None` if the channel accepts
    /// none or was closed, or there is no room.
    pub(crate) fn add_on_demand(
        &mut self,
        channel: usize,
        from: Address,
        now_ns: u64,
    ) -> Option<u32> {
        let opened = self.channels.get(channel).filter(|channel| channel.accepts_unknown)?;
        if self.on_demand >= self.on_demand_max() {
            return None;
        }
        let remote = match &opened.kind {
            Kind::Udp(_) => Remote::Udp(from.udp()?),
            // All its neighbours have one face.
            Kind::Multicast { .. } => return None,
            Kind::Ethernet { name, .. } => {
                Remote::Ethernet { interface: name.clone(), to: Some(from.ethernet()?.from) }
            }
        };
        self.connect(channel, from, remote, Persistence::OnDemand, now_ns)
    }

    /// Numbers of the faces on demand that have exceeded the idle time.
    pub fn idle(&self, now_ns: u64) -> Vec<u32> {
        let limit = self.settings.idle.as_nanos().min(u64::MAX.into()) as u64;
        let idle = |face: &Face| face.is_on_demand() && now_ns.saturating_sub(face.used_ns) > limit;
        self.iter().filter(|(_, face)| idle(face)).map(|(number, _)| number).collect()
    }

    pub(crate) fn get_mut(&mut self, face: u32) -> Option<&mut Face> {
        self.slot(face)?.as_deref_mut()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Face)> {
        let faces = (FIRST..).zip(&mut self.faces);
        faces.filter_map(|(number, face)| Some((number, face.as_deref_mut()?)))
    }

    /// The maximum number of faces.
    pub(crate) fn faces_max(&self) -> usize {
        self.settings.faces_max
    }

    /// Number of faces ever created: the serial number of the next one.
    pub(crate) fn created(&self) -> u64 {
        self.created
    }

    /// The remote end of the next program that connects.
    pub(crate) fn next_program(&mut self) -> Remote {
        self.programs += 1;
        Remote::Program(self.programs)
    }

    /// Watches a socket for input.
    pub(crate) fn watch(&self, socket: impl AsFd, source: Source) -> io::Result<()> {
        self.watch_for(socket, source, false)
    }

    /// Watches a socket for input and, if `output` is set, for room to write.
    pub(crate) fn watch_for(
        &self,
        socket: impl AsFd,
        source: Source,
        output: bool,
    ) -> io::Result<()> {
        let data = EventData::new_u64(source.token());
        let output = if output { EventFlags::OUT } else { EventFlags::empty() };
        Ok(epoll::add(&self.epoll, socket, data, EventFlags::IN | output)?)
    }

    fn slot(&mut self, face: u32) -> Option<&mut Option<Box<Face>>> {
        self.faces.get_mut(face.checked_sub(FIRST)? as usize)
    }

    /// Creates a face on a datagram channel; `None` if all faces are in use.
    fn connect(
        &mut self,
        at: usize,
        to: Address,
        remote: Remote,
        persistence: Persistence,
        now_ns: u64,
    ) -> Option<u32> {
        let channel = &self.channels[at];
        let mtu = match (&channel.kind, &remote) {
            (Kind::Multicast { .. }, _) => channel.mtu.or(self.settings.udp_mtu).unwrap_or(UDP_MTU),
            (Kind::Ethernet { interface, .. }, _) => channel.mtu.unwrap_or(interface.mtu),
            (Kind::Udp(_), Remote::Udp(peer)) if peer.ip().is_loopback() => {
                self.settings.udp_mtu.unwrap_or(FRAME_MAX)
            }
            (Kind::Udp(_), _) => self.settings.udp_mtu.unwrap_or(UDP_MTU),
        };
        let face = Face {
            remote,
            local: channel.local(),
            persistence,
            mtu,
            serial: self.created,
            has_local_fields: false,
            used_ns: now_ns,
            has_route: false,
            counters: Counters::default(),
            link: Link::Datagrams { channel: at, peer: Peer { to, mtu, sequence: 0 }, queue: None },
        };
        let is_shared = face.is_shared();
        let number = self.put(face)?;
        self.channels[at].connect(to, number);
        if is_shared {
            self.channels[at].group = Some(number);
        }
        Some(number)
    }

    /// Adds a face; returns its number, or `None` if all faces are in use.
    pub(crate) fn put(&mut self, face: Face) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        // A number is reused as late as possible: a client may still refer to the closed face.
        let may_grow = self.faces.len() < self.settings.faces_max;
        let number = match self.free.pop_front_if(|_| !may_grow) {
            Some(number) => number,
            None => {
                self.faces.push(None);
                FIRST + self.faces.len() as u32 - 1
            }
        };
        self.on_demand += usize::from(face.is_on_demand());
        self.eviction.set(number, &face);
        *self.slot(number)? = Some(Box::new(face));
        self.count += 1;
        self.created += 1;
        Some(number)
    }

    /// The channel for a neighbour over UDP; opens one if none has the same IP version.
    fn udp_for(&mut self, peer: SocketAddr) -> Result<usize, OpenError> {
        let same = |channel: &Channel| matches!(channel.kind, Kind::Udp(at) if at.is_ipv4() == peer.is_ipv4());
        if let Some(channel) = self.channels.find(same) {
            return Ok(channel);
        }
        let any: IpAddr = if peer.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        self.open_udp(SocketAddr::new(any, 0))
    }

    /// The channel of an Ethernet interface; opens it if necessary.
    fn ethernet_for(&mut self, interface: &str) -> Result<usize, OpenError> {
        let same = |channel: &Channel| matches!(&channel.kind, Kind::Ethernet { name, .. } if name == interface);
        match self.channels.find(same) {
            Some(channel) => Ok(channel),
            None => self.open_ethernet(interface, EthernetMethod::default()),
        }
    }

    fn open_udp(&mut self, at: SocketAddr) -> Result<usize, OpenError> {
        let channel = Channel::udp(at, self.settings.udp_offload)
            .map_err(|source| OpenError::Udp { at, source })?;
        self.put_channel(channel)
    }

    /// The channel of a multicast group; opens it if an interface is given.
    fn multicast_for(
        &mut self,
        group: SocketAddr,
        interface: Option<&str>,
    ) -> Result<usize, OpenError> {
        let same = |channel: &Channel| match &channel.kind {
            Kind::Multicast { group: known, interface: on } => {
                let is_group = (known.ip(), known.port()) == (group.ip(), group.port());
                is_group && interface.is_none_or(|interface| interface == on)
            }
            _ => false,
        };
        match (self.channels.find(same), interface) {
            (Some(channel), _) => Ok(channel),
            (None, Some(interface)) => self.open_multicast(interface, group),
            (None, None) => Err(OpenError::NoGroup(group)),
        }
    }

    fn open_multicast(&mut self, interface: &str, group: SocketAddr) -> Result<usize, OpenError> {
        let channel = Channel::multicast(interface, group).map_err(|source| {
            OpenError::Multicast { group, interface: interface.into(), source }
        })?;
        self.put_channel(channel)
    }

    fn open_ethernet(
        &mut self,
        interface: &str,
        method: EthernetMethod,
    ) -> Result<usize, OpenError> {
        let channel = match method {
            EthernetMethod::Packet => Channel::ethernet(interface)
                .map_err(|source| OpenError::Ethernet { interface: interface.into(), source })?,
            EthernetMethod::Xdp => Channel::ethernet_xdp(interface)?,
        };
        if let Kind::Ethernet { interface, .. } = &channel.kind
            && interface.mtu < MTU_MIN
        {
            return Err(OpenError::Mtu(interface.mtu));
        }
        self.put_channel(channel)
    }

    fn put_channel(&mut self, channel: Channel) -> Result<usize, OpenError> {
        let number = self.channels.next();
        for socket in channel.queue.readable() {
            self.watch(socket, Source::Channel(number as u32))?;
        }
        Ok(self.channels.add(channel))
    }
}

/// The face with this number in a list of faces.
pub(crate) fn face_in(faces: &[Option<Box<Face>>], number: u32) -> Option<&Face> {
    faces.get(number.checked_sub(FIRST)? as usize)?.as_deref()
}

const _: () = assert!((MTU_MIN - 100) * 64 >= PACKET_MAX);
