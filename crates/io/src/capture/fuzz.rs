//! Entry points of fuzz targets: any bytes, read at once or a few at a time, must give the same result.
//!
//! Compiled for tests and with the feature `fuzz`. Invariant: no bytes make a reader panic or run forever, and the
//! sizes of the reads do not change the result.

use std::io::{self, Cursor, Read};

use crate::capture::frame::MAX_CAPTURED_LEN;
use crate::capture::{Files, pcapng};

/// A frame's time, link type, original length and data.
type Seen = (u64, u16, u32, Vec<u8>);

/// Reads `bytes` as a classic pcap file. The magic number is added if it is missing.
///
/// # Panics
/// The reader violates an invariant.
pub fn fuzz_pcap(bytes: &[u8]) {
    const MAGICS: [[u8; 4]; 6] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0xcd, 0x34],
        [0x34, 0xcd, 0xb2, 0xa1],
    ];
    let mut bytes = bytes.to_vec();
    if let Some(magic) = bytes.first_chunk_mut::<4>()
        && !MAGICS.contains(magic)
    {
        *magic = MAGICS[usize::from(magic[0]) % MAGICS.len()];
    }
    same_however_read(&bytes);
}

/// Reads `bytes` as a pcapng file. A section header is added if it is missing.
///
/// # Panics
/// The reader violates an invariant.
pub fn fuzz_pcapng(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if let Some(header) = bytes.first_chunk_mut::<16>()
        && header[..4] != pcapng::MAGIC
    {
        let big = header[0] & 1 == 1;
        let order = 0x1a2b_3c4d_u32;
        header[..4].copy_from_slice(&pcapng::MAGIC);
        header[4..8].copy_from_slice(&if big {
            28_u32.to_be_bytes()
        } else {
            28_u32.to_le_bytes()
        });
        header[8..12].copy_from_slice(&if big { order.to_be_bytes() } else { order.to_le_bytes() });
        header[12..].copy_from_slice(&if big { [0, 1, 0, 0] } else { [1, 0, 0, 0] });
    }
    same_however_read(&bytes);
}

fn same_however_read(bytes: &[u8]) {
    let whole = read(Cursor::new(bytes.to_vec()), 1000, bytes.len());
    let seed = bytes.len() + bytes.last().map_or(0, |&last| usize::from(last));
    let crumbs = Crumbs { inner: Cursor::new(bytes.to_vec()), most: 1 + seed % 61, turn: seed };
    let again = read(crumbs, 1 + seed % 5, bytes.len());
    assert!(whole == again, "{whole:?}\n{again:?}");
}

/// All frames, all notices as text, and the number of damaged packets.
fn read(reader: impl Read + Send + 'static, max: usize, len: usize) -> (Vec<Seen>, String, u64) {
    let mut files = Files::from_reader("fuzz", reader);
    let mut frames = Vec::new();
    let mut captured = 0;
    while files.burst(max, |frame| {
        assert!(frame.data.len() <= MAX_CAPTURED_LEN as usize + (64 << 10));
        captured += 12 + frame.data.len();
        frames.push((frame.ts_ns, frame.link.0, frame.original_len, frame.data.to_vec()));
    }) > 0
    {}
    assert!(captured <= len, "more was read than there is");
    let notices = format!("{:?}", files.take_notices());
    assert!(files.position().bytes_read <= len as u64);
    (frames, notices, files.damaged())
}

/// A reader that returns a few bytes at a time.
struct Crumbs {
    inner: Cursor<Vec<u8>>,
    most: usize,
    turn: usize,
}

impl Read for Crumbs {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.turn = self.turn.wrapping_mul(31).wrapping_add(7);
        let len = (1 + self.turn % self.most).min(out.len());
        self.inner.read(&mut out[..len])
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use ringtap_wire::LinkType;

    use super::*;
    use crate::capture::PcapWriter;

    fn pcap() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = PcapWriter::new(&mut bytes, LinkType(1), 100);
        for number in 0..20_u8 {
            let data = vec![number; usize::from(number) * 7];
            let time = u64::from(number) * 1_000_000_007;
            writer.write(time, data.len() as u32, &data).unwrap();
        }
        drop(writer);
        bytes
    }

    /// Section, interface, and packets of each kind, little-endian.
    fn pcapng() -> Vec<u8> {
        fn block(out: &mut Vec<u8>, kind: u8, words: &[u32]) {
            let len = words.len() as u32 * 4 + 12;
            let kind = [u32::from(kind), 0x0a0d_0d0a][usize::from(kind == 0)];
            let around = [kind, len];
            for word in around.iter().chain(words).chain(&[len]) {
                out.extend(word.to_le_bytes());
            }
        }
        let mut bytes = Vec::new();
        for _ in 0..2 {
            block(&mut bytes, 0, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
            block(&mut bytes, 1, &[1, 0, 0x0001_0009, 9, 0]);
            block(&mut bytes, 1, &[101, 60]);
            for word in 0..8 {
                block(&mut bytes, 6, &[word & 1, 0, word, 8, 9, word, word, 0]);
                block(&mut bytes, 9, &[word; 3]);
                block(&mut bytes, 2, &[0, 0, word, 4, 4, word]);
                block(&mut bytes, 3, &[8, word, word]);
            }
        }
        bytes
    }

    fn mutated(whole: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
        let edit = (any::<prop::sample::Index>(), any::<u8>());
        let cut = any::<prop::sample::Index>();
        (vec(edit, 0..6), cut, any::<bool>()).prop_map(move |(edits, cut, cuts)| {
            let mut bytes = whole.clone();
            for (place, value) in edits {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            if cuts {
                bytes.truncate(cut.index(bytes.len()));
            }
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

        #[test]
        fn any_bytes(bytes in vec(any::<u8>(), 0..400)) {
            fuzz_pcap(&bytes);
            fuzz_pcapng(&bytes);
        }

        #[test]
        fn mutated_pcap(bytes in mutated(pcap())) {
            fuzz_pcap(&bytes);
        }

        #[test]
        fn mutated_pcapng(bytes in mutated(pcapng())) {
            fuzz_pcapng(&bytes);
        }
    }

    #[test]
    fn unmutated_files_have_their_packets() {
        let count = |bytes: Vec<u8>| {
            let len = bytes.len();
            read(Cursor::new(bytes), 7, len).0.len()
        };
        assert_eq!(count(pcap()), 20);
        assert_eq!(count(pcapng()), 48);
    }
}
