//! Stream faces in the registry: connections are accepted, opened, ended and opened again.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::getsockname;

use crate::faces::connection::{Connection, LIMIT_NS, Retries, Step};
use crate::faces::counters::{Counters, Lost};
use crate::faces::error::OpenError;
use crate::faces::face::{Face, Link, Persistence};
use crate::faces::intake::Handler;
use crate::faces::listener::{Accepted, Protocol};
use crate::faces::registry::Faces;
use crate::faces::remote::{Remote, ip_version};
use crate::faces::stream::Stream;
use crate::faces::waiting::Source;
use crate::packets::FRAME_MAX;

/// Maximum number of connections accepted before packets are handled.
const ACCEPTS: usize = 64;

impl Faces {
    /// Returns the number of the existing face to a neighbour over TCP, or of a new one, and
    /// whether it is new. A new face is connected in the background.
    pub(crate) fn add_tcp(
        &mut self,
        to: SocketAddr,
        persistence: Persistence,
    ) -> Result<(u32, bool), OpenError> {
        let remote = Remote::Tcp(to);
        let existing = self.iter().find(|(_, face)| face.remote == remote);
        if let Some(face) = existing.map(|(number, _)| number) {
            self.extend_persistence(face, persistence);
            return Ok((face, false));
        }
        let connection = match Connection::to(to) {
            Ok(connection) => connection,
            Err(_) if persistence == Persistence::Permanent => Connection::Closed { retry_ns: 0 },
            Err(source) => return Err(OpenError::Tcp { at: to, source }),
        };
        let local = local_tcp(&connection);
        let stream = Stream::connecting(connection, Retries::new(to));
        let face = self.put_stream(remote, local, persistence, stream, 0);
        Ok((face.ok_or(OpenError::Full(self.faces_max()))?, true))
    }

    /// Creates the face of a connection to a listener; `None` if there is no room or epoll cannot
    /// watch the socket.
    fn add_accepted(&mut self, listener: usize, accepted: Accepted, now_ns: u64) -> Option<u32> {
        let Accepted { socket, from } = accepted;
        let persistence = Persistence::OnDemand;
        let protocol = self.listeners[listener].protocol;
        let Some(from) = from else {
            let name = self.listeners[listener].name.clone();
            return self.add_program(name, socket, now_ns);
        };
        if self.on_demand() >= self.on_demand_max() {
            return None;
        }
        let (remote, stream) = match protocol {
            Protocol::Program => return None,
            Protocol::Tcp => (Remote::Tcp(from), Stream::accepted(socket)),
            Protocol::WebSocket => (Remote::WebSocket(from), Stream::websocket(socket).ok()?),
        };
        let local = match protocol {
            Protocol::WebSocket => self.listeners[listener].name.clone(),
            _ => local_tcp(&stream.connection),
        };
        self.put_stream(remote, local, persistence, stream, now_ns)
    }

    /// Creates the face of a program, which is connected to the socket `name`.
    pub(crate) fn add_program(
        &mut self,
        name: String,
        socket: OwnedFd,
        now_ns: u64,
    ) -> Option<u32> {
        let remote = self.next_program();
        let stream = Stream::program(socket);
        self.put_stream(remote, name, Persistence::OnDemand, stream, now_ns)
    }

    /// Adds a face with this stream.
    fn put_stream(
        &mut self,
        remote: Remote,
        local: String,
        persistence: Persistence,
        stream: Stream,
        now_ns: u64,
    ) -> Option<u32> {
        let number = self.put(Face {
            remote,
            local,
            persistence,
            mtu: FRAME_MAX,
            serial: self.created(),
            has_local_fields: false,
            used_ns: now_ns,
            has_route: false,
            counters: Counters::default(),
            link: Link::Stream(Box::new(stream)),
        })?;
        if self.watch_stream(number) {
            return Some(number);
        }
        self.close(number);
        None
    }

    /// Watches the socket of a stream, if it has one; returns false if epoll refuses.
    fn watch_stream(&mut self, number: u32) -> bool {
        let Some(Link::Stream(stream)) = self.get(number).map(|face| &face.link) else {
            return false;
        };
        let Some(socket) = stream.connection.socket() else { return true };
        self.watch_for(socket, Source::Stream(number), stream.wants_write).is_ok()
    }

    /// Whether a face exists, and is the one with this serial number.
    pub(crate) fn is_same(&self, face: u32, serial: u64) -> bool {
        self.get(face).is_some_and(|face| face.serial == serial)
    }
}

