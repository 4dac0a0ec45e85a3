//! Reads properties of interfaces by rtnetlink.
//!
//! ```text
//!  request  | nlmsghdr 16 | ifinfomsg 16 | [IFLA_IFNAME] |
//!  reply    | nlmsghdr 16 | ifinfomsg 16 | attribute: len 2, type 2, bytes, padding to 4 | …
//! ```
//!
//! Invariant: no input makes it panic. An attribute that is longer than the reply ends the list.

use std::io;
use std::os::fd::OwnedFd;

use crate::live::state::State;
use crate::live::sys::socket;

/// Buffer size for a reply, in bytes. It fits one interface, and the largest message of a list.
pub(crate) const REPLY: usize = 64 << 10;

const HEADER: usize = 16;
const INFO: usize = 16;

/// Longest segment that the kernel joins by default, in bytes.
const JOINED_USUALLY: u32 = 1 << 16;

/// `IFLA_GSO_MAX_SIZE`, `IFLA_GRO_MAX_SIZE`, `IFLA_GSO_IPV4_MAX_SIZE`, `IFLA_GRO_IPV4_MAX_SIZE`.
const JOINED: [u16; 4] = [41, 58, 63, 64];

/// `IFLA_XDP`, and its nested attributes: the mode and the program of each mode.
const XDP: u16 = 43;
const XDP_ATTACHED: u16 = 2;
const XDP_PROGRAM: [u16; 4] = [4, 5, 6, 7];

/// Properties of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// The description that an administrator gave it, at most 256 bytes; empty without one.
    pub(crate) alias: String,
    /// Link type `ARPHRD_…`.
    pub(crate) hardware: u16,
    /// Flags `IFF_…`.
    pub(crate) flags: u32,
    pub(crate) mtu: u32,
    /// Longest packet that the kernel joins from several segments, received or sent, in bytes.
    pub(crate) joined: u32,
    /// Largest possible number of receive queues.
    pub(crate) rx_queues: u32,
    /// Frames sent.
    pub(crate) tx_packets: u64,
    /// Frames lost because the network card or driver had no room, before the kernel got them.
    pub(crate) rx_missed: u64,
    /// Frames that the driver had no room for, or that the kernel dropped before the first receiver. Includes frames
    /// that receivers got but that no protocol handler of the host accepted.
    pub(crate) rx_dropped: u64,
    /// Kernel's number of the attached XDP program.
    pub(crate) xdp_program: Option<u32>,
}

impl Link {
    pub(crate) fn state(&self) -> State {
        State::of_flags(self.flags as i32)
    }

    /// Longest packet that a receiver may get, in bytes: that of the MTU, or one joined from more than the usual number
    /// of segments.
    pub(crate) fn longest_packet(&self) -> u32 {
        if self.joined > JOINED_USUALLY { self.mtu.max(self.joined) } else { self.mtu }
    }
}

/// Opens a socket for requests. It belongs to the current network namespace.
pub(crate) fn open() -> io::Result<OwnedFd> {
    socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)
}

/// Opens a socket that receives the changes of all interfaces of the current network namespace.
pub(crate) fn open_changes() -> io::Result<OwnedFd> {
    let socket = open()?;
    socket::bind_netlink(&socket, libc::RTMGRP_LINK as u32)?;
    Ok(socket)
}

/// A change of an interface.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The interface has these properties now.
    Is(Link),
    /// The interface with this index is gone.
    Gone(u32),
}

/// Reads a message of changes, without waiting. Returns `None` if none waits.
///
/// # Errors
/// `ENOBUFS` if changes were lost for lack of room.
pub(crate) fn changes(
    socket: &OwnedFd,
    message: &mut [u8],
    mut each: impl FnMut(Change),
) -> io::Result<Option<()>> {
    let len = match socket::receive(socket, message, libc::MSG_DONTWAIT) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        other => other?,
    };
    let mut rest = message.get(..len).unwrap_or_default();
    while let Some(message) = Message::take(&mut rest) {
        if let Some(change) = change(&message) {
            each(change);
        }
    }
    Ok(Some(()))
}

fn change(message: &Message<'_>) -> Option<Change> {
    // A bridge reports changes of its ports under its own address family.
    if message.body.first() != Some(&(libc::AF_UNSPEC as u8)) {
        return None;
    }
    match message.kind {
        libc::RTM_NEWLINK => parse(message.body).map(Change::Is),
        libc::RTM_DELLINK => word(message.body, 4).map(Change::Gone),
        _ => None,
    }
}

