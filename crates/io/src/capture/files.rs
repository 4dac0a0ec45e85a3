//! Several inputs, read one after the other as one stream of frames.
//!
//! Invariants: inputs are opened one at a time, in the given order. A file that cannot be read causes a [`Notice`], and
//! reading continues with the next one. Reading never blocks while there are frames to return.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::capture::buffer::{Buffer, SIZE};
use crate::capture::chunk::{Chunk, Place};
use crate::capture::format::Format;
use crate::capture::frame::{Frame, Next};
use crate::capture::input::{self, Raw, Stream, WINDOW_LOG_MAX};
use crate::capture::notice::{Log, Notice, NoticeKind};

/// The source of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, or a named pipe.
    Path(PathBuf),
    /// Standard input, shown as `-`.
    Stdin,
}

impl From<PathBuf> for Input {
    /// `-` is standard input.
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::Path(path) }
    }
}

/// The smallest limit of a window that zstd has.
const WINDOW_LEAST: u64 = 1 << 10;

/// The progress of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Bytes read from all inputs, as stored (compressed).
    pub bytes_read: u64,
    /// Bytes of all inputs; `None` if one of them is a pipe.
    pub bytes_total: Option<u64>,
    /// Index of the current input, from 0; `file_count` at the end.
    pub file_index: usize,
    /// Number of inputs.
    pub file_count: usize,
}

/// Capture files, read in the order given.
///
/// ```no_run
/// use ringtap_io::capture::{Files, Input};
///
/// let mut files = Files::new(vec![Input::Path("trace.pcap".into()), Input::Stdin]);
/// let mut octets = 0;
/// while files.burst(256, |frame| octets += u64::from(frame.original_len)) > 0 {}
/// for notice in files.take_notices() {
///     println!("{notice}");
/// }
/// ```
pub struct Files {
    waiting: VecDeque<Waiting>,
    open: Option<Open>,
    buffer: Buffer,
    log: Log,
    /// Completed inputs, and their bytes.
    files_done: usize,
    bytes_done: u64,
    bytes_total: Option<u64>,
    file_count: usize,
    packets: u64,
    /// Largest window of zstd, as an exponent of 2.
    window_log: u32,
    /// The chunk of [`Files::burst`], and the number of its packets already returned.
    handed: (Chunk, usize),
}

struct Waiting {
    name: PathBuf,
    /// Length of a regular file.
    bytes: Option<u64>,
    source: Source,
}

enum Source {
    Path,
    Stdin,
    Reader(Raw),
}

struct Open {
    stream: Stream,
    format: Format,
    bytes: Option<u64>,
}

impl Files {
    /// Creates a reader of `inputs`. Each is opened when the one before it has ended.
    pub fn new(inputs: Vec<Input>) -> Self {
        Self::over(inputs.into_iter().map(Waiting::from).collect())
    }

    /// Creates a reader of the bytes of `reader`; notices use `name`.
    pub fn from_reader(name: impl Into<PathBuf>, reader: impl Read + Send + 'static) -> Self {
        Self::over(VecDeque::from([Waiting {
            name: name.into(),
            bytes: None,
            source: Source::Reader(Raw::new(reader)),
        }]))
    }

    /// Returns this reader with windows of zstd of at most `bytes`, rounded down to a power of two. An input with a larger one
    /// is an error. Unless this is called, and at most, 128 MiB, the limit of the zstd tool.
    pub fn with_window_max(self, bytes: u64) -> Self {
        let window_log = bytes.max(WINDOW_LEAST).ilog2().min(WINDOW_LOG_MAX);
        Self { window_log, ..self }
    }

    /// Appends the inputs of `later`, which must not have been read yet.
    pub fn chain(mut self, later: Self) -> Self {
        debug_assert!(later.open.is_none() && later.files_done == 0);
        self.bytes_total = self
            .bytes_total
            .zip(later.bytes_total)
            .map(|(these, those)| these.saturating_add(those));
        self.file_count += later.file_count;
        self.waiting.extend(later.waiting);
        self
    }

    fn over(waiting: VecDeque<Waiting>) -> Self {
        Self {
            bytes_total: waiting
                .iter()
                .try_fold(0_u64, |sum, one| Some(sum.saturating_add(one.bytes?))),
            file_count: waiting.len(),
            waiting,
            open: None,
            buffer: Buffer::new(),
            log: Log::new(),
            files_done: 0,
            bytes_done: 0,
            packets: 0,
            window_log: WINDOW_LOG_MAX,
            handed: (Chunk::default(), 0),
        }
    }

    /// Fills `chunk` with the next frames. Returns their number, at least one; 0 at the end of all inputs.
    pub fn read(&mut self, chunk: &mut Chunk) -> usize {
        chunk.places.clear();
        // Enough for frames of 64 bytes, the smallest on most links.
        chunk.places.reserve(SIZE / 64);
        self.buffer.borrow(&mut chunk.bytes);
        let frames = self.walk(chunk);
        self.buffer.give_back(&mut chunk.bytes);
        frames
    }

