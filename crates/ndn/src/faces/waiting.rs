//! The sources of epoll events, and the numbers that identify them in an event.

/// The socket of an epoll event: a datagram channel, a stream face or a listener, by number, or
/// another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Channel(u32),
    Stream(u32),
    Listener(u32),
    /// The queue of a datagram face.
    Neighbour(u32),
    /// An event of another thread.
    Doorbell,
}

impl Source {
    pub(crate) fn token(self) -> u64 {
        match self {
            Self::Channel(number) => number.into(),
            Self::Stream(face) => 1 << 32 | u64::from(face),
            Self::Listener(number) => 2 << 32 | u64::from(number),
            Self::Neighbour(face) => 3 << 32 | u64::from(face),
            Self::Doorbell => 4 << 32,
        }
    }

    pub(crate) fn of(token: u64) -> Self {
        match token >> 32 {
            0 => Self::Channel(token as u32),
            1 => Self::Stream(token as u32),
            2 => Self::Listener(token as u32),
            3 => Self::Neighbour(token as u32),
            _ => Self::Doorbell,
        }
    }
}