/// The interface called `name`, `None` if there is none.
pub(crate) fn by_name(netlink: &OwnedFd, name: &str) -> io::Result<Option<Link>> {
    // The kernel would return a less clear error for such names.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
        return Ok(None);
    }
    one(netlink, &request(0, Some(name), 0))
}

/// The interface with index `index`, `None` if it is gone.
pub(crate) fn by_index(netlink: &OwnedFd, index: u32) -> io::Result<Option<Link>> {
    one(netlink, &request(index, None, 0))
}

/// The names of all interfaces.
pub(crate) fn names(netlink: &OwnedFd) -> io::Result<Vec<String>> {
    socket::send(netlink, &request(0, None, libc::NLM_F_DUMP as u16))?;
    let mut names = Vec::new();
    let mut reply = vec![0; REPLY];
    loop {
        let len = socket::receive(netlink, &mut reply, 0)?;
        let mut rest = reply.get(..len).unwrap_or_default();
        if rest.len() < HEADER {
            return Ok(names);
        }
        while let Some(message) = Message::take(&mut rest) {
            match message.kind {
                libc::RTM_NEWLINK => names.extend(parse(message.body).map(|link| link.name)),
                _ => return Ok(names),
            }
        }
    }
}

fn one(netlink: &OwnedFd, request: &[u8]) -> io::Result<Option<Link>> {
    socket::send(netlink, request)?;
    let mut reply = vec![0; REPLY];
    let len = socket::receive(netlink, &mut reply, 0)?;
    let mut rest = reply.get(..len).unwrap_or_default();
    let malformed = || io::Error::other("malformed reply of rtnetlink");
    let message = Message::take(&mut rest).ok_or_else(malformed)?;
    if message.kind == libc::RTM_NEWLINK {
        return parse(message.body).map(Some).ok_or_else(malformed);
    }
    let code = word(message.body, 0).ok_or_else(malformed)?;
    let error = io::Error::from_raw_os_error(-(code as i32));
    if error.raw_os_error() == Some(libc::ENODEV) { Ok(None) } else { Err(error) }
}

fn request(index: u32, name: Option<&str>, flags: u16) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + INFO];
    if let Some(name) = name {
        bytes.extend((name.len() as u16 + 5).to_ne_bytes());
        bytes.extend(libc::IFLA_IFNAME.to_ne_bytes());
        bytes.extend(name.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    let len = bytes.len() as u32;
    let flags = flags | libc::NLM_F_REQUEST as u16;
    let head = [&len.to_ne_bytes()[..], &libc::RTM_GETLINK.to_ne_bytes(), &flags.to_ne_bytes()];
    for (to, from) in bytes.iter_mut().zip(head.concat()) {
        *to = from;
    }
    for (to, from) in bytes[HEADER + 4..].iter_mut().zip(index.to_ne_bytes()) {
        *to = from;
    }
    bytes
}

/// One message of a reply.
struct Message<'a> {
    kind: u16,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Takes the first message off `rest`.
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let len = word(rest, 0)? as usize;
        let message = Self { kind: half(rest, 4)?, body: rest.get(HEADER..len)? };
        *rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

/// A text, up to its first zero.
fn text(value: &[u8]) -> String {
    let text = value.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn parse(body: &[u8]) -> Option<Link> {
    let (hardware, index, flags) = (half(body, 2)?, word(body, 4)?, word(body, 8)?);
    let mut link = Link { hardware, index, flags, ..Link::default() };
    for (kind, value) in attributes(body.get(INFO..)?) {
        match kind {
            libc::IFLA_IFNAME => link.name = text(value),
            libc::IFLA_IFALIAS => link.alias = text(value),
            libc::IFLA_MTU => link.mtu = word(value, 0)?,
            kind if JOINED.contains(&kind) => link.joined = link.joined.max(word(value, 0)?),
            libc::IFLA_NUM_RX_QUEUES => link.rx_queues = word(value, 0)?,
            libc::IFLA_STATS64 => {
                let [rx_dropped, rx_fifo_errors, rx_missed_errors] = [6, 14, 15];
                link.rx_dropped = statistic(value, rx_dropped)?;
                link.tx_packets = statistic(value, 1)?;
                link.rx_missed = statistic(value, rx_fifo_errors)?
                    .saturating_add(statistic(value, rx_missed_errors)?);
            }
            XDP => link.xdp_program = xdp_program(value),
            _ => {}
        }
    }
    Some(link)
}

/// Number of the attached program, of any mode.
fn xdp_program(value: &[u8]) -> Option<u32> {
    attributes(value).find(|&(kind, value)| kind == XDP_ATTACHED && value != [0])?;
    let mut programs = attributes(value).filter(|(kind, _)| XDP_PROGRAM.contains(kind));
    programs.find_map(|(_, value)| word(value, 0).filter(|&number| number != 0))
}

fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(half(rest, 0)?);
        // The two highest bits are flags.
        let one = (half(rest, 2)? & 0x3fff, rest.get(4..len)?);
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(one)
    })
}

