//! The forwarder at work: what comes is forwarded or answered, until somebody says stop.

use std::io;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use crate::faces::{Faces, Handler, Intake, OpenError, Persistence, tidy};
use crate::forwarder::Strategy;
use crate::packets::NameBuf;
use crate::packets::management::{CHILD_INHERIT, ORIGIN_STATIC};

use crate::relay::core::Core;
use crate::relay::plan::ForwardPlan;
use crate::relay::report::ForwardReport;
use crate::relay::rib::Route;
use ringtap_base::steady_ns;

/// How long a wait lasts at the most: while Interests are pending, whose time runs, and while none is.
const WAIT_PENDING: Duration = Duration::from_millis(5);
const WAIT_IDLE: Duration = Duration::from_millis(50);

/// How often idle faces and ended routes are looked for.
const TIDY_EVERY_NS: u64 = 1_000_000_000;

/// A running forwarder: faces, tables and management.
pub struct Relay {
    faces: Faces,
    intake: Intake,
    core: Core,
    plan: ForwardPlan,
    began_ns: u64,
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
    #[error("{0} has more than {max} components", max = crate::forwarder::COMPONENTS_MAX)]
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
        let now_ns = steady_ns();
        let mut core = Core::new(&plan, now_ns, version);
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
            let now_ns = steady_ns();
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
            steady_ns().saturating_sub(self.began_ns),
        )
    }
}
