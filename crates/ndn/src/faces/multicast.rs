//! UDP multicast: a group of neighbours on an interface.
//!
//! One socket sends and receives. It is bound to the group, so it receives nothing else, and it has
//! joined on one interface only.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use crate::faces::sys;

/// Packets of a group do not leave the network.
const HOPS: u32 = 1;

/// Opens the socket of a group on an interface, which is a name or, for IPv4, an address. Also
/// returns the group with the interface's scope, to which frames are sent.
pub(crate) fn open(interface: &str, group: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let family = if group.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    sys::enlarge_buffers(&socket);
    // Other programs on this machine may join, too.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    let group = match group {
        SocketAddr::V4(v4) => {
            let to = *v4.ip();
            match interface.parse::<Ipv4Addr>() {
                Ok(address) => {
                    sockopt::set_ip_add_membership(&socket, &to, &address)?;
                    sockopt::set_ip_multicast_if(&socket, &address)?;
                }
                Err(_) => {
                    let (index, any) = (index(&socket, interface)?, Ipv4Addr::UNSPECIFIED);
                    sockopt::set_ip_add_membership_with_ifindex(&socket, &to, &any, index)?;
                    sockopt::set_ip_multicast_if_with_ifindex(&socket, &to, &any, index)?;
                }
            }
            sys::only_joined_groups(&socket)?;
            // Own packets are not received.
            sockopt::set_ip_multicast_loop(&socket, false)?;
            sockopt::set_ip_multicast_ttl(&socket, HOPS)?;
            group
        }
        SocketAddr::V6(v6) => {
            let index = index(&socket, interface)?;
            sockopt::set_ipv6_v6only(&socket, true)?;
            sockopt::set_ipv6_add_membership(&socket, v6.ip(), index)?;
            sockopt::set_ipv6_multicast_if(&socket, index)?;
            sockopt::set_ipv6_multicast_loop(&socket, false)?;
            sockopt::set_ipv6_multicast_hops(&socket, HOPS)?;
            // A scope binds the socket to the interface.
            SocketAddrV6::new(*v6.ip(), v6.port(), 0, index).into()
        }
    };
    bind(&socket, &group)?;
    Ok((socket, group))
}

fn index(socket: &OwnedFd, interface: &str) -> io::Result<u32> {
    Ok(name_to_index(socket, interface)?)
}
