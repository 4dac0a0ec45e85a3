//! The bare receive loop: frames are counted, and not processed.
//!
//! `bare INTERFACE packet|xdp|generic [SECONDS [QUEUES [MIB [spin]]]]` prints, for each queue, frames a second and
//! drops by reason; MIB is the memory for waiting frames. With `spin` an empty queue is polled at once again.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
#![allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::time::{Duration, Instant};

use ringtap_io::live::{Attach, Method, Options, Receiver, Wake, open};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| words.get(at).map(String::as_str);
    let (Some(name), Some(how)) = (word(0), word(1)) else {
        eprintln!("bare INTERFACE packet|xdp|generic [SECONDS [QUEUES [MIB [spin]]]]");
        std::process::exit(2);
    };
    let options = Options {
        method: if how == "packet" { Method::Packet } else { Method::Xdp },
        attach: if how == "generic" { Attach::Generic } else { Attach::Auto },
        queues: word(3).and_then(|number| number.parse().ok()).filter(|&number| number > 0),
        memory: word(4).and_then(|number| number.parse().ok()).unwrap_or(64_usize) << 20,
        ..Options::default()
    };
    let seconds = word(2).and_then(|number| number.parse().ok()).unwrap_or(5);
    let spin = word(5) == Some("spin");
    let mut receivers = open(name, &options).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1);
    });
    for notice in receivers.iter_mut().flat_map(Receiver::take_notices) {
        eprintln!("{notice}");
    }
    std::thread::scope(|scope| {
        for receiver in &mut receivers {
            scope.spawn(move || receive(receiver, Duration::from_secs(seconds), spin));
        }
    });
}

fn receive(receiver: &mut Receiver, time: Duration, spin: bool) {
    let end = Instant::now() + time;
    let (mut frames, mut octets) = (0_u64, 0_u64);
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    loop {
        let count = receiver.burst(256, |frame| {
            octets += u64::from(frame.original_len);
            first_ns = first_ns.min(frame.ts_ns);
            last_ns = last_ns.max(frame.ts_ns);
        });
        frames += count as u64;
        if count > 0 {
            continue;
        }
        if Instant::now() >= end {
            break;
        }
        if spin {
            std::thread::yield_now();
        } else if let Wake::Nothing(state) = receiver.wait(Duration::from_millis(100))
            && state != ringtap_io::live::State::Up
        {
            eprintln!("{state:?}");
        }
    }
    let busy = last_ns.saturating_sub(first_ns) as f64 / 1e9;
    let counters = receiver.counters();
    println!("{}", receiver.describe());
    println!(
        "  {frames} frames, {octets} octets in {busy:.3} s: {:.3} Mpps; dropped {}",
        frames as f64 / busy / 1e6,
        counters.dropped.total(),
    );
    for (reason, count) in counters.dropped.by_reason() {
        if count > 0 {
            println!("  {reason}: {count}");
        }
    }
}
