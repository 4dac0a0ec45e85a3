//! pcapng: sections, interfaces, every packet block, and damaged files.

use std::io::Cursor;

use crate::capture::common::{
    Order, Owned, PcapngBytes, Trickle, cut_everywhere, drain, read, read_valid, read_with_one,
};
use ringtap_io::capture::{Chunk, Files, Severity};

fn owned(ts_ns: u64, link: u16, original_len: u32, data: &[u8]) -> Owned {
    Owned { ts_ns, link, original_len, data: data.to_vec() }
}

/// Two sections of different byte order with mixed interfaces, all kinds of blocks.
fn rich(first: Order, second: Order) -> (Vec<u8>, Vec<Owned>) {
    let offset = first.u64(10);
    let file = PcapngBytes::new(first)
        .block(0x0000_0bad, b"custom block, unpadded")
        .interface(1, 6, &[(2, b"eth0")])
        .interface(101, 0, &[(9, &[9]), (14, &offset)])
        .packet(1, 5, b"nanoseconds")
        .packet(0, 1_000_001, b"micro")
        .block(4, &[0; 40])
        .enhanced(0, 2, (3, 1500), b"cut")
        .simple(4, b"simp")
        .simple(60, b"simple")
        .obsolete(1, 7, b"obsolete")
        .packet(0, 3, b"")
        .block(5, &[0; 12])
        .section(second)
        .interface(113, 65_535, &[(9, &[0x80 | 10])])
        .packet(0, 512, b"half a second")
        .block(0x8000_0001, &[1; 500]);
    let expected = vec![
        owned(10_000_000_005, 101, 11, b"nanoseconds"),
        owned(1_000_001_000, 1, 5, b"micro"),
        owned(2_000, 1, 1500, b"cut"),
        owned(0, 1, 4, b"simp"),
        owned(0, 1, 60, b"simple"),
        owned(10_000_000_007, 101, 8, b"obsolete"),
        owned(3_000, 1, 0, b""),
        owned(500_000_000, 113, 13, b"half a second"),
    ];
    (file.bytes, expected)
}

#[test]
fn sections_of_both_orders() {
    for first in Order::BOTH {
        for second in Order::BOTH {
            let (bytes, expected) = rich(first, second);
            assert_eq!(read_valid(&bytes), expected, "{first:?} {second:?}");
        }
    }
}

/// As many sections as fit are parsed at once, also if their byte order alternates.
#[test]
fn a_chunk_holds_many_sections() {
    const SECTIONS: u32 = 20_000;
    for orders in [[Order::Little; 2], Order::BOTH] {
        let mut file = PcapngBytes::new(orders[0]);
        for number in 0..SECTIONS {
            if number > 0 {
                file = file.section(orders[number as usize % 2]);
            }
            // Some sections have no interface, or no packets.
            if number % 7 != 0 {
                file = file.interface(1, 0, &[]);
            }
            if number % 3 != 0 {
                file = file.packet(0, number.into(), &number.to_be_bytes());
            }
        }
        let mut files = Files::from_reader("memory", Cursor::new(file.bytes.clone()));
        let (mut chunk, mut chunks, mut numbers) = (Chunk::new(), 0, Vec::new());
        while files.read(&mut chunk) > 0 {
            chunks += 1;
            let times = chunk.places.iter().map(|place| place.ts_ns);
            assert_eq!(Some(chunk.low_ns()), times.clone().min());
            assert_eq!(Some(chunk.high_ns()), times.max());
            for place in &chunk.places {
                numbers.push(u32::from_be_bytes(chunk.data(place).try_into().unwrap()));
                assert_eq!(place.ts_ns, u64::from(*numbers.last().unwrap()) * 1_000);
            }
        }
        let expected: Vec<u32> = (0..SECTIONS).filter(|n| n % 3 != 0 && n % 7 != 0).collect();
        assert_eq!(numbers, expected);
        // Packets of sections without an interface.
        let damaged = (0..SECTIONS).filter(|n| n % 3 != 0 && n % 7 == 0).count();
        assert_eq!(files.damaged(), damaged as u64);
        let most = file.bytes.len().div_ceil(128 << 10);
        assert!(chunks <= most, "{chunks} chunks of {} bytes", file.bytes.len());
    }
}

