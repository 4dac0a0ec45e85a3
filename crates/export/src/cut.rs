//! The end of a file whose process ended early: everything up to its last whole record is kept.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

use crate::search::rfind;

/// What a format's records end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A line feed.
    Line,
    /// The length in the header of an IPFIX message (RFC 7011, section 3.1).
    Message,
    /// The metadata behind each row group.
    #[cfg(feature = "parquet")]
    RowGroup,
}

impl Cut {
    /// Removes what follows the last whole record of `file`, and appends what its format needs at the end. Returns
    /// the number of bytes of whole records; with 0, there are none, and the file is of no use.
    ///
    /// # Errors
    /// The error of the system; contents that the format does not have.
    pub fn finish(self, file: &mut File) -> io::Result<u64> {
        let len = file.seek(SeekFrom::End(0))?;
        let end = match self {
            Self::Line => last_line(file, len)?,
            Self::Message => last_message(file, len)?,
            #[cfg(feature = "parquet")]
            Self::RowGroup => return crate::formats::finish_parquet(file, len),
        };
        file.set_len(end)?;
        Ok(end)
    }
}

/// The end of the last line.
fn last_line(file: &mut File, len: u64) -> io::Result<u64> {
    let found = rfind(file, len, b"\n", |_, _| Ok(true))?;
    Ok(found.map_or(0, |at| at + 1))
}

/// The end of the last message.
fn last_message(file: &mut File, len: u64) -> io::Result<u64> {
    let mut end = 0;
    let mut header = [0; 4];
    while len - end >= header.len() as u64 {
        file.seek(SeekFrom::Start(end))?;
        file.read_exact(&mut header)?;
        let [v0, v1, l0, l1] = header;
        let octets = u64::from(u16::from_be_bytes([l0, l1]));
        if u16::from_be_bytes([v0, v1]) != 10 || octets < 16 {
            return Err(io::Error::new(ErrorKind::InvalidData, "it has no IPFIX messages"));
        }
        if end + octets > len {
            break;
        }
        end += octets;
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::search::PIECE;

    fn cut(cut: Cut, bytes: &[u8]) -> io::Result<(u64, Vec<u8>)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let end = cut.finish(&mut file)?;
        let mut left = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut left).unwrap();
        Ok((end, left))
    }

    #[test]
    fn lines_end_with_the_last_whole_one() {
        let long =
            [&vec![b'x'; PIECE as usize + 7][..], b"\n", &vec![b'y'; 3 * PIECE as usize]].concat();
        for (bytes, end) in [(&b"a\nb\nc"[..], 4), (b"a\n", 2), (b"a", 0), (b"", 0)] {
            assert_eq!(cut(Cut::Line, bytes).unwrap(), (end, bytes[..end as usize].to_vec()));
        }
        assert_eq!(cut(Cut::Line, &long).unwrap().0, PIECE + 8);
    }

    #[test]
    fn messages_end_with_the_last_whole_one_and_others_are_refused() {
        let message = [&[0, 10, 0, 20][..], &[7; 16]].concat();
        let three = message.repeat(3);
        for len in 0..three.len() {
            let (end, left) = cut(Cut::Message, &three[..len]).unwrap();
            assert_eq!((end as usize, left), (len / 20 * 20, three[..len / 20 * 20].to_vec()));
        }
        assert!(cut(Cut::Message, b"text and more").is_err());
        assert!(cut(Cut::Message, &[0, 10, 0, 3, 0]).is_err());
    }
}
