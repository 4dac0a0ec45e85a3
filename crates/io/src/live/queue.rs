//! An AF_XDP socket gets its queue.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::sys::socket;

/// `XDP_OPTIONS_ZEROCOPY`.
const ZERO_COPY: u32 = 1;

/// The kernel lets go of a queue some time after the socket before was closed, or its process killed.
const PATIENCE: u32 = 50;
const MOMENT: Duration = Duration::from_millis(10);

/// Binds the socket to a queue; tells whether the driver reads and writes our memory itself, which
/// it may if `zero_copy` says so.
pub(crate) fn bind(
    socket: &OwnedFd,
    interface: &Interface,
    queue: u32,
    zero_copy: bool,
) -> Result<bool, OpenError> {
    // Without a demand for either, the kernel tries zero-copy and then copies.
    let copy = if zero_copy { 0 } else { libc::XDP_COPY };
    let flags = libc::XDP_USE_NEED_WAKEUP | copy;
    let name = || interface.name().to_owned();
    for attempt in 0.. {
        let bound = socket::bind_xdp(socket, interface.link.index, queue, flags);
        let Err(error) = bound else { break };
        match error.raw_os_error() {
            Some(libc::EBUSY) if attempt < PATIENCE => std::thread::sleep(MOMENT),
            Some(libc::EBUSY) => return Err(OpenError::QueueTaken { name: name(), queue }),
            Some(libc::EINVAL) => return Err(OpenError::NoQueue { name: name(), queue }),
            _ => {
                let doing = "binding an AF_XDP socket to its queue";
                return Err(OpenError::at(doing, Capability::XDP)(error));
            }
        }
    }
    let options = libc::xdp_options { flags: 0 };
    let options = socket::get(socket, libc::SOL_XDP, libc::XDP_OPTIONS, options);
    Ok(options.is_ok_and(|options| options.flags & ZERO_COPY != 0))
}
