//! Opens a path, standard input or any reader, and decompresses it.
//!
//! ```text
//! Raw (counts bytes) ─┬──────────────────────────────▶ plain
//!                     ├─ what was read for the magic ┐
//!                     ├─ bytes read for the magic  ──┐
//! ```
//!
//! gzip: RFC 1952, several members; zstd: RFC 8878, several frames and skippable ones, windows up to 128 MiB as in the
//! zstd tool, or less ([`Files::with_window_max`](crate::capture::Files::with_window_max)). Invariant: memory is constant for
//! any compression ratio; compressed data inside compressed data stay
//! compressed.

use std::fs::File;
#[cfg(feature = "zstd")]
use std::io::BufReader;
use std::io::{self, Chain, Cursor, ErrorKind, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::capture::buffer::Buffer;
use crate::capture::notice::NoticeKind;

/// Opens a path for reading.
pub(crate) fn open(path: &Path) -> Result<File, NoticeKind> {
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => NoticeKind::NotFound,
        _ => NoticeKind::Open(error),
    })?;
    // Opening a directory succeeds; only the first read fails.
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(NoticeKind::Directory);
    }
    Ok(file)
}

/// The compressed bytes, counted.
pub(crate) struct Raw {
    reader: Box<dyn Read + Send>,
    bytes: u64,
}

impl Raw {
    pub(crate) fn new(reader: impl Read + Send + 'static) -> Self {
        Self { reader: Box::new(reader), bytes: 0 }
    }
}

impl Read for Raw {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(out)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

/// The bytes read for the magic number, and the rest.
type Rewound = Chain<Cursor<Vec<u8>>, Raw>;

/// The bytes of a capture file.
pub(crate) enum Stream {
    Plain(Raw),
    Gzip(Box<MultiGzDecoder<Rewound>>),
    #[cfg(feature = "zstd")]
    Zstd(Box<zstd::Decoder<'static, BufReader<Rewound>>>, u32),
}

/// Largest window of the zstd tool, as an exponent of 2.
pub(crate) const WINDOW_LOG_MAX: u32 = 27;

impl Stream {
    /// Reads the first bytes and decompresses if necessary. Bytes that were read and must be parsed are left in
    /// `buffer`. The window of zstd has at most 2 to the `window_log` bytes.
    #[cfg_attr(not(feature = "zstd"), expect(unused_variables, reason = "for zstd"))]
    pub(crate) fn new(
        mut raw: Raw,
        buffer: &mut Buffer,
        window_log: u32,
    ) -> Result<Self, NoticeKind> {
        buffer.fill(&mut raw, 4).map_err(NoticeKind::Open)?;
        match buffer.unread() {
            [0x1f, 0x8b, ..] => {
                let whole = Cursor::new(buffer.take()).chain(raw);
                Ok(Self::Gzip(Box::new(MultiGzDecoder::new(whole))))
            }
            #[cfg(feature = "zstd")]
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                let whole = Cursor::new(buffer.take()).chain(raw);
                let mut decoder = zstd::Decoder::new(whole).map_err(NoticeKind::Open)?;
                decoder.window_log_max(window_log).map_err(NoticeKind::Open)?;
                Ok(Self::Zstd(Box::new(decoder), window_log))
            }
            #[cfg(not(feature = "zstd"))]
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                let why =
                    "compressed with zstd, and this program was built without the feature zstd";
                Err(NoticeKind::Open(io::Error::other(why)))
            }
            _ => Ok(Self::Plain(raw)),
        }
    }

    /// Compressed bytes read so far.
    pub(crate) fn raw_bytes(&self) -> u64 {
        match self {
            Self::Plain(raw) => raw.bytes,
            Self::Gzip(decoder) => decoder.get_ref().get_ref().1.bytes,
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder, _) => decoder.get_ref().get_ref().get_ref().1.bytes,
        }
    }

    /// The notice for a failed read, after `packets` packets; `buffer` has the bytes that could still be read.
    pub(crate) fn failure(&self, error: io::Error, buffer: &Buffer, packets: u64) -> NoticeKind {
        let end = buffer.end_offset();
        #[cfg(feature = "zstd")]
        if let Self::Zstd(_, window_log) = self
            && error.to_string().contains("too much memory")
        {
            return NoticeKind::LargeWindow { end, packets, max_mib: 1 << window_log >> 20 };
        }
        // Errors of the decompressors have no system error number.
        if matches!(self, Self::Plain(_)) || error.raw_os_error().is_some() {
            NoticeKind::Read { offset: end, packets, error }
        } else if error.kind() == ErrorKind::UnexpectedEof {
            NoticeKind::CompressedCut { end, packets }
        } else {
            NoticeKind::CompressedDamaged { end, packets, error }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(raw) => raw.read(out),
            Self::Gzip(decoder) => decoder.read(out),
            #[cfg(feature = "zstd")]
            Self::Zstd(decoder, _) => decoder.read(out),
        }
    }
}
