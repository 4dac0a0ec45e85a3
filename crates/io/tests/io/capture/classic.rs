//! Classic pcap: every byte order and resolution, truncated files, wrong lengths.

use std::io::Cursor;

use crate::capture::common::{
    KUZNETZOV, MICROSECONDS, NANOSECONDS, Order, Owned, PcapBytes, Trickle, cut_everywhere, drain,
    read, read_valid, read_with_one,
};
use ringtap_io::capture::{Files, MAX_CAPTURED_LEN, PcapWriter, Severity};
use ringtap_wire::LinkType;

fn owned(ts_ns: u64, original_len: u32, data: &[u8]) -> Owned {
    Owned { ts_ns, link: 1, original_len, data: data.to_vec() }
}

#[test]
fn both_orders_and_all_magics() {
    for order in Order::BOTH {
        for (magic, ns) in [(MICROSECONDS, 1000), (NANOSECONDS, 1), (KUZNETZOV, 1000)] {
            let file = PcapBytes::new(order, magic)
                .packet((1, 2), b"one")
                .record((u32::MAX, 999_999), (2, 1500), b"ab")
                .packet((3, 0), b"");
            let expected = [
                owned(1_000_000_000 + 2 * ns, 3, b"one"),
                owned(4_294_967_295_000_000_000 + 999_999 * ns, 1500, b"ab"),
                owned(3_000_000_000, 0, b""),
            ];
            assert_eq!(read_valid(&file.bytes), expected, "{order:?} {magic:#x}");
        }
    }
}

#[test]
fn check_sequence_bits_are_not_part_of_the_link_type() {
    let file = PcapBytes::with(Order::Big, MICROSECONDS, (2, 4), 0, 0xf400_0071);
    let frames = read_valid(&file.packet((0, 0), b"x").bytes);
    assert_eq!(frames[0].link, 113);
}

#[test]
fn header_alone_has_no_packets() {
    assert!(read_valid(&PcapBytes::new(Order::Big, MICROSECONDS).bytes).is_empty());
}

#[test]
fn old_versions_swapped_the_lengths() {
    for (version, expected) in [((2, 2), 9), ((2, 3), 9), ((543, 0), 9)] {
        let file = PcapBytes::with(Order::Little, MICROSECONDS, version, 0, 1);
        let frames = read_valid(&file.record((0, 0), (9, 3), b"abc").packet((0, 0), b"d").bytes);
        assert_eq!(frames, [owned(0, expected, b"abc"), owned(0, 1, b"d")]);
    }
}

#[test]
fn cut_at_every_length() {
    for magic in [MICROSECONDS, KUZNETZOV] {
        let file = PcapBytes::new(Order::Little, magic)
            .packet((1, 2), b"one")
            .packet((2, 3), b"four")
            .packet((2, 3), b"");
        cut_everywhere(&file.bytes);
    }
}

#[test]
fn a_truncated_file_has_a_notice_with_its_offset() {
    let file = PcapBytes::new(Order::Little, NANOSECONDS)
        .packet((0, 1), b"whole")
        .packet((0, 2), b"cut off");
    let (frames, words) = read_with_one(Severity::Warning, &file.bytes[..file.bytes.len() - 2]);
    assert_eq!(frames, [owned(1, 5, b"whole")]);
    assert_eq!(
        words,
        "reading memory: cut off at byte 66, within the packet or block that begins at byte 45 \
         after packet 1; everything before it was read"
    );
}

#[test]
fn a_missing_header_is_an_error() {
    for len in 0..24 {
        let file = PcapBytes::new(Order::Big, MICROSECONDS);
        let (frames, words) = read_with_one(Severity::Error, &file.bytes[..len]);
        assert!(frames.is_empty());
        assert!(words.starts_with("opening memory: "), "{words}");
    }
}

#[test]
fn wrong_lengths_are_reported_once() {
    let file = PcapBytes::with(Order::Big, NANOSECONDS, (2, 4), 4, 1)
        .packet((0, 0), b"1234")
        .record((0, 1), (3, 1), b"abc")
        .packet((0, 2), b"12345")
        .record((0, 3), (6, 5), b"123456");
    let (frames, notices) = read(&file.bytes);
    assert_eq!(
        frames,
        [owned(0, 4, b"1234"), owned(1, 1, b"abc"), owned(2, 5, b"12345"), owned(3, 5, b"123456")]
    );
    let words: Vec<String> = notices.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words[0].contains("packet 2 at byte 44 claims more"), "{words:?}");
    assert!(words[1].contains("packet 3 at byte 63 has 5 captured"), "{words:?}");
    assert!(notices.iter().all(|n| n.severity == Severity::Warning));
}

