//! The connection of a stream face, and the opening of TCP connections to neighbours.
//!
//! ```text
//!  Opening ─▶ Open ─▶ Closed ─ pause: 1 s, 2 s, … 60 s ─▶ Opening      permanent faces only
//! ```
//!
//! Invariant: nothing here waits for the network.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, connect, getpeername, socket_with, sockopt,
};

/// Time limit of an attempt to connect, and of a handshake.
pub(crate) const LIMIT_NS: u64 = 10_000_000_000;

/// Shortest and longest pause before the next attempt.
const PAUSE_MIN_NS: u64 = 1_000_000_000;
const PAUSE_MAX_NS: u64 = 60_000_000_000;

/// A neighbour that acknowledges nothing for this time is disconnected.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

/// Number of keepalive probes without an answer after which a neighbour is disconnected.
const PROBES_MAX: u32 = 3;

/// The connection of a stream face.
#[derive(Debug)]
pub(crate) enum Connection {
    /// The connection is established.
    Open(OwnedFd),
    /// The system is connecting; output is buffered.
    Opening {
        socket: OwnedFd,
        /// When the attempt fails; `None` until the first call of [`Connection::step`].
        limit_ns: Option<u64>,
    },
    /// The last attempt failed, or the connection ended.
    Closed {
        /// Time of the next attempt.
        retry_ns: u64,
    },
}

/// What to do about a connection now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Nothing,
    /// Try to connect again.
    Connect,
    /// The attempt has taken too long.
    GiveUp,
}

impl Connection {
    /// Begins to connect to a neighbour.
    pub(crate) fn to(neighbour: SocketAddr) -> io::Result<Self> {
        Ok(Self::Opening { socket: connecting(neighbour)?, limit_ns: None })
    }

    /// The socket, if there is one.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        match self {
            Self::Open(socket) | Self::Opening { socket, .. } => Some(socket),
            Self::Closed { .. } => None,
        }
    }

    /// What to do about the connection at this time.
    pub(crate) fn step(&mut self, now_ns: u64) -> Step {
        match self {
            Self::Opening { limit_ns, .. } => {
                let limit_ns = *limit_ns.get_or_insert(now_ns.saturating_add(LIMIT_NS));
                if now_ns >= limit_ns { Step::GiveUp } else { Step::Nothing }
            }
            Self::Closed { retry_ns } if now_ns >= *retry_ns => Step::Connect,
            _ => Step::Nothing,
        }
    }

    /// Checks whether an attempt to connect has succeeded, and returns whether it has; call it when
    /// the socket is ready.
    pub(crate) fn finish_opening(&mut self) -> io::Result<bool> {
        if let Self::Opening { socket, .. } = self {
            sockopt::socket_error(&*socket)??;
            // The event may be that of an earlier face with the same number.
            if getpeername(&*socket).is_err() {
                return Ok(false);
            }
        }
        *self = match std::mem::replace(self, Self::Closed { retry_ns: 0 }) {
            Self::Opening { socket, .. } => Self::Open(socket),
            other => other,
        };
        Ok(true)
    }
}

/// The pauses between attempts to connect to a neighbour: each is twice as long as the one before.
#[derive(Debug)]
pub(crate) struct Retries {
    pub(crate) neighbour: SocketAddr,
    pause_ns: u64,
}

impl Retries {
    pub(crate) fn new(neighbour: SocketAddr) -> Self {
        Self { neighbour, pause_ns: PAUSE_MIN_NS }
    }

    /// The pause before the next attempt, in nanoseconds.
    pub(crate) fn pause_ns(&mut self) -> u64 {
        let next_ns = self.pause_ns.saturating_mul(2).min(PAUSE_MAX_NS);
        std::mem::replace(&mut self.pause_ns, next_ns)
    }

    /// Begins with the shortest pause again. Called when the neighbour has sent something: one that
    /// accepts connections and closes them at once is not connected to every second.
    pub(crate) fn reset(&mut self) {
        self.pause_ns = PAUSE_MIN_NS;
    }
}

/// A socket that connects to a neighbour in the background.
fn connecting(neighbour: SocketAddr) -> io::Result<OwnedFd> {
    let family = if neighbour.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    configure(&socket)?;
    match connect(&socket, &neighbour) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Sets the options of a TCP connection: packets are sent without delay, and a neighbour that has
/// vanished is detected.
pub(crate) fn configure(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_tcp_user_timeout(socket, UNACKNOWLEDGED_MAX.as_millis() as u32)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, UNACKNOWLEDGED_MAX)?;
    sockopt::set_tcp_keepintvl(socket, UNACKNOWLEDGED_MAX / PROBES_MAX)?;
    sockopt::set_tcp_keepcnt(socket, PROBES_MAX)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_a_second_to_a_minute() {
        let mut retries = Retries::new("192.0.2.1:6363".parse().unwrap());
        let pauses: Vec<u64> = (0..8).map(|_| retries.pause_ns() / 1_000_000_000).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        retries.reset();
        assert_eq!(retries.pause_ns(), PAUSE_MIN_NS);
    }

    #[test]
    fn a_connection_is_not_open_before_the_neighbour_answers() {
        // A listener with a full backlog does not answer.
        let full = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&full, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        rustix::net::listen(&full, 0).unwrap();
        let at = rustix::net::getsockname(&full).unwrap().try_into().unwrap();
        let _waiting = std::net::TcpStream::connect::<SocketAddr>(at).unwrap();
        let mut connection = Connection::to(at).unwrap();
        assert!(!connection.finish_opening().unwrap());
        assert!(matches!(connection, Connection::Opening { .. }));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        connection = Connection::to(listener.local_addr().unwrap()).unwrap();
        assert!(connection.finish_opening().unwrap());
        assert!(matches!(connection, Connection::Open(_)));
    }

    #[test]
    fn an_attempt_has_a_time_limit_and_a_next_attempt() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut connection = Connection::to(listener.local_addr().unwrap()).unwrap();
        assert_eq!(connection.step(5), Step::Nothing);
        assert_eq!(connection.step(4 + LIMIT_NS), Step::Nothing);
        assert_eq!(connection.step(5 + LIMIT_NS), Step::GiveUp);
        connection = Connection::Closed { retry_ns: 7 };
        assert!(connection.socket().is_none());
        assert_eq!((connection.step(6), connection.step(7)), (Step::Nothing, Step::Connect));
    }
}
