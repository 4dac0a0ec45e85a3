//! The table of all faces: their numbers, their limits, and which one makes room for another.

use std::collections::{HashSet, VecDeque};

use crate::faces::counters::{Counters, Lost};
use crate::faces::egress::Sent;
use crate::faces::eviction::Eviction;
use crate::faces::face::{Face, Persistence};
use crate::faces::settings::Settings;
use crate::faces::slots::ByFace;

/// All faces of a forwarder.
pub(crate) struct FaceTable {
    faces: ByFace<Box<Face>>,
    /// Number of open faces.
    count: usize,
    /// Number of faces ever created.
    created: u64,
    /// Number of open faces that neighbours' packets created.
    on_demand: usize,
    pub(super) eviction: Eviction,
    /// Numbers of closed faces, the first closed first.
    free: VecDeque<u32>,
    /// Counters of closed faces, of received frames without a face, and of packets sent to faces
    /// that do not exist.
    pub(crate) others: Counters,
    /// Maximum number of faces, and of those on demand.
    pub(crate) faces_max: usize,
    pub(crate) on_demand_max: usize,
    /// Idle time after which a face on demand is closed.
    idle_ns: u64,
}

impl FaceTable {
    /// A table without faces.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            faces: ByFace::new(),
            count: 0,
            created: 0,
            on_demand: 0,
            eviction: Eviction::default(),
            free: VecDeque::new(),
            others: Counters::default(),
            faces_max: settings.faces_max,
            on_demand_max: settings.on_demand_max(),
            idle_ns: settings.idle.as_nanos().min(u64::MAX.into()) as u64,
        }
    }

    /// Adds a face; returns its number, or `None` if all faces are in use.
    pub(crate) fn add(&mut self, mut face: Face) -> Option<u32> {
        if self.is_full() {
            return None;
        }
        // A number is reused as late as possible: a client may still refer to the closed face.
        let next = self.faces.end();
        let may_grow = self.count + self.free.len() < self.faces_max;
        let number = self.free.pop_front_if(|_| !may_grow).unwrap_or(next);
        face.serial = self.created;
        self.on_demand += usize::from(face.is_on_demand());
        self.eviction.set(number, &face);
        self.faces.set(number, Box::new(face));
        self.count += 1;
        self.created += 1;
        Some(number)
    }

    /// Removes a face. Its counters remain in [`FaceTable::total`].
    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<Face>> {
        let removed = self.faces.remove(number)?;
        self.others.add(&removed.counters);
        self.free.push_back(number);
        self.count -= 1;
        self.on_demand -= usize::from(removed.is_on_demand());
        self.eviction.remove(number, &removed);
        Some(removed)
    }

    /// The face with this number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Face> {
        Some(self.faces.get(number)?)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Face> {
        Some(self.faces.get_mut(number)?)
    }

    /// All faces with their numbers, in order of number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Face)> {
        self.faces.iter().map(|(number, face)| (number, &**face))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Face)> {
        self.faces.iter_mut().map(|(number, face)| (number, &mut **face))
    }

    /// Whether a face exists, and is the one with this serial number.
    pub(crate) fn is_same(&self, number: u32, serial: u64) -> bool {
        self.get(number).is_some_and(|face| face.serial == serial)
    }

    /// Number of faces.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Number of faces on demand.
    pub(crate) fn on_demand(&self) -> usize {
        self.on_demand
    }

    /// Whether all faces are in use.
    pub(super) fn is_full(&self) -> bool {
        self.count >= self.faces_max
    }

    /// Whether there is room for a face on demand.
    pub(crate) fn has_room_on_demand(&self) -> bool {
        !self.is_full() && self.on_demand < self.on_demand_max
    }

    /// The sum of the counters of all faces, including removed ones.
    pub(crate) fn total(&self) -> Counters {
        let mut total = self.others;
        self.iter().for_each(|(_, face)| total.add(&face.counters));
        total
    }

    /// Counts a frame that was not sent.
    pub(crate) fn count_lost(&mut self, number: u32, reason: Lost) {
        let face = self.faces.get_mut(number);
        face.map_or(&mut self.others, |face| &mut face.counters).count_lost(reason, 1);
    }

    /// Adds the counters of packets that a worker sent.
    pub(crate) fn add_sent(&mut self, sent: &Sent) {
        let face = self.faces.get_mut(sent.face).filter(|face| face.serial == sent.serial);
        face.map_or(&mut self.others, |face| &mut face.counters).add(&sent.counters);
    }

    /// Sets whether a local program receives the number of the face that received a packet. Returns
    /// false if the face does not exist or is not of a local program.
    pub(crate) fn set_local_fields(&mut self, number: u32, enabled: bool) -> bool {
        let Some(face) = self.get_mut(number).filter(|face| face.is_local()) else { return false };
        face.has_local_fields = enabled;
        true
    }

    /// Gives an existing face the persistence of a further request for it.
    pub(crate) fn extend_persistence(&mut self, number: u32, persistence: Persistence) {
        if let Some(face) = self.faces.get_mut(number)
            && persistence != Persistence::OnDemand
            && face.persistence != Persistence::Permanent
        {
            self.on_demand -= usize::from(face.is_on_demand());
            face.persistence = persistence;
            self.eviction.set(number, face);
        }
    }

    /// Sets whether the face has a route.
    pub(crate) fn set_routed(&mut self, number: u32, has_route: bool) {
        if let Some(face) = self.faces.get_mut(number).filter(|face| face.has_route != has_route) {
            face.has_route = has_route;
            self.eviction.set(number, face);
        }
    }

    /// Of the faces with a route, keeps only these.
    pub(crate) fn keep_routed(&mut self, routed: &HashSet<u32>) {
        let ended = |(number, face): &(u32, &Face)| face.has_route && !routed.contains(number);
        let ended: Vec<u32> = self.iter().filter(ended).map(|(number, _)| number).collect();
        ended.into_iter().for_each(|number| self.set_routed(number, false));
    }

    /// Numbers of the faces on demand that have exceeded the idle time.
    pub(crate) fn idle(&self, now_ns: u64) -> Vec<u32> {
        let idle =
            |face: &Face| face.is_on_demand() && now_ns.saturating_sub(face.used_ns) > self.idle_ns;
        self.iter().filter(|(_, face)| idle(face)).map(|(number, _)| number).collect()
    }

    /// The face to close before an unknown sender of datagrams can have one; `None` if there is room
    /// or no such face.
    pub(crate) fn next_for_sender(&mut self) -> Option<u32> {
        match self.has_room_on_demand() {
            true => None,
            false => self.eviction.oldest_sender(&self.faces),
        }
    }

    /// The face to close before another connection can have one, of a program or of a neighbour;
    /// `None` if there is room or no such face.
    pub(crate) fn next_for_stream(&mut self, is_program: bool) -> Option<u32> {
        let has_room = if is_program { !self.is_full() } else { self.has_room_on_demand() };
        if has_room {
            return None;
        }
        match self.eviction.oldest_silent(&self.faces, is_program) {
            None if !is_program => self.eviction.least_recently_used(&self.faces),
            silent => silent,
        }
    }

    /// The neighbour that has been connected longest without a complete frame.
    pub(crate) fn oldest_silent(&mut self) -> Option<u32> {
        self.eviction.oldest_silent(&self.faces, false)
    }
}
