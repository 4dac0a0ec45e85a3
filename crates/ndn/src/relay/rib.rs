//! Routes as they were announced, and the next hops that follow from them.
//!
//! ```text
//!  /a      face 1 (child-inherit)             ─▶  /a    1
//!  /a/b    face 2                             ─▶  /a/b  2 and, inherited, 1
//!  /a/c    face 3 (capture)                   ─▶  /a/c  3
//! ```
//!
//! As in NFD: of several routes of one prefix to one face the cheapest counts; of inherited ones those of the longest
//! prefix; none that the prefix has itself.

use std::collections::BTreeMap;

use crate::packets::NameBuf;
use crate::packets::management::{CAPTURE, CHILD_INHERIT};

#[derive(Debug, Default)]
pub(crate) struct Rib(BTreeMap<NameBuf, Entry>);

/// All that is known of a prefix.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) routes: Vec<Route>,
    /// Faces and costs, as the forwarder has them.
    pub(crate) next_hops: Vec<(u32, u64)>,
}

/// A route, of one prefix. There is one a face and origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) face: u32,
    pub(crate) origin: u64,
    pub(crate) cost: u64,
    pub(crate) flags: u64,
    pub(crate) ends_ns: Option<u64>,
}

/// What the forwarder is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// There is a next hop, or it has another cost.
    Set { prefix: NameBuf, face: u32, cost: u64 },
    /// There is no more.
    Unset { prefix: NameBuf, face: u32 },
}

