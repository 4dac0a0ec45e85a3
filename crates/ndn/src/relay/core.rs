//! The core of the relay: the forwarder, the RIB and the strategies, and operations on them.

use std::collections::BTreeMap;

use crate::faces::{Faces, Handler, ReceivedPacket};
use crate::forwarder::{Face, FaceId, Forwarder, LinkKind, Strategy};
use crate::packets::management::Command;
use crate::packets::{Headers, Interest, NameBuf};

use crate::relay::datasets::Datasets;
use crate::relay::plan::ForwardPlan;
use crate::relay::rib::{Change, Rib, Route};

/// Maximum number of packets that are forwarded together.
const RUN: usize = 32;

/// All state of the relay except the faces.
pub(crate) struct Core {
    pub(crate) forwarder: Forwarder,
    pub(crate) rib: Rib,
    pub(crate) strategies: BTreeMap<NameBuf, Strategy>,
    pub(crate) datasets: Datasets,
    pub(crate) counts: Counts,
    /// Steady time of the current round.
    pub(crate) now_ns: u64,
    /// Start of the relay, in milliseconds since 1970.
    pub(crate) began_ms: u64,
    /// Maximum number of Data in the content store.
    pub(crate) cs_capacity: usize,
    pub(crate) version: &'static str,
}

/// Counters of the management.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) answered: u64,
    /// Requests for data sets or segments that do not exist.
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
            cs_capacity: plan.settings.cs_entries_max(),
            version,
        }
    }

    /// Adds or changes a route; returns false if its prefix is too long.
    pub(crate) fn set_route(&mut self, faces: &mut Faces, prefix: &NameBuf, route: Route) -> bool {
        if prefix.as_name().components().count() > crate::forwarder::COMPONENTS_MAX {
            return false;
        }
        let changes = self.rib.set(prefix, route);
        self.apply(faces, changes);
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
        self.apply(faces, changes);
    }

    /// Sets the strategy of a prefix; returns false if the prefix is too long.
    pub(crate) fn set_strategy(&mut self, prefix: &NameBuf, strategy: Strategy) -> bool {
        let is_set = self.forwarder.set_strategy(&prefix.as_name(), strategy).is_ok();
        if is_set {
            self.strategies.insert(prefix.clone(), strategy);
        }
        is_set
    }

    pub(crate) fn expire_routes(&mut self, faces: &mut Faces) {
        let changes = self.rib.expire(self.now_ns);
        self.apply(faces, changes);
    }

    /// Applies changes of next hops to the forwarder. Pending Interests of the multicast strategy
    /// are sent to new next hops.
    fn apply(&mut self, faces: &mut Faces, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Set { prefix, face, cost } => {
                    let mut send = |to: FaceId, headers: &Headers, packet: &[u8]| {
                        faces.send(to.0, headers, packet);
                    };
                    let name = prefix.as_name();
                    // This cannot fail: the RIB holds no prefix that is too long.
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
        let Some(created) = faces.get(face) else { return };
        let link = if created.is_shared() { LinkKind::MultiAccess } else { LinkKind::PointToPoint };
        self.forwarder.set_face(FaceId(face), Face { local: created.is_local(), link });
    }

    fn down(&mut self, _: &mut Faces, face: u32) {
        // The RIB has routes to a face only if the forwarder has next hops there.
        if self.forwarder.remove_face(FaceId(face)) {
            self.rib.remove_face(face);
        }
    }

    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        let mut rest = packets;
        while let Some(first) = rest.first() {
            if let Some(interest) = for_management(faces, first) {
                self.manage(faces, first.face, &first.headers, &interest);
                rest = &rest[1..];
                continue;
            }
            let next = rest.iter().position(|packet| for_management(faces, packet).is_some());
            let (run, after) = rest.split_at(next.unwrap_or(rest.len()).min(RUN));
            let mut received = [(FaceId(0), &Headers::NONE, &[][..]); RUN];
            for (received, ReceivedPacket { face, headers, packet }) in received.iter_mut().zip(run)
            {
                *received = (FaceId(*face), headers, packet);
            }
            let mut send =
                |to: FaceId, headers: &Headers, packet: &[u8]| faces.send(to.0, headers, packet);
            self.forwarder.burst(self.now_ns, &received[..run.len()], &mut send);
            rest = after;
        }
    }
}

/// The Interest in a packet, if it is a management request of a local program.
fn for_management<'a>(faces: &Faces, whole: &ReceivedPacket<'a>) -> Option<Interest<'a>> {
    let is_local = |face| faces.get(face).is_some_and(crate::faces::Face::is_local);
    if whole.headers.nack.is_some()
        || !is_local(whole.face)
        || !Command::is_management(whole.packet)
    {
        return None;
    }
    Interest::read(whole.packet).ok()
}
