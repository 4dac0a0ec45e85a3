//! Cuts a super-frame of TCP or UDP into the frames that the network card would make of it.
//!
//! ```text
//!  | headers | payload 0 | payload 1 | payload 2 |
//!  segment i: headers, with length, IPv4 identification + i and header checksum, sequence number + i · size,
//!             CWR only in the first, FIN and PSH only in the last, checksum │ payload i
//! ```
//!
//! Invariant: the payloads of the segments, in order, are the payload of the super-frame.

use super::checksum::{AT_TCP, AT_UDP, put_sum};
use super::headers::{Headers, TCP, UDP};
use super::marks::{Marks, kind};
use super::sum::{fold, sum};
use super::virtio::{Offload, OffloadError};

const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// Offset of the flags in the TCP header, and the flags that not all segments have.
const AT_FLAGS: usize = 13;
const FIN: u8 = 0x01;
const PUSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// The layout of a super-frame: how to cut it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    headers: Headers,
    /// Offset of the payload.
    payload: usize,
    size: usize,
    ecn: bool,
    /// UDP without a checksum.
    unchecked: bool,
    /// The packet fills the frame, and the length in the UDP header is that of the packet.
    exact: bool,
}

impl Segments {
    /// Parses the headers of `frame`; `None` if it is not a super-frame.
    ///
    /// # Errors
    /// If its kind is not supported, or the headers do not match it.
    pub fn of(frame: &[u8], offload: Offload) -> Result<Option<Self>, OffloadError> {
        match offload {
            Offload::Segments { size, tcp, ecn, checksum } => {
                let segments = Self::new(frame, size.into(), tcp)?;
                // A checksum elsewhere: that of a packet within a tunnel.
                match checksum.is_none_or(|place| place == segments.checksum()) {
                    true => Ok(Some(Self { ecn, ..segments })),
                    false => Err(OffloadError),
                }
            }
            Offload::Unsupported => Err(OffloadError),
            _ => Ok(None),
        }
    }

    fn new(frame: &[u8], size: usize, tcp: bool) -> Result<Self, OffloadError> {
        let protocol = if tcp { TCP } else { UDP };
        let headers = Headers::find(frame).filter(|found| found.protocol == protocol);
        let headers = headers.ok_or(OffloadError)?;
        let transport = frame.get(headers.transport..headers.end).ok_or(OffloadError)?;
        let whole = headers.end == frame.len();
        let (len, unchecked, exact) = if tcp {
            let header = transport.first_chunk::<TCP_HEADER>().ok_or(OffloadError)?;
            (usize::from(header[12] >> 4) * 4, false, whole)
        } else {
            let header = transport.first_chunk::<UDP_HEADER>().ok_or(OffloadError)?;
            let declared = usize::from(u16::from_be_bytes([header[4], header[5]]));
            (UDP_HEADER, header[AT_UDP..] == [0, 0], whole && declared == transport.len())
        };
        let least = if tcp { TCP_HEADER } else { UDP_HEADER };
        if len < least || transport.len() <= len || size == 0 {
            return Err(OffloadError);
        }
        let payload = headers.transport + len;
        Ok(Self { headers, payload, size, ecn: false, unchecked, exact })
    }

    /// Start and offset of the checksum.
    fn checksum(&self) -> (u32, u32) {
        let at = if self.headers.protocol == TCP { AT_TCP } else { AT_UDP };
        (self.headers.transport as u32, at as u32)
    }

    /// Prepares `frame`, the super-frame given to [`Segments::of`], so that the kernel cuts it: the
    /// checksum field gets the sum of the pseudo header. `None`, and no change: the kernel would
    /// take padding for payload, compute a checksum that the sender has omitted, or compute it with
    /// a wrong length of the UDP header.
    pub fn mark(&self, frame: &mut [u8]) -> Option<Marks> {
        let Self { headers, payload, size, ecn, unchecked, exact } = *self;
        if unchecked || !exact {
            return None;
        }
        let (start, offset) = self.checksum();
        let kind = kind(headers.protocol == TCP, headers.v6, ecn);
        let marks = Marks::new(kind, payload, size, start, offset)?;
        let pseudo = fold(headers.pseudo(frame, headers.end - headers.transport));
        put(frame, (start + offset) as usize, u16::from_be_bytes(pseudo.to_ne_bytes()));
        Some(marks)
    }

