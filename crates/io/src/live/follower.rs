//! Follows open interfaces: the kernel reports each change of a link (rtnetlink(7), group `RTMGRP_LINK`), so that an
//! interface that is down for a moment is counted, too.
//!
//! Invariants: no call waits, and none is on the path of packets. If the kernel had no room for changes, the links are
//! read again: what happened between is not counted, but the latest state is reported.

use std::io;
use std::os::fd::OwnedFd;

use crate::live::frame::Room;
use crate::live::link::{self, Change, Link};
use crate::live::receiver::Receiver;
use crate::live::state::State;

/// Most messages that a turn reads; a flood of changes of other interfaces continues in the next turn.
const MESSAGES_MOST: usize = 1_000;

/// Bytes of an Ethernet header, and of it and two VLAN tags.
const ETHERNET: u32 = 14;
const HEADERS: u32 = ETHERNET + 2 * 4;

/// Follows interfaces while they are open.
pub struct LinkFollower {
    changes: OwnedFd,
    requests: OwnedFd,
    links: Vec<Followed>,
    message: Vec<u8>,
}

/// Changes of an interface since the turn before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChanges {
    /// Place of the interface, as the caller gave it.
    pub place: usize,
    /// Its state now.
    pub state: State,
    /// How often it went down or lost its carrier.
    pub downs: u64,
    /// How often its MTU changed.
    pub mtu_changes: u64,
    /// How often it was renamed.
    pub renames: u64,
    /// Sentences about the changes.
    pub texts: Vec<String>,
}

struct Followed {
    place: usize,
    /// Name when it was added.
    name: String,
    /// `None` if it only sends.
    room: Option<Room>,
    now: Link,
    /// As of the last turn, or when it was added.
    reported: Link,
    /// Before the first turn.
    is_new: bool,
    downs: u64,
    mtu_changes: u64,
    renames: u64,
    gone: bool,
    gone_reported: bool,
    /// Whether another interface has the name of this one, which is gone.
    replaced: bool,
    replaced_reported: bool,
}

impl LinkFollower {
    /// Follows no interface yet.
    ///
    /// # Errors
    /// If the kernel refuses the sockets.
    pub fn new() -> io::Result<Self> {
        let (changes, requests) = (link::open_changes()?, link::open()?);
        Ok(Self { changes, requests, links: Vec::new(), message: vec![0; link::REPLY] })
    }

    /// Adds the interface of this receiver, which is at `place` in the caller's list. A DPDK device has no link of the kernel and is not followed.
    ///
    /// # Errors
    /// If its properties cannot be read.
    pub fn add_receiver(&mut self, place: usize, receiver: &Receiver) -> io::Result<()> {
        let Some((interface, room)) = receiver.interface() else { return Ok(()) };
        let now = interface.current_link()?;
        self.add(place, now.unwrap_or_else(|| interface.link.clone()), Some(room));
        Ok(())
    }

    /// Adds the interface called `name`, which sends and is at `place` in the caller's list.
    ///
    /// # Errors
    /// If its properties cannot be read.
    pub fn add_sender(&mut self, place: usize, name: &str) -> io::Result<()> {
        if let Some(now) = link::by_name(&self.requests, name)? {
            self.add(place, now, None);
        }
        Ok(())
    }

    fn add(&mut self, place: usize, now: Link, room: Option<Room>) {
        // Earlier changes are no news of this interface, but of the others.
        self.read();
        self.links.push(Followed {
            place,
            name: now.name.clone(),
            room,
            reported: now.clone(),
            is_new: true,
            now,
            downs: 0,
            mtu_changes: 0,
            renames: 0,
            gone: false,
            gone_reported: false,
            replaced: false,
            replaced_reported: false,
        });
    }

    /// Returns the interfaces that have changed since the turn before; in the first turn, all.
    pub fn turn(&mut self) -> Vec<LinkChanges> {
        self.read();
        self.links.iter_mut().filter_map(Followed::turn).collect()
    }

    /// Reads the changes that wait.
    fn read(&mut self) {
        let Self { changes, requests, links, message } = self;
        let mut lost = false;
        for _ in 0..MESSAGES_MOST {
            let each = |change| links.iter_mut().for_each(|link| link.see(&change));
            match link::changes(changes, message, each) {
                Ok(Some(())) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => lost = true,
                Ok(None) | Err(_) => break,
            }
        }
        for followed in links.iter_mut().filter(|link| lost && !link.gone) {
            let index = followed.now.index;
            if let Ok(now) = link::by_index(requests, index) {
                followed.see(&now.map_or(Change::Gone(index), Change::Is));
            }
        }
    }
}

