//! Shared code of the tests: hand-made capture files, readers that return few bytes at a time, and a function that
//! reads everything.
#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(unreachable_pub, reason = "the crate around it is a test file")]

use std::io::{self, Cursor, Read};

use ringtap_io::capture::{Files, Notice, Severity};

/// A frame with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub ts_ns: u64,
    pub link: u16,
    pub original_len: u32,
    pub data: Vec<u8>,
}

/// All frames and notices, in bursts of `max`.
pub fn drain(files: &mut Files, max: usize) -> (Vec<Owned>, Vec<Notice>) {
    let mut frames = Vec::new();
    loop {
        let before = frames.len();
        let count = files.burst(max, |frame| {
            frames.push(Owned {
                ts_ns: frame.ts_ns,
                link: frame.link.0,
                original_len: frame.original_len,
                data: frame.data.to_vec(),
            });
        });
        assert_eq!(count, frames.len() - before);
        assert!(count <= max);
        if count == 0 {
            break;
        }
    }
    assert_eq!(files.packets(), frames.len() as u64);
    (frames, files.take_notices())
}

pub fn read(bytes: &[u8]) -> (Vec<Owned>, Vec<Notice>) {
    drain(&mut Files::from_reader("memory", Cursor::new(bytes.to_vec())), 7)
}

/// Reads a valid file.
pub fn read_valid(bytes: &[u8]) -> Vec<Owned> {
    let (frames, notices) = read(bytes);
    assert!(notices.is_empty(), "{notices:?}");
    frames
}

/// Reads a file with exactly one fault, and returns its text.
pub fn read_with_one(severity: Severity, bytes: &[u8]) -> (Vec<Owned>, String) {
    let (frames, notices) = read(bytes);
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].severity, severity, "{}", notices[0]);
    (frames, notices[0].to_string())
}

/// Returns 1 to `most` bytes a read, with interruptions.
pub struct Trickle<R> {
    inner: R,
    most: usize,
    turn: usize,
}

impl<R: Read> Trickle<R> {
    pub fn new(inner: R, most: usize) -> Self {
        Self { inner, most, turn: 0 }
    }
}

impl<R: Read> Read for Trickle<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = (1 + self.turn * 7 % self.most).min(out.len());
        self.inner.read(&mut out[..len])
    }
}

/// Byte order of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Big,
    Little,
}

impl Order {
    pub const BOTH: [Self; 2] = [Self::Big, Self::Little];

    pub fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Big => value.to_be_bytes(),
            Self::Little => value.to_le_bytes(),
        }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Big => value.to_be_bytes(),
            Self::Little => value.to_le_bytes(),
        }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Big => value.to_be_bytes(),
            Self::Little => value.to_le_bytes(),
        }
    }
}

/// Builds classic pcap files.
#[derive(Clone)]
pub struct PcapBytes {
    pub order: Order,
    pub bytes: Vec<u8>,
    kuznetzov: bool,
}

pub const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub const NANOSECONDS: u32 = 0xa1b2_3c4d;
pub const KUZNETZOV: u32 = 0xa1b2_cd34;

impl PcapBytes {
    pub fn new(order: Order, magic: u32) -> Self {
        Self::with(order, magic, (2, 4), 65_535, 1)
    }

    pub fn with(order: Order, magic: u32, version: (u16, u16), snaplen: u32, link: u32) -> Self {
        let bytes = [
            &order.u32(magic)[..],
            &order.u16(version.0),
            &order.u16(version.1),
            &[0; 8],
            &order.u32(snaplen),
            &order.u32(link),
        ]
        .concat();
        Self { order, bytes, kuznetzov: magic == KUZNETZOV }
    }

    /// A record whose captured length may be wrong.
    pub fn record(mut self, time: (u32, u32), lens: (u32, u32), data: &[u8]) -> Self {
        for word in [time.0, time.1, lens.0, lens.1] {
            self.bytes.extend(self.order.u32(word));
        }
        if self.kuznetzov {
            self.bytes.extend([0xee; 8]);
        }
        self.bytes.extend(data);
        self
    }

    pub fn packet(self, time: (u32, u32), data: &[u8]) -> Self {
        let len = data.len() as u32;
        self.record(time, (len, len), data)
    }
}

/// Builds pcapng files.
#[derive(Clone)]
pub struct PcapngBytes {
    pub order: Order,
    pub bytes: Vec<u8>,
}

impl PcapngBytes {
    pub fn new(order: Order) -> Self {
        let empty = Self { order, bytes: Vec::new() };
        empty.section(order)
    }

    /// Begins a section.
    pub fn section(mut self, order: Order) -> Self {
        self.order = order;
        let body = [&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &[0xff; 8]].concat();
        self.block(0x0a0d_0d0a, &body)
    }

    /// Any block, padded.
    pub fn block(mut self, kind: u32, body: &[u8]) -> Self {
        let padded = body.len().next_multiple_of(4);
        let len = self.order.u32(padded as u32 + 12);
        self.bytes.extend(self.order.u32(kind));
        self.bytes.extend(len);
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.bytes.extend(len);
        self
    }

    pub fn interface(self, link: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Self {
        let mut body = [&self.order.u16(link)[..], &[0; 2], &self.order.u32(snaplen)].concat();
        if !options.is_empty() {
            body.extend(self.options(options));
        }
        self.block(1, &body)
    }

    pub fn options(&self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (code, value) in options.iter().chain([&(0, &[][..])]) {
            bytes.extend(self.order.u16(*code));
            bytes.extend(self.order.u16(value.len() as u16));
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    /// An enhanced packet block whose lengths may be wrong.
    pub fn enhanced(self, interface: u32, time: u64, lens: (u32, u32), data: &[u8]) -> Self {
        let mut body = Vec::new();
        for word in [interface, (time >> 32) as u32, time as u32, lens.0, lens.1] {
            body.extend(self.order.u32(word));
        }
        body.extend(data);
        self.block(6, &body)
    }

    pub fn packet(self, interface: u32, time: u64, data: &[u8]) -> Self {
        let len = data.len() as u32;
        self.enhanced(interface, time, (len, len), data)
    }

    /// The obsolete packet block.
    pub fn obsolete(self, interface: u16, time: u64, data: &[u8]) -> Self {
        let mut body = [self.order.u16(interface), self.order.u16(0xffff)].concat();
        let len = data.len() as u32;
        for word in [(time >> 32) as u32, time as u32, len, len] {
            body.extend(self.order.u32(word));
        }
        body.extend(data);
        self.block(2, &body)
    }

    pub fn simple(self, original_len: u32, data: &[u8]) -> Self {
        let body = [&self.order.u32(original_len)[..], data].concat();
        self.block(3, &body)
    }
}

/// Truncates `bytes` at every length: a prefix of the frames, and at most one notice.
pub fn cut_everywhere(bytes: &[u8]) {
    let whole = read_valid(bytes);
    let mut seen = 0;
    for len in 0..bytes.len() {
        let (frames, notices) = read(&bytes[..len]);
        assert!(frames.len() >= seen, "at {len}");
        seen = frames.len();
        assert_eq!(frames, whole[..seen], "at {len}");
        assert!(notices.len() <= 1, "at {len}: {notices:?}");
    }
    assert!(whole.len() - seen <= 1, "only the last frame may be missing");
}
