//! Writes pcapng files: little-endian, nanoseconds, comments.
//!
//! ```text
//! section header, with a comment │ interface of a link type │ packet │ packet │ interface of another │ packet …
//! ```
//!
//! Source: draft-ietf-opsawg-pcapng. Each link type has an interface, described before its first packet.

use std::io::{self, Write};

use ringtap_wire::LinkType;

use super::Frame;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const TIME_RESOLUTION: u16 = 9;
/// Longest text of an option.
const TEXT_MOST: usize = u16::MAX as usize;

/// Writes packets to a pcapng file.
pub struct PcapngWriter<W: Write> {
    out: W,
    links: Vec<LinkType>,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section header, with this comment.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn new(mut out: W, comment: &str) -> io::Result<Self> {
        let mut block = Vec::new();
        // Byte order, version 1.0, unknown length of the section.
        block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        block.extend_from_slice(&[1, 0, 0, 0]);
        block.extend_from_slice(&u64::MAX.to_le_bytes());
        push_option(&mut block, COMMENT, comment.as_bytes());
        push_option(&mut block, END_OF_OPTIONS, &[]);
        write_block(&mut out, SECTION, &block)?;
        Ok(Self { out, links: Vec::new(), block })
    }

    /// Writes a packet with a comment, which may be empty.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn write(&mut self, frame: &Frame<'_>, comment: &str) -> io::Result<()> {
        let known = self.links.iter().position(|link| *link == frame.link);
        let interface = match known {
            Some(at) => at,
            None => self.describe(frame.link)?,
        };
        let Self { out, block, .. } = self;
        block.clear();
        block.extend_from_slice(&(interface as u32).to_le_bytes());
        block.extend_from_slice(&((frame.ts_ns >> 32) as u32).to_le_bytes());
        block.extend_from_slice(&(frame.ts_ns as u32).to_le_bytes());
        let captured = frame.data.len() as u32;
        block.extend_from_slice(&captured.to_le_bytes());
        block.extend_from_slice(&frame.original_len.max(captured).to_le_bytes());
        block.extend_from_slice(frame.data);
        pad(block);
        if !comment.is_empty() {
            push_option(block, COMMENT, comment.as_bytes());
            push_option(block, END_OF_OPTIONS, &[]);
        }
        write_block(out, PACKET, block)
    }

    /// Writes the description of the interface of a link type, and returns its number.
    fn describe(&mut self, link: LinkType) -> io::Result<usize> {
        let Self { out, links, block } = self;
        block.clear();
        block.extend_from_slice(&link.0.to_le_bytes());
        // Reserved; packets have any length.
        block.extend_from_slice(&[0; 6]);
        push_option(block, TIME_RESOLUTION, &[9]);
        push_option(block, END_OF_OPTIONS, &[]);
        write_block(out, INTERFACE, block)?;
        links.push(link);
        Ok(links.len() - 1)
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

/// Appends an option: its code, length and value.
fn push_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(TEXT_MOST)];
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&(value.len() as u16).to_le_bytes());
    block.extend_from_slice(value);
    pad(block);
}

/// Writes a block: its type, its length before and behind the body.
fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let len = (body.len() as u32 + 12).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&len)?;
    out.write_all(body)?;
    out.write_all(&len)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::Files;
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let frames = [
            (1_u64, 1_u16, &b"one"[..], 3),
            (1_700_000_000_123_456_789, 113, b"other", 900),
            (7, 1, b"", 0),
        ];
        let frame = |&(ts_ns, link, data, original_len)| Frame {
            ts_ns,
            link: LinkType(link),
            original_len,
            data,
        };
        let mut bytes = Vec::new();
        let mut writer = PcapngWriter::new(&mut bytes, "flows of a test").unwrap();
        for (at, own) in frames.iter().enumerate() {
            writer.write(&frame(own), if at == 1 { "a comment" } else { "" }).unwrap();
        }
        writer.flush().unwrap();
        let mut files = Files::from_reader("test", Cursor::new(bytes));
        let mut seen = 0;
        while files.burst(1, |own| {
            assert_eq!(own, frame(&frames[seen]));
            seen += 1;
        }) > 0
        {}
        assert_eq!((seen, files.take_notices().len()), (3, 0));
    }
}