impl Followed {
    fn see(&mut self, change: &Change) {
        match change {
            Change::Gone(index) => self.gone |= *index == self.now.index,
            Change::Is(link) if link.index != self.now.index => {
                self.replaced |= self.gone && link.name == self.name;
            }
            Change::Is(_) if self.gone => {}
            Change::Is(link) => {
                let was_up = self.now.state() == State::Up;
                self.downs += u64::from(was_up && link.state() != State::Up);
                self.mtu_changes += u64::from(link.mtu != self.now.mtu);
                self.renames += u64::from(link.name != self.now.name);
                self.now = link.clone();
            }
        }
    }

    fn turn(&mut self) -> Option<LinkChanges> {
        let state = if self.gone { State::Gone } else { self.now.state() };
        let is_first = std::mem::take(&mut self.is_new);
        let was_gone = std::mem::replace(&mut self.gone_reported, self.gone);
        let before = std::mem::replace(&mut self.reported, self.now.clone());
        let mut texts = Vec::new();
        if !self.gone {
            texts.extend(self.state_text(before.state()));
            texts.extend(self.name_text());
            texts.extend(self.mtu_text(&before));
        }
        if self.replaced && !std::mem::replace(&mut self.replaced_reported, true) {
            texts.push(format!(
                "there is an interface {} again, which is not read: start again to read it",
                self.name
            ));
        }
        let changes = LinkChanges {
            place: self.place,
            state,
            downs: std::mem::take(&mut self.downs),
            mtu_changes: std::mem::take(&mut self.mtu_changes),
            renames: std::mem::take(&mut self.renames),
            texts,
        };
        let is_news = is_first || was_gone != self.gone || before.state() != self.now.state();
        let LinkChanges { downs, mtu_changes, renames, .. } = changes;
        (is_news || !changes.texts.is_empty() || downs + mtu_changes + renames > 0)
            .then_some(changes)
    }

    fn state_text(&self, before: State) -> Option<String> {
        let Self { name, downs, .. } = self;
        let state = self.now.state();
        if state == before {
            return (*downs > 0 && state == State::Up)
                .then(|| format!("{name} was down, and is up again"));
        }
        Some(match state {
            State::Up => format!("{name} is up"),
            State::NoCarrier => {
                format!("{name} has no carrier: the cable is unplugged or the peer is down")
            }
            State::Down | State::Gone => {
                format!("{name} is down: the run goes on when it is up again")
            }
        })
    }

    fn name_text(&self) -> Option<String> {
        let (Self { name, .. }, new) = (self, &self.now.name);
        (self.renames > 0).then(|| match name == new {
            true => format!("{name} has its name again"),
            false => format!("{name} was renamed to {new}: it stays {name} in this run"),
        })
    }

