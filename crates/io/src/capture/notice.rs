//! What a reader has to say about a file, in words that teach the way out.
//!
//! Invariant: an [`Severity::Error`] means that the file, or the rest of it, could not be read as
//! a capture at all; a [`Severity::Warning`] means that everything up to the place named was
//! delivered. Each kind is said at most once a file.

use std::fmt;
use std::io;
use std::mem::{self, Discriminant};
use std::path::PathBuf;

use thiserror::Error;

/// A remark on one input.
#[derive(Debug)]
pub struct Notice {
    /// Which input; `-` is standard input.
    pub path: PathBuf,
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub kind: NoticeKind,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = if self.kind.on_opening() { "opening" } else { "reading" };
        if self.path.as_os_str() == "-" {
            write!(f, "{doing} standard input: {}", self.kind)
        } else {
            write!(f, "{doing} {}: {}", self.path.display(), self.kind)
        }
    }
}

/// How bad a [`Notice`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input could not be read.
    Error,
    /// What could be read was read.
    Warning,
}

/// What a [`Notice`] says. Offsets are places in the decompressed stream, from 0; packets are
/// numbered from 1 in each file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NoticeKind {
    /// The path names nothing.
    #[error("no such file")]
    NotFound,
    /// The path names a directory.
    #[error("is a directory: use the files in it")]
    Directory,
    /// The system refused to open it.
    #[error("{0}")]
    Open(io::Error),
    /// No bytes at all.
    #[error("the file is empty (a capture without packets has a header)")]
    Empty,
    /// The first four bytes, in file order, are those of no known format.
    #[error(
        "not a capture file (magic {magic:#010x}): use pcap or pcapng, also within gzip or zstd"
    )]
    NotCapture {
        /// First byte highest.
        magic: u32,
    },
    /// A known format that is not read.
    #[error("this is {format}: {advice}")]
    OtherFormat {
        /// With its article.
        format: &'static str,
        /// How to get to a format that is read.
        advice: &'static str,
    },
    /// The file ends before its header does.
    #[error("not a capture file, or cut off within its header: it ends after {len} bytes")]
    HeaderCut {
        /// Bytes there are.
        len: u64,
    },
    /// pcapng of a later major version.
    #[error("at byte {offset}: pcapng version {major}.{minor} is not known here; 1.x is read")]
    Version {
        /// Where the section begins.
        offset: u64,
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The system failed to read on.
    #[error("at byte {offset}, after packet {packets}: {error}")]
    Read {
        /// How far reading came.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
        /// The system's word.
        error: io::Error,
    },
    /// The file ends in the middle of a packet or block.
    #[error(
        "cut off at byte {end}, within the packet or block that begins at byte {offset} after packet {packets}; everything before it was read"
    )]
    Cut {
        /// Where the unfinished packet or block begins.
        offset: u64,
        /// Where the file ends.
        end: u64,
        /// Packets delivered before.
        packets: u64,
    },
    /// The compressed data end too early.
    #[error(
        "the compressed data are cut off; {end} bytes could be unpacked, up to packet {packets}: everything before the cut was read"
    )]
    CompressedCut {
        /// Bytes that could be unpacked.
        end: u64,
        /// Packets delivered before.
        packets: u64,
    },
    /// The compressed data cannot be unpacked.
    #[error(
        "the compressed data are damaged ({error}); {end} bytes could be unpacked, up to packet {packets}: everything before the damage was read"
    )]
    CompressedDamaged {
        /// Bytes that could be unpacked.
        end: u64,
        /// Packets delivered before.
        packets: u64,
        /// The decompressor's word.
        error: io::Error,
    },
    /// A record or block of a length that cannot be.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes a length of {len}; everything before it was read"
    )]
    AbsurdLength {
        /// Where the record or block begins.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
        /// The length claimed, bytes.
        len: u32,
    },
    /// More bytes captured than were on the wire.
    #[error(
        "packet {packet} at byte {offset} claims more captured bytes than were on the wire ({captured} of {original}); it and its like are taken as they stand"
    )]
    CapturedBeyondOriginal {
        /// Its number.
        packet: u64,
        /// Where its record or block begins.
        offset: u64,
        /// Captured length claimed.
        captured: u32,
        /// Original length claimed.
        original: u32,
    },
    /// More bytes captured than the file's own bound.
    #[error(
        "packet {packet} at byte {offset} has {captured} captured bytes, beyond the file's own bound of {snaplen}; it and its like are taken as they stand"
    )]
    CapturedBeyondSnaplen {
        /// Its number.
        packet: u64,
        /// Where its record or block begins.
        offset: u64,
        /// Captured length.
        captured: u32,
        /// The bound in the file's header.
        snaplen: u32,
    },
    /// A second's fraction that is not below one second.
    #[error(
        "packet {packet} at byte {offset} has a time with more than a second's fractions; it and its like are carried over into the seconds"
    )]
    Fraction {
        /// Its number.
        packet: u64,
        /// Where its record begins.
        offset: u64,
    },
    /// pcapng: a section in neither byte order.
    #[error(
        "damaged: the section at byte {offset} has the byte-order magic {magic:#010x}, which is neither order's; everything before it was read"
    )]
    ByteOrder {
        /// Where the section begins.
        offset: u64,
        /// First byte highest.
        magic: u32,
    },
    /// pcapng: a block's two lengths are not the same.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes a block with the lengths {first} and {second}; it and its like are skipped and counted"
    )]
    LengthsDiffer {
        /// Where the block begins.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
        /// Length at its beginning, bytes.
        first: u32,
        /// Length at its end.
        second: u32,
    },
    /// pcapng: a block that is too small for what it says it holds.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes a block of {len} bytes that must have {needed}; it and its like are skipped and counted"
    )]
    BlockTooSmall {
        /// Where the block begins.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
        /// Its length, bytes.
        len: u64,
        /// What it would need.
        needed: u64,
    },
    /// pcapng: a packet of an interface that is not described, or not soundly.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes one of interface {interface}, but {known} are described; it and its like are skipped and counted"
    )]
    NoSuchInterface {
        /// Where the block begins.
        offset: u64,
        /// Packets delivered before.
        packets: u64,
        /// The interface's number, from 0.
        interface: u32,
        /// How many there are.
        known: usize,
    },
    /// pcapng: more interfaces than are remembered.
    #[error(
        "at byte {offset}: more than {max} interfaces in one section; packets of the others are skipped and counted"
    )]
    TooManyInterfaces {
        /// Where the first one too many is described.
        offset: u64,
        /// How many are remembered.
        max: usize,
    },
    /// pcapng: options of an interface that do not add up.
    #[error(
        "the interface described at byte {offset} has malformed options; those that could be read count"
    )]
    BadOptions {
        /// Where the block begins.
        offset: u64,
    },
}

