//! The core of the relay: the shards, the RIB and the strategies, and operations on them.

use std::collections::BTreeMap;

use std::io;
use std::sync::Arc;

use crate::faces::{Faces, Handler, ReceivedPacket};
use crate::forwarder::design::Access;
use crate::forwarder::{Face, FaceId, LinkKind, Parallel, Strategy};
use crate::packets::management::{Command, FaceEventKind};
use crate::packets::{Interest, NameBuf};

use crate::relay::announce::{Announcer, is_answer};
use crate::relay::datasets::{Datasets, Moment};
use crate::relay::events::FaceEvents;
use crate::relay::plan::ForwardPlan;
use crate::relay::requests::{Request, Requests};
use crate::relay::rib::{Change, Rib, Route};
use crate::relay::trust::{RefusedCommand, Trust};
use crate::relay::workers::Workers;

/// Longest wait of a request for current values of the workers.
const REPORT_WAIT_NS: u64 = 100_000_000;

/// All state of the relay except the faces.
pub(crate) struct Core<A: Access> {
    pub(crate) workers: Workers<A>,
    pub(crate) rib: Rib,
    pub(crate) strategies: BTreeMap<NameBuf, Strategy>,
    pub(crate) datasets: Datasets,
    pub(crate) requests: Requests,
    pub(crate) trust: Trust,
    pub(crate) events: FaceEvents,
    pub(crate) announcer: Announcer,
    pub(crate) counts: Counts,
    /// Number of packets received.
    pub(crate) received: u64,
    /// Of these, packets of faces on which workers can send.
    pub(crate) received_shared: u64,
    /// Number of changes that data sets show, except of counters.
    pub(crate) changes: u64,
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
    /// Requests dropped because too many waited.
    pub(crate) dropped: u64,
    /// Data sets made.
    pub(crate) made: u64,
    /// Refused commands by reason. They are answered, too.
    pub(crate) refused: [u64; RefusedCommand::ALL.len()],
}

impl<A: Access> Core<A> {
    /// Starts the workers.
    pub(crate) fn start(
        plan: &ForwardPlan,
        forwarders: Parallel<A>,
        now_ns: u64,
        version: &'static str,
    ) -> io::Result<Self> {
        Ok(Self {
            workers: Workers::start(forwarders, plan.parallel)?,
            rib: Rib::default(),
            strategies: BTreeMap::new(),
            datasets: Datasets::default(),
            requests: Requests::default(),
            trust: Trust::new(plan.trust.clone()),
            events: FaceEvents::default(),
            announcer: Announcer::default(),
            counts: Counts::default(),
            received: 0,
            received_shared: 0,
            changes: 0,
            now_ns,
            began_ms: ringtap_base::now_ns() / 1_000_000,
            cs_capacity: plan.settings.cs_entries_max(),
            version,
            plan: Arc::new(plan.to_json()),
        })
    }

