//! Writes pcapng files: little-endian, nanoseconds, comments.
//!
//! ```text
//! section header, with a comment │ interface of a link type │ packet │ packet │ interface of another │ packet …
//! ```
//!
//! Source: draft-ietf-opsawg-pcapng. Each interface and link type has a description before its first packet.
//!
//! Invariant: the last block is written when the next one follows or at the end, so it may get a further comment.

use std::io::{self, Write};

use ringtap_wire::LinkType;

use super::Frame;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
/// Longest text of an option.
const TEXT_MOST: usize = u16::MAX as usize;

/// Writes packets to a pcapng file.
pub struct PcapngWriter<W: Write> {
    out: W,
    /// Interfaces that are described, by number.
    interfaces: Vec<(LinkType, String)>,
    /// The last block: its kind, and its body without the end of options.
    kind: u32,
    block: Vec<u8>,
    has_options: bool,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins with the section header, with this comment.
    pub fn new(out: W, comment: &str) -> Self {
        let mut block = Vec::new();
        // Byte order, version 1.0, unknown length of the section.
        block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        block.extend_from_slice(&[1, 0, 0, 0]);
        block.extend_from_slice(&u64::MAX.to_le_bytes());
        let mut writer =
            Self { out, interfaces: Vec::new(), kind: SECTION, block, has_options: false };
        writer.comment(comment);
        writer
    }

    /// Writes a packet from the interface of this name, with a comment. Both may be empty.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn write(&mut self, frame: &Frame<'_>, interface: &str, comment: &str) -> io::Result<()> {
        self.end_block()?;
        let is_it = |(link, name): &(LinkType, String)| *link == frame.link && name == interface;
        let number = match self.interfaces.iter().position(is_it) {
            Some(number) => number,
            None => self.describe(frame.link, interface)?,
        };
        let Self { block, .. } = self;
        block.extend_from_slice(&(number as u32).to_le_bytes());
        block.extend_from_slice(&((frame.ts_ns >> 32) as u32).to_le_bytes());
        block.extend_from_slice(&(frame.ts_ns as u32).to_le_bytes());
        let captured = frame.data.len() as u32;
        block.extend_from_slice(&captured.to_le_bytes());
        block.extend_from_slice(&frame.original_len.max(captured).to_le_bytes());
        block.extend_from_slice(frame.data);
        pad(block);
        self.kind = PACKET;
        self.comment(comment);
        Ok(())
    }

    /// Adds a comment to the last packet, or to the section if there is none. Nothing happens if it is empty.
    pub fn comment(&mut self, comment: &str) {
        if !comment.is_empty() {
            self.option(COMMENT, comment.as_bytes());
        }
    }

    /// Writes the description of an interface, and returns its number.
    fn describe(&mut self, link: LinkType, name: &str) -> io::Result<usize> {
        self.kind = INTERFACE;
        self.block.extend_from_slice(&link.0.to_le_bytes());
        // Reserved; packets have any length.
        self.block.extend_from_slice(&[0; 6]);
        if !name.is_empty() {
            self.option(NAME, name.as_bytes());
        }
        self.option(TIME_RESOLUTION, &[9]);
        self.end_block()?;
        self.interfaces.push((link, name.to_owned()));
        Ok(self.interfaces.len() - 1)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        push_option(&mut self.block, code, value);
        self.has_options = true;
    }

    /// Writes the last block; the next one is empty.
    fn end_block(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_options) {
            push_option(&mut self.block, END_OF_OPTIONS, &[]);
        }
        write_block(&mut self.out, self.kind, &self.block)?;
        self.block.clear();
        Ok(())
    }

    /// Writes the last block, and flushes the underlying writer.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.end_block()?;
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
        let mut writer = PcapngWriter::new(&mut bytes, "flows of a test");
        for (at, own) in frames.iter().enumerate() {
            let (interface, comment) = if at == 1 { ("eth0", "a comment") } else { ("", "") };
            writer.write(&frame(own), interface, comment).unwrap();
        }
        writer.finish().unwrap();
        let mut files = Files::from_reader("test", Cursor::new(bytes));
        let mut seen = 0;
        while files.burst(1, |own| {
            assert_eq!(own, frame(&frames[seen]));
            seen += 1;
        }) > 0
        {}
        assert_eq!((seen, files.take_notices().len()), (3, 0));
    }

    /// The types of the blocks of a file, each with the texts of its comments and names.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<String>)> {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let (kind, len) = (number(bytes), number(&bytes[4..]) as usize);
            let body = &bytes[8..len - 4];
            assert_eq!(number(&bytes[len - 4..]) as usize, len);
            let mut options = match kind {
                SECTION => &body[16..],
                INTERFACE => &body[8..],
                _ => &body[20 + (number(&body[12..]) as usize).next_multiple_of(4)..],
            };
            let mut texts = Vec::new();
            while !options.is_empty() {
                let [code, len] =
                    [0, 2].map(|at| u16::from_le_bytes([options[at], options[at + 1]]));
                let value = &options[4..4 + usize::from(len)];
                if [COMMENT, NAME].contains(&code) {
                    texts.push(String::from_utf8(value.to_vec()).unwrap());
                }
                options = &options[4 + value.len().next_multiple_of(4)..];
                assert_eq!(code == END_OF_OPTIONS, options.is_empty());
            }
            all.push((kind, texts));
            bytes = &bytes[len..];
        }
        all
    }

    #[test]
    fn each_interface_is_described_and_the_last_block_gets_comments() {
        let frame =
            |link| Frame { ts_ns: 1, link: LinkType(link), original_len: 5, data: b"bytes" };
        let mut bytes = Vec::new();
        let mut writer = PcapngWriter::new(&mut bytes, "a test");
        writer.comment("none yet");
        let packets = [(1, "eth0", "first"), (1, "eth1", ""), (113, "eth0", ""), (1, "eth0", "")];
        for (link, interface, comment) in packets {
            writer.write(&frame(link), interface, comment).unwrap();
        }
        writer.comment("");
        writer.comment("last");
        writer.comment("of all");
        writer.finish().unwrap();
        let expected: [(u32, &[&str]); 8] = [
            (SECTION, &["a test", "none yet"]),
            (INTERFACE, &["eth0"]),
            (PACKET, &["first"]),
            (INTERFACE, &["eth1"]),
            (PACKET, &[]),
            (INTERFACE, &["eth0"]),
            (PACKET, &[]),
            (PACKET, &["last", "of all"]),
        ];
        let expected = expected.map(|(kind, texts)| (kind, texts.iter().map(ToString::to_string)));
        let expected = expected.map(|(kind, texts)| (kind, texts.collect::<Vec<_>>()));
        assert_eq!(blocks(&bytes), expected);
    }
}
