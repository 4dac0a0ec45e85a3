//! The RIB: registered routes, and the next hops that result from them.
//!
//! ```text
//!  /a      face 1 (child-inherit)             ─▶  /a    1
//!  /a/b    face 2                             ─▶  /a/b  2 and, inherited, 1
//!  /a/c    face 3 (capture)                   ─▶  /a/c  3
//! ```
//!
//! As in NFD: of several routes of one prefix to one face, the cheapest applies. A prefix inherits
//! the routes of shorter prefixes, the longest first, for faces to which it has no route yet.

use std::collections::{BTreeMap, HashSet};

use crate::packets::NameBuf;
use crate::packets::management::{CAPTURE, CHILD_INHERIT, ORIGIN_CLIENT};

/// All routes by prefix.
#[derive(Debug, Default)]
pub(crate) struct Rib {
    entries: BTreeMap<NameBuf, Entry>,
    /// Changes of routes with origin [`ORIGIN_CLIENT`] since the last [`Rib::take_exposed`].
    exposed: Vec<Exposed>,
    /// Number of changes.
    version: u64,
}

/// A change of a route that a routing daemon announces to the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exposed {
    pub(crate) prefix: NameBuf,
    pub(crate) face: u32,
    /// The cost of a new or changed route; `None` if it was removed.
    pub(crate) cost: Option<u64>,
}

/// The routes of a prefix, and the next hops that result.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) routes: Vec<Route>,
    /// Next hops in the forwarder's FIB: faces and costs.
    pub(crate) next_hops: Vec<(u32, u64)>,
}

/// A route of one prefix. There is at most one per face and origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) face: u32,
    pub(crate) origin: u64,
    pub(crate) cost: u64,
    pub(crate) flags: u64,
    /// When the route expires; `None`: never.
    pub(crate) ends_ns: Option<u64>,
}

/// A change of the forwarder's FIB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new next hop, or a new cost.
    Set { prefix: NameBuf, face: u32, cost: u64 },
    /// A removed next hop.
    Unset { prefix: NameBuf, face: u32 },
}