    /// The counters of the management, with those of its events.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            answered: self.counts.answered + self.events.answered,
            unanswered: self.counts.unanswered + self.events.unanswered,
            ..self.counts
        }
    }

    /// Adds or changes a route; returns false if its prefix is too long.
    pub(crate) fn set_route(&mut self, faces: &mut Faces, prefix: &NameBuf, route: Route) -> bool {
        if prefix.as_name().components().count() > crate::forwarder::COMPONENTS_MAX {
            return false;
        }
        let changes = self.rib.set(prefix, route);
        faces.table.set_routed(route.face, true);
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
            faces.table.set_routed(face, self.rib.has_route_to(face));
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
            self.changes += 1;
            faces.table.keep_routed(&self.rib.faces());
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

impl<A: Access> Core<A> {
    /// The moment for data sets.
    pub(crate) fn moment(&self) -> Moment {
        Moment { now_ns: self.now_ns, changes: self.changes }
    }

    /// Executes a request for the management, or lets it wait for its turn.
    fn request(&mut self, faces: &mut Faces, whole: &ReceivedPacket<'_>, interest: &Interest<'_>) {
        if self.requests.len() == 0
            && self.requests.has_credit()
            && self.has_values_for(faces, interest)
        {
            return self.manage(faces, whole.face, &whole.headers, interest);
        }
        let Some(face) = faces.get(whole.face) else { return };
        let from = (whole.face, face.serial);
        let is_taken = self.requests.add(from, face.is_local(), &whole.headers, whole.packet);
        self.counts.dropped += u64::from(!is_taken);
    }

    /// Executes the requests that wait, as far as a round may. Call it once a round.
    pub(crate) fn serve(&mut self, faces: &mut Faces) {
        self.requests.begin_round();
        while self.requests.has_credit()
            && let Some(next) = self.requests.take()
        {
            let (from, serial, Request { headers, packet }) = &next;
            // The packet was parsed before; of a closed face, nothing can be answered.
            let interest =
                Interest::read(packet).ok().filter(|_| faces.table.is_same(*from, *serial));
            let Some(interest) = interest else {
                self.counts.unanswered += 1;
                continue;
            };
            if !self.has_values_for(faces, &interest) {
                return self.requests.put_back(next);
            }
            self.manage(faces, *from, headers, &interest);
        }
    }

    /// Whether the workers' values are new enough for a request. If not, requests them.
    fn has_values_for(&mut self, faces: &mut Faces, interest: &Interest<'_>) -> bool {
        if !self.workers.is_any_away() || !self.makes_dataset(interest) {
            *self.requests.reports_ns() = None;
            return true;
        }
        let now_ns = self.now_ns;
        match *self.requests.reports_ns() {
            None => {
                self.workers.request_new_reports();
                *self.requests.reports_ns() = Some(now_ns);
                false
            }
            Some(since_ns) => {
                self.workers.collect(faces);
                // After this time, older values are good enough.
                let is_late = now_ns.saturating_sub(since_ns) >= REPORT_WAIT_NS;
                let has = self.workers.has_reported() || is_late;
                if has {
                    *self.requests.reports_ns() = None;
                }
                has
            }
        }
    }
}

impl<A: Access> Handler for Core<A> {
    fn up(&mut self, faces: &mut Faces, face: u32) {
        let Some(created) = faces.get(face) else { return };
        self.changes += 1;
        let link = if created.is_shared() { LinkKind::MultiAccess } else { LinkKind::PointToPoint };
        let properties = Face { local: created.is_local(), link };
        self.workers.set_face(faces, face, properties);
        self.events.notify(self.now_ns, faces, face, FaceEventKind::Created);
    }

    fn link_changed(&mut self, faces: &mut Faces, face: u32, is_up: bool) {
        self.changes += 1;
        let kind = if is_up { FaceEventKind::Up } else { FaceEventKind::Down };
        self.events.notify(self.now_ns, faces, face, kind);
    }

    fn down(&mut self, faces: &mut Faces, face: u32) {
        self.changes += 1;
        self.events.notify(self.now_ns, faces, face, FaceEventKind::Destroyed);
        // The RIB has routes to a face only if the forwarder has next hops there.
        if self.workers.remove_face(faces, face) {
            let changes = self.rib.remove_face(face);
            self.apply(faces, changes);
        }
    }

    fn packets(&mut self, faces: &mut Faces, packets: &[ReceivedPacket<'_>]) {
        self.received += packets.len() as u64;
        // They have one source.
        if packets.first().is_some_and(|first| faces.is_for_threads(first.face)) {
            self.received_shared += packets.len() as u64;
        }
        // What the workers have sent must be known before answers to it.
        self.workers.collect(faces);
        let mut rest = packets;
        while let Some(first) = rest.first() {
            if let Some(interest) = for_management(faces, first) {
                self.request(faces, first, &interest);
                rest = &rest[1..];
                continue;
            }
            if is_answer(faces, first) {
                self.announcer.acknowledged += 1;
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

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::faces::{Intake, Persistence, Remote, Settings as FaceSettings};
    use crate::forwarder::design::OwnTables;
    use crate::packets::management::{CHILD_INHERIT, ORIGIN_STATIC};
    use crate::packets::{NewInterest, write_lp};
    use crate::relay::report::ForwardReport;

    /// More than the default time of a data set: turns of a millisecond in less than a second.
    const TURNS: u64 = 500;
    const FACES: u16 = 1_000;
    /// Requests that a program sends in each turn.
    const REQUESTS: u32 = 100;

    struct Run {
        plan: ForwardPlan,
        faces: Faces,
        intake: Intake,
        core: Core<OwnTables>,
        programs: Vec<(u32, UnixStream)>,
        nonce: u32,
    }

    impl Run {
        fn new() -> Self {
            let udp = vec!["127.0.0.1:0".parse().unwrap()];
            let faces = FaceSettings { udp, udp_offload: false, ..FaceSettings::default() };
            let plan = ForwardPlan { faces, ..ForwardPlan::default() };
            let mut faces = Faces::open(plan.faces.clone()).unwrap();
            let mut core = Core::start(
                &plan,
                Parallel::new(&plan.settings, plan.workers),
                1_000_000_000,
                "test",
            )
            .unwrap();
            core.set_strategy(&NameBuf::default(), Strategy::BestRoute);
            let programs = (0..2).map(|_| {
                let (far, near) = UnixStream::pair().unwrap();
                near.set_nonblocking(true).unwrap();
                let face = faces
                    .streams
                    .add_program(&mut faces.table, "unix://test".into(), near.into(), 1)
                    .unwrap();
                core.up(&mut faces, face);
                (face, far)
            });
            let programs = programs.collect();
            for port in 0..FACES {
                let to = Remote::Udp(SocketAddr::from(([127, 0, 0, 1], 20_000 + port)));
                let (face, _) = faces.add(&to, Persistence::Permanent).unwrap();
                core.up(&mut faces, face);
            }
            Self { plan, faces, intake: Intake::new(), core, programs, nonce: 0 }
        }

        fn route(&mut self, prefix: &str, to: SocketAddr) {
            let (face, _) = self.faces.add(&Remote::Udp(to), Persistence::Permanent).unwrap();
            self.core.up(&mut self.faces, face);
            let (origin, flags) = (ORIGIN_STATIC, CHILD_INHERIT);
            let route = Route { face, origin, cost: 0, flags, ends_ns: None };
            assert!(self.core.set_route(&mut self.faces, &prefix.parse().unwrap(), route));
        }

        /// Receives an Interest of a program.
        fn interest(&mut self, program: usize, name: &str) {
            self.nonce += 1;
            let (name, mut packet, mut wire): (NameBuf, _, _) =
                (name.parse().unwrap(), Vec::new(), Vec::new());
            let interest = NewInterest::new(name.as_name(), self.nonce);
            NewInterest { must_be_fresh: true, can_be_prefix: true, ..interest }.write(&mut packet);
            write_lp(&crate::packets::Headers::NONE, &packet, &mut wire);
            let from = Err(self.programs[program].0);
            let Self { faces, intake, core, .. } = self;
            intake.frame(faces, core.now_ns, from, &wire, core);
        }
    }

    /// A program that asks for the list of 1,000 faces in a loop, beside one that is forwarded.
    /// `change` runs before each turn. Returns the number of data sets that were made.
    fn ask_in_a_loop(change: impl Fn(&mut Core<OwnTables>)) -> u64 {
        let producer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut run = Run::new();
        run.route("/p", producer.local_addr().unwrap());
        for turn in 1..=TURNS {
            let answered = run.core.counts.answered;
            change(&mut run.core);
            for _ in 0..REQUESTS {
                run.interest(0, "/localhost/nfd/faces/list");
            }
            run.interest(1, &format!("/p/{turn}"));
            run.core.serve(&mut run.faces);
            // What a turn spends is bounded, whatever arrives. What it forwards is not less.
            assert!(run.core.counts.answered - answered <= 2 * 4 + 1, "turn {turn}");
            assert_eq!(run.core.workers.total().counters.interests_out, turn);
            run.core.now_ns += 1_000_000;
        }
        // Another program is not behind all requests of the first one.
        let answered = run.core.counts.answered;
        run.interest(1, "/localhost/nfd/status/general");
        (0..FACES / 64 + 2).for_each(|_| run.core.serve(&mut run.faces));
        assert!(run.core.counts.answered > answered);
        let made = run.core.counts.made;
        assert!(run.core.counts.dropped > 0 && run.core.requests.len() > 0);
        let Run { plan, faces, core, intake, .. } = &run;
        let report = ForwardReport::new(plan, faces, core, intake.incomplete(), 0, 0);
        assert_eq!(report.residual(), 0, "{report:?}");
        made
    }

    /// Workers return the packets of streams, so these are no reason to hand a shard over.
    #[test]
    fn only_packets_of_datagram_faces_count_for_the_workers() {
        let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut run = Run::new();
        run.route("/p", neighbour.local_addr().unwrap());
        run.interest(1, "/p/1");
        assert_eq!((run.core.received, run.core.received_shared), (1, 0));
        let name: NameBuf = "/p/2".parse().unwrap();
        let mut wire = Vec::new();
        NewInterest::new(name.as_name(), 7).write(&mut wire);
        let Run { faces, intake, core, .. } = &mut run;
        intake.frame(faces, core.now_ns, neighbour.local_addr().map_err(|_| 0), &wire, core);
        assert_eq!((run.core.received, run.core.received_shared), (2, 1));
    }

    #[test]
    fn requests_in_a_loop_have_a_budget_and_one_data_set_a_second() {
        // And the status at the end.
        assert_eq!(ask_in_a_loop(|_| ()), 2);
    }

    #[test]
    fn data_sets_that_change_are_paid_by_later_turns() {
        let made = ask_in_a_loop(|core| core.changes += 1);
        assert!((2..=2 + TURNS * 64 / u64::from(FACES)).contains(&made), "{made}");
    }
}
