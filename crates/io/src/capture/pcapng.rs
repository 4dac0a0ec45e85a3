//! Parses pcapng blocks in place.
//!
//! ```text
//! block    | type | total length | body …                                    | total length |
//! section  | byte-order magic | major, minor | section length (not used) | options …
//! interface| link type, reserved | snaplen | options …
//! enhanced | interface | time high | time low | captured | original | data, padding | options …
//! packet   | interface, drops | time high | … as enhanced                (obsolete, type 2)
//! simple   | original | data, padding                                    (no time: 0)
//! ```
//!
//! Source: draft-ietf-opsawg-pcapng. Each section has its own byte order and its own interfaces. Blocks of other types
//! are skipped.
//!
//! Invariants: each step advances at least 12 bytes. A damaged packet block is counted and skipped: its total length
//! gives the position of the next block. An invalid total length ends the file. At most 65,536 interfaces are stored.

use ringtap_wire::LinkType;

use crate::capture::chunk::Place;
use crate::capture::frame::{MAX_CAPTURED_LEN, Next, Stretch, Walk};
use crate::capture::interface::Interface;
use crate::capture::notice::{Log, NoticeKind};

/// Shortest section header, bytes.
pub(crate) const SECTION_HEADER: usize = 28;

/// First four bytes of a section header, the same in both byte orders.
pub(crate) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;

/// Offset of the data in a packet block and an enhanced packet block.
const DATA: usize = 28;
/// Offset of the data in a simple packet block.
const SIMPLE_DATA: usize = 12;
/// Bytes of the second total length.
const TRAILER: usize = 4;

/// Most bytes of a block that is parsed: one packet, and room for its options.
const MAX_BLOCK: u32 = MAX_CAPTURED_LEN + (64 << 10);

/// Nothing to skip: parsing goes on at once.
const OTHER_ORDER: Next = Next::Skip(0);

const MAX_INTERFACES: usize = 65_536;

/// The current section.
pub(crate) struct Pcapng {
    big_endian: bool,
    /// In the order of their descriptions; `None` for a damaged description.
    interfaces: Vec<Option<Interface>>,
}

impl Pcapng {
    /// Reads the first section header, which is parsed again with the other blocks.
    pub(crate) fn new(header: &[u8; SECTION_HEADER]) -> Result<Self, NoticeKind> {
        let section = Section::read(header, 0, 0)?;
        Ok(Self { big_endian: section.big_endian, interfaces: Vec::new() })
    }

    /// Stores the positions of the packets of all complete blocks.
    pub(crate) fn walk(
        &mut self,
        stretch: Stretch<'_>,
        places: &mut Vec<Place>,
        log: &mut Log,
    ) -> Walk {
        let before = places.len();
        let (mut low_ns, mut high_ns) = (u64::MAX, 0);
        let mut bytes = 0;
        loop {
            let rest = Stretch {
                bytes: &stretch.bytes[bytes..],
                start: stretch.start + bytes,
                offset: stretch.offset + bytes as u64,
            };
            let walk = if self.big_endian {
                self.walk_in::<true>(rest, before, places, log)
            } else {
                self.walk_in::<false>(rest, before, places, log)
            };
            bytes += walk.bytes;
            (low_ns, high_ns) = (low_ns.min(walk.low_ns), high_ns.max(walk.high_ns));
            if !matches!(walk.next, Next::Skip(0)) {
                return Walk { bytes, frames: places.len() - before, low_ns, high_ns, ..walk };
            }
        }
    }

