//! Which face is closed to make room for another.
//!
//! | room is needed for | this face is closed |
//! |---|---|
//! | a sender of datagrams | the least recently used sender of datagrams |
//! | a neighbour that connects | the neighbour that has been connected longest without a complete frame, else the least recently used face on demand |
//! | a program | the program that has been connected longest without a complete frame |
//!
//! A face with a route is closed only if all have one. Addresses of datagrams can be forged, those
//! of streams cannot: a datagram closes no stream.
//!
//! Invariant: no search through all faces for each face that is closed, whatever neighbours do.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::faces::face::{Face, Link, Persistence};
use crate::faces::slots::ByFace;

/// All open faces.
type List = ByFace<Box<Face>>;

/// The faces that may be closed.
#[derive(Default)]
pub(crate) struct Eviction {
    /// Senders of datagrams.
    senders: Recency,
    /// Neighbours that connected.
    streams: Recency,
    /// The streams without routes from which no complete frame had come when they were added, by
    /// serial number: of neighbours, of programs.
    silent: [BTreeMap<u64, u32>; 2],
}

/// Faces on demand in order of their last use.
#[derive(Default)]
struct Recency {
    /// All: without routes, and with routes.
    faces: [HashSet<u32>; 2],
    /// The next to evict, in order: number and time of last use. They were the least recently used
    /// ones without routes when they were listed. A face that was used since is skipped.
    listed: VecDeque<(u32, u64)>,
}

impl Eviction {
    /// Adds a face, or changes its place after a change of its persistence or of its routes.
    pub(crate) fn set(&mut self, number: u32, face: &Face) {
        self.remove(number, face);
        let is_stream = matches!(face.link, Link::Stream(_));
        if face.is_on_demand() {
            let recency = if is_stream { &mut self.streams } else { &mut self.senders };
            recency.add(number, face);
        }
        let may_close = face.persistence == Persistence::OnDemand && !face.has_route;
        if is_stream && may_close && face.counters.frames_in == 0 {
            self.silent[usize::from(face.is_local())].insert(face.serial, number);
        }
    }

    pub(crate) fn remove(&mut self, number: u32, face: &Face) {
        self.senders.remove(number);
        self.streams.remove(number);
        self.silent.iter_mut().for_each(|silent| {
            silent.remove(&face.serial);
        });
    }

    /// The least recently used sender of datagrams.
    pub(crate) fn oldest_sender(&mut self, faces: &List) -> Option<u32> {
        let oldest = self.senders.oldest(faces).or_else(|| self.senders.oldest_routed(faces));
        oldest.map(|(_, number)| number)
    }

    /// The stream that has been connected longest without a complete frame.
    pub(crate) fn oldest_silent(&mut self, faces: &List, is_program: bool) -> Option<u32> {
        let silent = &mut self.silent[usize::from(is_program)];
        while let Some(oldest) = silent.first_entry() {
            if faces.get(*oldest.get()).is_some_and(|face| face.counters.frames_in == 0) {
                return Some(*oldest.get());
            }
            oldest.remove();
        }
        None
    }

    /// The least recently used face on demand, a stream or not.
    pub(crate) fn least_recently_used(&mut self, faces: &List) -> Option<u32> {
        let [senders, streams] = [&mut self.senders, &mut self.streams];
        let unrouted = [senders.oldest(faces), streams.oldest(faces)].into_iter().flatten().min();
        let oldest = unrouted.or_else(|| {
            [senders, streams].into_iter().filter_map(|recency| recency.oldest_routed(faces)).min()
        });
        oldest.map(|(_, number)| number)
    }
}

impl Recency {
    fn add(&mut self, number: u32, face: &Face) {
        self.faces[usize::from(face.has_route)].insert(number);
        // One whose route has ended may have been used before those that are listed.
        let order = |&(listed, used_ns): &(u32, u64)| (used_ns, listed);
        if let Err(at) = self.listed.binary_search_by_key(&(face.used_ns, number), order)
            && at < self.listed.len()
            && !face.has_route
        {
            self.listed.insert(at, (number, face.used_ns));
        }
    }

    fn remove(&mut self, number: u32) {
        self.faces.iter_mut().for_each(|faces| {
            faces.remove(&number);
        });
        self.listed.pop_front_if(|(listed, _)| *listed == number);
    }

    /// The least recently used face without a route: the time of its last use, and its number.
    fn oldest(&mut self, faces: &List) -> Option<(u64, u32)> {
        self.oldest_listed(faces).or_else(|| {
            self.list(faces);
            self.oldest_listed(faces)
        })
    }

    /// The next listed face that was not used and got no route since it was listed.
    fn oldest_listed(&mut self, faces: &List) -> Option<(u64, u32)> {
        while let Some(&(number, used_ns)) = self.listed.front() {
            let is_same = faces.get(number).is_some_and(|face| face.used_ns == used_ns);
            if is_same && self.faces[0].contains(&number) {
                return Some((used_ns, number));
            }
            self.listed.pop_front();
        }
        None
    }

    /// Lists the least recently used faces without routes: several at once, so that the search
    /// through all of them is rare.
    fn list(&mut self, faces: &List) {
        let used = |&number: &u32| Some((faces.get(number)?.used_ns, number));
        let mut all: Vec<(u64, u32)> = self.faces[0].iter().filter_map(used).collect();
        let listed = all.len().div_ceil(16);
        if listed < all.len() {
            all.select_nth_unstable(listed);
            all.truncate(listed);
        }
        all.sort_unstable();
        self.listed.extend(all.into_iter().map(|(used_ns, number)| (number, used_ns)));
    }