    /// Number of segments; at least one.
    pub fn count(&self) -> usize {
        (self.headers.end - self.payload).div_ceil(self.size)
    }

    /// Length of the longest segment with its headers, in bytes.
    pub fn longest(&self) -> usize {
        self.payload + self.size.min(self.headers.end - self.payload)
    }

    /// Appends segment `index` of `frame` to `to`. `frame` is the super-frame given to
    /// [`Segments::of`]. If there is no such segment, nothing is appended.
    pub fn append(&self, frame: &[u8], index: usize, to: &mut Vec<u8>) {
        let Self { headers: Headers { ip, v6, protocol, transport, end }, payload, size, .. } =
            *self;
        let from = payload + index * size;
        let until = (from + size).min(end);
        let (Some(head), Some(piece)) = (frame.get(..payload), frame.get(from..until)) else {
            return;
        };
        if piece.is_empty() {
            return;
        }
        let begin = to.len();
        to.extend_from_slice(head);
        to.extend_from_slice(piece);
        let Some(segment) = to.get_mut(begin..) else { return };
        let len = segment.len();
        if v6 {
            put(segment, ip + 4, (len - ip - 40) as u16);
        } else {
            put(segment, ip + 2, (len - ip) as u16);
            let id = half(segment, ip + 4).wrapping_add(index as u16);
            put(segment, ip + 4, id);
            put(segment, ip + 10, 0);
            let checksum = !fold(sum(segment.get(ip..transport).unwrap_or_default()));
            put(segment, ip + 10, u16::from_be_bytes(checksum.to_ne_bytes()));
        }
        let at = if protocol == TCP {
            self.set_sequence_and_flags(segment, index, until == end);
            AT_TCP
        } else {
            put(segment, transport + 4, (len - transport) as u16);
            AT_UDP
        };
        if self.unchecked {
            return;
        }
        let pseudo = fold(self.headers.pseudo(segment, len - transport));
        put(segment, transport + at, u16::from_be_bytes(pseudo.to_ne_bytes()));
        if let Some(packet) = segment.get_mut(transport..) {
            put_sum(packet, at);
        }
    }

    /// Sets the sequence number and the flags of TCP.
    fn set_sequence_and_flags(&self, segment: &mut [u8], index: usize, last: bool) {
        let tcp = self.headers.transport;
        if let Some(place) = segment.get_mut(tcp + 4..tcp + 8) {
            let mut number = [0; 4];
            number.copy_from_slice(place);
            let moved = (index * self.size) as u32;
            place.copy_from_slice(&u32::from_be_bytes(number).wrapping_add(moved).to_be_bytes());
        }
        if let Some(flags) = segment.get_mut(tcp + AT_FLAGS) {
            *flags &= if index > 0 { !CWR } else { u8::MAX };
            *flags &= if last { u8::MAX } else { !(FIN | PUSH) };
        }
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&half| u16::from_be_bytes(half))
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(place) = bytes.get_mut(at..at + 2) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::live::offload::checksum::tests::is_right;

