//! A minimal forwarder: `forward LISTEN PREFIX TO [WORKERS]`, for example `forward 127.0.0.1:6363
//! /a udp://192.0.2.1 2`. It runs until stdin ends, then prints its report.
#![allow(clippy::print_stdout, reason = "the report goes to stdout")]

use std::error::Error;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use ringtap_ndn::faces::Settings;
use ringtap_ndn::relay::{ForwardPlan, PlannedRoute, Relay};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (listen, prefix, to, workers) = match &words[..] {
        [listen, prefix, to] => (listen, prefix, to, 1),
        [listen, prefix, to, workers] => (listen, prefix, to, workers.parse()?),
        _ => return Err("invalid arguments: use LISTEN PREFIX TO [WORKERS]".into()),
    };
    let plan = ForwardPlan {
        workers,
        faces: Settings { udp: vec![listen.parse()?], ..Settings::default() },
        routes: vec![PlannedRoute { prefix: prefix.parse()?, to: to.parse()?, cost: 0 }],
        ..ForwardPlan::default()
    };
    let relay = Relay::open(plan, None, env!("CARGO_PKG_VERSION"))?;
    let ended = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            ended.store(true, Ordering::Relaxed);
        });
        relay.run(|| ended.load(Ordering::Relaxed), |_| ())
    })?;
    println!("{:#}", report.to_json(env!("CARGO_PKG_VERSION")));
    Ok(())
}