    /// Ends with [`OTHER_ORDER`] behind a section header of the other byte order. The walk began with `before` places.
    #[inline(always)]
    fn walk_in<const BIG: bool>(
        &mut self,
        stretch: Stretch<'_>,
        before: usize,
        places: &mut Vec<Place>,
        log: &mut Log,
    ) -> Walk {
        let Stretch { bytes, start, offset } = stretch;
        let mut rest = bytes;
        let (mut low_ns, mut high_ns) = (u64::MAX, 0);
        let first = places.len();
        let next = loop {
            let Some(&[k0, k1, k2, k3, l0, l1, l2, l3]) = rest.first_chunk::<8>() else {
                break Next::Need(8);
            };
            let kind = word::<BIG>([k0, k1, k2, k3]);
            let len = word::<BIG>([l0, l1, l2, l3]);
            let here = Block {
                offset: offset + (bytes.len() - rest.len()) as u64,
                packets: log.packets + (places.len() - before) as u64,
            };
            if kind == SECTION {
                let Some(header) = rest.first_chunk::<SECTION_HEADER>() else {
                    break Next::Need(SECTION_HEADER);
                };
                match Section::read(header, here.offset, here.packets) {
                    Ok(section) => {
                        self.big_endian = section.big_endian;
                        self.interfaces.clear();
                        let Some(after) = rest.get(section.header_len as usize..) else {
                            break Next::Skip(u64::from(section.header_len));
                        };
                        rest = after;
                        if section.big_endian != BIG {
                            break OTHER_ORDER;
                        }
                        continue;
                    }
                    Err(kind) => break Next::Stop(kind),
                }
            }
            let packet_block = matches!(kind, ENHANCED | PACKET | SIMPLE);
            let is_parsed = packet_block || kind == INTERFACE;
            if len < 12 || !len.is_multiple_of(4) || (is_parsed && len > MAX_BLOCK) {
                break Next::Stop(here.invalid_length(len));
            }
            let Some((block, after)) = rest.split_at_checked(len as usize) else {
                if is_parsed {
                    break Next::Need(len as usize);
                }
                break Next::Skip(u64::from(len));
            };
            if is_parsed {
                // A block has at least 12 bytes, so it has a trailer.
                let (body, trailer) = block.split_at(block.len() - TRAILER);
                let second = trailer.first_chunk().map_or(0, |&len| word::<BIG>(len));
                let sound = second == len;
                if !sound {
                    here.lengths_differ(len, second, log);
                }
                if packet_block {
                    let packet = if !sound {
                        None
                    } else if kind == SIMPLE {
                        self.simple::<BIG>(body, &here, log)
                    } else {
                        self.enhanced::<BIG>(body, kind == PACKET, &here, log)
                    };
                    match packet {
                        Some(packet) => {
                            let at = start + bytes.len() - rest.len();
                            low_ns = low_ns.min(packet.ts_ns);
                            high_ns = high_ns.max(packet.ts_ns);
                            places.push(Place { at: at as u32 + packet.at, ..packet });
                        }
                        None => log.damaged += 1,
                    }
                } else {
                    self.describe::<BIG>(body, sound, &here, log);
                }
            }
            rest = after;
        };
        let frames = places.len() - first;
        Walk { bytes: bytes.len() - rest.len(), frames, low_ns, high_ns, next }
    }

