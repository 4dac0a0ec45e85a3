//! Reads and decodes a capture in one thread, without analyses: `read FILE [QUEUES]`. For
//! profilers: the cost of a packet before the analyses.
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use ringtap_engine::{Machine, Options, PacketFeed, Plan, Watch};
use ringtap_io::capture::{Files, Input};
use ringtap_skeleton::Skeleton;
use ringtap_stage::{Burst, Fed, Feed, Mark};
use ringtap_wire::PacketRecord;

fn main() {
    let mut words = std::env::args().skip(1);
    let file = Input::Path(words.next().expect("a file").into());
    let queues = words.next().map(|queues| queues.parse().expect("a number of queues"));
    let skeleton = Some(Skeleton::MultiQueue);
    let options = Options { skeleton, queues: queues.or(Some(1)), ..Options::default() };
    let machine = Machine { cores: 1, allowed_cores: vec![0], memory_bytes: 1 << 30 };
    let plan = Plan::new(options, ringtap_monitor::Options::default(), &machine).expect("a plan");
    let watch = Watch::new();
    let mut feeds = PacketFeed::all(&plan, &Arc::default(), Files::new(vec![file]), &watch);
    let mut burst = Burst::with_capacity(256);
    let (mut bytes, mut turn) = (0, 0);
    while !feeds.is_empty() {
        turn = (turn + 1) % feeds.len();
        let fed = feeds[turn].next(&mut burst);
        bytes += burst.iter().map(|packet: &PacketRecord| u64::from(packet.wire_len)).sum::<u64>();
        burst.clear();
        if let Fed::Mark(Mark::End { .. }) = fed {
            let counts = feeds.remove(turn).counts().clone();
            println!("{} packets, {} octets captured", counts.packets, counts.captured_octets);
        }
    }
    println!("{bytes} octets on the wire");
}
