//! What knows names: the tables, and who may change them.

use std::collections::BTreeMap;

use crate::faces::{Faces, Handler, Whole};
use crate::forwarder::{Face, FaceId, Forwarder, LinkKind, Strategy};
use crate::packets::management::Command;
use crate::packets::{Headers, Interest, NameBuf};

use crate::relay::datasets::Datasets;
use crate::relay::plan::ForwardPlan;
use crate::relay::rib::{Change, Rib, Route};

/// Packets that are forwarded together.
const RUN: usize = 32;

pub(crate) struct Core {
    pub(crate) forwarder: Forwarder,
    pub(crate) rib: Rib,
    pub(crate) strategies: BTreeMap<NameBuf, Strategy>,
    pub(crate) datasets: Datasets,
    pub(crate) counts: Counts,
    pub(crate) now_ns: u64,
    pub(crate) began_ms: u64,
    pub(crate) cs_capacity: usize,
    pub(crate) version: &'static str,
}

/// What the management was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) answered: u64,
    /// Requests for what there is not.
    pub(crate) unanswered: u64,
}

impl Core {
    pub(crate) fn new(plan: &ForwardPlan, now_ns: u64, version: &'static str) -> Self {
        Self {
            forwarder: Forwarder::new(plan.settings.clone()),
            rib: Rib::default(),
            strategies: BTreeMap::new(),
            datasets: Datasets::default(),
            counts: Counts::default(),
            now_ns,
            began_ms: ringtap_base::now_ns() / 1_000_000,
            cs_capacity: plan.settings.cs_capacity,
            version,
        }
    }

    /// Adds a route, or changes it; false if its prefix is too long.
    pub(crate) fn set_route(&mut self, faces: &mut Faces, prefix: &NameBuf, route: Route) -> bool {
        if prefix.as_name().components().count() > crate::forwarder::COMPONENTS_MAX {
            return false;
        }
        let changes = self.rib.set(prefix, route);
        self.follow(faces, changes);
        true
    }

    pub(crate) fn unset_route(
        &mut self,
        faces: &mut Faces,
        prefix: &NameBuf,
        face: u32,
        origin: u64,
    ) {
        let changes = self.rib.unset(prefix, face, origin);
        self.follow(faces, changes);
    }

    /// Chooses a strategy; false if the prefix is too long.
    pub(crate) fn set_strategy(&mut self, prefix: &NameBuf, strategy: Strategy) -> bool {
        let is_set = self.forwarder.set_strategy(&prefix.as_name(), strategy).is_ok();
        if is_set {
            self.strategies.insert(prefix.clone(), strategy);
        }
        is_set
    }

    pub(crate) fn expire_routes(&mut self, faces: &mut Faces) {
        let changes = self.rib.expire(self.now_ns);
        self.follow(faces, changes);
    }

    /// Tells the forwarder; Interests that wait for a route may leave by it.
    fn follow(&mut self, faces: &mut Faces, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Set { prefix, face, cost } => {
                    let mut send = |to: FaceId, about: &Headers, packet: &[u8]| {
                        faces.send(to.0, about, packet);
                    };
                    let name = prefix.as_name();
                    // The RIB takes no prefix that is too long.
                    let _ =
                        self.forwarder.add_route(self.now_ns, &name, FaceId(face), cost, &mut send);
                }
                Change::Unset { prefix, face } => {
                    self.forwarder.remove_route(&prefix.as_name(), FaceId(face));
                }
            }
        }
        faces.flush();
    }
}

impl Handler for Core {
    fn up(&mut self, faces: &mut Faces, face: u32) {
        let Some(made) = faces.get(face) else { return };
        let link = if made.is_shared() { LinkKind::MultiAccess } else { LinkKind::PointToPoint };
        self.forwarder.set_face(FaceId(face), Face { local: made.is_local(), link });
    }

    fn down(&mut self, _: &mut Faces, face: u32) {
        // The RIB has routes to a face only if the forwarder has next hops there.
        if self.forwarder.remove_face(FaceId(face)) {
            self.rib.forget_face(face);
        }
    }

    fn packets(&mut self, faces: &mut Faces, packets: &[Whole<'_>]) {
        let mut rest = packets;
        while let Some(first) = rest.first() {
            if let Some(interest) = for_management(faces, first) {
                self.manage(faces, first.face, &first.headers, &interest);
                rest = &rest[1..];
                continue;
            }
            let next = rest.iter().position(|packet| for_management(faces, packet).is_some());
            let (run, behind) = rest.split_at(next.unwrap_or(rest.len()).min(RUN));
            let mut came = [(FaceId(0), &Headers::NONE, &[][..]); RUN];
            for (came, Whole { face, headers, packet }) in came.iter_mut().zip(run) {
                *came = (FaceId(*face), headers, packet);
            }
            let mut send =
                |to: FaceId, about: &Headers, packet: &[u8]| faces.send(to.0, about, packet);
            self.forwarder.burst(self.now_ns, &came[..run.len()], &mut send);
            rest = behind;
        }
    }
}

/// The Interest in a packet by which a program asks the forwarder itself.
fn for_management<'a>(faces: &Faces, whole: &Whole<'a>) -> Option<Interest<'a>> {
    let is_local = |face| faces.get(face).is_some_and(crate::faces::Face::is_local);
    if whole.headers.nack.is_some() || !is_local(whole.face) || !Command::is_for_us(whole.packet) {
        return None;
    }
    Interest::read(whole.packet).ok()
}