    fn mtu_text(&self, before: &Link) -> Option<String> {
        let Self { name, now, room, .. } = self;
        let (longest, room, fate) = match *room {
            Some(Room::Block(room)) => {
                (now.longest_packet().saturating_add(ETHERNET), room, "may be truncated")
            }
            Some(Room::Buffer(room)) => {
                (now.mtu.saturating_add(HEADERS), room, "are dropped and counted")
            }
            None => (0, 0, ""),
        };
        let rises = now.longest_packet() > before.longest_packet();
        let limit = || {
            format!(
                "frames of more than {room} bytes {fate}, because there is no room for them: start again to have it"
            )
        };
        let is_short = rises && longest as usize > room;
        match (self.mtu_changes > 0, is_short) {
            (false, false) => None,
            (false, true) => {
                Some(format!("{name} may receive frames of {longest} bytes now: {}", limit()))
            }
            (true, is_short) => {
                let rest = if is_short { format!(": {}", limit()) } else { String::new() };
                Some(format!("the MTU of {name} is {} now, it was {}{rest}", now.mtu, before.mtu))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: u32 = (libc::IFF_UP | libc::IFF_RUNNING) as u32;

    fn link(flags: u32, mtu: u32, name: &str) -> Link {
        Link { index: 7, flags, mtu, name: name.into(), ..Link::default() }
    }

    fn follower(room: Room) -> LinkFollower {
        let mut follower = LinkFollower::new().unwrap();
        follower.add(0, link(UP, 1_500, "probe"), Some(room));
        assert_eq!(follower.turn().len(), 1, "the first turn has the state");
        assert_eq!(follower.turn(), []);
        follower
    }

    /// The changes after these properties.
    fn changes(follower: &mut LinkFollower, seen: &[Change]) -> LinkChanges {
        seen.iter().for_each(|change| follower.links[0].see(change));
        follower.turn().remove(0)
    }

    #[test]
    fn a_moment_down_is_counted_and_the_latest_state_is_reported() {
        let mut follower = follower(Room::Block(65_000));
        let is = |flags| Change::Is(link(flags, 1_500, "probe"));
        let down = changes(&mut follower, &[is(0)]);
        assert_eq!((down.state, down.downs, down.texts.len()), (State::Down, 1, 1));
        let up = changes(&mut follower, &[is(libc::IFF_UP as u32), is(UP)]);
        assert_eq!((up.state, up.downs), (State::Up, 0));
        assert_eq!(up.texts, ["probe is up"]);
        let flaps = changes(&mut follower, &[is(0), is(UP), is(libc::IFF_UP as u32), is(UP)]);
        assert_eq!((flaps.state, flaps.downs), (State::Up, 2));
        assert_eq!(flaps.texts, ["probe was down, and is up again"]);
        assert_eq!(follower.turn(), []);
    }

    #[test]
    fn a_change_has_the_place_of_its_interface_in_any_order_of_adding() {
        let mut follower = LinkFollower::new().unwrap();
        let other = Link { index: 8, ..link(UP, 1_500, "other") };
        follower.add(5, link(UP, 1_500, "probe"), None);
        follower.add(2, other.clone(), None);
        let places = |changes: Vec<LinkChanges>| -> Vec<_> {
            changes.iter().map(|one| (one.place, one.downs)).collect()
        };
        assert_eq!(places(follower.turn()), [(5, 0), (2, 0)]);
        let down = Change::Is(Link { flags: 0, ..other });
        follower.links.iter_mut().for_each(|link| link.see(&down));
        assert_eq!(places(follower.turn()), [(2, 1)]);
    }

    #[test]
    fn a_change_before_the_first_turn_is_reported() {
        let mut follower = LinkFollower::new().unwrap();
        follower.add(0, link(UP, 1_500, "probe"), None);
        let down = changes(&mut follower, &[Change::Is(link(0, 1_500, "probe"))]);
        assert_eq!((down.state, down.downs, down.texts.len()), (State::Down, 1, 1));
    }

    #[test]
    fn a_new_mtu_is_reported_with_what_becomes_of_longer_frames() {
        let mut follower = follower(Room::Buffer(1_792));
        let is = |mtu| Change::Is(link(UP, mtu, "probe"));
        let small = changes(&mut follower, &[is(1_400)]);
        assert_eq!(
            (small.mtu_changes, &*small.texts[0]),
            (1, "the MTU of probe is 1400 now, it was 1500")
        );
        let large = changes(&mut follower, &[is(9_000)]);
        assert!(large.texts[0].contains("more than 1792 bytes are dropped"), "{large:?}");
        let joined = Link { joined: 185_000, ..link(UP, 9_000, "probe") };
        let mut follower = self::follower(Room::Block(65_000));
        let joined = changes(&mut follower, &[Change::Is(joined)]);
        assert!(joined.texts[0].contains("more than 65000 bytes may be truncated"), "{joined:?}");
    }

    #[test]
    fn names_are_reported_and_a_new_interface_of_the_same_name() {
        let mut follower = follower(Room::Block(65_000));
        let renamed = changes(&mut follower, &[Change::Is(link(UP, 1_500, "other"))]);
        assert_eq!((renamed.renames, renamed.texts.len()), (1, 1));
        let new = Link { index: 8, ..link(UP, 1_500, "probe") };
        follower.links[0].see(&Change::Is(new.clone()));
        assert_eq!(follower.turn(), [], "the old one is still there");
        let gone = changes(&mut follower, &[Change::Is(link(0, 1_500, "other")), Change::Gone(7)]);
        assert_eq!((gone.state, gone.texts), (State::Gone, Vec::new()));
        let again = changes(&mut follower, &[Change::Is(new.clone())]);
        assert_eq!(again.texts.len(), 1);
        follower.links[0].see(&Change::Is(new));
        assert_eq!(follower.turn(), []);
    }
}
