//! Frames, captures of them, and reading them from a receiver.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ringtap_io::dpdk::{Options, Receiver};
use tempfile::TempDir;

/// Little memory, because the devices of all tests share it.
pub(crate) fn small() -> Options {
    Options { memory: 6 << 20, ..Options::default() }
}

/// `count` frames of many lengths with different bytes.
pub(crate) fn assorted(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| frame(number, 60 + number * 37 % 1455)).collect()
}

/// A frame of this length.
pub(crate) fn frame(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7) as u8).collect()
}

/// A capture file of these frames, in the folder.
pub(crate) fn capture(folder: &TempDir, name: &str, frames: &[Vec<u8>]) -> PathBuf {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for (number, frame) in (0_u32..).zip(frames) {
        let len = frame.len() as u32;
        bytes.extend([1_700_000_000, number % 1_000_000, len, len].map(u32::to_le_bytes).concat());
        bytes.extend(frame);
    }
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// A device that reads these files, a queue for each.
pub(crate) fn reads(name: &str, files: &[&Path]) -> String {
    let files: Vec<String> =
        files.iter().map(|file| format!(",rx_pcap={}", file.display())).collect();
    format!("{name}{}", files.concat())
}

/// Takes frames until `count` have arrived, or no more arrive.
pub(crate) fn take(receiver: &mut Receiver, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count && receiver.wait(Duration::from_secs(3)) {
        // A number that does not divide the driver's bursts, so that bursts end in the middle of them.
        receiver.burst(7, |frame| {
            assert_eq!(frame.original_len as usize, frame.data.len());
            frames.push(frame.data.to_vec());
        });
    }
    frames
}
