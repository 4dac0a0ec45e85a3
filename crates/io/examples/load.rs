//! Load for a receiver: frames of 60 bytes as fast as one thread can send them.
//!
//! `load INTERFACE live|packet|xdp FRAMES [FLOWS]` prints the number of sent frames, and their rate.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]
#![allow(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::time::{Duration, Instant};

use ringtap_io::live::{LiveSender, Method, SendOptions, Sender};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| words.get(at).map(String::as_str);
    let number = |at: usize| word(at).and_then(|number| number.parse::<u64>().ok());
    let (Some(name), Some(how), Some(frames)) = (word(0), word(1), number(2)) else {
        eprintln!("load INTERFACE live|packet|xdp FRAMES [FLOWS]");
        std::process::exit(2);
    };
    let flows = number(3).and_then(|flows| u32::try_from(flows).ok()).unwrap_or(1 << 16);
    match send(name, how, frames, flows) {
        Ok(text) => println!("{text}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}

fn send(name: &str, how: &str, frames: u64, flows: u32) -> Result<String, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let frame = datagram();
    let speed = |count: u64, start: Instant| count as f64 / start.elapsed().as_secs_f64() / 1e6;
    if how == "live" {
        let mut sender = LiveSender::open(name, &frame, flows).map_err(|error| text(&error))?;
        let start = Instant::now();
        let made = sender.send(frames).map_err(|error| text(&error))?;
        let speed = speed(made, start);
        let left = sender.left().map_err(|error| text(&error))?;
        return Ok(format!("made {made}, left {left}: {speed:.3} Mpps"));
    }
    let method = if how == "xdp" { Method::Xdp } else { Method::Packet };
    let options = SendOptions { method, ..SendOptions::default() };
    let mut sender = Sender::open(name, &options).map_err(|error| text(&error))?;
    let batch = vec![&frame[..]; 256];
    let start = Instant::now();
    let mut sent = 0;
    while sent < frames {
        let most = batch.len().min((frames - sent) as usize);
        sent += sender.send(&batch[..most]).map_err(|error| text(&error))? as u64;
    }
    sender.flush(Duration::from_secs(1)).map_err(|error| text(&error))?;
    let speed = speed(sent, start);
    Ok(format!("{:?}: {speed:.3} Mpps", sender.counters()))
}

/// A UDP datagram of 60 bytes with its Ethernet header.
fn datagram() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 1]);
    frame.extend([4, 0, 0, 53, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}
