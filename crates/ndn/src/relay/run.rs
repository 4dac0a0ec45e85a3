//! The main loop of the relay: forwards packets and answers management requests.

use std::io;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use crate::faces::{Faces, Handler, Intake, OpenError, Persistence, close_idle};
use crate::forwarder::design::{Access, OwnTables};
use crate::forwarder::{Parallel, Strategy};
use crate::packets::NameBuf;
use crate::packets::management::{CHILD_INHERIT, ORIGIN_STATIC};

use crate::relay::core::Core;
use crate::relay::load::MANY;
use crate::relay::pace::Pace;
use crate::relay::plan::ForwardPlan;
use crate::relay::report::ForwardReport;
use crate::relay::rib::Route;
use ringtap_base::steady_ns;

/// Maximum wait for packets: while Interests are pending, and while none are.
const WAIT_PENDING: Duration = Duration::from_millis(5);
const WAIT_IDLE: Duration = Duration::from_millis(50);

/// Longest wait for workers at the end of a run.
const LAST_REPORT: Duration = Duration::from_secs(5);

/// Interval at which idle faces and expired routes are removed.
const CLEANUP_EVERY_NS: u64 = 1_000_000_000;

/// A running forwarder: faces, tables and management.
pub struct Relay<A: Access = OwnTables> {
    faces: Faces,
    intake: Intake,
    core: Core<A>,
    plan: ForwardPlan,
    began_ns: u64,
}

/// Why a forwarder cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// A face could not be created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The face of a planned route could not be created.
    #[error("route {prefix}: {source}")]
    Route {
        /// The prefix.
        prefix: NameBuf,
        /// The reason.
        source: OpenError,
    },
    /// A prefix has too many components.
    #[error("prefix {0} is too long: use at most {max} components", max = crate::forwarder::COMPONENTS_MAX)]
    TooLong(NameBuf),
    /// A worker's thread has ended, or does not respond.
    #[error(
        "a worker has failed, so its part of the names is not forwarded: restart the forwarder"
    )]
    Worker,
    /// Listening for programs or waiting for packets failed.
    #[error("waiting for packets: {0}")]
    System(#[from] io::Error),
}

impl Relay {
    /// Opens all sockets and configured faces, and allocates all tables. Programs connect to
    /// `listener`, if given. `version` is the text that status queries return.
    pub fn open(
        plan: ForwardPlan,
        listener: Option<UnixListener>,
        version: &'static str,
    ) -> Result<Self, ForwardError> {
        let forwarders = Parallel::new(&plan.settings, plan.workers);
        Self::with(plan, forwarders, listener, version)
    }
}

