//! Destinations that are full, or gone.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{key, record, tcp, written};
use crate::Format;

const LINES: [Format; 4] = [Format::Json, Format::Csv, Format::Eve, Format::Zeek];

/// Takes `room` bytes, at most `sip` at once, and then fails until given more room.
struct Narrow<'a> {
    taken: &'a mut Vec<u8>,
    room: &'a AtomicUsize,
    sip: usize,
}

impl Write for Narrow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.load(Ordering::Relaxed);
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = bytes.len().min(room).min(self.sip);
        self.taken.extend_from_slice(&bytes[..n]);
        self.room.store(room - n, Ordering::Relaxed);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_and_leaves_whole_lines_once_there_is_room() {
    for format in LINES {
        let mut taken = Vec::new();
        let room = AtomicUsize::new(100_000);
        let out = Narrow { taken: &mut taken, room: &room, sip: 1000 };
        let mut writer = format.writer(Box::new(out));
        let mut accepted = Vec::new();
        let mut refused = 0;
        for port in 0..2000 {
            let record = record(key(17, "10.0.0.1", "10.0.0.2", (port, 53)));
            match writer.write(&record) {
                Ok(()) => accepted.push(record),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && !accepted.is_empty());
        assert_eq!(writer.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        room.store(usize::MAX, Ordering::Relaxed);
        writer.finish().unwrap();
        drop(writer);
        assert_eq!(taken, written(format, &accepted), "{format}");
    }
}

/// Whatever of a Parquet file was lost, the rest is no file: nothing more is taken.
#[test]
fn a_full_disk_is_the_end_of_a_parquet_file() {
    for room in [0, 3, 1_000, 100_000] {
        let mut taken = Vec::new();
        let room = AtomicUsize::new(room);
        let out = Narrow { taken: &mut taken, room: &room, sip: 1000 };
        let mut writer = Format::Parquet.writer(Box::new(out));
        let mut error = None;
        for number in 0..140_000_u32 {
            let octets = [number.wrapping_mul(0x9e37_79b9).into(), 0];
            let record = ringtap_flow::FlowRecord { octets, ..tcp() };
            error = error.or(writer.write(&record).err());
        }
        let error = error.or(writer.finish().err()).unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        room.store(usize::MAX, Ordering::Relaxed);
        assert!(writer.write(&tcp()).is_err() && writer.finish().is_err());
    }
}

#[test]
fn the_error_of_a_flush_is_passed_on() {
    struct NoFlush;
    impl Write for NoFlush {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    for format in Format::ALL {
        let mut writer = format.writer(Box::new(NoFlush));
        writer.write(&tcp()).unwrap();
        assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe, "{format}");
    }
}

/// A run that goes on shows what it has, and a log that goes on has no end in the middle.
#[test]
fn a_flush_is_no_end() {
    for format in Format::ALL {
        let mut out = Vec::new();
        let mut writer = format.writer(Box::new(&mut out));
        for _ in 0..3 {
            writer.write(&tcp()).unwrap();
            writer.flush().unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        assert_eq!(out, written(format, &[tcp(); 3]), "{format}");
    }
}