impl Rib {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NameBuf, &Entry)> {
        self.0.iter()
    }

    /// How many routes there are.
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(|entry| entry.routes.len()).sum()
    }

    /// Adds a route, or changes it.
    pub(crate) fn set(&mut self, prefix: &NameBuf, route: Route) -> Vec<Change> {
        let entry = self.0.entry(prefix.clone()).or_default();
        entry.routes.retain(|one| (one.face, one.origin) != (route.face, route.origin));
        entry.routes.push(route);
        self.renew(prefix)
    }

    /// Takes a route out, if there is one.
    pub(crate) fn unset(&mut self, prefix: &NameBuf, face: u32, origin: u64) -> Vec<Change> {
        self.keep(prefix, |route| (route.face, route.origin) != (face, origin))
    }

    /// A face is gone. The forwarder forgets its next hops by itself.
    pub(crate) fn forget_face(&mut self, face: u32) {
        self.0.retain(|_, entry| {
            entry.routes.retain(|route| route.face != face);
            entry.next_hops.retain(|hop| hop.0 != face);
            !entry.routes.is_empty()
        });
    }

    /// Takes out the routes whose time is over.
    pub(crate) fn expire(&mut self, now_ns: u64) -> Vec<Change> {
        let over = |route: &Route| route.ends_ns.is_some_and(|ends_ns| ends_ns <= now_ns);
        let ended = |(prefix, entry): (&NameBuf, &Entry)| {
            entry.routes.iter().any(over).then(|| prefix.clone())
        };
        let prefixes: Vec<NameBuf> = self.0.iter().filter_map(ended).collect();
        prefixes.iter().flat_map(|prefix| self.keep(prefix, |route| !over(route))).collect()
    }

    fn keep(&mut self, prefix: &NameBuf, keep: impl Fn(&Route) -> bool) -> Vec<Change> {
        let Some(entry) = self.0.get_mut(prefix) else { return Vec::new() };
        entry.routes.retain(keep);
        self.renew(prefix)
    }

    /// What changes for this prefix and those below it.
    fn renew(&mut self, prefix: &NameBuf) -> Vec<Change> {
        let below = |name: &&NameBuf| name.as_bytes().starts_with(prefix.as_bytes());
        let names = self.0.range(prefix.clone()..).map(|(name, _)| name);
        let names: Vec<NameBuf> = names.take_while(below).cloned().collect();
        let mut changes = Vec::new();
        for name in names {
            let next_hops = self.next_hops(&name);
            let Some(entry) = self.0.get_mut(&name) else { continue };
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
                self.0.remove(&name);
            }
        }
        changes
    }

    /// The next hops of a prefix, each face once.
    fn next_hops(&self, prefix: &NameBuf) -> Vec<(u32, u64)> {
        let own = self.0.get(prefix).map_or(&[][..], |entry| &entry.routes);
        let mut hops: Vec<(u32, u64)> = Vec::new();
        for route in own {
            match hops.iter_mut().find(|hop| hop.0 == route.face) {
                Some(hop) => hop.1 = hop.1.min(route.cost),
                None => hops.push((route.face, route.cost)),
            }
        }
        // Where nothing is left, nothing is inherited either: shorter prefixes answer for themselves.
        if own.is_empty() || captures(own) {
            return hops;
        }
        for shorter in ancestors(prefix) {
            let Some(entry) = self.0.get(&shorter) else { continue };
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

    /// The next hops as who follows the changes has them.
    fn follow(changes: Vec<Change>, fib: &mut BTreeMap<(String, u32), u64>) {
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
    fn routes_are_inherited_but_where_they_are_captured() {
        let (mut rib, mut fib) = (Rib::default(), BTreeMap::new());
        follow(rib.set(&name("/a/b"), route(2, 20, 0)), &mut fib);
        follow(rib.set(&name("/a/c/d"), route(3, 30, 0)), &mut fib);
        follow(rib.set(&name("/a"), route(1, 10, CHILD_INHERIT)), &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/b 1:10, /a/b 2:20, /a/c/d 1:10, /a/c/d 3:30");
        follow(rib.set(&name("/a/c"), route(4, 40, CAPTURE)), &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/b 1:10, /a/b 2:20, /a/c 4:40, /a/c/d 3:30");
        // A route of its own, though dearer, stands before one that is inherited.
        follow(rib.set(&name("/a/b"), route(1, 99, 0)), &mut fib);
        follow(rib.unset(&name("/a/c"), 4, 0), &mut fib);
        assert_eq!(shown(&fib), "/a 1:10, /a/b 1:99, /a/b 2:20, /a/c/d 1:10, /a/c/d 3:30");
        follow(rib.unset(&name("/a"), 1, 0), &mut fib);
        assert_eq!(shown(&fib), "/a/b 1:99, /a/b 2:20, /a/c/d 3:30");
        assert_eq!((rib.len(), rib.unset(&name("/a"), 1, 0)), (3, vec![]));
    }

    #[test]
    fn of_several_origins_the_cheapest_counts() {
        let (mut rib, mut fib) = (Rib::default(), BTreeMap::new());
        follow(rib.set(&name("/a"), route(1, 10, 0)), &mut fib);
        follow(rib.set(&name("/a"), Route { origin: 255, ..route(1, 5, 0) }), &mut fib);
        assert_eq!(shown(&fib), "/a 1:5");
        assert_eq!(rib.set(&name("/a"), route(1, 7, 0)), []);
        follow(rib.unset(&name("/a"), 1, 255), &mut fib);
        assert_eq!(shown(&fib), "/a 1:7");
    }

    #[test]
    fn routes_end_in_time_and_with_their_face() {
        let (mut rib, mut fib) = (Rib::default(), BTreeMap::new());
        let until = |ends_ns| Route { ends_ns: Some(ends_ns), ..route(1, 1, CHILD_INHERIT) };
        follow(rib.set(&name("/"), until(100)), &mut fib);
        follow(rib.set(&name("/a"), route(2, 2, 0)), &mut fib);
        assert_eq!(shown(&fib), "/ 1:1, /a 1:1, /a 2:2");
        assert_eq!(rib.expire(99), []);
        follow(rib.expire(100), &mut fib);
        assert_eq!(shown(&fib), "/a 2:2");
        rib.forget_face(2);
        assert_eq!(rib.iter().count(), 0);
    }
}