#[test]
fn cut_at_every_length() {
    cut_everywhere(&rich(Order::Little, Order::Big).0);
    cut_everywhere(&rich(Order::Big, Order::Little).0);
}

#[test]
fn no_section_header_is_an_error() {
    let (bytes, _) = rich(Order::Big, Order::Big);
    for len in 0..28 {
        let (frames, _) = read_with_one(Severity::Error, &bytes[..len]);
        assert!(frames.is_empty());
    }
    let mut wrong_order = bytes.clone();
    wrong_order[8] ^= 1;
    let (_, words) = read_with_one(Severity::Error, &wrong_order);
    assert!(words.contains("byte-order magic 0x1b2b3c4d"), "{words}");
    let mut later = bytes;
    later[13] = 2;
    let (_, words) = read_with_one(Severity::Error, &later);
    assert!(words.contains("pcapng version 2.0"), "{words}");
}

#[test]
fn the_sizes_of_reads_change_nothing() {
    let (mut bytes, _) = rich(Order::Little, Order::Big);
    for number in 0..100_u32 {
        let mut tail = PcapngBytes { order: Order::Big, bytes: std::mem::take(&mut bytes) };
        let data = vec![number as u8; (number * 37 % 900) as usize];
        tail = tail.packet(0, u64::from(number), &data);
        // Damage of every kind, and blocks larger than the buffer.
        tail = match number {
            20 => tail.packet(9, 0, b"no such interface"),
            40 => tail.block(0xbad, &vec![0; 600_000]),
            60 => tail.enhanced(0, 0, (13, 13), b"too short"),
            80 => tail.block(6, b"nothing"),
            _ => tail,
        };
        bytes = tail.bytes;
    }
    let (whole, reported) = read(&bytes);
    assert_eq!(whole.len(), 8 + 100);
    let reported = format!("{reported:?}").replace("\"memory\"", "\"t\"");
    for most in [1, 2, 3, 16, 17, 1000, 100_000] {
        for burst in [1, 3, 1000] {
            let trickle = Trickle::new(Cursor::new(bytes.clone()), most);
            let mut files = Files::from_reader("t", trickle);
            let (frames, notices) = drain(&mut files, burst);
            assert!(frames == whole, "{most} {burst}");
            assert_eq!(format!("{notices:?}"), reported, "{most} {burst}");
            assert_eq!(files.damaged(), 3);
        }
    }
}

#[test]
fn damaged_packets_are_skipped_and_counted() {
    let start = || PcapngBytes::new(Order::Little).interface(1, 0, &[]);
    let good = |file: PcapngBytes| file.packet(0, 1, b"good").bytes;
    let mut trailer = start().packet(0, 0, b"lost").bytes;
    let len = trailer.len();
    trailer[len - 4] ^= 0x40;
    let trailer = PcapngBytes { order: Order::Little, bytes: trailer };
    for (bytes, expected) in [
        (good(start().packet(7, 0, b"x")), "one of interface 7, but 1"),
        (good(start().obsolete(8, 0, b"x")), "one of interface 8, but 1"),
        (good(start().enhanced(0, 0, (5, 5), b"four")), "needs 37"),
        (good(start().enhanced(0, 0, (u32::MAX, 5), b"")), "needs 42949"),
        (good(start().block(6, &[])), "of 12 bytes that needs 32"),
        (good(start().block(3, &[])), "of 12 bytes that needs 16"),
        (good(start().simple(5, b"four")), "of 20 bytes that needs 21"),
        (good(trailer), "the lengths 36 and 100"),
    ] {
        let mut files = Files::from_reader("memory", Cursor::new(bytes));
        let (frames, notices) = drain(&mut files, 7);
        assert_eq!(frames, [owned(1_000, 1, 4, b"good")], "{expected}");
        assert_eq!(notices.len(), 1);
        assert_eq!(notices[0].severity, Severity::Warning);
        let words = notices[0].to_string();
        assert!(words.contains(expected), "{words}");
        assert_eq!(files.damaged(), 1);
    }
}

