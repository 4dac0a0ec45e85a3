//! The XDP program that redirects frames to sockets, and its attachment to an interface.

use std::io;
use std::os::fd::OwnedFd;

use crate::live::capability::Capability;
use crate::live::code::{
    R, Size, add, call, copy, exit, load, map, set, skip_if_greater, skip_if_not,
};
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::notice::Notice;
use crate::live::options::Attach;
use crate::live::sys::bpf::{Link, Map, MapKind, Program};

/// Offsets in `struct xdp_md`: the start of the frame, its end, and the queue number.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

/// Offset of the EtherType in a frame, and the length of the Ethernet header.
const ETHERTYPE: i16 = 12;
const ETHERNET: i32 = 14;

const REDIRECT_MAP: i32 = 51;
const PASS: i32 = 2;

const GENERIC: u32 = 1 << 1;
const NATIVE: u32 = 1 << 2;

/// An XDP program attached to an interface until this is dropped.
pub(super) struct Attachment {
    /// Dropped first: without it no frame reaches the map.
    _link: Link,
    sockets: Map,
    pub(super) native: bool,
}

impl Attachment {
    /// Attaches the program to the interface, for `queues` queues. Until sockets are set, all
    /// frames go to the host. With `ethertype`, frames with another one always do.
    pub(super) fn new(
        interface: &Interface,
        queues: u32,
        attach: Attach,
        ethertype: Option<u16>,
        notices: &mut Vec<Notice>,
    ) -> Result<Self, OpenError> {
        let doing = "loading an XDP program";
        let sockets =
            Map::new(MapKind::Sockets, queues).map_err(OpenError::at(doing, Capability::XDP))?;
        let program = Program::load("ringtap", &instructions(&sockets, ethertype))
            .map_err(OpenError::at(doing, Capability::XDP))?;
        let index = interface.link.index;
        let native = match attach {
            Attach::Generic => None,
            Attach::Native => {
                Some(program.attach(index, NATIVE).map_err(refused(interface, "native"))?)
            }
            Attach::Auto => match program.attach(index, NATIVE) {
                Ok(link) => Some(link),
                Err(error) if already_attached(&error) => {
                    return Err(refused(interface, "native")(error));
                }
                Err(error) => {
                    notices.push(Notice::GenericXdp {
                        interface: interface.name().to_owned(),
                        reason: error.to_string(),
                    });
                    None
                }
            },
        };
        Ok(match native {
            Some(link) => Self { _link: link, sockets, native: true },
            None => Self {
                _link: program.attach(index, GENERIC).map_err(refused(interface, "generic"))?,
                sockets,
                native: false,
            },
        })
    }

    /// From now on the frames of `queue` go to `socket`.
    pub(super) fn set_socket(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        self.sockets.put_socket(queue, socket)
    }

    /// From now on the frames of `queue` go to the host again.
    pub(super) fn remove_socket(&self, queue: u32) {
        // Fails if the interface is gone: then there is nothing to remove.
        let _ = self.sockets.remove_socket(queue);
    }
}

/// Whether another program is attached already, in the same mode or in the other.
fn already_attached(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// For `map_err`: the error for a refused attachment in `mode`.
fn refused(interface: &Interface, mode: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    let name = interface.name().to_owned();
    let link = interface.current_link();
    move |source| {
        if already_attached(&source) {
            let id = link.ok().flatten().and_then(|link| link.xdp_program);
            return OpenError::ProgramInPlace { name, id };
        }
        match source.kind() {
            io::ErrorKind::PermissionDenied => {
                OpenError::at("attaching an XDP program", Capability::XDP)(source)
            }
            _ => OpenError::Xdp { name, mode, source },
        }
    }
}

/// `return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)`, with `ethertype` only for
/// frames of it.
fn instructions(sockets: &Map, ethertype: Option<u16>) -> Vec<u64> {
    let [map_low, map_high] = map(R(1), sockets.number());
    let redirect = [
        load(Size::Word, R(2), R(1), QUEUE),
        map_low,
        map_high,
        set(R(3), PASS),
        call(REDIRECT_MAP),
        exit(),
    ];
    let Some(ethertype) = ethertype else { return redirect.into() };
    // As it is in memory.
    let ethertype = u16::from_ne_bytes(ethertype.to_be_bytes()).into();
    let to_end = redirect.len() as i16;
    let check = [
        load(Size::Word, R(2), R(1), DATA),
        load(Size::Word, R(3), R(1), DATA_END),
        copy(R(4), R(2)),
        add(R(4), ETHERNET),
        skip_if_greater(R(4), R(3), to_end + 2),
        load(Size::Half, R(5), R(2), ETHERTYPE),
        skip_if_not(R(5), ethertype, to_end),
    ];
    [&check[..], &redirect, &[set(R(0), PASS), exit()]].concat()
}
