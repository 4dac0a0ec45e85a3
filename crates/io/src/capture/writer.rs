//! Writes classic pcap files: little-endian, nanoseconds.
//!
//! Source: draft-ietf-opsawg-pcap; `pcap.rs` shows the format. Invariant: one write(2) for thousands of packets, no
//! allocation after construction.

use std::io::{self, Write};

use ringtap_wire::LinkType;

/// Bytes collected before they are written.
const SIZE: usize = 256 << 10;

/// Writes packets to a pcap file. Dropping it writes the buffered packets but cannot report a failure: call
/// [`PcapWriter::flush`] at the end.
pub struct PcapWriter<W: Write> {
    out: W,
    held: Vec<u8>,
    snaplen: u32,
}

impl<W: Write> PcapWriter<W> {
    /// Creates a writer for packets of link type `link`, of which at most `snaplen` bytes are written. The file header
    /// is written with the first packets.
    pub fn new(out: W, link: LinkType, snaplen: u32) -> Self {
        let mut held = Vec::with_capacity(SIZE);
        held.extend_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
        held.extend_from_slice(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        held.extend_from_slice(&snaplen.to_le_bytes());
        held.extend_from_slice(&u32::from(link.0).to_le_bytes());
        Self { out, held, snaplen }
    }

    /// Writes one packet: its time in nanoseconds since 1970 (seconds end at 2³² − 1, in 2106), its length on the wire
    /// and its captured bytes.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    #[inline]
    pub fn write(&mut self, ts_ns: u64, original_len: u32, data: &[u8]) -> io::Result<()> {
        let kept = data.len().min(self.snaplen as usize);
        let data = &data[..kept];
        if self.held.len() + 16 + kept > SIZE {
            self.write_held()?;
        }
        let seconds = u32::try_from(ts_ns / 1_000_000_000).unwrap_or(u32::MAX);
        let fraction = (ts_ns % 1_000_000_000) as u32;
        let mut header = [0; 16];
        header[..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&fraction.to_le_bytes());
        header[8..12].copy_from_slice(&(kept as u32).to_le_bytes());
        header[12..].copy_from_slice(&original_len.to_le_bytes());
        self.held.extend_from_slice(&header);
        if kept > SIZE - 16 {
            self.write_held()?;
            self.out.write_all(data)
        } else {
            self.held.extend_from_slice(data);
            Ok(())
        }
    }

    /// Writes all buffered packets.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_held()?;
        self.out.flush()
    }

    #[cold]
    fn write_held(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.held);
        // After a failure, too: a partly written buffer must not be written again.
        self.held.clear();
        written
    }
}

impl<W: Write> Drop for PcapWriter<W> {
    fn drop(&mut self) {
        // A failure can no longer be reported.
        let _ = self.flush();
    }
}
