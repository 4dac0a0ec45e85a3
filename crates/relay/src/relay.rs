//! The forwarder at work: what comes is forwarded or answered, until somebody says stop.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use ringtap_faces::{Faces, Handler, Intake, OpenError, Persistence, tidy};
use ringtap_forwarder::{Face, FaceId, Forwarder, LinkKind, Strategy};
use ringtap_ndn::management::{CHILD_INHERIT, Command, ORIGIN_STATIC};
use ringtap_ndn::{Headers, Interest, NameBuf};
use rustix::time::{ClockId, clock_gettime};

use crate::datasets::Datasets;
use crate::plan::ForwardPlan;
use crate::report::ForwardReport;
use crate::rib::{Change, Rib, Route};

/// How long a wait lasts at the most: while Interests are pending, whose time runs, and while none is.
const WAIT_PENDING: Duration = Duration::from_millis(5);
const WAIT_IDLE: Duration = Duration::from_millis(50);

/// How often idle faces and ended routes are looked for.
const TIDY_EVERY_NS: u64 = 1_000_000_000;

/// See the module.
pub struct Relay {
    faces: Faces,
    intake: Intake,
    core: Core,
    plan: ForwardPlan,
    began_ns: u64,
}

/// What knows names: the tables, and who may change them.
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

/// Why a forwarder does not run.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A face could not be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A route of the plan leads nowhere.
    #[error("the route {prefix}: {source}")]
    Route {
        /// Its prefix.
        prefix: NameBuf,
        /// Why.
        source: OpenError,
    },
    /// A name has too many components.
    #[error("{0} has more than {max} components", max = ringtap_forwarder::COMPONENTS_MAX)]
    TooLong(NameBuf),
    /// The system does not let us wait.
    #[error("waiting for packets: {0}")]
    System(#[from] io::Error),
}

impl Relay {
    /// Opens all faces, and makes all tables. Programs connect to `listener`, if there is one.
    pub fn open(
        plan: ForwardPlan,
        listener: Option<UnixListener>,
        version: &'static str,
    ) -> Result<Self, ForwardError> {
        let mut faces = Faces::open(plan.faces.clone())?;
        if let Some(listener) = listener {
            faces.listen(listener, plan.unix.as_deref().unwrap_or_default())?;
        }
        let now_ns = now(ClockId::Monotonic);
        let mut core = Core {
            forwarder: Forwarder::new(plan.settings.clone()),
            rib: Rib::default(),
            strategies: BTreeMap::new(),
            datasets: Datasets::default(),
            counts: Counts::default(),
            now_ns,
            began_ms: unix_ms(),
            cs_capacity: plan.settings.cs_capacity,
            version,
        };
        core.set_strategy(&NameBuf::default(), Strategy::default());
        for (prefix, strategy) in &plan.strategies {
            if !core.set_strategy(prefix, *strategy) {
                return Err(ForwardError::TooLong(prefix.clone()));
            }
        }
        for ethernet in &plan.faces.ethernet {
            let group =
                ringtap_faces::Remote::Ethernet { interface: ethernet.interface.clone(), to: None };
            let (face, _) = faces.add(&group, Persistence::Permanent)?;
            core.up(&mut faces, face);
        }
        for route in &plan.routes {
            let wrong = |source| ForwardError::Route { prefix: route.prefix.clone(), source };
            let (face, is_new) = faces.add(&route.to, Persistence::Permanent).map_err(wrong)?;
            if is_new {
                core.up(&mut faces, face);
            }
            let added = Route {
                face,
                origin: ORIGIN_STATIC,
                cost: route.cost,
                flags: CHILD_INHERIT,
                ends_ns: None,
            };
            if !core.set_route(&mut faces, &route.prefix, added) {
                return Err(ForwardError::TooLong(route.prefix.clone()));
            }
        }
        Ok(Self { faces, intake: Intake::new(), core, plan, began_ns: now_ns })
    }

    /// Where it listens, as NFD writes it.
    pub fn listening(&self) -> Vec<String> {
        self.faces.listening().collect()
    }

    /// Forwards until it is to stop. `each` hears once a second how it stands, if it asks.
    pub fn run(
        mut self,
        stopped: impl Fn() -> bool,
        mut each: impl FnMut(&dyn Fn() -> ForwardReport),
    ) -> Result<ForwardReport, ForwardError> {
        let mut next_tidy_ns = self.core.now_ns + TIDY_EVERY_NS;
        while !stopped() {
            let pending = self.core.forwarder.pending() > 0;
            self.intake.wait(&self.faces, if pending { WAIT_PENDING } else { WAIT_IDLE })?;
            let now_ns = now(ClockId::Monotonic);
            self.core.now_ns = now_ns;
            self.intake.receive(&mut self.faces, now_ns, &mut self.core);
            self.core.forwarder.advance(now_ns);
            if now_ns >= next_tidy_ns {
                next_tidy_ns = now_ns + TIDY_EVERY_NS;
                tidy(&mut self.faces, now_ns, &mut self.core);
                self.core.expire_routes(&mut self.faces);
                let kernel_drops = self.faces.kernel_drops();
                each(&|| self.report(kernel_drops));
            }
        }
        self.faces.flush();
        let kernel_drops = self.faces.kernel_drops();
        Ok(self.report(kernel_drops))
    }

    fn report(&self, kernel_drops: u64) -> ForwardReport {
        ForwardReport::new(
            &self.plan,
            &self.faces,
            &self.core,
            self.intake.incomplete(),
            kernel_drops,
            now(ClockId::Monotonic).saturating_sub(self.began_ns),
        )
    }
}

impl Handler for Core {
    fn up(&mut self, faces: &mut Faces, face: u32) {
        let Some(made) = faces.get(face) else { return };
        let link = if made.is_shared() { LinkKind::MultiAccess } else { LinkKind::PointToPoint };
        self.forwarder.set_face(FaceId(face), Face { local: made.is_local(), link });
    }

    fn down(&mut self, _: &mut Faces, face: u32) {
        self.rib.forget_face(face);
        self.forwarder.remove_face(FaceId(face));
    }

    fn packet(&mut self, faces: &mut Faces, face: u32, headers: &Headers, packet: &[u8]) {
        if headers.nack.is_none()
            && faces.get(face).is_some_and(ringtap_faces::Face::is_local)
            && let Ok(interest) = Interest::read(packet)
            && Command::is_for_us(&interest.name)
        {
            return self.manage(faces, face, headers, &interest);
        }
        let mut send = |to: FaceId, about: &Headers, packet: &[u8]| faces.send(to.0, about, packet);
        self.forwarder.take(self.now_ns, FaceId(face), headers, packet, &mut send);
    }
}

impl Core {
    /// Adds a route, or changes it; false if its prefix is too long.
    pub(crate) fn set_route(&mut self, faces: &mut Faces, prefix: &NameBuf, route: Route) -> bool {
        if prefix.as_name().components().count() > ringtap_forwarder::COMPONENTS_MAX {
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

    fn expire_routes(&mut self, faces: &mut Faces) {
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

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    now(ClockId::Realtime) / 1_000_000
}

fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + time.tv_nsec as u64
}