    /// The least recently used face with a route. The one that takes its place has none, so this
    /// search is rare.
    fn oldest_routed(&self, faces: &List) -> Option<(u64, u32)> {
        let used = |&number: &u32| Some((faces.get(number)?.used_ns, number));
        self.faces[1].iter().filter_map(used).min()
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::os::unix::net::UnixStream;

    use ringtap_base::SplitMix;

    use crate::faces::outgoing::Peer;
    use crate::faces::remote::Remote;
    use crate::faces::settings::Settings;
    use crate::faces::stream::Stream;
    use crate::faces::sys::Address;
    use crate::faces::table::FaceTable;

    use super::*;

    const MOST: usize = 200;

    fn settings(on_demand_max: usize) -> Settings {
        Settings { faces_max: MOST, on_demand_max: Some(on_demand_max), ..Settings::default() }
    }

    /// Adds a face of a random kind.
    fn add(faces: &mut FaceTable, random: &mut SplitMix, now_ns: u64) {
        let from: SocketAddr = ([127, 0, 0, 1], random.below(1 << 16) as u16).into();
        let stream =
            || Link::Stream(Box::new(Stream::accepted(UnixStream::pair().unwrap().0.into())));
        let peer = Peer { to: Address::of(&from), mtu: 1_000, sequence: 0 };
        let (remote, link) = match random.below(4) {
            0 => (Remote::Program(1), stream()),
            1 | 2 => (Remote::Tcp(from), stream()),
            _ => (Remote::Udp(from), Link::Datagrams { channel: 0, peer }),
        };
        let is_configured = random.below(8) == 0;
        let persistence =
            if is_configured { Persistence::Permanent } else { Persistence::OnDemand };
        faces.add(Face::new(remote, String::new(), persistence, 1_000, now_ns, link)).unwrap();
    }

    fn is_stream(face: &Face) -> bool {
        matches!(face.link, Link::Stream(_))
    }

    /// The least recently used face on demand of a kind, by a search through all.
    fn least_recent(faces: &FaceTable, is_it: fn(&Face) -> bool) -> Option<u32> {
        let all = faces.iter().filter(|(_, face)| face.is_on_demand() && is_it(face));
        all.min_by_key(|(_, face)| (face.has_route, face.used_ns)).map(|(number, _)| number)
    }

    fn oldest_silent(faces: &FaceTable, is_program: bool) -> Option<u32> {
        let silent = faces.iter().filter(|(_, face)| {
            let may_close = face.persistence == Persistence::OnDemand && !face.has_route;
            let is_silent = is_stream(face) && face.counters.frames_in == 0;
            may_close && is_silent && face.is_local() == is_program
        });
        silent.min_by_key(|(_, face)| face.serial).map(|(number, _)| number)
    }

    #[test]
    fn the_same_face_is_closed_as_by_a_search_through_all() {
        (0..8).for_each(compare);
    }

    fn compare(seed: u64) {
        let mut faces = FaceTable::new(&settings(0));
        let mut random = SplitMix::new(seed);
        let mut closed = [0; 3];
        for now_ns in 1..10_000 {
            while faces.len() < MOST {
                add(&mut faces, &mut random, now_ns);
            }
            let number = 256 + random.below(MOST as u64) as u32;
            match random.below(8) {
                0 => faces.set_routed(number, true),
                1 | 2 => faces.set_routed(number, false),
                3 => faces.extend_persistence(number, Persistence::Persistent),
                4 => drop(faces.remove(number)),
                _ => {
                    if let Some(face) = faces.get_mut(number) {
                        face.used_ns = now_ns;
                        face.counters.frames_in += 1;
                    }
                }
            }
            let sender = least_recent(&faces, |face| !is_stream(face));
            let [neighbour, program] = [false, true].map(|is| oldest_silent(&faces, is));
            let neighbour = neighbour.or_else(|| least_recent(&faces, |_| true));
            let at = random.below(3) as usize;
            let (next, expected) = match at {
                0 => (faces.next_for_sender(), sender),
                1 => (faces.next_for_stream(false), neighbour),
                // A closed face has made room.
                _ if faces.is_full() => (faces.next_for_stream(true), program),
                _ => (None, None),
            };
            let used_ns =
                |number: Option<u32>| number.map(|number| faces.get(number).unwrap().used_ns);
            assert_eq!(
                used_ns(next),
                used_ns(expected),
                "seed {seed}, {at}: {next:?} {expected:?}"
            );
            if let Some(next) = next {
                closed[at] += 1;
                faces.remove(next);
            }
        }
        assert!(closed.iter().all(|&closed| closed > 500), "{closed:?}");
    }

    #[test]
    fn several_faces_are_listed_at_once() {
        let mut faces = FaceTable::new(&settings(MOST));
        let mut random = SplitMix::new(7);
        (0..MOST as u64).for_each(|now_ns| add(&mut faces, &mut random, now_ns));
        faces.iter_mut().for_each(|(_, face)| face.counters.frames_in = 1);
        let listed = |faces: &FaceTable| {
            faces.eviction.streams.listed.len() + faces.eviction.senders.listed.len()
        };
        let next = faces.next_for_stream(false).unwrap();
        let before = listed(&faces);
        faces.remove(next);
        assert!(before > 4 && listed(&faces) == before - 1);
    }
}