impl Rib {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NameBuf, &Entry)> {
        self.entries.iter()
    }

    /// Number of routes.
    pub(crate) fn len(&self) -> usize {
        self.entries.values().map(|entry| entry.routes.len()).sum()
    }

    /// Number of changes since the start.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The routes of a prefix.
    pub(crate) fn get(&self, prefix: &NameBuf) -> &[Route] {
        self.entries.get(prefix).map_or(&[], |entry| &entry.routes)
    }

    /// Returns the changes of routes with origin [`ORIGIN_CLIENT`] since the last call.
    pub(crate) fn take_exposed(&mut self) -> Vec<Exposed> {
        std::mem::take(&mut self.exposed)
    }

    /// Number of routes to a face, except the one of this prefix and origin.
    pub(crate) fn count_of(&self, face: u32, except: Option<(&NameBuf, u64)>) -> usize {
        let of_entry = |(prefix, entry): (&NameBuf, &Entry)| {
            let counts = |one: &&Route| one.face == face && Some((prefix, one.origin)) != except;
            entry.routes.iter().filter(counts).count()
        };
        self.entries.iter().map(of_entry).sum()
    }

    /// Whether there is a route to a face.
    pub(crate) fn has_route_to(&self, face: u32) -> bool {
        self.entries.values().any(|entry| entry.routes.iter().any(|route| route.face == face))
    }

    /// The faces to which there are routes.
    pub(crate) fn faces(&self) -> HashSet<u32> {
        let routes = self.entries.values().flat_map(|entry| &entry.routes);
        routes.map(|route| route.face).collect()
    }

    /// Adds or changes a route; returns the resulting changes of next hops.
    pub(crate) fn set(&mut self, prefix: &NameBuf, route: Route) -> Vec<Change> {
        if route.origin == ORIGIN_CLIENT {
            let (prefix, face, cost) = (prefix.clone(), route.face, Some(route.cost));
            self.exposed.push(Exposed { prefix, face, cost });
        }
        self.version += 1;
        let entry = self.entries.entry(prefix.clone()).or_default();
        entry.routes.retain(|one| (one.face, one.origin) != (route.face, route.origin));
        entry.routes.push(route);
        self.update(prefix)
    }

    /// Removes a route, if it exists; returns the resulting changes of next hops.
    pub(crate) fn unset(&mut self, prefix: &NameBuf, face: u32, origin: u64) -> Vec<Change> {
        self.keep(prefix, |route| (route.face, route.origin) != (face, origin))
    }

    /// Removes all routes and next hops of a closed face, which the forwarder has removed already;
    /// returns the resulting changes of other next hops: a removed route may have let a prefix
    /// inherit others, or have captured it.
    pub(crate) fn remove_face(&mut self, face: u32) -> Vec<Change> {
        self.version += 1;
        let Self { entries, exposed, .. } = self;
        let mut changed: Vec<NameBuf> = Vec::new();
        for (prefix, entry) in entries {
            let before = entry.routes.len();
            entry.routes.retain(|route| is_kept(prefix, route, exposed, route.face != face));
            entry.next_hops.retain(|hop| hop.0 != face);
            // An update covers longer prefixes, too.
            let covers = |one: &NameBuf| prefix.as_bytes().starts_with(one.as_bytes());
            if entry.routes.len() < before && !changed.last().is_some_and(covers) {
                changed.push(prefix.clone());
            }
        }
        changed.iter().flat_map(|prefix| self.update(prefix)).collect()
    }

    /// Removes expired routes; returns the resulting changes of next hops.
    pub(crate) fn expire(&mut self, now_ns: u64) -> Vec<Change> {
        let is_expired = |route: &Route| route.ends_ns.is_some_and(|ends_ns| ends_ns <= now_ns);
        let with_expired = |(prefix, entry): (&NameBuf, &Entry)| {
            entry.routes.iter().any(is_expired).then(|| prefix.clone())
        };
        let prefixes: Vec<NameBuf> = self.entries.iter().filter_map(with_expired).collect();
        prefixes.iter().flat_map(|prefix| self.keep(prefix, |route| !is_expired(route))).collect()
    }

    /// Keeps only the routes of a prefix for which `keep` returns true.
    fn keep(&mut self, prefix: &NameBuf, keep: impl Fn(&Route) -> bool) -> Vec<Change> {
        self.version += 1;
        let Self { entries, exposed, .. } = self;
        let Some(entry) = entries.get_mut(prefix) else { return Vec::new() };
        entry.routes.retain(|route| is_kept(prefix, route, exposed, keep(route)));
        self.update(prefix)
    }

    /// Recomputes the next hops of a prefix and of all longer prefixes; returns the changes.
    fn update(&mut self, prefix: &NameBuf) -> Vec<Change> {
        let below = |name: &&NameBuf| name.as_bytes().starts_with(prefix.as_bytes());
        let names = self.entries.range(prefix.clone()..).map(|(name, _)| name);
        let names: Vec<NameBuf> = names.take_while(below).cloned().collect();
        let mut changes = Vec::new();
        for name in names {
            let next_hops = self.next_hops(&name);
            let Some(entry) = self.entries.get_mut(&name) else { continue };
            let before = std::mem::replace(&mut entry.next_hops, next_hops);
            for &(face, cost) in &entry.next_hops {
                if !before.contains(&(face, cost)) {
                    changes.push(Change::Set { prefix: name.clone(), face, cost });
                }
            }
            for (face, _) in before {
                if !entry.next_hops.iter().any(|hop| hop.0 == face) {
                    changes.push(Change::Unset { prefix: name.clone(), face });
                }
            }
            if entry.routes.is_empty() {
                self.entries.remove(&name);
            }
        }
        changes
    }

    /// The next hops of a prefix, each face once.
    fn next_hops(&self, prefix: &NameBuf) -> Vec<(u32, u64)> {
        let own = self.entries.get(prefix).map_or(&[][..], |entry| &entry.routes);
        let mut hops: Vec<(u32, u64)> = Vec::new();
        for route in own {
            match hops.iter_mut().find(|hop| hop.0 == route.face) {
                Some(hop) => hop.1 = hop.1.min(route.cost),
                None => hops.push((route.face, route.cost)),
            }
        }
        // A prefix without routes of its own needs no next hops: shorter prefixes apply directly.
        if own.is_empty() || captures(own) {
            return hops;
        }
        for shorter in ancestors(prefix) {
            let Some(entry) = self.entries.get(&shorter) else { continue };
            for route in entry.routes.iter().filter(|route| route.flags & CHILD_INHERIT != 0) {
                if !hops.iter().any(|hop| hop.0 == route.face) {
                    hops.push((route.face, route.cost));
                }
            }
            if captures(&entry.routes) {
                break;
            }
        }
        hops
    }
}