#[test]
fn simple_packets_need_an_interface() {
    let (frames, words) =
        read_with_one(Severity::Warning, &PcapngBytes::new(Order::Big).simple(1, b"x").bytes);
    assert!(frames.is_empty());
    assert!(words.contains("interface 0, but 0"), "{words}");
}

#[test]
fn damaged_interfaces_keep_their_number() {
    let bytes = PcapngBytes::new(Order::Little)
        .block(1, &[1, 0, 0, 0])
        .interface(101, 0, &[])
        .packet(0, 0, b"lost")
        .packet(1, 0, b"found")
        .bytes;
    let mut files = Files::from_reader("memory", Cursor::new(bytes));
    let (frames, notices) = drain(&mut files, 7);
    assert_eq!(frames, [owned(0, 101, 5, b"found")]);
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert_eq!(files.damaged(), 2);
}

#[test]
fn malformed_options_are_reported_and_the_others_used() {
    for tail in [&[2, 0, 200, 0, 1][..], &[9, 0, 2, 0, 1, 1, 0, 0], &[0, 0, 4, 0]] {
        let mut body = vec![1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0];
        body.extend(tail);
        let file = PcapngBytes::new(Order::Little).block(1, &body);
        let (frames, words) = read_with_one(Severity::Warning, &file.packet(0, 7, b"x").bytes);
        assert_eq!(frames, [owned(7, 1, 1, b"x")]);
        assert!(words.contains("at byte 28 has malformed options"), "{words}");
    }
}

#[test]
fn wrong_lengths_are_reported_once() {
    let file = PcapngBytes::new(Order::Big)
        .interface(1, 4, &[])
        .enhanced(0, 0, (3, 2), b"abc")
        .packet(0, 0, b"12345")
        .packet(0, 0, b"12345")
        .enhanced(0, 0, (3, 2), b"abc");
    let (frames, notices) = read(&file.bytes);
    assert_eq!(frames.len(), 4);
    assert_eq!(frames[0], owned(0, 1, 2, b"abc"));
    let words: Vec<String> = notices.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words[0].contains("packet 1 at byte 48 claims"), "{words:?}");
    assert!(words[1].contains("packet 2 at byte 84 has 5 captured"), "{words:?}");
}

#[test]
fn invalid_block_lengths_end_the_file() {
    let start = PcapngBytes::new(Order::Little).interface(1, 0, &[]).packet(0, 1, b"good");
    // Unknown blocks may be long; 30 and 8 are invalid lengths, and no packet has a gigabyte.
    for (kind, len) in [(0, 0), (9, 8), (9, 30), (6, 1 << 30), (1, u32::MAX - 3)] {
        let mut bytes = start.bytes.clone();
        bytes.extend(u32::to_le_bytes(kind));
        bytes.extend(u32::to_le_bytes(len));
        bytes.extend([0; 100]);
        let (frames, words) = read_with_one(Severity::Warning, &bytes);
        assert_eq!(frames, [owned(1_000, 1, 4, b"good")]);
        assert!(words.contains(&format!("comes a length of {len};")), "{words}");
    }
}

#[test]
fn a_truncated_unknown_block_is_a_truncated_file() {
    let mut bytes = PcapngBytes::new(Order::Little).bytes;
    bytes.extend([9, 0, 0, 0, 0, 0, 0, 0xf0]);
    let (frames, words) = read_with_one(Severity::Warning, &bytes);
    assert!(frames.is_empty());
    assert!(words.contains("cut off at byte 36"), "{words}");
    assert!(words.contains("begins at byte 28 after packet 0"), "{words}");
}

#[test]
fn interfaces_are_bounded() {
    let mut file = PcapngBytes::new(Order::Little);
    for _ in 0..65_540 {
        file = file.interface(1, 0, &[]);
    }
    let file = file.packet(65_535, 1, b"last").packet(65_536, 1, b"beyond");
    let mut files = Files::from_reader("memory", Cursor::new(file.bytes));
    let (frames, notices) = drain(&mut files, 7);
    assert_eq!(frames, [owned(1_000, 1, 4, b"last")]);
    assert_eq!(files.damaged(), 1);
    assert!(notices[0].to_string().contains("more than 65536 interfaces"));
}
