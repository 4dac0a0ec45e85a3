//! Stream faces: listeners, accepted connections and connections to neighbours, and their output.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::epoll::EventFlags;
use rustix::net::getsockname;

use crate::faces::connection::{Connection, Retries};
use crate::faces::counters::Counters;
use crate::faces::error::OpenError;
use crate::faces::face::{Face, Link, Persistence};
use crate::faces::listener::{Listener, Protocol};
use crate::faces::remote::{Remote, ip_version};
use crate::faces::settings::Settings;
use crate::faces::stream::Stream;
use crate::faces::table::FaceTable;
use crate::faces::waiting::{Poller, Source};
use crate::packets::{FRAME_MAX, Headers, write_lp};

/// The listeners, and what all streams share.
pub(crate) struct Streams {
    /// Sockets to which programs and neighbours connect.
    pub(crate) listeners: Vec<Listener>,
    /// Number of programs that ever connected.
    programs: u64,
    /// Stream faces with buffered output.
    to_flush: Vec<u32>,
    poller: Poller,
}

impl Streams {
    /// Opens the listeners of these settings.
    pub(crate) fn open(settings: &Settings, poller: Poller) -> Result<Self, OpenError> {
        let mut streams = Self { listeners: Vec::new(), programs: 0, to_flush: Vec::new(), poller };
        for &at in &settings.tcp {
            let listener = Listener::tcp(at).map_err(|source| OpenError::Tcp { at, source })?;
            streams.listen(listener)?;
        }
        for &at in &settings.websocket {
            let open = Listener::websocket(at);
            let listener = open.map_err(|source| OpenError::WebSocket { at, source })?;
            streams.listen(listener)?;
        }
        Ok(streams)
    }

    /// Accepts connections of a listener from now on.
    pub(crate) fn listen(&mut self, listener: Listener) -> io::Result<()> {
        let source = Source::Listener(self.listeners.len() as u32);
        self.poller.watch(&listener.socket, source, EventFlags::IN)?;
        self.listeners.push(listener);
        Ok(())
    }

    /// Pauses accepting connections until the next [`Streams::listen_again`], to avoid a busy loop
    /// while none can be accepted.
    pub(crate) fn pause(&mut self, at: usize) {
        if let Some(listener) = self.listeners.get_mut(at) {
            listener.paused = true;
            self.poller.unwatch(&listener.socket);
        }
    }

    /// Resumes accepting connections, where it was paused.
    pub(crate) fn listen_again(&mut self) {
        for (at, listener) in self.listeners.iter_mut().enumerate() {
            if listener.paused {
                let source = Source::Listener(at as u32);
                let watched = self.poller.watch(&listener.socket, source, EventFlags::IN);
                listener.paused = watched.is_err();
            }
        }
    }

    /// Creates the face of a connection to a listener; `None` if there is no room or epoll cannot
    /// watch the socket.
    pub(crate) fn add_accepted(
        &mut self,
        table: &mut FaceTable,
        listener: usize,
        (socket, from): (OwnedFd, Option<SocketAddr>),
        now_ns: u64,
    ) -> Option<u32> {
        let Listener { protocol, name, .. } = &self.listeners[listener];
        let name = name.clone();
        let (remote, local, stream) = match (*protocol, from) {
            (Protocol::Program, _) => return self.add_program(table, name, socket, now_ns),
            (_, None) => return None,
            _ if !table.has_room_on_demand() => return None,
            (Protocol::Tcp, Some(from)) => {
                let stream = Stream::accepted(socket);
                (Remote::Tcp(from), local_tcp(&stream.connection), stream)
            }
            (Protocol::WebSocket, Some(from)) => {
                (Remote::WebSocket(from), name, Stream::websocket(socket).ok()?)
            }
        };
        self.add(table, remote, local, Persistence::OnDemand, stream, now_ns)
    }

    /// Creates the face of a program, which is connected to the socket `name`.
    pub(crate) fn add_program(
        &mut self,
        table: &mut FaceTable,
        name: String,
        socket: OwnedFd,
        now_ns: u64,
    ) -> Option<u32> {
        self.programs += 1;
        let (remote, stream) = (Remote::Program(self.programs), Stream::program(socket));
        self.add(table, remote, name, Persistence::OnDemand, stream, now_ns)
    }

