//! Inputs: several files, compression, and unreadable files.

use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::path::PathBuf;

use crate::capture::common::{
    MICROSECONDS, NANOSECONDS, Order, PcapBytes, drain, read_valid, read_with_one,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use ringtap_io::capture::{Files, Input, Position, Severity};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A capture larger than one buffer that hardly compresses.
fn large() -> Vec<u8> {
    let mut file = PcapBytes::new(Order::Little, NANOSECONDS);
    let mut state = 1_u32;
    for number in 0..2_000_u32 {
        let data: Vec<u8> = (0..200 + number % 500)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        file = file.packet((number, 0), &data);
    }
    file.bytes
}

#[test]
fn compressed_captures_read_the_same() {
    let plain = large();
    let whole = read_valid(&plain);
    let (left, right) = plain.split_at(plain.len() / 3);
    assert!(read_valid(&gzip(&plain)) == whole);
    assert!(read_valid(&zstd(&plain)) == whole);
    assert!(read_valid(&[gzip(left), gzip(right)].concat()) == whole);
    assert!(read_valid(&[zstd(left), zstd(right)].concat()) == whole);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4][..], &zstd(&plain)].concat();
    assert!(read_valid(&skippable) == whole);
}

#[test]
fn a_window_beyond_the_limit_is_an_error() {
    let plain = large();
    let packed = |window_log: u32| {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let read = |bytes: Vec<u8>, max: u64| {
        let files = Files::from_reader("memory", Cursor::new(bytes)).with_window_max(max);
        drain(&mut { files }, 7)
    };
    for window_log in [20, 23, 27] {
        let window = 1_u64 << window_log;
        let (frames, notices) = read(packed(window_log), window);
        assert!(notices.is_empty() && frames.len() == 2_000, "{notices:?}");
        let (frames, notices) = read(packed(window_log), 2 * window - 1);
        assert!(notices.is_empty() && frames.len() == 2_000, "{notices:?}");
        let (frames, notices) = read(packed(window_log), window - 1);
        assert!(frames.is_empty() && notices.len() == 1);
        assert_eq!(notices[0].severity, Severity::Error);
        let words = format!("a window of more than {} MiB: use more memory", window >> 21);
        assert!(notices[0].to_string().contains(&words), "{}", notices[0]);
    }
    // The limit holds for each frame; a frame of the largest window is not taken by default.
    let both = [zstd(&plain), packed(23)].concat();
    let (frames, notices) = read(both, 4 << 20);
    assert_eq!((frames.len(), notices.len()), (2_000, 1));
    let (frames, notices) = read(packed(28), u64::MAX);
    assert_eq!((frames.len(), notices[0].severity), (0, Severity::Error));
}

#[test]
fn truncated_compressed_captures_give_the_complete_packets() {
    let plain = large();
    let whole = read_valid(&plain);
    for packed in [gzip(&plain), zstd(&plain)] {
        let mut seen = 0;
        for part in 1..10 {
            let cut = &packed[..packed.len() * part / 10];
            let (frames, words) = read_with_one(Severity::Warning, cut);
            assert!(frames.len() >= seen && frames == whole[..frames.len()]);
            seen = frames.len();
            assert!(words.contains("compressed data are cut off"), "{words}");
        }
        assert!(seen > whole.len() / 2, "{seen}");
        let (frames, _) = read_with_one(Severity::Warning, &packed[..packed.len() - 1]);
        assert!(frames.len() >= seen);
    }
}

#[test]
fn damaged_compressed_captures_give_the_packets_before() {
    let plain = large();
    let whole = read_valid(&plain);
    for mut packed in [gzip(&plain), zstd(&plain)] {
        let middle = packed.len() / 2;
        for byte in &mut packed[middle..middle + 5_000] {
            *byte ^= 0xa5;
        }
        let (frames, notices) = super::common::read(&packed);
        // How many bytes are lost before the damage is found depends on the decompressor.
        assert!(frames.len() > whole.len() / 4);
        let sound = whole.len() / 4;
        assert!(frames[..sound] == whole[..sound]);
        assert!(!notices.is_empty());
    }
}

#[test]
fn compressed_beyond_its_end_of_file() {
    for packed in [gzip(b"1234567"), zstd(b"1234567")] {
        for len in 4..packed.len() {
            let (frames, _) = read_with_one(Severity::Error, &packed[..len]);
            assert!(frames.is_empty());
        }
        let (_, words) = read_with_one(Severity::Error, &packed);
        assert!(words.contains("not a capture file (magic 0x31323334)"), "{words}");
    }
    for packed in [gzip(b""), zstd(b"")] {
        let (_, words) = read_with_one(Severity::Error, &packed);
        assert!(words.contains("empty"), "{words}");
    }
}

#[test]
fn a_compression_bomb_needs_constant_memory() {
    // 64 MiB of zeros are four million empty packets, in a file of some kilobytes.
    let header = PcapBytes::new(Order::Little, MICROSECONDS).bytes;
    let zeros = io::repeat(0).take(64 << 20);
    let bomb = zstd::encode_all(Cursor::new(header).chain(zeros), 1).unwrap();
    assert!(bomb.len() < 64 << 10);
    let mut files = Files::from_reader("bomb", Cursor::new(bomb));
    let mut packets = 0;
    loop {
        match files.burst(1 << 20, |frame| assert!(frame.data.is_empty())) {
            0 => break,
            count => packets += count,
        }
    }
    assert_eq!(packets, (64 << 20) / 16);
    assert!(files.take_notices().is_empty());
}

#[test]
fn unsupported_formats_are_named() {
    let twice = gzip(&zstd(&large()));
    for (bytes, expected) in [
        (&b"BZh91AY&SY"[..], "compressed with bzip2: decompress it with bunzip2"),
        (b"\xfd7zXZ\0\0\0", "compressed with xz"),
        (b"snoop\0\0\0", "a snoop capture: convert it with editcap"),
        (&twice, "compressed twice: decompress it once"),
        (b"\x89PNG\r\n", "not a capture file (magic 0x89504e47): use pcap or pcapng"),
    ] {
        let (frames, words) = read_with_one(Severity::Error, bytes);
        assert!(frames.is_empty());
        assert!(words.starts_with("opening memory: "), "{words}");
        assert!(words.contains(expected), "{words}");
    }
}

#[test]
fn files_are_read_in_order_and_bad_ones_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        Input::Path(path)
    };
    let one = PcapBytes::new(Order::Big, MICROSECONDS).packet((1, 0), b"one").bytes;
    let two = PcapBytes::new(Order::Little, NANOSECONDS).packet((2, 0), b"two").bytes;
    let cut = &two[..two.len() - 1];
    // The file name extensions are wrong on purpose.
    let inputs = vec![
        put("one.gz", &one),
        put("empty.pcap", b""),
        Input::Path(folder.path().join("missing.pcap")),
        Input::Path(folder.path().to_owned()),
        put("cut.pcap", cut),
        put("picture.pcap", b"\x89PNG\r\n"),
        put("two.pcap", &gzip(&two)),
    ];
    let total = (one.len() + cut.len() + 6 + gzip(&two).len()) as u64;
    let mut files = Files::new(inputs);
    let start = Position { bytes_read: 0, bytes_total: Some(total), file_index: 0, file_count: 7 };
    assert_eq!(files.position(), start);
    let (frames, notices) = drain(&mut files, 256);
    let data: Vec<&[u8]> = frames.iter().map(|frame| &frame.data[..]).collect();
    assert_eq!(data, [b"one", b"two"]);
    let end = Position { bytes_read: total, file_index: 7, ..start };
    assert_eq!(files.position(), end);
    let reported: Vec<(PathBuf, Severity)> = notices
        .iter()
        .map(|notice| {
            let name = notice.path.strip_prefix(folder.path()).unwrap();
            (name.to_owned(), notice.severity)
        })
        .collect();
    let expected = [
        ("empty.pcap", Severity::Error),
        ("missing.pcap", Severity::Error),
        ("", Severity::Error),
        ("cut.pcap", Severity::Warning),
        ("picture.pcap", Severity::Error),
    ];
    assert_eq!(reported, expected.map(|(name, severity)| (name.into(), severity)));
    assert!(notices[1].to_string().ends_with("missing.pcap: no such file"));
    assert!(notices[2].to_string().contains("is a directory"));
    assert_eq!(files.burst(1, |_| panic!("nothing is left")), 0);
    assert!(files.take_notices().is_empty());
}

