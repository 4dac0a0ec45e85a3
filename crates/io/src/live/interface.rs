//! An interface, known by its number: names may change while it is open.

use std::io;
use std::os::fd::OwnedFd;

use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::link::{self, Link};
use crate::live::sys;

/// How an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Frames can come.
    Up,
    /// Up, but the cable is out, or the other end is down.
    NoCarrier,
    /// Down. Frames will come once it is up again.
    Down,
    /// Deleted, or moved to another network namespace. Nothing will ever come.
    Gone,
}

/// It stays tied to the network namespace in which it was opened.
pub(crate) struct Interface {
    netlink: OwnedFd,
    pub(crate) link: Link,
}

impl Interface {
    /// The interface called `name`.
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        let doing = "asking for interfaces";
        let netlink = link::open().map_err(OpenError::at(doing, Capability::PACKET))?;
        match link::by_name(&netlink, name).map_err(OpenError::at(doing, Capability::PACKET))? {
            Some(link) => Ok(Self { netlink, link }),
            None => Err(OpenError::NoInterface {
                name: name.to_owned(),
                there: link::names(&netlink).unwrap_or_default(),
            }),
        }
    }

    /// Its name when it was opened.
    pub(crate) fn name(&self) -> &str {
        &self.link.name
    }

    /// As things are now.
    pub(crate) fn look_again(&self) -> io::Result<Option<Link>> {
        link::by_index(&self.netlink, self.link.index)
    }

    /// Asks the kernel, without any lock that a change of the network holds.
    pub(crate) fn state(&self) -> State {
        let name = sys::interface::name(&self.netlink, self.link.index);
        let Ok(flags) = name.and_then(|name| sys::interface::flags(&self.netlink, &name)) else {
            return State::Gone;
        };
        match (flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0) {
            (true, true) => State::Up,
            (true, false) => State::NoCarrier,
            (false, _) => State::Down,
        }
    }

    /// How many queues it receives by: what the driver says, else what sysfs shows of it, else 1.
    pub(crate) fn receive_queues(&self) -> u32 {
        let name = sys::interface::name(&self.netlink, self.link.index);
        let told = name.and_then(|name| sys::interface::receive_queues(&self.netlink, &name));
        told.ok().or_else(|| self.listed_queues()).unwrap_or(1).max(1)
    }

    /// sysfs may be that of another network namespace, so the number must be that of our interface.
    fn listed_queues(&self) -> Option<u32> {
        let folder = std::path::Path::new("/sys/class/net").join(self.name());
        let index = std::fs::read_to_string(folder.join("ifindex")).ok()?;
        if index.trim().parse() != Ok(self.link.index) {
            return None;
        }
        let names = std::fs::read_dir(folder.join("queues")).ok()?;
        let receiving = |name: &std::ffi::OsString| name.as_encoded_bytes().starts_with(b"rx-");
        let count = names.flatten().map(|entry| entry.file_name()).filter(receiving).count();
        u32::try_from(count).ok()
    }

    /// Whether it takes VLAN tags out of received frames, as far as its driver says.
    pub(crate) fn takes_tags(&self) -> bool {
        let name = sys::interface::name(&self.netlink, self.link.index);
        name.and_then(|name| sys::interface::takes_tags(&self.netlink, &name)).unwrap_or(false)
    }

    /// Has the network card stamp received frames.
    pub(crate) fn stamp_all(&self) -> io::Result<()> {
        let name = sys::interface::name(&self.netlink, self.link.index)?;
        sys::interface::stamp_all(&self.netlink, &name)
    }
}