    /// Buffers a packet for a face until [`Streams::flush`].
    pub(crate) fn send(
        &mut self,
        number: u32,
        stream: &mut Stream,
        counters: &mut Counters,
        headers: &Headers,
        packet: &[u8],
    ) {
        counters.frames_out += 1;
        match stream.append(|out| write_lp(headers, packet, out)) {
            Ok(len) => counters.octets_out += len as u64,
            Err(reason) => counters.count_lost(reason, 1),
        }
        if !std::mem::replace(&mut stream.listed, true) {
            self.to_flush.push(number);
        }
    }

    /// Sends the buffered output of all streams.
    pub(crate) fn flush(&mut self, table: &mut FaceTable) {
        while let Some(number) = self.to_flush.pop() {
            self.flush_one(table, number);
        }
    }

    /// Returns the number of the existing face to a neighbour over TCP, or of a new one, and whether it is
    /// new. A new face is connected in the background.
    pub(crate) fn connect(
        &self,
        table: &mut FaceTable,
        to: SocketAddr,
        persistence: Persistence,
    ) -> Result<(u32, bool), OpenError> {
        let remote = Remote::Tcp(to);
        let existing = table.iter().find(|(_, face)| face.remote == remote);
        if let Some(face) = existing.map(|(number, _)| number) {
            table.extend_persistence(face, persistence);
            return Ok((face, false));
        }
        let connection = match Connection::to(to) {
            Ok(connection) => connection,
            Err(_) if persistence == Persistence::Permanent => Connection::Closed { retry_ns: 0 },
            Err(source) => return Err(OpenError::Tcp { at: to, source }),
        };
        let local = local_tcp(&connection);
        let stream = Stream::connecting(connection, Retries::new(to));
        let face = self.add(table, remote, local, persistence, stream, 0);
        Ok((face.ok_or(OpenError::Full(table.faces_max))?, true))
    }

    /// Begins another attempt to connect; returns false if it fails at once.
    pub(crate) fn connect_again(&self, table: &mut FaceTable, number: u32) -> bool {
        let Some(face) = table.get_mut(number) else { return true };
        let Link::Stream(stream) = &mut face.link else { return true };
        let Some(retries) = &stream.retries else { return true };
        let Ok(connection) = Connection::to(retries.neighbour) else { return false };
        face.local = local_tcp(&connection);
        stream.connection = connection;
        stream.wants_write = true;
        self.watch(number, stream)
    }

    /// Adds a face with this stream.
    fn add(
        &self,
        table: &mut FaceTable,
        remote: Remote,
        local: String,
        persistence: Persistence,
        stream: Stream,
        now_ns: u64,
    ) -> Option<u32> {
        let link = Link::Stream(Box::new(stream));
        let number = table.add(Face::new(remote, local, persistence, FRAME_MAX, now_ns, link))?;
        match &table.get(number)?.link {
            Link::Stream(stream) if self.watch(number, stream) => Some(number),
            _ => {
                table.remove(number);
                None
            }
        }
    }

    /// Watches the socket of a stream, if it has one; returns false if epoll refuses.
    fn watch(&self, number: u32, stream: &Stream) -> bool {
        let Some(socket) = stream.connection.socket() else { return true };
        self.poller.watch(socket, Source::Stream(number), events(stream)).is_ok()
    }

    /// Sends the buffered output of a stream. If some is left, epoll watches the socket for room. A closed
    /// connection is detected on reading.
    pub(crate) fn flush_one(&self, table: &mut FaceTable, number: u32) {
        let Some(face) = table.get_mut(number) else { return };
        let Link::Stream(stream) = &mut face.link else { return };
        stream.listed = false;
        let is_blocked = stream.flush().unwrap_or(false);
        if is_blocked != stream.wants_write {
            stream.wants_write = is_blocked;
            if let Some(socket) = stream.connection.socket() {
                self.poller.change(socket, Source::Stream(number), events(stream));
            }
        }
    }
}

/// The events for which a stream is watched.
fn events(stream: &Stream) -> EventFlags {
    if stream.wants_write { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN }
}

/// The local end of a connection in NFD's syntax.
fn local_tcp(connection: &Connection) -> String {
    let name = connection.socket().and_then(|socket| getsockname(socket).ok());
    match name.and_then(|name| SocketAddr::try_from(name).ok()) {
        Some(at) => format!("tcp{}://{at}", ip_version(&at)),
        None => "tcp://".into(),
    }
}