/// Field number `field` of `struct rtnl_link_stats64`.
fn statistic(bytes: &[u8], field: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(field * 8..field * 8 + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::from((value.len() as u16 + 4).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn body() -> Vec<u8> {
        let mut body = vec![0; INFO];
        body[2..4].copy_from_slice(&772_u16.to_ne_bytes());
        body[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        body[8..12].copy_from_slice(&((libc::IFF_UP | libc::IFF_RUNNING) as u32).to_ne_bytes());
        body.extend(attribute(libc::IFLA_IFNAME, b"probe0\0"));
        body.extend(attribute(libc::IFLA_MTU, &1500_u32.to_ne_bytes()));
        body.extend(attribute(58, &185_000_u32.to_ne_bytes()));
        body.extend(attribute(41, &65_536_u32.to_ne_bytes()));
        let statistics: Vec<u8> = (100..124_u64).flat_map(u64::to_ne_bytes).collect();
        body.extend(attribute(libc::IFLA_STATS64, &statistics));
        let xdp = [attribute(XDP_ATTACHED, &[2]), attribute(4, &41_u32.to_ne_bytes())].concat();
        body.extend(attribute(XDP | 1 << 15, &xdp));
        body
    }

    #[test]
    fn a_reply_is_parsed() {
        let link = parse(&body()).unwrap();
        assert_eq!((link.index, link.name.as_str(), link.hardware), (7, "probe0", 772));
        assert_eq!((link.mtu, link.xdp_program), (1500, Some(41)));
        assert_eq!((link.joined, link.longest_packet()), (185_000, 185_000));
        assert_eq!(link.state(), State::Up);
        assert_eq!((link.tx_packets, link.rx_missed), (101, 114 + 115));
        assert_eq!(link.rx_dropped, 106);
    }

    #[test]
    fn a_change_is_one_of_the_interface_itself() {
        let mut body = body();
        let of = |kind, body: &[u8]| change(&Message { kind, body });
        assert_eq!(of(libc::RTM_NEWLINK, &body), parse(&body).map(Change::Is));
        assert_eq!(of(libc::RTM_DELLINK, &body), Some(Change::Gone(7)));
        assert_eq!(of(libc::RTM_NEWADDR, &body), None);
        body[0] = libc::AF_BRIDGE as u8;
        assert_eq!(of(libc::RTM_DELLINK, &body), None, "it left a bridge");
        assert_eq!(of(libc::RTM_NEWLINK, &[]), None);
    }

    #[test]
    fn a_truncated_or_malformed_reply_does_not_panic() {
        let whole = body();
        for len in 0..whole.len() {
            let _ = parse(&whole[..len]);
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 0xff;
            let _ = parse(&wrong);
            let _ = Message::take(&mut &wrong[..]);
        }
    }

    #[test]
    fn the_loopback_interface_is_found_by_name_and_by_index() {
        let netlink = open().unwrap();
        let link = by_name(&netlink, "lo").unwrap().unwrap();
        assert_eq!(link.hardware, libc::ARPHRD_LOOPBACK);
        assert_eq!(by_index(&netlink, link.index).unwrap().unwrap().name, "lo");
        assert!(names(&netlink).unwrap().contains(&"lo".to_owned()));
    }

    #[test]
    fn an_unknown_interface_is_not_found() {
        let netlink = open().unwrap();
        for name in ["", "none such", "a-name-longer-than-any-interface-has", "lo\0"] {
            assert_eq!(by_name(&netlink, name).unwrap(), None, "{name:?}");
        }
        assert_eq!(by_index(&netlink, i32::MAX as u32).unwrap(), None);
    }
}
