//! An open interface, identified by its index: its name may change while it is open.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::live::capability::Capability;
use crate::live::error::OpenError;
use crate::live::link::{self, Link};
use crate::live::state::State;
use crate::live::sys;

/// How often an interface is looked up by a name that it had just before, a millisecond apart.
const RENAMING: u32 = 100;

/// An interface in the network namespace in which it was opened.
pub(crate) struct Interface {
    netlink: OwnedFd,
    /// Properties when it was opened.
    pub(crate) link: Link,
}

impl Interface {
    /// The interface called `name`.
    pub(crate) fn open(name: &str) -> Result<Self, OpenError> {
        let doing = "reading the list of interfaces";
        let netlink = link::open().map_err(OpenError::at(doing, Capability::PACKET))?;
        match link::by_name(&netlink, name).map_err(OpenError::at(doing, Capability::PACKET))? {
            Some(link) => Ok(Self { netlink, link }),
            None => Err(OpenError::NoInterface {
                name: name.to_owned(),
                available: link::names(&netlink).unwrap_or_default(),
            }),
        }
    }

    /// Name when it was opened.
    pub(crate) fn name(&self) -> &str {
        &self.link.name
    }

    /// Current properties; `None` if the interface is gone.
    pub(crate) fn current_link(&self) -> io::Result<Option<Link>> {
        link::by_index(&self.netlink, self.link.index)
    }

    /// Current state. Uses `ioctl`s that do not wait for the kernel's lock on network configuration (RTNL).
    pub(crate) fn state(&self) -> State {
        for _ in 0..RENAMING {
            let Ok(name) = sys::interface::name(&self.netlink, self.link.index) else {
                return State::Gone;
            };
            if let Ok(flags) = sys::interface::flags(&self.netlink, &name) {
                return State::of_flags(flags);
            }
            // While it is renamed, no interface has its name.
            std::thread::sleep(Duration::from_millis(1));
        }
        State::Gone
    }

    /// Number of receive queues: from the driver, otherwise from sysfs, otherwise 1.
    pub(crate) fn receive_queues(&self) -> u32 {
        let name = sys::interface::name(&self.netlink, self.link.index);
        let reported = name.and_then(|name| sys::interface::receive_queues(&self.netlink, &name));
        reported.ok().or_else(|| self.listed_queues()).unwrap_or(1).max(1)
    }

    /// Number of receive queues in sysfs. sysfs may belong to another network namespace, so the index there must match.
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

    /// Whether the interface removes VLAN tags from received frames; false if its driver does not report it.
    pub(crate) fn takes_tags(&self) -> bool {
        let name = sys::interface::name(&self.netlink, self.link.index);
        name.and_then(|name| sys::interface::takes_tags(&self.netlink, &name)).unwrap_or(false)
    }

    /// Passes a request of ethtool(8) to the driver.
    pub(crate) fn ethtool(&self, request: &mut [u8]) -> io::Result<()> {
        let name = sys::interface::name(&self.netlink, self.link.index)?;
        sys::interface::ethtool(&self.netlink, &name, request)
    }

    /// Makes the network card timestamp all received frames.
    pub(crate) fn stamp_all(&self) -> io::Result<()> {
        let name = sys::interface::name(&self.netlink, self.link.index)?;
        sys::interface::stamp_all(&self.netlink, &name)
    }
}
