//! Diagnostics about an input, with advice.
//!
//! Invariant: an [`Severity::Error`] means that the file, or the rest of it, could not be read as a capture; a
//! [`Severity::Warning`] means that everything before the given position was returned. Each kind is reported at most
//! once a file.

use std::fmt;
use std::io;
use std::mem::{self, Discriminant};
use std::path::PathBuf;

use thiserror::Error;

/// A diagnostic about one input.
#[derive(Debug)]
pub struct Notice {
    /// The input; `-` is standard input.
    pub path: PathBuf,
    /// Error or warning.
    pub severity: Severity,
    /// The kind, with its values.
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

/// The severity of a [`Notice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The input could not be read.
    Error,
    /// All readable packets were read.
    Warning,
}

/// The kinds of a [`Notice`]. Offsets are positions in the decompressed stream, from 0; packets are numbered from 1 in
/// each file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NoticeKind {
    /// The path does not exist.
    #[error("no such file")]
    NotFound,
    /// The path is a directory.
    #[error("is a directory: use the files in it")]
    Directory,
    /// The system cannot open it.
    #[error("{0}")]
    Open(io::Error),
    /// The file has no bytes.
    #[error("the file is empty (a capture without packets has a header)")]
    Empty,
    /// The first four bytes are not those of a known format.
    #[error(
        "not a capture file (magic {magic:#010x}): use pcap or pcapng, also compressed with gzip or zstd"
    )]
    NotCapture {
        /// The first byte is the highest.
        magic: u32,
    },
    /// A known but unsupported format.
    #[error("this is {format}: {advice}")]
    OtherFormat {
        /// Its name, with an article.
        format: &'static str,
        /// How to convert it to a supported format.
        advice: &'static str,
    },
    /// The file ends within its header.
    #[error("not a capture file, or cut off within its header: it ends after {len} bytes")]
    HeaderCut {
        /// Bytes of the file.
        len: u64,
    },
    /// pcapng of a later major version.
    #[error("at byte {offset}: pcapng version {major}.{minor} is not supported: use 1.x")]
    Version {
        /// Position of the section.
        offset: u64,
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
    /// The window of a zstd frame exceeds the limit.
    #[error(
        "at byte {end} of the decompressed file, after packet {packets}: compressed by zstd with a window of more than \
         {max_mib} MiB: use more memory (--memory), or pass the output of 'zstd -dc --long=31' to stdin"
    )]
    LargeWindow {
        /// Bytes that could be read.
        end: u64,
        /// Packets returned before.
        packets: u64,
        /// The limit.
        max_mib: u32,
    },
    /// A read failed.
    #[error("at byte {offset}, after packet {packets}: {error}")]
    Read {
        /// Position in the file.
        offset: u64,
        /// Packets returned before.
        packets: u64,
        /// Error of the system.
        error: io::Error,
    },
    /// The file ends within a packet or block.
    #[error(
        "cut off at byte {end}, within the packet or block that begins at byte {offset} after packet {packets}; everything before it was read"
    )]
    Cut {
        /// Position of the incomplete packet or block.
        offset: u64,
        /// Length of the file.
        end: u64,
        /// Packets returned before.
        packets: u64,
    },
    /// The compressed data end too early.
    #[error(
        "the compressed data are cut off; {end} bytes could be decompressed, up to packet {packets}: everything before the cut was read"
    )]
    CompressedCut {
        /// Bytes that were decompressed.
        end: u64,
        /// Packets returned before.
        packets: u64,
    },
    /// The compressed data cannot be decompressed.
    #[error(
        "the compressed data are damaged ({error}); {end} bytes could be decompressed, up to packet {packets}: everything before the damage was read"
    )]
    CompressedDamaged {
        /// Bytes that were decompressed.
        end: u64,
        /// Packets returned before.
        packets: u64,
        /// Error of the decompressor.
        error: io::Error,
    },
    /// A record or block with an invalid length.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes a length of {len}; everything before it was read"
    )]
    InvalidLength {
        /// Position of the record or block.
        offset: u64,
        /// Packets returned before.
        packets: u64,
        /// The length in its header, bytes.
        len: u32,
    },
    /// More bytes captured than were on the wire.
    #[error(
        "packet {packet} at byte {offset} claims more captured bytes than were on the wire ({captured} of {original}); this packet and similar ones are used as they are"
    )]
    CapturedBeyondOriginal {
        /// Number of the packet.
        packet: u64,
        /// Position of its record or block.
        offset: u64,
        /// Captured length in its header, bytes.
        captured: u32,
        /// Original length in its header, bytes.
        original: u32,
    },
    /// A captured length above the file's own limit.
    #[error(
        "packet {packet} at byte {offset} has {captured} captured bytes, beyond the file's own limit of {snaplen}; this packet and similar ones are used as they are"
    )]
    CapturedBeyondSnaplen {
        /// Number of the packet.
        packet: u64,
        /// Position of its record or block.
        offset: u64,
        /// Captured length, bytes.
        captured: u32,
        /// Limit in the file's header, bytes.
        snaplen: u32,
    },
    /// A fraction of a second that is one second or more.
    #[error(
        "packet {packet} at byte {offset} has a fraction of a second or more in its time; seconds are added for it and similar packets"
    )]
    Fraction {
        /// Number of the packet.
        packet: u64,
        /// Position of its record.
        offset: u64,
    },
    /// pcapng: a section whose byte-order magic is invalid.
    #[error(
        "damaged: the section at byte {offset} has the byte-order magic {magic:#010x}, which is invalid; everything before it was read"
    )]
    ByteOrder {
        /// Position of the section.
        offset: u64,
        /// The first byte is the highest.
        magic: u32,
    },
    /// pcapng: the two lengths of a block differ.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes a block with the lengths {first} and {second}; this block and similar ones are skipped and counted"
    )]
    LengthsDiffer {
        /// Position of the block.
        offset: u64,
        /// Packets returned before.
        packets: u64,
        /// Length at its start, bytes.
        first: u32,
        /// Length at its end, bytes.
        second: u32,
    },
    /// pcapng: a block that is too small for its content.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes a block of {len} bytes that needs {needed}; this block and similar ones are skipped and counted"
    )]
    BlockTooSmall {
        /// Position of the block.
        offset: u64,
        /// Packets returned before.
        packets: u64,
        /// Its length, bytes.
        len: u64,
        /// The length that its content needs, bytes.
        needed: u64,
    },
    /// pcapng: a packet of an interface without a valid description.
    #[error(
        "damaged at byte {offset}: after packet {packets} comes one of interface {interface}, but {known} are described; this packet and similar ones are skipped and counted"
    )]
    NoSuchInterface {
        /// Position of the block.
        offset: u64,
        /// Packets returned before.
        packets: u64,
        /// The interface's number, from 0.
        interface: u32,
        /// Number of described interfaces.
        known: usize,
    },
    /// pcapng: more interfaces than are supported.
    #[error(
        "at byte {offset}: more than {max} interfaces in one section; packets of the others are skipped and counted"
    )]
    TooManyInterfaces {
        /// Position of the first description beyond the maximum.
        offset: u64,
        /// The maximum.
        max: usize,
    },
    /// pcapng: malformed options of an interface.
    #[error(
        "the interface described at byte {offset} has malformed options; the valid ones are used"
    )]
    BadOptions {
        /// Position of the block.
        offset: u64,
    },
}

impl NoticeKind {
    /// Returns true if the input could not be opened.
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

/// The notices of the current file.
pub(crate) struct Log {
    notices: Vec<Notice>,
    path: PathBuf,
    /// Kinds that were reported for this file.
    reported: Vec<Discriminant<NoticeKind>>,
    /// Packets returned from this file.
    pub(crate) packets: u64,
    /// Packets and blocks skipped because they were damaged, in all files.
    pub(crate) damaged: u64,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            notices: Vec::new(),
            path: PathBuf::new(),
            reported: Vec::new(),
            packets: 0,
            damaged: 0,
        }
    }

    /// Starts the next file.
    pub(crate) fn begin(&mut self, path: PathBuf) {
        self.path = path;
        self.reported.clear();
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
        if self.reported.contains(&which) {
            return;
        }
        self.reported.push(which);
        self.notices.push(Notice { path: self.path.clone(), severity, kind });
    }
}
