//! Sockets to which programs and neighbours connect.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, acceptfrom_with, bind, getsockname, listen,
    socket_with, sockopt,
};

use crate::faces::connection::configure;
use crate::faces::remote::ip_version;
use crate::faces::websocket::WebSocket;

/// Maximum number of connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// A socket to which others connect.
pub(crate) struct Listener {
    pub(crate) socket: OwnedFd,
    pub(crate) protocol: Protocol,
    /// The address in NFD's syntax.
    pub(crate) name: String,
    /// Whether accepting is paused for lack of file descriptors or memory.
    pub(crate) paused: bool,
}

/// The protocol of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Consecutive packets of a program on this machine.
    Program,
    /// Consecutive packets of a neighbour.
    Tcp,
    /// Messages of a neighbour, with one packet each.
    WebSocket,
}

impl Listener {
    /// Accepts programs at a Unix socket, which must not block.
    pub(crate) fn programs(socket: OwnedFd, path: &str) -> Self {
        Self { socket, protocol: Protocol::Program, name: format!("unix://{path}"), paused: false }
    }

    /// Listens for neighbours at a TCP port.
    pub(crate) fn tcp(at: SocketAddr) -> io::Result<Self> {
        let (socket, at) = bound(at)?;
        let name = format!("tcp{}://{at}", ip_version(&at));
        Ok(Self { socket, protocol: Protocol::Tcp, name, paused: false })
    }

    /// Listens for neighbours that use WebSocket.
    pub(crate) fn websocket(at: SocketAddr) -> io::Result<Self> {
        // An error now if this build has none.
        WebSocket::new()?;
        let (socket, at) = bound(at)?;
        Ok(Self {
            socket,
            protocol: Protocol::WebSocket,
            name: format!("ws://{at}"),
            paused: false,
        })
    }

    /// Whether a connection waits to be accepted.
    pub(crate) fn has_waiting(&self) -> bool {
        let mut listening = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut listening, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// The next connection, and the address of the neighbour; `None` for a program.
    pub(crate) fn accept(&self) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (socket, from) = acceptfrom_with(&self.socket, flags)?;
        if self.protocol == Protocol::Program {
            return Ok((socket, None));
        }
        configure(&socket)?;
        let from = from.and_then(|from| SocketAddr::try_from(from).ok());
        Ok((socket, Some(from.ok_or(io::ErrorKind::ConnectionAborted)?)))
    }
}

/// A socket that listens at `at`, and its address.
fn bound(at: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if at.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Connections of an earlier process, which the system has not ended yet, do not prevent this.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &at)?;
    listen(&socket, BACKLOG)?;
    let at = SocketAddr::try_from(getsockname(&socket)?).unwrap_or(at);
    Ok((socket, at))
}
