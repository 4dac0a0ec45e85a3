//! The filter between two interfaces: opens them, serves the control socket and closes the outputs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use ringtap_engine::Watch;
use ringtap_filter::run::{
    Buffers, ControlAuth, FilterLive, FilterPlan, FilterReport, Path, Requests, StatsSnapshot,
    filter_live,
};
use ringtap_filter::{RulePublisher, RuleSet};
use ringtap_io::live::{Method, Options, Receiver, SendOptions, Sender};
use ringtap_wire::LinkType;

use super::control::Socket;
use super::files::{Output, existing};
use crate::args::{FilterArgs, Sending};
use crate::{links, live};
use ringtap_program::privileges::CapabilitySet;
use ringtap_program::{notify, privileges};
use ringtap_terminal::console::note;

/// Longest delay of frames by AF_PACKET's blocks.
const BLOCK_TIMEOUT: Duration = Duration::from_millis(1);

/// Places of both interfaces in the gauges.
const FROM: usize = 0;
const TO: usize = 1;

pub(super) fn run(
    args: &FilterArgs,
    interface: &str,
    mut plan: FilterPlan,
    rules: RuleSet,
    auth: Option<ControlAuth>,
    watch: &'static Watch,
) -> anyhow::Result<FilterReport> {
    let output = args.output.first().map_or("", String::as_str);
    if interface == output {
        bail!("{interface} is both input and output, so frames would loop: use two interfaces");
    }
    let socket = args.control.as_deref().map(Socket::open).transpose()?;
    let (drops, to_drops) = Output::open(args.drops.as_ref(), existing(args))?;
    let paths = paths(args, interface, output)?;
    let outputs = [&args.drops, &args.control].into_iter().flatten();
    let kept = match args.send {
        // A socket is opened again when its link has changed.
        Sending::AfXdp => privileges::XDP,
        Sending::AfPacket => CapabilitySet::empty(),
    };
    privileges::drop_capabilities(kept, [], outputs.map(|path| path.as_path()))?;
    // AF_XDP has as many queues as the interface.
    plan.workers = paths.len();
    plan.buffers = Some(buffers(args, paths.len()));
    let publisher = RulePublisher::new(rules, paths.len());
    let snapshot = StatsSnapshot::new(paths.len());
    let done = AtomicBool::new(false);
    let mut report = std::thread::scope(|scope| {
        if let (Some(socket), Some(path)) = (socket, &args.control) {
            note(&format!("control: {}", path.display()));
            let control =
                || serve(socket, Requests { publisher: &publisher, snapshot: &snapshot }, &done);
            std::thread::Builder::new().name("control".into()).spawn_scoped(scope, control)?;
        }
        // Ends the control thread however the run ends.
        let _stop = StopOnDrop(&done);
        notify::ready(&format!("filtering from {interface} to {output}"));
        let live =
            FilterLive { paths, publisher: &publisher, snapshot: &snapshot, auth, drops: to_drops };
        anyhow::Ok(filter_live(plan, live, watch)?)
    })?;
    // A failure to write the capture of drops is in the report.
    if let Err(error) = drops.finish() {
        report.failure.get_or_insert(format!("{error:#}"));
    }
    Ok(report)
}

/// The paths from one interface to another, one for each queue, and those back if requested.
fn paths(args: &FilterArgs, from: &str, to: &str) -> anyhow::Result<Vec<Path>> {
    let mut there = receivers(args, FROM, from)?;
    let mut back = if args.both_ways { receivers(args, TO, to)? } else { Vec::new() };
    if !args.both_ways {
        links::follow_sender(TO, to);
    }
    // An AF_XDP queue that receives sends by the memory of its receiver.
    let (there_senders, back_senders) = (senders(&mut there)?, senders(&mut back)?);
    let mut paths = connect(args, there, to, back_senders)?;
    paths.extend(connect(args, back, from, there_senders)?);
    Ok(paths)
}

/// The receivers of an interface, one for each queue.
fn receivers(args: &FilterArgs, place: usize, from: &str) -> anyhow::Result<Vec<Receiver>> {
    let receivers = live::open_with(place, from, &options(args))?;
    live::announce(&receivers);
    if receivers.iter().any(|receiver| receiver.link() != LinkType::ETHERNET) {
        bail!("{from} is not an Ethernet interface");
    }
    Ok(receivers)
}

fn options(args: &FilterArgs) -> Options {
    Options {
        method: args.capture.method(),
        queues: args.queues,
        outgoing: false,
        offload: true,
        block_timeout: BLOCK_TIMEOUT,
        sends: args.both_ways && sending(args) == Method::Xdp,
        ..Options::default()
    }
}

fn send_options(args: &FilterArgs, queue: u32) -> SendOptions {
    SendOptions { method: sending(args), marks: true, queue, ..SendOptions::default() }
}

/// The memory for frames of as many `paths`, of both directions together.
pub(super) fn buffers(args: &FilterArgs, paths: usize) -> Buffers {
    let directions = 1 + usize::from(args.both_ways);
    Buffers::new(directions, paths, &options(args), &send_options(args, 0))
}

/// The senders on the queues of these receivers.
fn senders(receivers: &mut [Receiver]) -> anyhow::Result<Vec<Option<Sender>>> {
    Ok(receivers.iter_mut().map(Receiver::take_sender).collect::<Result<_, _>>()?)
}

/// Connects each receiver to a sender on the interface `to`: that of a receiver there, or a new one.
fn connect(
    args: &FilterArgs,
    receivers: Vec<Receiver>,
    to: &str,
    senders: Vec<Option<Sender>>,
) -> anyhow::Result<Vec<Path>> {
    let senders = senders.into_iter().chain(std::iter::repeat_with(|| None));
    let path = |((queue, receiver), sender): ((u32, Receiver), Option<Sender>)| {
        let open = || Sender::open(to, &send_options(args, queue));
        let sender = sender.map_or_else(open, Ok)?;
        Ok(Path { receiver, sender })
    };
    (0..).zip(receivers).zip(senders).map(path).collect()
}

fn sending(args: &FilterArgs) -> Method {
    match args.send {
        Sending::AfPacket => Method::Packet,
        Sending::AfXdp => Method::Xdp,
    }
}

/// Answers requests until the run ends.
fn serve(mut socket: Socket, requests: Requests<'_>, done: &AtomicBool) {
    // Relaxed: the flag orders no other data.
    while !done.load(Ordering::Relaxed) {
        socket.serve(requests);
    }
}

/// Ends the control thread when dropped.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
