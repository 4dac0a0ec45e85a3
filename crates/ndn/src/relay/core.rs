//! The core of the relay: the shards, the RIB and the strategies, and operations on them.

use std::collections::BTreeMap;

use std::io;
use std::sync::Arc;

use crate::faces::{Faces, Handler, ReceivedPacket};
use crate::forwarder::{Face, FaceId, LinkKind, Strategy};
use crate::packets::management::{Command, FaceEventKind};
use crate::packets::{Interest, NameBuf};

use crate::relay::announce::is_answer;
use crate::relay::datasets::Datasets;
use crate::relay::events::FaceEvents;
use crate::relay::plan::ForwardPlan;
use crate::relay::rib::{Change, Rib, Route};
use crate::relay::trust::{RefusedCommand, Trust};
use crate::relay::workers::Workers;

/// All state of the relay except the faces.
pub(crate) struct Core {
    pub(crate) workers: Workers,
    pub(crate) rib: Rib,
    pub(crate) strategies: BTreeMap<NameBuf, Strategy>,
    pub(crate) datasets: Datasets,
    pub(crate) trust: Trust,
    pub(crate) events: FaceEvents,
    pub(crate) counts: Counts,
    /// The face of the routing daemon that the RIB was announced to.
    pub(crate) daemon: Option<u32>,
    /// The version of the RIB at that time.
    pub(crate) announced_version: u64,
    /// Number of packets received.
    pub(crate) received: u64,
    /// Steady time of the current round.
    pub(crate) now_ns: u64,
    /// Start of the relay, in milliseconds since 1970.
    pub(crate) began_ms: u64,
    /// Maximum number of Data in the content store.
    pub(crate) cs_capacity: usize,
    pub(crate) version: &'static str,
    /// The plan as JSON, for all reports.
    pub(crate) plan: Arc<serde_json::Value>,
}

/// Counters of the management.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) answered: u64,
    /// Requests for data sets, segments or events that do not exist, and requests for events that
    /// ended without one.
    pub(crate) unanswered: u64,
    /// Commands sent to the routing daemon, and its answers.
    pub(crate) announced: u64,
    pub(crate) acknowledged: u64,
    /// Refused commands by reason. They are answered, too.
    pub(crate) refused: [u64; RefusedCommand::ALL.len()],
}

impl Core {
    /// Starts the workers.
    pub(crate) fn start(
        plan: &ForwardPlan,
        now_ns: u64,
        version: &'static str,
    ) -> io::Result<Self> {
        Ok(Self {
            workers: Workers::start(&plan.settings, plan.workers, plan.sharing)?,
            rib: Rib::default(),
            strategies: BTreeMap::new(),
            datasets: Datasets::default(),
            trust: Trust::new(plan.trust.clone()),
            events: FaceEvents::default(),
            counts: Counts::default(),
            received: 0,
            daemon: None,
            announced_version: 0,
            now_ns,
            began_ms: ringtap_base::now_ns() / 1_000_000,
            cs_capacity: plan.settings.cs_entries_max(),
            version,
            plan: Arc::new(plan.to_json()),
        })
    }

    /// Adds or changes a route; returns false if its prefix is too long.
    pub(crate) fn set_route(&mut self, faces: &mut Faces, prefix: &NameBuf, route: Route) -> bool {
        if prefix.as_name().components().count() > crate::forwarder::COMPONENTS_MAX {
            return false;
        }
        let changes = self.rib.set(prefix, route);
        faces.set_routed(route.face, true);
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
        if !changes.is_empty() {
            faces.set_routed(face, self.rib.has_route_to(face));
        }
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
        if !changes.is_empty() {
            faces.keep_routed(&self.rib.faces());
        }
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
        if self.workers.remove_face(faces, face) {
            let changes = self.rib.remove_face(face);
            self.apply(faces, changes);
        }
    }

    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        self.received += packets.len() as u64;
        // What the workers have sent must be known before answers to it.
        self.workers.collect(faces);
        let mut rest = packets;
        while let Some(first) = rest.first() {
            if let Some(interest) = for_management(faces, first) {
                self.manage(faces, first.face, &first.headers, &interest);
                rest = &rest[1..];
                continue;
            }
            if is_answer(faces, first) {
                self.counts.acknowledged += 1;
                rest = &rest[1..];
                continue;
            }
            let next = rest.iter().position(|packet| {
                is_answer(faces, packet) || for_management(faces, packet).is_some()
            });
            let (run, after) = rest.split_at(next.unwrap_or(rest.len()));
            self.workers.handle(faces, self.now_ns, run);
            rest = after;
        }
    }
}

/// The Interest in a packet, if it is a management request: of a local program, or of a neighbour
/// under `/localhop`. Other requests are forwarded or dropped by their scope.
fn for_management<'a>(faces: &Faces, whole: &ReceivedPacket<'a>) -> Option<Interest<'a>> {
    let is_local = faces.get(whole.face)?.is_local();
    let prefix = if is_local { Command::PREFIX } else { Command::NEIGHBOURS };
    if whole.headers.nack.is_some() || !Command::is_under(whole.packet, prefix) {
        return None;
    }
    Interest::read(whole.packet).ok()
}