impl NoticeKind {
    /// Whether the input never came so far as to be read.
    fn on_opening(&self) -> bool {
        matches!(
            self,
            Self::NotFound
                | Self::Directory
                | Self::Open(_)
                | Self::Empty
                | Self::NotCapture { .. }
                | Self::OtherFormat { .. }
                | Self::HeaderCut { .. }
        )
    }
}

/// The remarks on the file being read.
pub(crate) struct Log {
    notices: Vec<Notice>,
    path: PathBuf,
    /// What was said of this file already.
    said: Vec<Discriminant<NoticeKind>>,
    /// Packets delivered from this file.
    pub(crate) packets: u64,
    /// Packets and blocks skipped because they were damaged, all files together.
    pub(crate) damaged: u64,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { notices: Vec::new(), path: PathBuf::new(), said: Vec::new(), packets: 0, damaged: 0 }
    }

    /// Turns to the next file.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.path = path;
        self.said.clear();
        self.packets = 0;
    }

    #[cold]
    pub(crate) fn error(&mut self, kind: NoticeKind) {
        self.say(Severity::Error, kind);
    }

    #[cold]
    pub(crate) fn warn(&mut self, kind: NoticeKind) {
        self.say(Severity::Warning, kind);
    }

    pub(crate) fn take(&mut self) -> Vec<Notice> {
        mem::take(&mut self.notices)
    }

    fn say(&mut self, severity: Severity, kind: NoticeKind) {
        let which = mem::discriminant(&kind);
        if self.said.contains(&which) {
            return;
        }
        self.said.push(which);
        self.notices.push(Notice { path: self.path.clone(), severity, kind });
    }
}
