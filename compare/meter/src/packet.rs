//! A pcap reader and a parser of canonical 5-tuples.
//!
//! ```text
//! file    | magic 4 | version 4 | zone, sigfigs 8 | snaplen 4 | link type 4 | record …
//! record  | seconds 4 | fraction 4 | captured 4 | original 4 | frame …
//! frame   | MACs 12 | 0x0800 | IPv4 20–60 | ports 4 | …
//! ```
//!
//! It reads little-endian Ethernet captures only, the format of the comparison's traces.

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
const MAGIC_MICRO: u32 = 0xa1b2_c3d4;
const MAGIC_NANO: u32 = 0xa1b2_3c4d;

/// One record: its time in whole seconds and its frame as captured.
pub struct Record<'a> {
    pub seconds: u32,
    pub frame: &'a [u8],
}

/// The records of a capture, in file order, up to the end of the file or an incomplete record.
pub struct Records<'a> {
    rest: &'a [u8],
}

/// Checks the header of a file; returns the offset of the first record.
pub fn check_header(file: &[u8]) -> Result<usize, String> {
    if file.len() < FILE_HEADER {
        return Err("truncated pcap header".into());
    }
    let (magic, link) = (le32(file, 0), le32(file, 20));
    if magic != MAGIC_MICRO && magic != MAGIC_NANO || link != 1 {
        return Err(format!(
            "unsupported format: use little-endian Ethernet pcap (magic {magic:#010x}, link type {link})"
        ));
    }
    Ok(FILE_HEADER)
}

impl<'a> Records<'a> {
    /// All records of a file.
    pub fn of(file: &'a [u8]) -> Result<Self, String> {
        Ok(Self { rest: &file[check_header(file)?..] })
    }

    /// The records in `bytes`, which begin with a record.
    pub fn from(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes after the last complete record.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Record<'a>> {
        let (header, rest) = self.rest.split_at_checked(RECORD_HEADER)?;
        let (frame, rest) = rest.split_at_checked(le32(header, 8) as usize)?;
        self.rest = rest;
        Some(Record { seconds: le32(header, 0), frame })
    }
}

/// The fields of a packet that the table uses.
pub struct Packet {
    /// Both endpoints, the smaller first: address, address, port, port, protocol.
    pub key: Key,
    /// 0 if the packet's source is the key's first endpoint, else 1.
    pub direction: usize,
    /// IPv4 total length.
    pub octets: u32,
}

/// `[addresses, ports and protocol]`; never all zero for TCP and UDP.
pub type Key = [u64; 2];

/// The 5-tuple of an Ethernet/IPv4 frame; `None` for other frames. Ports are 0 if the packet has
/// none.
#[inline(always)]
pub fn parse(frame: &[u8]) -> Option<Packet> {
    let ip = frame.get(14..)?;
    if ip.len() < 20 || frame[12] != 8 || frame[13] != 0 || ip[0] >> 4 != 4 {
        return None;
    }
    let header = usize::from(ip[0] & 15) * 4;
    let protocol = ip[9];
    let later_fragment = be16(ip, 6) & 0x1fff != 0;
    let has_ports = (protocol == 6 || protocol == 17) && !later_fragment;
    let (source_port, target_port) = match ip.get(header..header + 4) {
        Some(ports) if has_ports => (be16(ports, 0), be16(ports, 2)),
        _ => (0, 0),
    };
    let source = u64::from(be32(ip, 12)) << 16 | u64::from(source_port);
    let target = u64::from(be32(ip, 16)) << 16 | u64::from(target_port);
    let direction = usize::from(source > target);
    let (low, high) = if direction == 0 { (source, target) } else { (target, source) };
    let key = [
        (low >> 16) << 32 | high >> 16,
        (low & 0xffff) << 32 | (high & 0xffff) << 16 | u64::from(protocol) << 8 | 1,
    ];
    Some(Packet { key, direction, octets: u32::from(be16(ip, 2)) })
}

#[inline(always)]
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