    /// Parses and reads until there are frames or all inputs have ended.
    fn walk(&mut self, chunk: &mut Chunk) -> usize {
        loop {
            let Some(open) = &mut self.open else {
                if !self.open_next() {
                    (chunk.low_ns, chunk.high_ns) = (0, 0);
                    return 0;
                }
                continue;
            };
            let walk = open.format.walk(&self.buffer, &mut chunk.places, &mut self.log);
            self.buffer.consume(walk.bytes);
            if walk.frames > 0 {
                self.log.packets += walk.frames as u64;
                self.packets += walk.frames as u64;
                (chunk.low_ns, chunk.high_ns) = (walk.low_ns, walk.high_ns);
                return walk.frames;
            }
            self.act(walk.next);
        }
    }

    /// Calls `each` for up to `max` frames (at least one), in place. Returns their number: 0 at the end of all inputs;
    /// fewer than `max` does not mean the end. For callers that do not need chunks: use either this or [`Files::read`].
    pub fn burst<F: FnMut(Frame<'_>)>(&mut self, max: usize, mut each: F) -> usize {
        let (mut chunk, mut at) = std::mem::take(&mut self.handed);
        if at == chunk.places.len() {
            self.read(&mut chunk);
            at = 0;
        }
        let count = (chunk.places.len() - at).min(max.max(1));
        for place in &chunk.places[at..at + count] {
            let &Place { ts_ns, link, original_len, .. } = place;
            each(Frame { ts_ns, link, original_len, data: chunk.data(place) });
        }
        self.handed = (chunk, at + count);
        count
    }

    /// Returns the notices since the last call, in order.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.log.take()
    }

    /// The progress of reading, for a progress bar.
    pub fn position(&self) -> Position {
        let open = self.open.as_ref().map_or(0, |open| open.stream.raw_bytes());
        Position {
            bytes_read: self.bytes_done + open,
            bytes_total: self.bytes_total,
            file_index: self.files_done,
            file_count: self.file_count,
        }
    }

    /// Frames read so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets and blocks skipped so far because they were damaged.
    pub fn damaged(&self) -> u64 {
        self.log.damaged
    }

    /// Handles a parser result other than frames.
    #[cold]
    fn act(&mut self, next: Next) {
        let Some(open) = &mut self.open else { return };
        let (offset, packets) = (self.buffer.offset(), self.log.packets);
        let skipping = matches!(next, Next::Skip(_));
        let filled = match next {
            Next::Need(bytes) => self.buffer.fill(&mut open.stream, bytes),
            Next::Skip(bytes) => self.buffer.skip(&mut open.stream, bytes),
            Next::Stop(kind) => {
                self.log.warn(kind);
                return self.close();
            }
        };
        match filled {
            Ok(true) => return,
            // The file ends where a packet could begin.
            Ok(false) if !skipping && self.buffer.unread().is_empty() => {}
            Ok(false) => {
                self.log.warn(NoticeKind::Cut { offset, end: self.buffer.end_offset(), packets })
            }
            Err(error) => {
                let kind = open.stream.failure(error, &self.buffer, packets);
                if matches!(kind, NoticeKind::Read { .. } | NoticeKind::LargeWindow { .. }) {
                    self.log.error(kind);
                } else {
                    self.log.warn(kind);
                }
            }
        }
        self.close();
    }

    /// Opens the next input; false if there is none. An input that cannot be read is completed at once.
    #[cold]
    fn open_next(&mut self) -> bool {
        let Some(next) = self.waiting.pop_front() else {
            return false;
        };
        self.buffer.clear();
        self.log.begin(next.name.clone());
        match Open::new(next.source, &next.name, next.bytes, &mut self.buffer, self.window_log) {
            Ok(open) => self.open = Some(open),
            Err(kind) => {
                self.log.error(kind);
                self.files_done += 1;
                self.bytes_done += next.bytes.unwrap_or(0);
            }
        }
        true
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.files_done += 1;
            self.bytes_done += open.bytes.unwrap_or_else(|| open.stream.raw_bytes());
        }
    }
}

impl From<Input> for Waiting {
    fn from(input: Input) -> Self {
        match input {
            Input::Path(name) => Self {
                bytes: match std::fs::metadata(&name) {
                    Ok(data) if data.is_file() => Some(data.len()),
                    Ok(data) if !data.is_dir() => None,
                    // An input that cannot be opened adds no bytes.
                    _ => Some(0),
                },
                name,
                source: Source::Path,
            },
            Input::Stdin => Self { name: PathBuf::from("-"), bytes: None, source: Source::Stdin },
        }
    }
}

impl Open {
    fn new(
        source: Source,
        path: &Path,
        bytes: Option<u64>,
        buffer: &mut Buffer,
        window_log: u32,
    ) -> Result<Self, NoticeKind> {
        let raw = match source {
            Source::Path => Raw::new(input::open(path)?),
            Source::Stdin => Raw::new(io::stdin()),
            Source::Reader(raw) => raw,
        };
        let mut stream = Stream::new(raw, buffer, window_log)?;
        let format = Format::new(&mut stream, buffer)?;
        Ok(Self { stream, format, bytes })
    }
}
