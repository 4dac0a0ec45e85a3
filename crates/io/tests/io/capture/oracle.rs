//! Files of any content are read as they were made and as an independent parser reads them.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};

use crate::capture::common::{
    KUZNETZOV, MICROSECONDS, NANOSECONDS, Order, Owned, PcapBytes, PcapngBytes,
};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use proptest::collection::vec;
use proptest::prelude::*;
use ringtap_io::capture::{Files, Input, Severity};

/// Link type, original length and data of every packet, as `pcap-parser` reads them. It has no
/// obsolete packet blocks.
fn by_oracle(bytes: &[u8]) -> Vec<(u16, u32, Vec<u8>)> {
    let mut reader = create_reader(4 << 20, Cursor::new(bytes.to_vec())).unwrap();
    let mut packets = Vec::new();
    let mut links: Vec<(u16, u32)> = Vec::new();
    loop {
        match reader.next() {
            Ok((offset, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        links = vec![(header.network.0 as u16, header.snaplen)];
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        packets.push((links[0].0, packet.origlen, packet.data.to_vec()));
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => links.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(one)) => {
                        links.push((one.linktype.0 as u16, one.snaplen));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => packets.push((
                        links[packet.if_id as usize].0,
                        packet.origlen,
                        packet.packet_data().to_vec(),
                    )),
                    PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                        let (link, snaplen) = links[0];
                        let bound = if snaplen == 0 { u32::MAX } else { snaplen };
                        let len = packet.origlen.min(bound) as usize;
                        packets.push((link, packet.origlen, packet.data[..len].to_vec()));
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(offset);
            }
            Err(PcapError::Eof) => return packets,
            // The end of a truncated file.
            Err(PcapError::UnexpectedEof) => return packets,
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

fn without_time(frames: &[Owned]) -> Vec<(u16, u32, Vec<u8>)> {
    frames.iter().map(|frame| (frame.link, frame.original_len, frame.data.clone())).collect()
}

fn order() -> impl Strategy<Value = Order> {
    any::<bool>().prop_map(|big| if big { Order::Big } else { Order::Little })
}

#[derive(Clone, Debug)]
struct Packet {
    interface: prop::sample::Index,
    time: u64,
    beyond: u32,
    data: Vec<u8>,
    kind: u8,
}

fn packet() -> impl Strategy<Value = Packet> {
    (
        any::<prop::sample::Index>(),
        any::<u64>(),
        prop_oneof![Just(0), 1..2000_u32],
        vec(any::<u8>(), 0..200),
        any::<u8>(),
    )
        .prop_map(|(interface, time, beyond, data, kind)| Packet {
            interface,
            time,
            beyond,
            data,
            kind,
        })
}

#[derive(Clone, Debug)]
struct Section {
    order: Order,
    /// Link type, resolution, offset.
    interfaces: Vec<(u16, Option<u8>, Option<i64>)>,
    packets: Vec<Packet>,
}

fn section() -> impl Strategy<Value = Section> {
    let resolution =
        prop_oneof![Just(None), Just(Some(6)), Just(Some(9)), any::<u8>().prop_map(Some)];
    let offset = prop_oneof![
        Just(None),
        (-2_000_000_000..2_000_000_000_i64).prop_map(Some),
        any::<i64>().prop_map(Some)
    ];
    (order(), vec((any::<u16>(), resolution, offset), 1..4), vec(packet(), 0..12))
        .prop_map(|(order, interfaces, packets)| Section { order, interfaces, packets })
}

/// The time by its definition: first whole seconds, then the fraction.
fn defined_ns(time: u64, resolution: Option<u8>, offset: Option<i64>) -> u64 {
    let resolution = resolution.unwrap_or(6);
    let exponent = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 != 0 { 2 } else { 10 };
    let (seconds, rest_ns) = match base.checked_pow(exponent) {
        Some(units) => {
            let rest = u128::from(time) % units;
            let rest_ns = rest * 1_000_000_000 / units;
            (u128::from(time) / units, rest_ns)
        }
        None => (0, 0),
    };
    let seconds = seconds as i128 + i128::from(offset.unwrap_or(0));
    let ns = seconds * 1_000_000_000 + rest_ns as i128;
    ns.clamp(0, i128::from(u64::MAX)) as u64
}

fn build(sections: &[Section]) -> (Vec<u8>, Vec<Owned>) {
    let mut file = PcapngBytes { order: Order::Big, bytes: Vec::new() };
    let mut expected = Vec::new();
    for section in sections {
        file = file.section(section.order);
        for (link, resolution, offset) in &section.interfaces {
            let resolution = resolution.map(|resolution| [resolution]);
            let offset = offset.map(|offset| section.order.u64(offset as u64));
            let mut options: Vec<(u16, &[u8])> = vec![(2, b"if0")];
            options.extend(resolution.as_ref().map(|value| (9, &value[..])));
            options.extend(offset.as_ref().map(|value| (14, &value[..])));
            file = file.interface(*link, 0, &options);
        }
        for packet in &section.packets {
            let len = packet.data.len() as u32;
            let number = packet.interface.index(section.interfaces.len());
            let (link, resolution, offset) = section.interfaces[number];
            let mut frame = Owned {
                ts_ns: defined_ns(packet.time, resolution, offset),
                link,
                original_len: len + packet.beyond,
                data: packet.data.clone(),
            };
            file = match packet.kind {
                0..20 => file.block(0x0bad_0000 | u32::from(packet.kind), &packet.data),
                20..40 => {
                    frame.ts_ns = 0;
                    frame.link = section.interfaces[0].0;
                    frame.original_len = len;
                    file.simple(len, &packet.data)
                }
                _ => {
                    let lens = (len, frame.original_len);
                    file.enhanced(number as u32, packet.time, lens, &packet.data)
                }
            };
            if packet.kind >= 20 {
                expected.push(frame);
            }
        }
    }
    (file.bytes, expected)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn classic(
        order in order(),
        magic in prop_oneof![Just(MICROSECONDS), Just(NANOSECONDS), Just(KUZNETZOV)],
        packets in vec((any::<u32>(), 0..1_000_000_u32, packet()), 0..20),
    ) {
        let mut file = PcapBytes::new(order, magic);
        let mut expected = Vec::new();
        let unit = if magic == NANOSECONDS { 1 } else { 1000 };
        for (seconds, fraction, packet) in packets {
            let len = packet.data.len() as u32;
            let lens = (len, len + packet.beyond);
            file = file.record((seconds, fraction), lens, &packet.data);
            expected.push(Owned {
                ts_ns: u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit,
                link: 1,
                original_len: lens.1,
                data: packet.data,
            });
        }
        let frames = super::common::read_valid(&file.bytes);
        prop_assert_eq!(&frames, &expected);
        // The oracle supports Kuznetzov's magic number in one byte order only.
        if magic != KUZNETZOV {
            prop_assert_eq!(without_time(&frames), by_oracle(&file.bytes));
        }
    }

    #[test]
    fn pcapng(sections in vec(section(), 1..4)) {
        let (bytes, expected) = build(&sections);
        let frames = super::common::read_valid(&bytes);
        prop_assert_eq!(&frames, &expected);
        prop_assert_eq!(without_time(&frames), by_oracle(&bytes));
    }
}

/// The folder of real captures beside the project, if it exists.
fn traces() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3)?;
    let folder = root.join("shared/traces");
    if folder.join("MANIFEST.tsv").is_file() {
        return Some(folder);
    }
    // Written past the test harness, which would swallow it.
    let _ = writeln!(io::stderr(), "SKIPPED: no real captures in {}", folder.display());
    None
}

#[test]
fn real_captures() {
    let Some(folder) = traces() else { return };
    let manifest = fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut lines = manifest.lines();
    let columns: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let links: HashMap<&str, u16> = HashMap::from([
        ("ether", 1),
        ("null", 0),
        ("ppp", 9),
        ("chdlc", 104),
        ("linux-sll", 113),
        ("linux-sll2", 276),
        ("ieee-802-11-radiotap", 127),
        ("rawip4", 228),
        ("rawip6", 229),
    ]);
    let mut files_read = 0;
    for line in lines {
        let row: HashMap<&str, &str> = columns.iter().copied().zip(line.split('\t')).collect();
        let number = |name: &str| row[name].parse::<u64>().unwrap();
        let path = folder.join(row["file"]);
        let mut files = Files::new(vec![Input::Path(path.clone())]);
        let (frames, notices) = super::common::drain(&mut files, 256);

        let name = row["file"];
        let captured: usize = frames.iter().map(|frame| frame.data.len()).sum();
        let wire: u64 = frames.iter().map(|frame| u64::from(frame.original_len)).sum();
        assert_eq!(frames.len() as u64, number("packets_capinfos"), "{name}");
        // tshark, which made the manifest, counts custom blocks as frames.
        let custom = if name.contains("o054") { 24 + 60 + 32 } else { 0 };
        assert_eq!(captured as u64, number("cap_bytes") - custom, "{name}");
        assert_eq!(wire, number("wire_bytes") - custom, "{name}");
        let truncated =
            frames.iter().filter(|frame| frame.data.len() < frame.original_len as usize).count();
        assert_eq!(truncated as u64, number("truncated_frames"), "{name}");
        if let Some(&link) = links.get(row["link_type"]) {
            assert!(frames.iter().all(|frame| frame.link == link), "{name}");
        }
        let (seconds, fraction) = row["first_ts"].split_once('.').unwrap();
        // Simple packet blocks, which only o054 has, have no time.
        let timed = |ns: &u64| *ns != 0 || !name.contains("o054");
        let times = frames.iter().map(|frame| frame.ts_ns).filter(timed);
        let first_us = times.min().unwrap() / 1000;
        let expected_us =
            seconds.parse::<u64>().unwrap() * 1_000_000 + fraction[..6].parse::<u64>().unwrap();
        assert_eq!(first_us, expected_us, "{name}");
        assert_eq!(files.damaged(), 0, "{name}");
        assert!(notices.iter().all(|one| one.severity == Severity::Warning));
        assert_eq!(notices.len(), usize::from(name.contains("o057")), "{notices:?}");
        assert!(without_time(&frames) == by_oracle(&fs::read(&path).unwrap()), "{name}");
        files_read += 1;
    }
    assert!(files_read >= 60);
}
