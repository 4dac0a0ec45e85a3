//! Parses classic pcap records in place.
//!
//! ```text
//! file    | magic | major, minor | zone | accuracy | snaplen | FCS bits, link type |  24 bytes
//! record  | seconds | fraction | captured length | original length | data …         |  16 bytes
//! ```
//!
//! Source: draft-ietf-opsawg-pcap. Magic numbers, each in either byte order: microseconds `a1b2c3d4`, nanoseconds
//! `a1b23c4d`, and Kuznetzov's `a1b2cd34`, whose record headers are eight bytes longer (interface, protocol, packet
//! type: not used).
//!
//! A captured length is valid up to 262,144, the limit of tcpdump and Wireshark, or up to the file's snaplen if that is
//! larger, but never above [`MAX_CAPTURED_LEN`]. A larger one is damage, and no record can be found behind it.

use ringtap_wire::LinkType;

use crate::capture::chunk::Place;
use crate::capture::frame::{MAX_CAPTURED_LEN, Next, Stretch, Walk};
use crate::capture::notice::{Log, NoticeKind};

/// Length of the file header, bytes.
pub(crate) const FILE_HEADER: usize = 24;

/// The largest captured length of common tools.
const USUAL_CAPTURED_LEN: u32 = 262_144;

/// Fields of a pcap file header.
pub(crate) struct Pcap {
    big_endian: bool,
    /// Nanoseconds in one unit of a record's fraction: 1 or 1000.
    unit_ns: u32,
    /// Bytes of a record header: 16 or 24.
    record_header: usize,
    /// Before version 2.4 some writers swapped the two lengths.
    lengths_may_be_swapped: bool,
    link: LinkType,
    snaplen: u32,
    /// Largest valid captured length.
    limit: u32,
    /// Captured lengths up to this value cause no notice.
    unquestioned: u32,
}

impl Pcap {
    /// Returns true if a file with these first bytes is a classic pcap file.
    pub(crate) fn recognises(magic: [u8; 4]) -> bool {
        Layout::of(magic).is_some()
    }

    /// Reads a file header; `None` if the magic number differs.
    pub(crate) fn new(header: &[u8; FILE_HEADER]) -> Option<Self> {
        let [m0, m1, m2, m3, ..] = *header;
        let layout = Layout::of([m0, m1, m2, m3])?;
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if layout.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let versions = word(4);
        let (major, minor) = if layout.big_endian {
            (versions >> 16, versions & 0xffff)
        } else {
            (versions & 0xffff, versions >> 16)
        };
        let snaplen = match word(16) {
            0 => u32::MAX,
            given => given,
        };
        let limit = snaplen.clamp(USUAL_CAPTURED_LEN, MAX_CAPTURED_LEN);
        Some(Self {
            big_endian: layout.big_endian,
            unit_ns: layout.unit_ns,
            record_header: layout.record_header,
            lengths_may_be_swapped: (major, minor) < (2, 4) || major == 543,
            // The upper bits describe frame check sequences.
            link: LinkType(word(20) as u16),
            snaplen,
            limit,
            unquestioned: limit.min(snaplen),
        })
    }

    /// Stores the places of all complete records.
    pub(crate) fn walk(
        &mut self,
        stretch: Stretch<'_>,
        places: &mut Vec<Place>,
        log: &mut Log,
    ) -> Walk {
        if self.big_endian {
            self.walk_in::<true>(stretch, places, log)
        } else {
            self.walk_in::<false>(stretch, places, log)
        }
    }

