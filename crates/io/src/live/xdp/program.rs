//! The XDP program that redirects frames to sockets, and its attachment to an interface.

use std::io;
use std::os::fd::OwnedFd;

use crate::live::capability::Capability;
use crate::live::code::{R, Size, call, exit, load, map, set};
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::notice::Notice;
use crate::live::options::Attach;
use crate::live::sys::bpf::{Link, Map, MapKind, Program};

/// Offset of the queue number in `struct xdp_md`.
const QUEUE: i16 = 16;
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
    /// frames go to the host.
    pub(super) fn new(
        interface: &Interface,
        queues: u32,
        attach: Attach,
        notices: &mut Vec<Notice>,
    ) -> Result<Self, OpenError> {
        let doing = "loading an XDP program";
        let sockets =
            Map::new(MapKind::Sockets, queues).map_err(OpenError::at(doing, Capability::XDP))?;
        let program = Program::load("ringtap", &instructions(&sockets))
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

/// `return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)`.
fn instructions(sockets: &Map) -> Vec<u64> {
    let [map_low, map_high] = map(R(1), sockets.number());
    vec![
        load(Size::Word, R(2), R(1), QUEUE),
        map_low,
        map_high,
        set(R(3), PASS),
        call(REDIRECT_MAP),
        exit(),
    ]
}
