//! The interface of a run, opened as the plan says.

use clap::ValueEnum;
use ringtap_live::{Method, Options, Receiver, receive_queues};
use ringtap_plan::Plan;

use crate::args::MonitorArgs;
use crate::console::{complain, note};

/// How frames are taken from an interface, as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Capture {
    Auto,
    AfPacket,
    AfXdp,
}

impl Capture {
    fn method(self) -> Method {
        match self {
            // AF_XDP takes frames away from the host: nobody gets that without asking for it.
            Self::Auto | Self::AfPacket => Method::Packet,
            Self::AfXdp => Method::Xdp,
        }
    }

    /// What the source is called in the plan.
    pub(crate) fn source(self, interface: &str) -> String {
        let method = match self.method() {
            Method::Packet => "AF_PACKET",
            Method::Xdp => "AF_XDP",
        };
        format!("{interface} by {method}")
    }
}

/// How many queues there must be, where the interface decides that.
pub(crate) fn queues(interface: &str, capture: Capture) -> anyhow::Result<Option<usize>> {
    Ok(match capture.method() {
        Method::Packet => None,
        Method::Xdp => Some(receive_queues(interface)? as usize),
    })
}

/// Opens the interface, a receiver for each queue of the plan.
pub(crate) fn open(
    interface: &str,
    args: &MonitorArgs,
    plan: &Plan,
) -> anyhow::Result<Vec<Receiver>> {
    let options = Options {
        method: args.capture.method(),
        queues: Some(plan.queues as u16),
        memory: plan.buffer_bytes as usize,
        seed: plan.seed,
        promiscuous: !args.no_promiscuous,
        ..Options::default()
    };
    let mut receivers = ringtap_live::open(interface, &options)?;
    let notices = receivers.iter_mut().flat_map(Receiver::take_notices);
    notices.for_each(|notice| complain("warning", &notice.to_string()));
    Ok(receivers)
}

/// Says what is listened to.
pub(crate) fn announce(receivers: &[Receiver]) {
    receivers.iter().for_each(|receiver| note(&format!("listening: {}", receiver.describe())));
}
