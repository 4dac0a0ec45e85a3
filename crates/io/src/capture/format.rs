//! Recognises a capture format by its magic number.
//!
//! ```text
//!  a1b2c3d4 a1b23c4d a1b2cd34, either order  pcap
//!  0a0d0d0a                                  pcapng
//! ```
//!
//! Invariant: file names are not used. A known but unsupported format has an error with advice.

use crate::capture::buffer::Buffer;
use crate::capture::chunk::Place;
use crate::capture::frame::Walk;
use crate::capture::input::Stream;
use crate::capture::notice::{Log, NoticeKind};
use crate::capture::pcap::{self, Pcap};
use crate::capture::pcapng::{self, Pcapng};

/// A capture format, and the state of its parser.
pub(crate) enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl Format {
    /// Reads the file header.
    pub(crate) fn new(stream: &mut Stream, buffer: &mut Buffer) -> Result<Self, NoticeKind> {
        let Some(magic) = head::<4>(stream, buffer)? else {
            return Err(match buffer.unread().len() as u64 {
                0 => NoticeKind::Empty,
                len => NoticeKind::HeaderCut { len },
            });
        };
        if magic == pcapng::MAGIC {
            let header = whole_head(stream, buffer)?;
            Ok(Self::Pcapng(Pcapng::new(&header)?))
        } else if Pcap::recognises(magic) {
            let header = whole_head::<{ pcap::FILE_HEADER }>(stream, buffer)?;
            buffer.consume(header.len());
            Pcap::new(&header).map(Self::Pcap).ok_or(unknown(magic))
        } else {
            Err(unknown(magic))
        }
    }

    /// Parses the bytes in the buffer.
    pub(crate) fn walk(&mut self, buffer: &Buffer, places: &mut Vec<Place>, log: &mut Log) -> Walk {
        match self {
            Self::Pcap(pcap) => pcap.walk(buffer.stretch(), places, log),
            Self::Pcapng(pcapng) => pcapng.walk(buffer.stretch(), places, log),
        }
    }
}

/// The first `N` bytes, which stay in the buffer; `None` if there are fewer.
fn head<const N: usize>(
    stream: &mut Stream,
    buffer: &mut Buffer,
) -> Result<Option<[u8; N]>, NoticeKind> {
    match buffer.fill(stream, N) {
        Ok(_) => Ok(buffer.unread().first_chunk::<N>().copied()),
        Err(error) => Err(stream.failure(error, buffer, 0)),
    }
}

fn whole_head<const N: usize>(
    stream: &mut Stream,
    buffer: &mut Buffer,
) -> Result<[u8; N], NoticeKind> {
    head(stream, buffer)?.ok_or(NoticeKind::HeaderCut { len: buffer.unread().len() as u64 })
}

/// The error for a file with this magic number.
fn unknown(magic: [u8; 4]) -> NoticeKind {
    let (format, advice) = match &magic {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] => ("compressed twice", "decompress it once"),
        b"BZh1" | b"BZh2" | b"BZh3" | b"BZh4" | b"BZh5" | b"BZh6" | b"BZh7" | b"BZh8" | b"BZh9" => {
            ("compressed with bzip2", "decompress it with bunzip2")
        }
        b"\xfd7zX" => ("compressed with xz", "decompress it with unxz"),
        b"\x04\x22\x4d\x18" => ("compressed with lz4", "decompress it with unlz4"),
        b"PK\x03\x04" => ("a zip archive", "unpack it with unzip"),
        b"snoo" => ("a snoop capture", "convert it with editcap -F pcapng"),
        b"GMBU" | b"RTSS" => ("a Network Monitor capture", "convert it with editcap -F pcapng"),
        b"XCP\0" => ("a NetXRay capture", "convert it with editcap -F pcapng"),
        _ => {
            return NoticeKind::NotCapture { magic: u32::from_be_bytes(magic) };
        }
    };
    NoticeKind::OtherFormat { format, advice }
}
