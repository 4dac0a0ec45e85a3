//! How long frames wait in the kernel before they are lent: `cargo run -p ringtap-io --example waited IFACE FRAMES`.
//!
//! docs/LIVE.md (Overload) says when a block is lent.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::time::Duration;

use ringtap_base::now_ns;
use ringtap_io::live::{Options, open};

fn main() {
    let mut words = std::env::args().skip(1);
    let (Some(interface), Some(frames)) = (words.next(), words.next()) else {
        return eprintln!("usage: waited IFACE FRAMES");
    };
    let frames: usize = frames.parse().expect("a number of frames");
    let options = Options { memory: 32 << 20, queues: Some(1), ..Options::default() };
    let mut receivers = open(&interface, &options).expect("an interface that can be opened");
    let mut waited_us = Vec::with_capacity(frames);
    while waited_us.len() < frames {
        receivers[0].wait(Duration::from_secs(1));
        receivers[0].burst(256, |frame| {
            waited_us.push(now_ns().saturating_sub(frame.ts_ns) / 1_000);
        });
    }
    waited_us.sort_unstable();
    let part = |share: usize| waited_us[(frames - 1) * share / 100];
    println!("microseconds: p50 {}, p99 {}, most {}", part(50), part(99), part(100));
}