impl<A: Access> Relay<A> {
    /// Like [`Relay::open`], with these workers.
    pub fn with(
        plan: ForwardPlan,
        forwarders: Parallel<A>,
        listener: Option<UnixListener>,
        version: &'static str,
    ) -> Result<Self, ForwardError> {
        let mut faces = Faces::open(plan.faces.clone())?;
        if let Some(listener) = listener {
            faces.listen(listener, plan.unix.as_deref().unwrap_or_default())?;
        }
        let now_ns = steady_ns();
        let mut core = Core::start(&plan, forwarders, now_ns, version)?;
        if let Some(doorbell) = core.workers.event() {
            faces.watch_doorbell(doorbell)?;
        }
        core.set_strategy(&NameBuf::default(), Strategy::default());
        for (prefix, strategy) in &plan.strategies {
            if !core.set_strategy(prefix, *strategy) {
                return Err(ForwardError::TooLong(prefix.clone()));
            }
        }
        for ethernet in &plan.faces.ethernet {
            let group =
                crate::faces::Remote::Ethernet { interface: ethernet.interface.clone(), to: None };
            let (face, _) = faces.add(&group, Persistence::Permanent)?;
            core.up(&mut faces, face);
        }
        for multicast in &plan.faces.multicast {
            let interface = Some(multicast.interface.clone());
            let group = crate::faces::Remote::Multicast { group: multicast.group, interface };
            let (face, _) = faces.add(&group, Persistence::Permanent)?;
            core.up(&mut faces, face);
        }
        for route in &plan.routes {
            let error = |source| ForwardError::Route { prefix: route.prefix.clone(), source };
            let (face, is_new) = faces.add(&route.to, Persistence::Permanent).map_err(error)?;
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

    /// The addresses of all sockets in NFD's syntax; with AF_XDP also its mode.
    pub fn listening(&self) -> Vec<String> {
        self.faces.listening().collect()
    }

    /// Removes and returns warnings from opening the sockets.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.faces.take_warnings()
    }

    /// Forwards until `stopped` returns true. Calls `each` once a second with a function that
    /// creates the report so far. Returns the final report.
    pub fn run(
        mut self,
        stopped: impl Fn() -> bool,
        mut each: impl FnMut(&dyn Fn() -> ForwardReport),
    ) -> Result<ForwardReport, ForwardError> {
        let mut next_cleanup_ns = self.core.now_ns + CLEANUP_EVERY_NS;
        let (mut pace, mut shared) = (Pace::start(), 0);
        while !stopped() {
            // A thread that sleeps would delay what the workers return.
            let paused = !self.core.workers.is_any_away() && pace.pause();
            let waited = self.wait(shared)? || paused;
            let now_ns = steady_ns();
            self.core.now_ns = now_ns;
            if let Some(doorbell) = self.core.workers.doorbell() {
                doorbell.begin_round(now_ns);
            }
            let before = [self.core.received, self.core.received_shared];
            self.intake.receive(&mut self.faces, now_ns, &mut self.core);
            let packets = self.core.received - before[0];
            shared = self.core.received_shared - before[1];
            pace.woke(now_ns, packets);
            self.core.workers.collect(&mut self.faces);
            self.core.serve(&mut self.faces);
            self.core.workers.advance(now_ns);
            self.core.announcer.announce(&mut self.core.rib, &mut self.faces);
            self.faces.flush();
            self.core.workers.pass_on(0);
            self.core.workers.balance(waited, shared);
            if now_ns >= next_cleanup_ns {
                next_cleanup_ns = now_ns + CLEANUP_EVERY_NS;
                close_idle(&mut self.faces, now_ns, &mut self.core);
                self.core.expire_routes(&mut self.faces);
                self.core.workers.request_reports();
                if self.core.workers.has_failed() {
                    return Err(ForwardError::Worker);
                }
                let kernel_drops = self.faces.kernel_drops();
                each(&|| self.report(kernel_drops));
            }
        }
        if !self.core.workers.report(&mut self.faces, LAST_REPORT) {
            return Err(ForwardError::Worker);
        }
        let kernel_drops = self.faces.kernel_drops();
        Ok(self.report(kernel_drops))
    }

    /// Waits for packets, or until a worker has something to send. Returns whether it may have waited:
    /// after a round with few `packets`, that is not examined.
    fn wait(&mut self, packets: u64) -> io::Result<bool> {
        let is_due = self.core.requests.is_due();
        let workers = &mut self.core.workers;
        if workers.event().is_some() && packets >= MANY {
            self.intake.wait(&self.faces, Duration::ZERO)?;
            if self.intake.is_ready() {
                return Ok(false);
            }
        }
        let mut wait = match workers.has_pending() {
            _ if is_due => Duration::ZERO,
            true => WAIT_PENDING,
            false => WAIT_IDLE,
        };
        if let Some(doorbell) = workers.doorbell() {
            doorbell.announce();
            if workers.has_returned() {
                wait = Duration::ZERO;
            }
        }
        let result = self.intake.wait(&self.faces, wait);
        if let Some(doorbell) = self.core.workers.doorbell() {
            doorbell.awake();
        }
        result.map(|()| !wait.is_zero())
    }

    fn report(&self, kernel_drops: u64) -> ForwardReport {
        ForwardReport::new(
            &self.plan,
            &self.faces,
            &self.core,
            self.intake.incomplete(),
            kernel_drops,
            steady_ns().saturating_sub(self.began_ns),
        )
    }
}
