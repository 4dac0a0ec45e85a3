//! Helpers to run programs in the network namespaces of a test, and to read and write small
//! captures.

use std::fs;
use std::process::Command;

pub(crate) use ringtap_testkit::{Background, End, Left, Net, Right};

/// Methods of [`Net`] that run `ringtap`.
pub(crate) trait NetCommands {
    /// The command in the namespace of an end.
    fn ringtap(&self, end: End, flags: &[&str]) -> Command;
    /// Runs the command and returns stdout, stderr and the exit code.
    fn run(&self, end: End, flags: &[&str]) -> (String, String, i32);
}

impl NetCommands for Net {
    fn ringtap(&self, end: End, flags: &[&str]) -> Command {
        let mut command = self.program(end, env!("CARGO_BIN_EXE_ringtap"));
        command.args(flags);
        command
    }

    fn run(&self, end: End, flags: &[&str]) -> (String, String, i32) {
        let output = self.ringtap(end, flags).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code().unwrap())
    }
}

/// The frames of a plain little-endian pcap file.
pub(crate) fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &bytes[24..];
    let mut frames = Vec::new();
    while let Some((header, after)) = rest.split_at_checked(16) {
        let len = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(after[..len].to_vec());
        rest = &after[len..];
    }
    frames
}

/// Writes a capture of these frames, a millisecond apart.
pub(crate) fn capture(path: &std::path::Path, frames: &[Vec<u8>]) {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    for (number, frame) in (0_u32..).zip(frames) {
        for field in
            [number / 1_000, number % 1_000 * 1_000, frame.len() as u32, frame.len() as u32]
        {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(frame);
    }
    fs::write(path, bytes).unwrap();
}
