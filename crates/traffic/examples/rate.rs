//! Measures the generator's frames per second, for each profile, without a receiver.
//!
//! `cargo run --release -p ringtap-traffic --example rate [PACKETS [PROFILE…]]`
#![allow(clippy::print_stdout, reason = "its output is what it is for")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use ringtap_traffic::{Generator, Profile, ProfileError};
use std::time::Instant;

fn main() -> Result<(), ProfileError> {
    let packets = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let chosen: Vec<String> = std::env::args().skip(2).collect();
    for name in Profile::NAMES {
        let Some(mut profile) = Profile::named(name) else { continue };
        if !chosen.is_empty() && !chosen.iter().any(|wanted| wanted == name) {
            continue;
        }
        profile.packets = packets.unwrap_or(profile.packets);
        let begin = Instant::now();
        let mut generator = Generator::new(&profile, 1)?;
        let ready = Instant::now();
        let mut check = 0u64;
        while let Some(frame) = generator.next() {
            check =
                check.rotate_left(1) ^ frame.ts_ns ^ u64::from(frame.data[frame.data.len() - 1]);
        }
        let done = Instant::now();
        let truth = generator.truth();
        let (first, second) = (truth.conversations, truth.one_way_flows);
        println!(
            "{name:6} {} packets, {} flows ({} one way): start {:.2?}, {:.1} M frames/s, truth {:.2?} ({check:016x})",
            truth.packets,
            first.tcp + first.udp,
            second.tcp + second.udp,
            ready - begin,
            truth.packets as f64 / (done - ready).as_secs_f64() / 1e6,
            done.elapsed(),
        );
    }
    Ok(())
}
