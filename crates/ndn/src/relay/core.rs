//! The core of the relay: the shards, the RIB and the strategies, and operations on them.

use std::collections::BTreeMap;

use std::io;

use crate::faces::{Faces, Handler, ReceivedPacket};
use crate::forwarder::{Face, FaceId, LinkKind, Strategy};
use crate::packets::management::{Command, FaceEventKind};
use crate::packets::{Interest, NameBuf};

use crate::relay::datasets::Datasets;
use crate::relay::events::FaceEvents;
use crate::relay::plan::ForwardPlan;
use crate::relay::rib::{Change, Rib, Route};
use crate::relay::workers::Workers;

/// All state of the relay except the faces.
pub(crate) struct Core {
    pub(crate) workers: Workers,
    pub(crate) rib: Rib,
    pub(crate) strategies: BTreeMap<NameBuf, Strategy>,
    pub(crate) datasets: Datasets,
    pub(crate) events: FaceEvents,
    pub(crate) counts: Counts,
    /// Steady time of the current round.
    pub(crate) now_ns: u64,
    /// Start of the relay, in milliseconds since 1970.
    pub(crate) began_ms: u64,
    pub(crate) cs_capacity: usize,
    pub(crate) version: &'static str,
}

/// Counters of the management.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) answered: u64,
    /// Requests for data sets, segments or events that do not exist, and requests for events that
    /// ended without one.
    pub(crate) unanswered: u64,
}

impl Core {
    /// Starts the workers.
    pub(crate) fn start(
        plan: &ForwardPlan,
        now_ns: u64,
        version: &'static str,
    ) -> io::Result<Self> {
        Ok(Self {
            workers: Workers::start(&plan.settings, plan.workers)?,
            rib: Rib::default(),
            strategies: BTreeMap::new(),
            datasets: Datasets::default(),
            events: FaceEvents::default(),
            counts: Counts::default(),
            now_ns,
            began_ms: ringtap_base::now_ns() / 1_000_000,
            cs_capacity: plan.settings.cs_capacity,
            version,
        })
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
        let is_set = self.workers.set_strategy(prefix, strategy).is_ok();
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
                    // This cannot fail: the RIB holds no prefix that is too long.
                    let _ = self.workers.add_route(faces, self.now_ns, &prefix, FaceId(face), cost);
                }
                Change::Unset { prefix, face } => {
                    self.workers.remove_route(&prefix, FaceId(face));
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
        let properties = Face { local: created.is_local(), link };
        self.workers.set_face(faces, face, properties);
        self.notify(faces, face, FaceEventKind::Created);
    }

    fn link_changed(&mut self, faces: &mut Faces, face: u32, is_up: bool) {
        let kind = if is_up { FaceEventKind::Up } else { FaceEventKind::Down };
        self.notify(faces, face, kind);
    }

    fn down(&mut self, faces: &mut Faces, face: u32) {
        self.notify(faces, face, FaceEventKind::Destroyed);
        // The RIB has routes to a face only if the forwarder has next hops there.
        if self.workers.remove_face(face) {
            self.rib.remove_face(face);
        }
    }

    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        // What the workers have sent must be known before answers to it.
        self.workers.collect(faces);
        let mut rest = packets;
        while let Some(first) = rest.first() {
            if let Some(interest) = for_management(faces, first) {
                self.manage(faces, first.face, &first.headers, &interest);
                rest = &rest[1..];
                continue;
            }
            let next = rest.iter().position(|packet| for_management(faces, packet).is_some());
            let (run, after) = rest.split_at(next.unwrap_or(rest.len()));
            self.workers.handle(faces, self.now_ns, run);
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