    #[inline(always)]
    fn walk_in<const BIG: bool>(
        &mut self,
        stretch: Stretch<'_>,
        places: &mut Vec<Place>,
        log: &mut Log,
    ) -> Walk {
        let Stretch { bytes, start, offset } = stretch;
        let word = |word: u32| if BIG { word.swap_bytes() } else { word };
        let link = self.link;
        let unit_ns = u64::from(self.unit_ns);
        let fractions = 1_000_000_000 / self.unit_ns;
        let record_header = self.record_header;
        let mut unquestioned = self.unquestioned;
        let (mut low_ns, mut high_ns) = (u64::MAX, 0);
        let before = places.len();
        // Position of the next record, kept in one register.
        let mut at = 0;
        let next = loop {
            let Some(header) = bytes[at..].first_chunk::<16>() else {
                break Next::Need(record_header);
            };
            // Two loads instead of sixteen.
            let header = u128::from_le_bytes(*header);
            let seconds = word(header as u32);
            let fraction = word((header >> 32) as u32);
            let mut captured = word((header >> 64) as u32);
            let mut original = word((header >> 96) as u32);
            if (captured > unquestioned.min(original)) | (fraction >= fractions) {
                if bytes.len() - at < record_header {
                    break Next::Need(record_header);
                }
                let record = Record {
                    offset: offset + at as u64,
                    packets: log.packets + (places.len() - before) as u64,
                };
                let lengths = (captured, original);
                match self.question(record, lengths, fraction >= fractions, log) {
                    Ok(lengths) => (captured, original) = lengths,
                    Err(kind) => break Next::Stop(kind),
                }
                unquestioned = self.unquestioned;
            }
            let data = at + record_header;
            let behind = data + captured as usize;
            if behind > bytes.len() {
                break Next::Need(behind - at);
            }
            let ts_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit_ns;
            low_ns = low_ns.min(ts_ns);
            high_ns = high_ns.max(ts_ns);
            places.push(Place {
                ts_ns,
                at: (start + data) as u32,
                len: captured,
                original_len: original,
                link,
                tag: 0,
            });
            at = behind;
        };
        let frames = places.len() - before;
        Walk { bytes: at, frames, low_ns, high_ns, next }
    }

    /// Checks an unusual record header: returns the (captured, original) lengths to use, or why reading stops.
    #[cold]
    fn question(
        &mut self,
        record: Record,
        lengths: (u32, u32),
        fraction_too_large: bool,
        log: &mut Log,
    ) -> Result<(u32, u32), NoticeKind> {
        let (mut captured, mut original) = lengths;
        if captured > original && self.lengths_may_be_swapped {
            (captured, original) = (original, captured);
        }
        let Record { offset, packets } = record;
        if captured > self.limit {
            return Err(NoticeKind::InvalidLength { offset, packets, len: captured });
        }
        let packet = packets + 1;
        if captured > original {
            log.warn(NoticeKind::CapturedBeyondOriginal { packet, offset, captured, original });
        }
        if captured > self.snaplen {
            log.warn(NoticeKind::CapturedBeyondSnaplen {
                packet,
                offset,
                captured,
                snaplen: self.snaplen,
            });
            // Reported once; a file in which all packets are unusual is still read fast.
            self.unquestioned = self.limit;
        }
        if fraction_too_large {
            log.warn(NoticeKind::Fraction { packet, offset });
        }
        Ok((captured, original))
    }
}

/// Position of a record.
struct Record {
    offset: u64,
    packets: u64,
}

/// The meaning of the magic number.
struct Layout {
    big_endian: bool,
    unit_ns: u32,
    record_header: usize,
}

impl Layout {
    fn of(magic: [u8; 4]) -> Option<Self> {
        let as_big = u32::from_be_bytes(magic);
        let of = |value| match value {
            0xa1b2_c3d4_u32 => Some((1000, 16)),
            0xa1b2_3c4d => Some((1, 16)),
            0xa1b2_cd34 => Some((1000, 24)),
            _ => None,
        };
        let (big_endian, (unit_ns, record_header)) = match of(as_big) {
            Some(layout) => (true, layout),
            None => (false, of(as_big.swap_bytes())?),
        };
        Some(Self { big_endian, unit_ns, record_header })
    }
}
