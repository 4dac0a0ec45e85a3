//! Test of more paths than [`Paths`] holds: packets are counted, and the number without a path is
//! reported.

use crate::common::{Capture, reference, request, run};
use ringtap_io::capture::PcapWriter;
use ringtap_wire::{LinkType, Paths};

#[test]
fn paths_beyond_the_maximum_are_counted() {
    const FRAMES: u32 = 70_000;
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::new(&mut bytes, LinkType(1), 100);
    let packet = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    for number in 1..=FRAMES {
        let [a, b, c, d] = number.to_be_bytes();
        let macs = [2, 0, 0, 0, 0, 1, 2, 0, a, b, c, d];
        let frame = [&macs[..], &[8, 0], &packet, &[0, 9, 0, 9, 0, 8, 0, 0]].concat();
        writer.write(u64::from(number), frame.len() as u32, &frame).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    let outcome = run(&reference(request()), &Capture::Bytes(bytes));
    assert_eq!(outcome.run.report.packets.ipv4, u64::from(FRAMES));
    assert_eq!(outcome.run.report.flows.as_ref().unwrap().records, 1);
    let without = u64::from(FRAMES) - Paths::MOST as u64;
    assert_eq!(outcome.packets_without_path, without);
    assert!(outcome.losses().iter().any(|&(_, count)| count == without));
    assert!(outcome.to_json("").unwrap().contains("\"packets_without_path\": 4465"));
}
