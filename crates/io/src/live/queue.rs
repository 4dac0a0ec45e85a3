//! Binds an AF_XDP socket to a queue of an interface.

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::interface::Interface;
use crate::live::sys::socket;

/// `XDP_OPTIONS_ZEROCOPY`.
const ZERO_COPY: u32 = 1;

/// Number of retries, and the time between them. The kernel releases a queue only some time after its previous socket
/// was closed or its process was killed.
const RETRIES_MOST: u32 = 50;
const RETRY_AFTER: Duration = Duration::from_millis(10);

/// Binds the socket to a queue. Returns whether the driver accesses the buffers directly (zero-copy), which requires
/// `zero_copy`.
pub(crate) fn bind(
    socket: &OwnedFd,
    interface: &Interface,
    queue: u32,
    zero_copy: bool,
) -> Result<bool, OpenError> {
    // With neither flag, the kernel tries zero-copy first and then copy mode.
    let copy = if zero_copy { 0 } else { libc::XDP_COPY };
    let flags = libc::XDP_USE_NEED_WAKEUP | copy;
    let name = || interface.name().to_owned();
    for attempt in 0.. {
        let bound = socket::bind_xdp(socket, interface.link.index, queue, flags);
        let Err(error) = bound else { break };
        match error.raw_os_error() {
            Some(libc::EBUSY) if attempt < RETRIES_MOST => std::thread::sleep(RETRY_AFTER),
            Some(libc::EBUSY) => return Err(OpenError::QueueTaken { name: name(), queue }),
            Some(libc::EINVAL) => return Err(OpenError::NoQueue { name: name(), queue }),
            _ => {
                let doing = "binding an AF_XDP socket to its queue";
                return Err(OpenError::at(doing, Capability::XDP)(error));
            }
        }
    }
    Ok(is_zero_copy(socket))
}

/// Binds a socket without memory to a queue, to send from the memory of the socket `first`, which is bound to it.
/// Returns as [`bind`].
pub(crate) fn bind_sender(
    socket: &OwnedFd,
    interface: &Interface,
    queue: u32,
    first: &OwnedFd,
) -> Result<bool, OpenError> {
    socket::bind_xdp_shared(socket, interface.link.index, queue, first)
        .map_err(OpenError::at("binding an AF_XDP socket for sending", Capability::XDP))?;
    Ok(is_zero_copy(socket))
}

fn is_zero_copy(socket: &OwnedFd) -> bool {
    let options = libc::xdp_options { flags: 0 };
    let options = socket::get(socket, libc::SOL_XDP, libc::XDP_OPTIONS, options);
    options.is_ok_and(|options| options.flags & ZERO_COPY != 0)
}
