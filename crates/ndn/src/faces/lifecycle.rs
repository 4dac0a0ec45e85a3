//! Faces that appear and end with connections, or end because they are idle.

use std::io::{self, ErrorKind};

use rustix::io::Errno;

use crate::faces::connection::{Connection, LIMIT_NS, Step};
use crate::faces::counters::Lost;
use crate::faces::face::{Link, Persistence};
use crate::faces::handler::Handler;
use crate::faces::listener::Protocol;
use crate::faces::registry::Faces;

/// Maximum number of connections accepted before packets are handled.
const ACCEPTS: usize = 64;

/// Closes idle faces, connects permanent faces again and frees empty buffers. Also resumes accepting
/// connections, if it was paused for lack of file descriptors. Call it once a second.
pub fn close_idle(faces: &mut Faces, now_ns: u64, handler: &mut impl Handler) {
    for face in faces.table.idle(now_ns) {
        faces.close(face);
        handler.down(faces, face);
    }
    reconnect(faces, now_ns, handler);
    for (_, face) in faces.table.iter_mut() {
        if let Link::Stream(stream) = &mut face.link {
            stream.shrink();
        }
    }
    faces.streams.listen_again();
}

/// Accepts the connections that wait at a listener.
pub(crate) fn accept(faces: &mut Faces, at: usize, now_ns: u64, handler: &mut impl Handler) {
    let mut may_make_room = true;
    // Connections beyond this limit keep waiting, and epoll reports them again.
    for _ in 0..ACCEPTS {
        let Some(listener) = faces.streams.listeners.get_mut(at) else { return };
        match listener.accept() {
            Ok(accepted) => {
                may_make_room = true;
                let protocol = listener.protocol;
                if let Some(replaced) = faces.table.next_for_stream(protocol == Protocol::Program) {
                    if protocol == Protocol::Program {
                        faces.close(replaced);
                    } else {
                        faces.evict(replaced);
                    }
                    handler.down(faces, replaced);
                }
                match faces.streams.add_accepted(&mut faces.table, at, accepted, now_ns) {
                    Some(face) => handler.up(faces, face),
                    // Dropping the socket closes the connection.
                    None => {
                        faces.table.others.frames_in += 1;
                        faces.table.others.count_lost(Lost::NoFace, 1);
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // The system needs a file descriptor before it looks for a connection.
            Err(_) if !listener.has_waiting() => return,
            Err(error) if lacks_resources(&error) => {
                // Neighbours that connect and send nothing must not keep others from connecting.
                let silent = faces.table.oldest_silent().filter(|_| may_make_room);
                let Some(silent) = silent else { return faces.streams.pause(at) };
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

/// Completes the opening of a connection, if it is being opened; returns false if that failed.
pub(crate) fn finish_opening(faces: &mut Faces, face: u32, handler: &mut impl Handler) -> bool {
    let Some(opening) = faces.table.get_mut(face) else { return true };
    let is_permanent = opening.persistence == Persistence::Permanent;
    let Link::Stream(stream) = &mut opening.link else { return true };
    if !matches!(stream.connection, Connection::Opening { .. }) {
        return true;
    }
    let Ok(is_open) = stream.connection.finish_opening() else { return false };
    if is_open && is_permanent {
        handler.link_changed(faces, face, true);
    }
    true
}

/// Handles the end of a connection, or of an attempt to connect: a permanent face that we connected
/// is connected again later; any other face is closed.
pub(crate) fn disconnect(faces: &mut Faces, face: u32, now_ns: u64, handler: &mut impl Handler) {
    let Some(ended) = faces.table.get_mut(face) else { return };
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
fn reconnect(faces: &mut Faces, now_ns: u64, handler: &mut impl Handler) {
    let steps = faces.table.iter_mut().filter_map(|(number, face)| match &mut face.link {
        Link::Stream(stream) if stream.is_handshaking() => {
            let is_late = now_ns.saturating_sub(face.used_ns) >= LIMIT_NS;
            Some((number, if is_late { Step::GiveUp } else { Step::Nothing }))
        }
        Link::Stream(stream) => Some((number, stream.connection.step(now_ns))),
        Link::Datagrams { .. } => None,
    });
    let steps: Vec<(u32, Step)> = steps.filter(|(_, step)| *step != Step::Nothing).collect();
    for (number, step) in steps {
        if step == Step::GiveUp || !faces.streams.connect_again(&mut faces.table, number) {
            disconnect(faces, number, now_ns, handler);
        }
    }
}
