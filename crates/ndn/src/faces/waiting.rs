//! Waiting for sockets by epoll.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

/// Maximum number of ready sockets of a wait.
pub(crate) const READY: usize = 64;

/// The watched sockets. One that is closed is no longer watched. Clones share them.
#[derive(Clone)]
pub(crate) struct Poller(Arc<OwnedFd>);

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

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(epoll::create(CreateFlags::CLOEXEC)?)))
    }

    /// Watches a socket for these events.
    pub(crate) fn watch(
        &self,
        socket: impl AsFd,
        source: Source,
        events: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::add(&*self.0, socket, source.data(), events)?)
    }

    /// Watches a socket for other events than before.
    pub(crate) fn change(&self, socket: impl AsFd, source: Source, events: EventFlags) {
        // This fails only for a socket that is not watched.
        let _ = epoll::modify(&*self.0, socket, source.data(), events);
    }

    /// Ends the watching of a socket.
    pub(crate) fn unwatch(&self, socket: impl AsFd) {
        let _ = epoll::delete(&*self.0, socket);
    }

    /// Waits until a socket is ready, the timeout expires or a signal arrives. Replaces the contents of
    /// `ready` by the ready sockets, at most [`READY`].
    pub(crate) fn wait(
        &self,
        ready: &mut Vec<(Source, EventFlags)>,
        timeout: Duration,
    ) -> io::Result<()> {
        let timeout = Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        ready.clear();
        let mut room = [const { MaybeUninit::<Event>::uninit() }; READY];
        match epoll::wait(&*self.0, &mut room, Some(&timeout)) {
            Ok((events, _)) => {
                let events = events.iter();
                ready.extend(events.map(|event| (Source::of(event.data.u64()), event.flags)));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Source {
    fn data(self) -> EventData {
        EventData::new_u64(match self {
            Self::Channel(number) => number.into(),
            Self::Stream(face) => 1 << 32 | u64::from(face),
            Self::Listener(number) => 2 << 32 | u64::from(number),
            Self::Neighbour(face) => 3 << 32 | u64::from(face),
            Self::Doorbell => 4 << 32,
        })
    }

    fn of(token: u64) -> Self {
        match token >> 32 {
            0 => Self::Channel(token as u32),
            1 => Self::Stream(token as u32),
            2 => Self::Listener(token as u32),
            3 => Self::Neighbour(token as u32),
            _ => Self::Doorbell,
        }
    }
}
