//! The plan of a forwarder: its complete configuration.

use crate::faces::{Remote, Settings as FaceSettings};
use crate::forwarder::{Settings, Strategy, Unsolicited};
use crate::packets::NameBuf;
use crate::relay::trust::{Anchor, TrustSettings};
use serde_json::{Value, json};

/// The complete configuration of a forwarder.
#[derive(Clone, Debug, Default)]
pub struct ForwardPlan {
    /// Number of shards of the tables; all but the first have a thread of their own, which runs them
    /// while the main thread is busy. 0 is 1.
    pub workers: usize,
    /// Whether all workers run all the time, and not only while the main thread is busy. For tests
    /// and measurements of the threads.
    pub parallel: bool,
    /// Sizes and policies of the tables.
    pub settings: Settings,
    /// Sockets, and limits of faces.
    pub faces: FaceSettings,
    /// Initial routes; their faces are permanent.
    pub routes: Vec<PlannedRoute>,
    /// Initial strategies of prefixes.
    pub strategies: Vec<(NameBuf, Strategy)>,
    /// The path of the Unix socket for programs.
    pub unix: Option<String>,
    /// Which commands need which signatures.
    pub trust: TrustSettings,
}

/// An initial route.
#[derive(Clone, Debug)]
pub struct PlannedRoute {
    /// The prefix.
    pub prefix: NameBuf,
    /// The next hop.
    pub to: Remote,
    /// The cost; lower is preferred.
    pub cost: u64,
}

impl ForwardPlan {
    /// The plan as JSON.
    pub fn to_json(&self) -> Value {
        let Settings { pit_capacity, pit_per_face, cs_bytes, dead_nonces, unsolicited, .. } =
            &self.settings;
        let multicast = self.faces.multicast.iter();
        let multicast = multicast
            .map(|one| json!({ "interface": one.interface, "group": one.group.to_string() }))
            .collect::<Vec<_>>();
        let ethernet = self.faces.ethernet.iter();
        let ethernet = ethernet
            .map(|one| json!({ "interface": one.interface, "method": one.method.name() }))
            .collect::<Vec<_>>();
        let route = |route: &PlannedRoute| {
            let to = match &route.to {
                Remote::Ethernet { interface, .. }
                | Remote::Multicast { interface: Some(interface), .. } => {
                    format!("{} on {interface}", route.to)
                }
                other => other.to_string(),
            };
            json!({ "prefix": route.prefix.to_string(), "to": to, "cost": route.cost })
        };
        let anchor = |anchor: &Anchor| {
            json!({ "name": anchor.name.to_string(), "type": anchor.key.signature_type().name(),
                "allow": anchor.allow.iter().map(|module| module.name()).collect::<Vec<_>>(),
                "prefix": anchor.prefix.to_string() })
        };
        let strategy = |(prefix, strategy): &(NameBuf, Strategy)| json!({ "prefix": prefix.to_string(), "use": strategy.name() });
        json!({
            "udp": self.faces.udp.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "tcp": self.faces.tcp.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "websocket": self.faces.websocket.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "unix": self.unix,
            "ethernet": ethernet,
            "multicast": multicast,
            "faces_max": self.faces.faces_max,
            "faces_on_demand_max": self.faces.on_demand_max(),
            "workers": self.workers.max(1),
            "dispatch_components": self.settings.dispatch_components,
            "pit": pit_capacity,
            "pit_per_face": pit_per_face.unwrap_or(*pit_capacity),
            "content_store_bytes": cs_bytes,
            "dead_nonces": dead_nonces,
            "lifetime_max_ms": self.settings.lifetime_max_ms,
            "unsolicited": match unsolicited {
                Unsolicited::Drop => "drop",
                Unsolicited::KeepLocal => "keep-local",
            },
            "routes": self.routes.iter().map(route).collect::<Vec<_>>(),
            "anchors": self.trust.anchors.iter().map(anchor).collect::<Vec<_>>(),
            "local_commands": if self.trust.sign_local { "signed" } else { "any" },
            "strategies": self.strategies.iter().map(strategy).collect::<Vec<_>>(),
        })
    }
}
