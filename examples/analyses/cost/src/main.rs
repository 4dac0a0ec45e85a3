//! What the library costs, for compare/library.py: `cost none|empty|packet|flow|filter|port FILE` runs flows on one thread, alone or
//! with an empty analysis, an empty function for packets or flow records, or one for those that a filter selects; `port`: only
//! the flows of one port.

use std::hint::black_box;

use ringtap::{Analysis, Monitor, Room};

struct Empty;

impl Analysis for Empty {
    const NAME: &'static str = "empty";
    const TAKES_RECORDS: bool = false;
    const TAKES_MESSAGES: bool = false;
    type Report = ();

    fn new(_: &Room) -> Self {
        Self
    }

    fn merge(&mut self, _: Self) {}

    fn report(self) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [what, file] = &words[..] else { return Err("usage: cost WHAT FILE".into()) };
    let run = Monitor::builder().files([file]).analyses("flows").set("sequential", true);
    let run = run.set("extract", "none").set("idle-timeout", "1h").set("active-timeout", "1h");
    let run = match &what[..] {
        "none" => run,
        "empty" => run.analysis::<Empty>(),
        "packet" => run.on_packet(|packet| _ = black_box(packet.ip_len)),
        "flow" => run.on_flow(|flow| _ = black_box(flow.packets)),
        "filter" => {
            run.on_flow_where("tcp port 443 and octets > 1000", |flow| _ = black_box(flow.packets))
        }
        "port" => {
            run.analyses("none").on_flow_where("udp port 53", |flow| _ = black_box(flow.packets))
        }
        _ => return Err(format!("unknown: {what}").into()),
    };
    let report = run.run()?;
    println!("{}", report.packets());
    Ok(())
}