#[test]
fn failing_reads_are_errors_and_earlier_packets_count() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let file = PcapBytes::new(Order::Big, MICROSECONDS).packet((1, 0), b"one");
    for bytes in [file.bytes.clone(), gzip(&file.bytes)] {
        let reader = Cursor::new(bytes).chain(Failing);
        let (frames, notices) = drain(&mut Files::from_reader("-", reader), 5);
        assert_eq!(frames.len(), 1);
        assert_eq!(notices.len(), 1);
        assert_eq!(notices[0].severity, Severity::Error);
        let words = notices[0].to_string();
        assert!(words.starts_with("reading standard input: at byte 43, after packet 1"), "{words}");
    }
    let (_, notices) = drain(&mut Files::from_reader("disk", Failing), 5);
    assert_eq!(notices[0].severity, Severity::Error);
}

#[test]
fn a_reader_may_move_to_another_thread() {
    let file = PcapBytes::new(Order::Big, MICROSECONDS).packet((1, 0), b"one");
    let mut files = Files::from_reader("memory", Cursor::new(file.bytes));
    let count = std::thread::scope(|scope| {
        let reading = scope.spawn(move || files.burst(10, |_| {}));
        reading.join().unwrap()
    });
    assert_eq!(count, 1);
}

#[test]
fn a_named_pipe_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        // Written past the test harness, which would swallow it.
        let _ = writeln!(io::stderr(), "SKIPPED: no mkfifo here");
        return;
    }
    let bytes = large();
    let whole = read_valid(&bytes);
    let mut files = Files::new(vec![Input::Path(path.clone())]);
    assert_eq!(files.position().bytes_total, None);
    let (frames, notices) = std::thread::scope(|scope| {
        scope.spawn(|| fs::write(&path, &bytes).unwrap());
        drain(&mut files, 256)
    });
    assert!(frames == whole);
    assert!(notices.is_empty(), "{notices:?}");
}
