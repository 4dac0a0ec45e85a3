//! The forwarder that `live` measures: that of the product, with tables that workers own or share.

use std::net::{Ipv4Addr, SocketAddr};

use ringtap_base::now_ns;
use ringtap_ndn::faces;
use ringtap_ndn::forwarder::design::Access;
use ringtap_ndn::forwarder::{Parallel, Settings};
use ringtap_ndn::relay::{ForwardError, ForwardPlan, PlannedRoute, Relay};
use ringtap_program::run::Loop;
use ringtap_program::signals;
use ringtap_terminal::console::note;
use serde_json::Value;

use super::locked::{Locked, Sharing};

/// Buckets with a lock.
const LOCKS: usize = 1 << 20;

/// The run of this process.
static RUN: Loop = Loop::new();

/// The parameters of a forwarder.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// How the workers share the tables.
    pub mode: Sharing,
    /// Number of workers.
    pub workers: usize,
    /// The UDP port of 127.0.0.1 at which it receives.
    pub port: u16,
    /// The UDP port of 127.0.0.1 to which /load is routed.
    pub next_hop: u16,
}

/// Forwards until an interrupt; returns the report.
///
/// # Errors
/// The port cannot be opened.
pub fn run(parameters: Parameters) -> anyhow::Result<Value> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let settings = Settings {
        // Each Interest has a new name.
        cs_bytes: 0,
        // All components are hashed, so that the one prefix spreads.
        dispatch_components: 8,
        seed: now_ns(),
        ..Settings::default()
    };
    let route = PlannedRoute {
        prefix: "/load".parse()?,
        to: format!("udp://{}", at(parameters.next_hop)).parse()?,
        cost: 0,
    };
    let plan = ForwardPlan {
        workers: parameters.workers,
        settings: settings.clone(),
        faces: faces::Settings {
            udp: vec![at(parameters.port)],
            udp_offload: true,
            ..faces::Settings::default()
        },
        routes: vec![route],
        ..ForwardPlan::default()
    };
    match parameters.mode {
        Sharing::Shards => {
            let shards = Parallel::new(&settings, parameters.workers);
            forward(plan, shards)
        }
        mode => {
            let (workers, waits) = Locked::workers(&settings, parameters.workers, mode, LOCKS);
            let mut report = forward(plan, workers)?;
            report["lock_waits"] = waits.sum().into();
            Ok(report)
        }
    }
}

fn forward<A: Access>(plan: ForwardPlan, workers: Parallel<A>) -> anyhow::Result<Value> {
    let relay = Relay::with(plan, workers, None, env!("CARGO_PKG_VERSION"))?;
    let work = || -> Result<_, ForwardError> {
        relay.listening().iter().for_each(|at| note(&format!("forwarding at {at}")));
        relay.run(|| RUN.ends(), |_| ())
    };
    let report = signals::stoppable(&RUN, None, || (), work)??;
    Ok(report.to_json(env!("CARGO_PKG_VERSION")))
}