    /// The packet of an enhanced packet block, or of an obsolete packet block. Here and below, `body` begins with the
    /// block type and ends before the trailer, and a packet's position is relative to the start of its block.
    #[inline(always)]
    fn enhanced<const BIG: bool>(
        &self,
        body: &[u8],
        obsolete: bool,
        here: &Block,
        log: &mut Log,
    ) -> Option<Place> {
        let Some((header, after)) = body.split_first_chunk::<DATA>() else {
            here.too_small(body, DATA, log);
            return None;
        };
        let at =
            |at: usize| word::<BIG>([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let interface = if obsolete {
            let both = at(8);
            (if BIG { both >> 16 } else { both & 0xffff }) as usize
        } else {
            at(8) as usize
        };
        let time = u64::from(at(12)) << 32 | u64::from(at(16));
        let (captured, original) = (at(20), at(24));
        let Some(Some(known)) = self.interfaces.get(interface) else {
            here.no_interface(interface, self.interfaces.len(), log);
            return None;
        };
        if after.len() < captured as usize {
            here.too_small(body, DATA + captured as usize, log);
            return None;
        }
        if (captured > original) | (captured > known.snaplen) {
            here.warn_of_lengths(captured, original, known.snaplen, log);
        }
        Some(Place {
            ts_ns: known.nanoseconds(time),
            at: DATA as u32,
            len: captured,
            original_len: original,
            link: known.link,
            tag: 0,
        })
    }

    /// The packet of a simple packet block: interface 0, truncated to its snaplen, without a time.
    fn simple<const BIG: bool>(&self, body: &[u8], here: &Block, log: &mut Log) -> Option<Place> {
        let Some((header, after)) = body.split_first_chunk::<SIMPLE_DATA>() else {
            here.too_small(body, SIMPLE_DATA, log);
            return None;
        };
        let original = word::<BIG>([header[8], header[9], header[10], header[11]]);
        let Some(Some(known)) = self.interfaces.first() else {
            here.no_interface(0, self.interfaces.len(), log);
            return None;
        };
        let captured = original.min(known.snaplen);
        if after.len() < captured as usize {
            here.too_small(body, SIMPLE_DATA + captured as usize, log);
            return None;
        }
        Some(Place {
            ts_ns: 0,
            at: SIMPLE_DATA as u32,
            len: captured,
            original_len: original,
            link: known.link,
            tag: 0,
        })
    }

    /// Stores an interface description. A damaged one takes a number, too, so that later interfaces keep theirs.
    #[cold]
    fn describe<const BIG: bool>(&mut self, body: &[u8], sound: bool, here: &Block, log: &mut Log) {
        if self.interfaces.len() == MAX_INTERFACES {
            log.warn(NoticeKind::TooManyInterfaces { offset: here.offset, max: MAX_INTERFACES });
            return;
        }
        let Some((fixed, options)) = body.split_first_chunk::<16>().filter(|_| sound) else {
            if sound {
                here.too_small(body, 16, log);
            }
            log.damaged += 1;
            self.interfaces.push(None);
            return;
        };
        let [_, _, _, _, _, _, _, _, t0, t1, _, _, s0, s1, s2, s3] = *fixed;
        let link = LinkType(half::<BIG>([t0, t1]));
        let mut interface = Interface::new(link, word::<BIG>([s0, s1, s2, s3]));
        if !options_of::<BIG>(options, |code, value| interface.option::<BIG>(code, value)) {
            log.warn(NoticeKind::BadOptions { offset: here.offset });
        }
        self.interfaces.push(Some(interface));
    }
}

/// Fields of a section header.
struct Section {
    big_endian: bool,
    header_len: u32,
}

impl Section {
    fn read(header: &[u8; SECTION_HEADER], offset: u64, packets: u64) -> Result<Self, NoticeKind> {
        let [_, _, _, _, l0, l1, l2, l3, b0, b1, b2, b3, a0, a1, i0, i1, ..] = *header;
        let (len, magic, major, minor) = ([l0, l1, l2, l3], [b0, b1, b2, b3], [a0, a1], [i0, i1]);
        let (big_endian, header_len, major, minor) = match u32::from_be_bytes(magic) {
            0x1a2b_3c4d => (true, word::<true>(len), half::<true>(major), half::<true>(minor)),
            0x4d3c_2b1a => (false, word::<false>(len), half::<false>(major), half::<false>(minor)),
            magic => return Err(NoticeKind::ByteOrder { offset, magic }),
        };
        if major != 1 {
            return Err(NoticeKind::Version { offset, major, minor });
        }
        if (header_len as usize) < SECTION_HEADER || !header_len.is_multiple_of(4) {
            return Err(Block { offset, packets }.invalid_length(header_len));
        }
        Ok(Self { big_endian, header_len })
    }
}

/// The position of a block in the file, bytes, and the number of packets before it. Creates the notices about it.
struct Block {
    offset: u64,
    packets: u64,
}

impl Block {
    #[cold]
    fn invalid_length(&self, len: u32) -> NoticeKind {
        NoticeKind::InvalidLength { offset: self.offset, packets: self.packets, len }
    }

    #[cold]
    fn lengths_differ(&self, first: u32, second: u32, log: &mut Log) {
        log.warn(NoticeKind::LengthsDiffer {
            offset: self.offset,
            packets: self.packets,
            first,
            second,
        });
    }

    #[cold]
    fn too_small(&self, body: &[u8], needed: usize, log: &mut Log) {
        log.warn(NoticeKind::BlockTooSmall {
            offset: self.offset,
            packets: self.packets,
            len: (body.len() + TRAILER) as u64,
            needed: (needed + TRAILER) as u64,
        });
    }

    #[cold]
    fn no_interface(&self, interface: usize, known: usize, log: &mut Log) {
        log.warn(NoticeKind::NoSuchInterface {
            offset: self.offset,
            packets: self.packets,
            interface: interface as u32,
            known,
        });
    }

    #[cold]
    fn warn_of_lengths(&self, captured: u32, original: u32, snaplen: u32, log: &mut Log) {
        let (packet, offset) = (self.packets + 1, self.offset);
        if captured > original {
            log.warn(NoticeKind::CapturedBeyondOriginal { packet, offset, captured, original });
        }
        if captured > snaplen {
            log.warn(NoticeKind::CapturedBeyondSnaplen { packet, offset, captured, snaplen });
        }
    }
}

/// Passes the options of a block to `each`; false if they are malformed. Options before the malformed position are
/// valid.
fn options_of<const BIG: bool>(mut bytes: &[u8], mut each: impl FnMut(u16, &[u8]) -> bool) -> bool {
    let mut sound = true;
    while let Some((&[c0, c1, l0, l1], after)) = bytes.split_first_chunk::<4>() {
        let code = half::<BIG>([c0, c1]);
        let len = usize::from(half::<BIG>([l0, l1]));
        if code == 0 {
            return sound && len == 0;
        }
        let Some(value) = after.get(..len) else {
            return false;
        };
        sound &= each(code, value);
        bytes = after.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    sound && bytes.is_empty()
}

#[inline(always)]
fn word<const BIG: bool>(bytes: [u8; 4]) -> u32 {
    if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

#[inline(always)]
fn half<const BIG: bool>(bytes: [u8; 2]) -> u16 {
    if BIG { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}
