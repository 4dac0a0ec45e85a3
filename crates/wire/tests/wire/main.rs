//! Integration tests of the public interface.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]
#![allow(clippy::print_stdout, reason = "tests communicate with child processes")]
#![allow(clippy::print_stderr, reason = "skipped tests are reported on stderr")]

mod docs;
mod frames;
mod oracle;
mod tunnels;

/// An IPv4 packet with its header's checksum set.
fn sealed(mut packet: Vec<u8>) -> Vec<u8> {
    let header_len = usize::from(packet[0] & 0x0f) * 4;
    packet[10..12].copy_from_slice(&[0, 0]);
    let words =
        packet[..header_len].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    // The remainder of 0xffff folds the carries.
    let sum = words.sum::<u32>() % 0xffff;
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet
}