/// Accepts the connections that wait at a listener.
pub(crate) fn accept(faces: &mut Faces, at: usize, now_ns: u64, handler: &mut impl Handler) {
    let mut may_make_room = true;
    // Connections beyond this limit keep waiting, and epoll reports them again.
    for _ in 0..ACCEPTS {
        let Some(listener) = faces.listeners.get_mut(at) else { return };
        match listener.accept() {
            Ok(accepted) => {
                may_make_room = true;
                let protocol = listener.protocol;
                if let Some(replaced) = faces.next_to_replace(protocol) {
                    if protocol == Protocol::Program {
                        faces.close(replaced);
                    } else {
                        faces.evict(replaced);
                    }
                    handler.down(faces, replaced);
                }
                match faces.add_accepted(at, accepted, now_ns) {
                    Some(face) => handler.up(faces, face),
                    // Dropping the socket closes the connection.
                    None => {
                        faces.others.frames_in += 1;
                        faces.others.count_lost(Lost::NoFace, 1);
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // The system needs a file descriptor before it looks for a connection.
            Err(_) if !listener.has_waiting() => return,
            Err(error) if lacks_resources(&error) => {
                // Neighbours that connect and send nothing must not keep others from connecting.
                let silent = faces.oldest_silent().filter(|_| may_make_room);
                let Some(silent) = silent else { return faces.pause_listener(at) };
                may_make_room = false;
                faces.evict(silent);
                handler.down(faces, silent);
            }
            // The connection has ended, or its network has failed: the next one may not.
            Err(_) => {}
        }
    }
}

/// Whether accepting failed for lack of file descriptors or of memory for a socket.
fn lacks_resources(error: &io::Error) -> bool {
    let lacking = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| lacking.contains(&error))
}

/// Handles the end of a connection, or of an attempt to connect: a permanent face that we connected
/// is connected again later; any other face is closed.
pub(crate) fn disconnect(faces: &mut Faces, face: u32, now_ns: u64, handler: &mut impl Handler) {
    let Some(ended) = faces.get_mut(face) else { return };
    if let Link::Stream(stream) = &mut ended.link
        && ended.persistence == Persistence::Permanent
        && let Some(retries) = &mut stream.retries
    {
        let was_open = matches!(stream.connection, Connection::Open(_));
        let retry_ns = now_ns.saturating_add(retries.pause_ns());
        let unsent = stream.disconnect(retry_ns);
        ended.counters.count_lost(Lost::Disconnected, unsent);
        if was_open {
            handler.link_changed(faces, face, false);
        }
    } else if faces.close(face) {
        handler.down(faces, face);
    }
}

/// Opens connections whose pause is over, and ends attempts that take too long.
pub(crate) fn reconnect(faces: &mut Faces, now_ns: u64, handler: &mut impl Handler) {
    let steps = faces.iter_mut().filter_map(|(number, face)| match &mut face.link {
        Link::Stream(stream) if stream.is_handshaking() => {
            let is_late = now_ns.saturating_sub(face.used_ns) >= LIMIT_NS;
            Some((number, if is_late { Step::GiveUp } else { Step::Nothing }))
        }
        Link::Stream(stream) => Some((number, stream.connection.step(now_ns))),
        Link::Datagrams { .. } => None,
    });
    let steps: Vec<(u32, Step)> = steps.filter(|(_, step)| *step != Step::Nothing).collect();
    for (number, step) in steps {
        if step == Step::GiveUp || !open_again(faces, number) {
            disconnect(faces, number, now_ns, handler);
        }
    }
}

/// Frees the output buffers that are empty.
pub(crate) fn shrink(faces: &mut Faces) {
    for (_, face) in faces.iter_mut() {
        if let Link::Stream(stream) = &mut face.link {
            stream.shrink();
        }
    }
}

/// Begins another attempt to connect; returns false if it fails at once.
fn open_again(faces: &mut Faces, number: u32) -> bool {
    let Some(face) = faces.get_mut(number) else { return true };
    let Link::Stream(stream) = &mut face.link else { return true };
    let Some(retries) = &stream.retries else { return true };
    let Ok(connection) = Connection::to(retries.neighbour) else { return false };
    face.local = local_tcp(&connection);
    stream.connection = connection;
    stream.wants_write = true;
    faces.watch_stream(number)
}

/// The local end of a connection in NFD's syntax.
fn local_tcp(connection: &Connection) -> String {
    let name = connection.socket().and_then(|socket| getsockname(socket).ok());
    match name.and_then(|name| SocketAddr::try_from(name).ok()) {
        Some(at) => format!("tcp{}://{at}", ip_version(&at)),
        None => "tcp://".into(),
    }
}
