//! The channels by number: opens one for a neighbour if none fits, and closes those that were opened so.
//!
//! Invariant: a channel is closed only without faces, so no face has the number of a closed one.
//! Other numbers, such as that of a queue which is being read, may be of a closed channel.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::{Index, IndexMut};

use rustix::event::epoll::EventFlags;

use crate::faces::channel::{Channel, Kind};
use crate::faces::counters::Counters;
use crate::faces::error::OpenError;
use crate::faces::outgoing::Outgoing;
use crate::faces::remote::Remote;
use crate::faces::settings::{EthernetMethod, MTU_MIN, Settings};
use crate::faces::slots::Slots;
use crate::faces::sys::Address;
use crate::faces::waiting::{Poller, Source};

pub(crate) struct Channels {
    pub(crate) open: Slots<Channel>,
    /// Numbers of closed channels, which new ones take.
    free: Vec<u32>,
    /// Numbers of channels that were opened or closed since the last call of
    /// [`Channels::take_changed`].
    changed: BTreeSet<u32>,
    /// Datagrams that the kernel dropped in the queues of closed channels.
    closed_drops: u64,
    poller: Poller,
    udp_mtu: Option<usize>,
    udp_offload: bool,
}

impl Channels {
    /// Opens the channels of these settings.
    pub(crate) fn open(settings: &Settings, poller: Poller) -> Result<Self, OpenError> {
        let mut channels = Self {
            open: Slots::new(),
            free: Vec::new(),
            changed: BTreeSet::new(),
            closed_drops: 0,
            poller,
            udp_mtu: settings.udp_mtu,
            udp_offload: settings.udp_offload,
        };
        for &at in &settings.udp {
            let channel = channels.open_udp(at)?;
            channels[channel].accepts_unknown = true;
        }
        for ethernet in &settings.ethernet {
            let channel = channels.open_ethernet(&ethernet.interface, ethernet.method)?;
            let opened = &mut channels[channel];
            opened.mtu = ethernet.mtu;
            opened.accepts_unknown = ethernet.strangers;
        }
        for multicast in &settings.multicast {
            let group = multicast.group;
            let channel = channels.open_multicast(&multicast.interface, group)?;
            channels[channel].mtu = multicast.mtu.or(settings.udp_mtu);
        }
        channels.open.iter_mut().for_each(|(_, channel)| channel.is_temporary = false);
        Ok(channels)
    }

    /// The channel to a neighbour, and the neighbour's address there. Opens one if none fits; for a
    /// multicast group that needs an interface.
    pub(crate) fn channel_to(&mut self, remote: &Remote) -> Result<(u32, Address), OpenError> {
        match remote {
            Remote::Udp(peer) => {
                let any = match peer {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                let same = |channel: &Channel| matches!(channel.kind, Kind::Udp(at) if at.is_ipv4() == peer.is_ipv4());
                let open = self.find(same);
                Ok((open.map_or_else(|| self.open_udp(any), Ok)?, Address::of(peer)))
            }
            Remote::Ethernet { interface, to } => {
                let same = |channel: &Channel| matches!(&channel.kind, Kind::Ethernet { name, .. } if name == interface);
                let open = self.find(same);
                let method = EthernetMethod::default();
                let channel = open.map_or_else(|| self.open_ethernet(interface, method), Ok)?;
                Ok((channel, self[channel].neighbour(*to).ok_or(OpenError::Program)?))
            }
            Remote::Multicast { group, interface } => {
                let same = |channel: &Channel| match &channel.kind {
                    Kind::Multicast { group: known, interface: on } => {
                        let is_group = (known.ip(), known.port()) == (group.ip(), group.port());
                        is_group && interface.as_ref().is_none_or(|interface| interface == on)
                    }
                    _ => false,
                };
                let channel = match (self.find(same), interface) {
                    (Some(channel), _) => channel,
                    (None, Some(interface)) => self.open_multicast(interface, *group)?,
                    (None, None) => return Err(OpenError::NoGroup(*group)),
                };
                match &self[channel].kind {
                    Kind::Multicast { group, .. } => Ok((channel, Address::of(group))),
                    _ => Err(OpenError::NoGroup(*group)),
                }
            }
            Remote::Tcp(_) | Remote::WebSocket(_) | Remote::Program(_) => Err(OpenError::Program),
        }
    }

    fn open_udp(&mut self, at: SocketAddr) -> Result<u32, OpenError> {
        let mut channel =
            Channel::udp(at, self.udp_offload).map_err(|source| OpenError::Udp { at, source })?;
        channel.mtu = self.udp_mtu;
        self.add(channel)
    }

    fn open_multicast(&mut self, interface: &str, group: SocketAddr) -> Result<u32, OpenError> {
        let mut channel = Channel::multicast(interface, group).map_err(|source| {
            OpenError::Multicast { group, interface: interface.into(), source }
        })?;
        channel.mtu = self.udp_mtu;
        self.add(channel)
    }

    fn open_ethernet(&mut self, interface: &str, method: EthernetMethod) -> Result<u32, OpenError> {
        let channel = match method {
            EthernetMethod::Packet => Channel::ethernet(interface)
                .map_err(|source| OpenError::Ethernet { interface: interface.into(), source })?,
            EthernetMethod::Xdp => Channel::ethernet_xdp(interface)?,
        };
        if let Kind::Ethernet { interface, .. } = &channel.kind
            && interface.mtu < MTU_MIN
        {
            return Err(OpenError::Mtu(interface.mtu));
        }
        self.add(channel)
    }

    /// Adds a channel, and watches its sockets; returns its number.
    fn add(&mut self, channel: Channel) -> Result<u32, OpenError> {
        let number = self.free.last().copied().unwrap_or(self.open.end());
        for socket in channel.queue.readable() {
            self.poller.watch(socket, Source::Channel(number), EventFlags::IN)?;
        }
        self.free.pop();
        self.open.set(number, channel);
        self.changed.insert(number);
        Ok(number)
    }

    /// Closes a channel, which must have no faces. Returns the counters of the datagrams that were left
    /// in its queue.
    pub(crate) fn close(&mut self, number: u32) -> Counters {
        let Some(mut closed) = self.open.remove(number) else { return Counters::default() };
        self.free.push(number);
        self.changed.insert(number);
        let unread = closed.queue.unread();
        self.closed_drops += closed.kernel_drops();
        // Workers may close their ends of the socket later.
        self.poller.unwatch(&closed.queue.socket);
        unread
    }

    /// The numbers of channels that were opened or closed since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.changed)
    }

    /// The sending half of a channel, for another thread; `None` if it is closed or only this thread
    /// can send on it.
    pub(crate) fn outgoing(&self, number: u32) -> Option<Outgoing> {
        self.open.get(number)?.outgoing.for_thread()
    }

    /// Number of datagrams that the kernel dropped for lack of room.
    pub(crate) fn kernel_drops(&mut self) -> u64 {
        let open = self.open.iter_mut().map(|(_, channel)| channel.kernel_drops());
        self.closed_drops + open.sum::<u64>()
    }

    /// The number of the first channel with this property.
    fn find(&self, is_it: impl Fn(&Channel) -> bool) -> Option<u32> {
        self.open.iter().find(|(_, channel)| is_it(channel)).map(|(number, _)| number)
    }
}

impl Index<u32> for Channels {
    type Output = Channel;

    #[inline]
    fn index(&self, number: u32) -> &Channel {
        self.open.get(number).expect("a channel with faces is open")
    }
}

impl IndexMut<u32> for Channels {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Channel {
        self.open.get_mut(number).expect("a channel with faces is open")
    }
}
