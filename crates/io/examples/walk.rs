//! Parses capture files and prints their contents and the speed: `walk FILE…`.
#![allow(clippy::print_stdout, clippy::disallowed_methods)]

use std::path::PathBuf;
use std::time::Instant;

use ringtap_io::capture::{Files, Input};

fn main() {
    let paths = std::env::args_os().skip(1).map(PathBuf::from);
    let mut files = Files::new(paths.map(Input::from).collect());
    let (mut captured, mut original, mut last_ns) = (0_u64, 0_u64, 0_u64);
    let begin = Instant::now();
    while files.burst(256, |frame| {
        captured += frame.data.len() as u64;
        original += u64::from(frame.original_len);
        last_ns = last_ns.max(frame.ts_ns);
    }) > 0
    {}
    let seconds = begin.elapsed().as_secs_f64();
    for notice in files.take_notices() {
        println!("{:?}: {notice}", notice.severity);
    }
    let packets = files.packets();
    let rate = packets as f64 / seconds / 1e6;
    let bytes = files.position().bytes_read as f64 / seconds / 1e9;
    println!("packets {packets} captured {captured} original {original} last_ns {last_ns}");
    println!("damaged {} in {seconds:.3} s: {rate:.1} Mpps, {bytes:.2} GB/s", files.damaged());
}
