//! Interfaces of a run: parses their names, opens them and prints them.

use ringtap_engine::{MOST_INTERFACES, Machine, Plan};
use ringtap_export::formats::Interface;
use ringtap_io::live::{
    MergedReceiver, Method, Options, Receiver, interface_number, required_queues,
};
use ringtap_skeleton::Skeleton;

use crate::args::MonitorArgs;
use crate::links;
use ringtap_terminal::Usage;
use ringtap_terminal::console::{note, print_message};

/// The interfaces of the flags. A duplicate is an error.
pub(crate) fn interfaces(args: &MonitorArgs) -> anyhow::Result<Vec<String>> {
    if args.capture.method() == Method::Dpdk {
        // Arguments of a virtual device have commas.
        let one = only("-i", &args.interface, "--capture dpdk reads one device")?;
        return Ok(one.into_iter().map(str::to_owned).collect());
    }
    let names = args.interface.iter().flat_map(|given| given.split(','));
    let mut all: Vec<String> = Vec::new();
    for name in names.map(str::trim) {
        if name.is_empty() {
            let given = args.interface.join(" -i ");
            return Err(Usage::of(format!("-i {given}: missing name: use -i eth0,eth1")));
        }
        if all.iter().any(|other| other == name) {
            return Err(Usage::of(format!("-i names {name} twice: use each interface once")));
        }
        all.push(name.to_owned());
    }
    if all.len() > MOST_INTERFACES {
        let count = all.len();
        return Err(Usage::of(format!(
            "-i names {count} interfaces: use at most {MOST_INTERFACES}"
        )));
    }
    Ok(all)
}

/// The interface `given` by `flag`, for a command that accepts only one; `reason` states that in
/// the error.
pub(crate) fn only<'a>(
    flag: &str,
    given: &'a [String],
    reason: &str,
) -> anyhow::Result<Option<&'a str>> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(Usage::of(format!(
            "{flag} is given {} times ({}), but {reason}: use one",
            several.len(),
            several.join(", ")
        ))),
    }
}

/// The interfaces with their kernel indices, for flow records.
pub(crate) fn numbered(names: &[String], args: &MonitorArgs) -> anyhow::Result<Vec<Interface>> {
    let options = options(args);
    let one = |name: &String| {
        let (index, description) = interface_number(name, &options)?;
        Ok(Interface { index, name: name.clone(), description })
    };
    names.iter().map(one).collect()
}

/// The number of queues, if the interfaces determine it. Several AF_XDP interfaces have one.
pub(crate) fn queues(interfaces: &[String], args: &MonitorArgs) -> anyhow::Result<Option<usize>> {
    match interfaces {
        [one] => Ok(required_queues(one, &options(args))?.map(|queues| queues as usize)),
        _ if !is_sharded_by_cards(interfaces, args) => Ok(None),
        _ if args.threads.queues.is_none_or(|queues| queues == 1) => Ok(Some(1)),
        several => Err(Usage::of(format!(
            "--queues {}: with --capture af-xdp, one reader takes all queues of {}, because network cards hash packets \
             differently: omit --queues and use --workers",
            args.threads.queues.unwrap_or_default(),
            several.join(" and ")
        ))),
    }
}

/// The default arrangement for these interfaces, if they need one: one reader with workers.
pub(crate) fn skeleton(interfaces: &[String], args: &MonitorArgs) -> Option<Skeleton> {
    let cores = args.threads.cores().map_or_else(|| Machine::this().cores, |cores| cores.len());
    let uses_default = args.workers.is_none() && cores > 1;
    (uses_default && is_sharded_by_cards(interfaces, args)).then_some(Skeleton::Farm)
}

/// Whether packets of an address pair may arrive in different queues of several interfaces.
fn is_sharded_by_cards(interfaces: &[String], args: &MonitorArgs) -> bool {
    interfaces.len() > 1 && args.capture.method() != Method::Packet
}

/// Opens the interfaces; returns a receiver for each queue of the plan.
pub(crate) fn open(
    interfaces: &[String],
    args: &MonitorArgs,
    plan: &Plan<ringtap_monitor::Options>,
) -> anyhow::Result<Vec<MergedReceiver>> {
    let all_queues = is_sharded_by_cards(interfaces, args);
    let options = Options {
        queues: (!all_queues).then_some(plan.arrangement.queues as u16),
        memory: plan.buffers.buffer_bytes as usize / interfaces.len().max(1),
        seed: plan.options.seed,
        ..options(args)
    };
    let receivers =
        interfaces.iter().enumerate().map(|(place, name)| open_with(place, name, &options));
    Ok(MergedReceiver::distribute(
        receivers.collect::<anyhow::Result<_>>()?,
        plan.arrangement.queues,
    ))
}

/// The capture options of the flags.
fn options(args: &MonitorArgs) -> Options {
    Options {
        method: args.capture.method(),
        promiscuous: !args.no_promiscuous,
        dpdk_arguments: args.dpdk_args.clone().unwrap_or_default().0,
        ..Options::default()
    }
}

/// Opens an interface, prints its notices and follows its changes. `place` is its place in the list
/// of the command's interfaces.
pub(crate) fn open_with(
    place: usize,
    interface: &str,
    options: &Options,
) -> anyhow::Result<Vec<Receiver>> {
    let mut receivers = ringtap_io::live::open(interface, options)?;
    let notices = receivers.iter_mut().flat_map(Receiver::take_notices);
    notices.for_each(|notice| print_message("warning", &notice.to_string()));
    links::follow(place, &receivers);
    Ok(receivers)
}

/// Prints the interface and capture method of each receiver.
pub(crate) fn announce(receivers: &[Receiver]) {
    receivers.iter().for_each(|receiver| note(&format!("listening: {}", receiver.describe())));
}

/// Like [`announce`], grouped by interface.
pub(crate) fn announce_merged(receivers: &[MergedReceiver]) {
    let all: Vec<_> = receivers.iter().flat_map(MergedReceiver::describe).collect();
    let interfaces = receivers.first().map_or_else(Vec::new, MergedReceiver::interfaces);
    for (name, _) in interfaces {
        let own = all.iter().filter(|one| one.interface == name);
        own.for_each(|one| note(&format!("listening: {one}")));
    }
}
