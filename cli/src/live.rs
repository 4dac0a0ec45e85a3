//! The interface of a run, opened as the plan says.

use ringtap_live::{Options, Receiver, required_queues};
use ringtap_plan::Plan;

use crate::args::MonitorArgs;
use crate::console::{complain, note};

/// How many queues there must be, where the interface decides that.
pub(crate) fn queues(interface: &str, args: &MonitorArgs) -> anyhow::Result<Option<usize>> {
    Ok(required_queues(interface, &options(args))?.map(|queues| queues as usize))
}

/// Opens the interface, a receiver for each queue of the plan.
pub(crate) fn open(
    interface: &str,
    args: &MonitorArgs,
    plan: &Plan,
) -> anyhow::Result<Vec<Receiver>> {
    let options = Options {
        queues: Some(plan.queues as u16),
        memory: plan.buffer_bytes as usize,
        seed: plan.seed,
        ..options(args)
    };
    open_with(interface, &options)
}

/// What the flags say of the interface.
fn options(args: &MonitorArgs) -> Options {
    Options {
        method: args.capture.method(),
        promiscuous: !args.no_promiscuous,
        dpdk_arguments: args.dpdk_args.clone().unwrap_or_default().0,
        ..Options::default()
    }
}

/// Opens the interface, and tells what there is to say of it.
pub(crate) fn open_with(interface: &str, options: &Options) -> anyhow::Result<Vec<Receiver>> {
    let mut receivers = ringtap_live::open(interface, options)?;
    let notices = receivers.iter_mut().flat_map(Receiver::take_notices);
    notices.for_each(|notice| complain("warning", &notice.to_string()));
    Ok(receivers)
}

/// Says what is listened to.
pub(crate) fn announce(receivers: &[Receiver]) {
    receivers.iter().for_each(|receiver| note(&format!("listening: {}", receiver.describe())));
}
