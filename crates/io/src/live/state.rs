//! Whether an interface can send and receive.

/// State of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Up, with a carrier.
    Up,
    /// Up, but without a carrier: the cable is unplugged or the peer is down.
    NoCarrier,
    /// Down. Receiving continues when the interface is up again.
    Down,
    /// Deleted, or moved to another network namespace. No more frames can arrive.
    Gone,
}

impl State {
    /// The state of an interface with these flags `IFF_…`.
    pub(crate) fn of_flags(flags: i32) -> Self {
        match (flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0) {
            (true, true) => Self::Up,
            (true, false) => Self::NoCarrier,
            (false, _) => Self::Down,
        }
    }
}