    fn frame(tags: &[u16], v6: bool, protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 7]);
        }
        let len = transport.len() as u16;
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend((0..32).map(|byte| byte * 7));
        } else {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((len + 20).to_be_bytes());
            frame.extend([0xff, 0xfe, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        }
        frame.extend(transport);
        frame
    }

    fn payload(len: usize) -> impl Iterator<Item = u8> {
        (0..len).map(|place| ((place * 31) >> 3) as u8)
    }

    /// A segment with options, sequence number 2³² − 10 and all flags.
    pub(in crate::live::offload) fn tcp(tags: &[u16], v6: bool, len: usize) -> Vec<u8> {
        let mut transport = vec![0x30, 0x39, 0, 80, 0xff, 0xff, 0xff, 0xf6, 0, 0, 0, 9];
        transport.extend([0x60, 0xff, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        transport.extend(payload(len));
        frame(tags, v6, TCP, &transport)
    }

    pub(in crate::live::offload) fn udp(tags: &[u16], v6: bool, len: usize) -> Vec<u8> {
        let mut transport = vec![0x30, 0x39, 0, 53];
        transport.extend((len as u16 + 8).to_be_bytes());
        transport.extend([0xab, 0xcd]);
        transport.extend(payload(len));
        frame(tags, v6, UDP, &transport)
    }

    fn offload(size: u16, tcp: bool) -> Offload {
        Offload::Segments { size, tcp, ecn: false, checksum: None }
    }

    fn cut(frame: &[u8], size: u16, tcp: bool) -> Vec<Vec<u8>> {
        let segments = Segments::of(frame, offload(size, tcp)).unwrap().unwrap();
        let cut: Vec<_> = (0..segments.count())
            .map(|index| {
                let mut one = Vec::new();
                segments.append(frame, index, &mut one);
                one
            })
            .collect();
        assert_eq!(cut.iter().map(Vec::len).max(), Some(segments.longest()));
        let mut none = Vec::new();
        segments.append(frame, segments.count(), &mut none);
        assert!(none.is_empty());
        cut
    }

    #[test]
    fn segments_are_valid_packets_and_carry_the_whole_payload() {
        for (tags, v6) in [(&[][..], false), (&[0x8100], true), (&[0x88a8, 0x8100], false)] {
            for len in [1, 1447, 1448, 1449, 10_000, 60_000] {
                for (tcp, super_frame) in [(true, tcp(tags, v6, len)), (false, udp(tags, v6, len))]
                {
                    let header = super_frame.len() - len;
                    let mut joined: Vec<u8> = Vec::new();
                    let segments = cut(&super_frame, 1448, tcp);
                    for (index, one) in segments.iter().enumerate() {
                        assert!(is_right(one), "{tags:?} {v6} {len} {tcp} {index}");
                        assert_eq!(Headers::find(one).unwrap().end, one.len());
                        if !v6 {
                            let ip = 14 + 4 * tags.len();
                            assert_eq!(fold(sum(&one[ip..ip + 20])), 0xffff, "IPv4 header");
                            assert_eq!(half(one, ip + 4), 0xfffe_u16.wrapping_add(index as u16));
                        }
                        joined.extend(&one[header..]);
                    }
                    assert!(joined == super_frame[header..], "{len} {tcp}");
                }
            }
        }
    }

    #[test]
    fn sequence_numbers_advance_and_flags_are_in_the_right_segments() {
        let cut = cut(&tcp(&[], false, 25), 10, true);
        let number = |one: &[u8]| u32::from_be_bytes(*one[38..].first_chunk().unwrap());
        assert_eq!(cut.iter().map(|one| number(one)).collect::<Vec<_>>(), [u32::MAX - 9, 0, 10]);
        let flags: Vec<u8> = cut.iter().map(|one| one[34 + AT_FLAGS]).collect();
        assert_eq!(flags, [0xf6, 0x76, 0x7f]);
        assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [68, 68, 63]);
    }

    #[test]
    fn udp_segments_keep_a_missing_checksum() {
        let mut super_frame = udp(&[], false, 100);
        super_frame[40..42].fill(0);
        assert!(cut(&super_frame, 40, false).iter().all(|one| one[40..42] == [0, 0]));
    }

    #[test]
    fn a_marked_super_frame_has_the_header_that_its_own_headers_give() {
        let ecn = |size, tcp, ecn| Offload::Segments { size, tcp, ecn, checksum: None };
        for (tags, v6, more) in [(&[][..], false, 0), (&[0x8100], true, 24), (&[0x8100], false, 4)]
        {
            for tcp in [true, false] {
                let make = if tcp { self::tcp } else { udp };
                let mut frame = make(tags, v6, 5_000);
                let (start, offset) = (34 + more, if tcp { 16 } else { 6 });
                let header = start + if tcp { 24 } else { 8 };
                let kind = [[5, 5], [1, 4]][usize::from(tcp)][usize::from(v6)] | 0x80;
                let segments = Segments::of(&frame, ecn(1_000, tcp, true)).unwrap().unwrap();
                let before: Vec<Vec<u8>> = (0..5)
                    .map(|index| {
                        let mut one = Vec::new();
                        segments.append(&frame, index, &mut one);
                        one
                    })
                    .collect();
                let marks = segments.mark(&mut frame).unwrap();
                let mut expected = vec![1, kind];
                for number in [header, 1_000, start, offset] {
                    expected.extend((number as u16).to_ne_bytes());
                }
                assert_eq!(marks.bytes()[..], expected, "{tags:?} {v6} {tcp}");
                let found = Headers::find(&frame).unwrap();
                let pseudo = fold(found.pseudo(&frame, found.end - found.transport));
                let place = start + offset;
                assert_eq!(frame[place..place + 2], pseudo.to_ne_bytes());
                // It can still be cut.
                for (index, whole) in before.iter().enumerate() {
                    let mut one = Vec::new();
                    segments.append(&frame, index, &mut one);
                    assert_eq!(one, *whole);
                }
            }
        }
        // Cut here: padding, and UDP without a checksum or with a wrong length.
        let padded = &mut [&tcp(&[], false, 5_000)[..], &[0; 3]].concat();
        let mut unchecked = udp(&[], false, 5_000);
        unchecked[40..42].fill(0);
        let mut long = udp(&[], false, 5_000);
        long[39] += 1;
        for (frame, tcp) in [(padded, true), (&mut unchecked, false), (&mut long, false)] {
            let before = frame.clone();
            let segments = Segments::of(frame, offload(1_000, tcp)).unwrap().unwrap();
            assert_eq!((segments.mark(frame), &*frame), (None, &before));
        }
        // Metadata that do not match the headers: those of another packet within.
        for (checksum, is_right) in [((34, 16), true), ((35, 16), false), ((34, 6), false)] {
            let offload =
                Offload::Segments { size: 9, tcp: true, ecn: false, checksum: Some(checksum) };
            assert_eq!(Segments::of(&tcp(&[], false, 100), offload).is_ok(), is_right);
        }
    }

    #[test]
    fn an_invalid_super_frame_is_an_error_and_never_a_panic() {
        let good = tcp(&[], false, 100);
        let of = |frame: &[u8], size, tcp| Segments::of(frame, offload(size, tcp));
        assert_eq!(of(&good, 0, true), Err(OffloadError));
        assert_eq!(of(&good, 10, false), Err(OffloadError));
        assert_eq!(Segments::of(&good, Offload::Unsupported), Err(OffloadError));
        assert_eq!(Segments::of(&good, Offload::Unknown), Ok(None));
        for len in 0..good.len() {
            assert_eq!(of(&good[..len], 10, true), Err(OffloadError), "{len}");
        }
        // Headers only, without payload.
        assert_eq!(of(&tcp(&[], false, 0), 10, true), Err(OffloadError));
        // A tunnel: the outermost protocol is neither TCP nor UDP.
        let mut tunnel = good.clone();
        tunnel[23] = 47;
        assert_eq!(of(&tunnel, 10, true), Err(OffloadError));
        for at in 12..good.len() {
            for bits in [0x01, 0x80, 0xff] {
                let mut wrong = good.clone();
                wrong[at] ^= bits;
                if let Ok(Some(segments)) = of(&wrong, 7, true) {
                    let mut to = Vec::new();
                    (0..segments.count()).for_each(|index| segments.append(&wrong, index, &mut to));
                }
            }
        }
    }
}
