//! The filter between two interfaces: opened, attended while it runs, closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use ringtap_filter::run::{
    Census, FilterLive, FilterPlan, FilterReport, Knock, Orders, Way, filter_live,
};
use ringtap_filter::{Board, RuleSet};
use ringtap_io::live::{Method, Options, SendOptions, Sender};
use ringtap_wire::LinkType;

use super::control::Socket;
use super::{Output, WATCH};
use crate::args::{FilterArgs, Sending};
use crate::{live, notify};
use ringtap_terminal::console::note;

/// AF_PACKET holds frames back no longer than this.
const BLOCK_TIMEOUT: Duration = Duration::from_millis(1);

pub(super) fn run(
    args: &FilterArgs,
    interface: &str,
    mut plan: FilterPlan,
    rules: RuleSet,
    knock: Option<Knock>,
) -> anyhow::Result<FilterReport> {
    let output = args.output.first().map_or("", String::as_str);
    if interface == output {
        bail!("{interface} is both ends: frames would go round");
    }
    let socket = args.control.as_deref().map(Socket::open).transpose()?;
    let (drops, to_drops) = Output::open(args.drops.as_ref())?;
    let mut ways = ways(args, interface, output)?;
    if args.both_ways {
        ways.extend(self::ways(args, output, interface)?);
    }
    plan.workers = ways.len();
    let board = Board::new(rules, ways.len());
    let census = Census::new(ways.len());
    let done = AtomicBool::new(false);
    let mut report = std::thread::scope(|scope| {
        if let (Some(socket), Some(path)) = (socket, &args.control) {
            note(&format!("control: {}", path.display()));
            let attend = || attend(socket, Orders { board: &board, census: &census }, &done);
            std::thread::Builder::new().name("control".into()).spawn_scoped(scope, attend)?;
        }
        // However the run ends, the control thread ends, too.
        let _dismiss = Dismiss(&done);
        notify::ready(&format!("filtering from {interface} to {output}"));
        let given = FilterLive { ways, board: &board, census: &census, knock, drops: to_drops };
        anyhow::Ok(filter_live(plan, given, &WATCH)?)
    })?;
    // Of a capture that could not be written the report already says why.
    if let Err(error) = drops.finish() {
        report.failure.get_or_insert(format!("{error:#}"));
    }
    Ok(report)
}

/// From one interface to another, a way for each queue.
fn ways(args: &FilterArgs, from: &str, to: &str) -> anyhow::Result<Vec<Way>> {
    let options = Options {
        method: args.capture.method(),
        queues: args.queues,
        outgoing: false,
        offload: true,
        block_timeout: BLOCK_TIMEOUT,
        ..Options::default()
    };
    let receivers = live::open_with(from, &options)?;
    live::announce(&receivers);
    let way = |(queue, receiver): (u32, ringtap_io::live::Receiver)| {
        if receiver.link() != LinkType::ETHERNET {
            bail!("{from} is not Ethernet");
        }
        let method = match args.send {
            Sending::AfPacket => Method::Packet,
            Sending::AfXdp => Method::Xdp,
        };
        let sender = Sender::open(to, &SendOptions { method, queue, ..SendOptions::default() })?;
        Ok(Way { receiver, sender })
    };
    (0..).zip(receivers).map(way).collect()
}

/// Answers questions until the run is over.
fn attend(mut socket: Socket, orders: Orders<'_>, done: &AtomicBool) {
    // Relaxed: it says when, it hands over nothing.
    while !done.load(Ordering::Relaxed) {
        socket.attend(orders);
    }
}

/// Says that it is over when dropped.
struct Dismiss<'a>(&'a AtomicBool);

impl Drop for Dismiss<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