#[test]
fn fractions_above_a_second_are_carried_over() {
    let file = PcapBytes::new(Order::Little, MICROSECONDS).packet((1, 1_500_000), b"");
    let (frames, words) = read_with_one(Severity::Warning, &file.bytes);
    assert_eq!(frames[0].ts_ns, 2_500_000_000);
    assert!(words.contains("packet 1 at byte 24"), "{words}");
}

#[test]
fn invalid_lengths_end_the_file() {
    let limit = 262_144;
    for len in [limit + 1, MAX_CAPTURED_LEN, u32::MAX] {
        let file = PcapBytes::new(Order::Little, MICROSECONDS)
            .packet((1, 0), b"good")
            .record((2, 0), (len, len), b"bad")
            .packet((3, 0), b"unreachable");
        let (frames, words) = read_with_one(Severity::Warning, &file.bytes);
        assert_eq!(frames, [owned(1_000_000_000, 4, b"good")]);
        assert!(words.contains("damaged at byte 44: after packet 1"), "{words}");
    }
}

#[test]
fn long_packets_are_read_if_the_snaplen_allows_them() {
    let long = vec![7; 3 << 20];
    let file = PcapBytes::with(Order::Big, MICROSECONDS, (2, 4), u32::MAX, 1)
        .packet((0, 0), b"short")
        .packet((0, 0), &long)
        .packet((0, 0), b"short");
    let frames = read_valid(&file.bytes);
    assert_eq!(frames[1].data, long);
    assert_eq!(frames[2], owned(0, 5, b"short"));
}

#[test]
fn writer_and_reader_agree() {
    let mut bytes = Vec::new();
    let mut expected = Vec::new();
    {
        let mut writer = PcapWriter::new(&mut bytes, LinkType(113), 1000);
        for number in 0..3_000_u32 {
            let data = vec![number as u8; number as usize];
            let ts_ns = u64::from(number) * 1_234_567_891;
            writer.write(ts_ns, number + 1, &data).unwrap();
            expected.push(Owned {
                ts_ns,
                link: 113,
                original_len: number + 1,
                data: data[..data.len().min(1000)].to_vec(),
            });
        }
        // Dropping it writes the rest.
    }
    assert_eq!(read_valid(&bytes), expected);
}

#[test]
fn writer_takes_packets_longer_than_its_buffer() {
    let mut bytes = Vec::new();
    let long = vec![9; 1 << 20];
    let mut writer = PcapWriter::new(&mut bytes, LinkType(1), u32::MAX);
    writer.write(1, 3, b"abc").unwrap();
    writer.write(u64::MAX, 1 << 20, &long).unwrap();
    writer.write(2, 3, b"def").unwrap();
    writer.flush().unwrap();
    drop(writer);
    let frames = read_valid(&bytes);
    assert_eq!(frames[0], owned(1, 3, b"abc"));
    assert_eq!(frames[1].data, long);
    assert_eq!(frames[1].ts_ns / 1_000_000_000, u64::from(u32::MAX));
    assert_eq!(frames[2], owned(2, 3, b"def"));
}

#[test]
fn writer_reports_a_full_disk() {
    let mut room = [0_u8; 100];
    let mut writer = PcapWriter::new(&mut room[..], LinkType(1), 65_535);
    writer.write(0, 200, &[0; 200]).unwrap();
    assert!(writer.flush().is_err());
}

#[test]
fn the_sizes_of_reads_change_nothing() {
    let mut file = PcapBytes::new(Order::Little, MICROSECONDS);
    for number in 0..200_u32 {
        let len = (number * 37 % 900) as usize;
        file = file.packet((number, 5), &vec![number as u8; len]);
    }
    let whole = read_valid(&file.bytes);
    for most in [1, 2, 3, 16, 17, 1000] {
        for burst in [1, 3, 1000] {
            let trickle = Trickle::new(Cursor::new(file.bytes.clone()), most);
            let (frames, notices) = drain(&mut Files::from_reader("t", trickle), burst);
            assert!(notices.is_empty(), "{notices:?}");
            assert!(frames == whole, "{most} {burst}");
        }
    }
}