/// Returns `kept`; if the route is removed, lists the change for the routing daemon.
fn is_kept(prefix: &NameBuf, route: &Route, exposed: &mut Vec<Exposed>, kept: bool) -> bool {
    if !kept && route.origin == ORIGIN_CLIENT {
        exposed.push(Exposed { prefix: prefix.clone(), face: route.face, cost: None });
    }
    kept
}

/// Whether a route has the capture flag.
fn captures(routes: &[Route]) -> bool {
    routes.iter().any(|route| route.flags & CAPTURE != 0)
}

/// All shorter prefixes, the longest first.
fn ancestors(prefix: &NameBuf) -> impl Iterator<Item = NameBuf> {
    let name = prefix.as_name();
    let ends: Vec<usize> = name.components().offsets().collect();
    ends.into_iter().rev().map(|end| {
        let mut shorter = prefix.clone();
        shorter.truncate(end);
        shorter
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NameBuf {
        text.parse().unwrap()
    }

    fn route(face: u32, cost: u64, flags: u64) -> Route {
        Route { face, origin: 0, cost, flags, ends_ns: None }
    }

    /// Applies changes to `fib`: costs by prefix and face.
    fn apply(changes: Vec<Change>, fib: &mut BTreeMap<(String, u32), u64>) {
        for change in changes {
            match change {
                Change::Set { prefix, face, cost } => {
                    fib.insert((prefix.to_string(), face), cost);
                }
                Change::Unset { prefix, face } => {
                    assert!(fib.remove(&(prefix.to_string(), face)).is_some());
                }
            }
        }
    }

    fn shown(fib: &BTreeMap<(String, u32), u64>) -> String {
        let hop =
            |((prefix, face), cost): (&(String, u32), &u64)| format!("{prefix} {face}:{cost}");
        fib.iter().map(hop).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn routes_are_inherited_unless_captured() {
        let (mut rib, mut fib) = (Rib::default(), BTreeMap::new());
        apply(rib.set(&name("/a/b"), route(2, 20, 0)), &mut fib);
        apply(rib.set(&name("/a/c/d"), route(3, 30, 0)), &mut fib);
        apply(rib.set(&name("/a"), route(1, 10, CHILD_INHERIT)), &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/b 1:10, /a/b 2:20, /a/c/d 1:10, /a/c/d 3:30");
        apply(rib.set(&name("/a/c"), route(4, 40, CAPTURE)), &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/b 1:10, /a/b 2:20, /a/c 4:40, /a/c/d 3:30");
        // The prefix's own route replaces an inherited one, even if it is more expensive.
        apply(rib.set(&name("/a/b"), route(1, 99, 0)), &mut fib);
        apply(rib.unset(&name("/a/c"), 4, 0), &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/b 1:99, /a/b 2:20, /a/c/d 1:10, /a/c/d 3:30");
        apply(rib.unset(&name("/a"), 1, 0), &mut fib);
        assert_eq!(shown(&fib), "/a/b 1:99, /a/b 2:20, /a/c/d 3:30");
        assert_eq!((rib.len(), rib.unset(&name("/a"), 1, 0)), (3, vec![]));
    }

    #[test]
    fn the_cheapest_of_several_origins_applies() {
        let (mut rib, mut fib) = (Rib::default(), BTreeMap::new());
        apply(rib.set(&name("/a"), route(1, 10, 0)), &mut fib);
        apply(rib.set(&name("/a"), Route { origin: 255, ..route(1, 5, 0) }), &mut fib);
        assert_eq!(shown(&fib), "/a 1:5");
        assert_eq!(rib.set(&name("/a"), route(1, 7, 0)), []);
        apply(rib.unset(&name("/a"), 1, 255), &mut fib);
        assert_eq!(shown(&fib), "/a 1:7");
    }

    #[test]
    fn routes_of_a_face_are_counted_except_a_given_one() {
        let mut rib = Rib::default();
        for origin in [0, 1, 2] {
            rib.set(&name("/a"), Route { origin, ..route(1, 0, 0) });
        }
        rib.set(&name("/b"), route(1, 0, 0));
        rib.set(&name("/b"), route(2, 0, 0));
        let (a, b) = (name("/a"), name("/b"));
        let excepts = [None, Some((&a, 1)), Some((&a, 9)), Some((&b, 0)), Some((&b, 1))];
        assert_eq!(excepts.map(|except| rib.count_of(1, except)), [4, 3, 4, 3, 4]);
    }

    #[test]
    fn changes_of_exposed_routes_are_listed() {
        let mut rib = Rib::default();
        let client = |face, cost| Route { origin: ORIGIN_CLIENT, ..route(face, cost, 0) };
        rib.set(&name("/a"), client(1, 5));
        rib.set(&name("/a"), route(1, 5, 0));
        rib.set(&name("/b"), Route { ends_ns: Some(100), ..client(2, 0) });
        let change = |prefix, face, cost| Exposed { prefix: name(prefix), face, cost };
        assert_eq!(rib.take_exposed(), [change("/a", 1, Some(5)), change("/b", 2, Some(0))]);
        rib.expire(100);
        rib.unset(&name("/a"), 1, 0);
        rib.remove_face(1);
        assert_eq!(rib.take_exposed(), [change("/b", 2, None), change("/a", 1, None)]);
        assert_eq!(rib.take_exposed(), []);
    }

    #[test]
    fn routes_expire_and_end_with_their_face() {
        let (mut rib, mut fib) = (Rib::default(), BTreeMap::new());
        let until = |ends_ns| Route { ends_ns: Some(ends_ns), ..route(1, 1, CHILD_INHERIT) };
        apply(rib.set(&name("/"), until(100)), &mut fib);
        apply(rib.set(&name("/a"), route(2, 2, 0)), &mut fib);
        assert_eq!(shown(&fib), "/ 1:1, /a 1:1, /a 2:2");
        assert_eq!(rib.expire(99), []);
        apply(rib.expire(100), &mut fib);
        assert_eq!(shown(&fib), "/a 2:2");
        assert_eq!(rib.remove_face(2), []);
        assert_eq!(rib.iter().count(), 0);
    }

    /// Closes a face as the forwarder does, which removes the face's next hops itself.
    fn close(rib: &mut Rib, face: u32, fib: &mut BTreeMap<(String, u32), u64>) {
        fib.retain(|hop, _| hop.1 != face);
        apply(rib.remove_face(face), fib);
    }

    #[test]
    fn the_end_of_a_face_changes_what_other_prefixes_inherit() {
        let (mut rib, mut fib) = (Rib::default(), BTreeMap::new());
        apply(rib.set(&name("/a"), route(1, 10, CHILD_INHERIT)), &mut fib);
        apply(rib.set(&name("/a/b"), route(2, 20, 0)), &mut fib);
        apply(rib.set(&name("/a/c"), route(2, 20, CAPTURE)), &mut fib);
        apply(rib.set(&name("/a/c/d"), route(3, 30, 0)), &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/b 1:10, /a/b 2:20, /a/c 2:20, /a/c/d 3:30");
        // `/a/b` needs no next hops of its own, and nothing keeps `/a` from `/a/c/d`.
        close(&mut rib, 2, &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/c/d 1:10, /a/c/d 3:30");
        apply(rib.unset(&name("/a"), 1, 0), &mut fib);
        assert_eq!(shown(&fib), "/a/c/d 3:30");
        // Routes of several prefixes, one of which covers the others.
        apply(rib.set(&name("/a/c"), route(4, 1, CHILD_INHERIT)), &mut fib);
        apply(rib.set(&name("/"), route(4, 7, CHILD_INHERIT)), &mut fib);
        close(&mut rib, 4, &mut fib);
        assert_eq!((shown(&fib).as_str(), rib.iter().count()), ("/a/c/d 3:30", 1));
    }
}
