//! The ClientHello of SSL 2.0, which clients of later versions sent, too (RFC 5246, appendix E.2).
//!
//! ```text
//! | length, top bit set | 1 | version | cipher specs | session id | challenge | lengths of the three before them …
//!   2                     1   2         2 …            2 …          2
//! ```

use crate::Progress;
use crate::opening::{Bytes, Opening};

/// The version and the lengths are below 256 as a rule.
pub(super) const OPENING: Opening = Opening {
    first: Bytes::of(&[0x80, 0x81]),
    third: Bytes::of(&[CLIENT_HELLO]),
    sixth: Bytes::of(&[0, 1]),
    eighth: Bytes::of(&[0]),
    from: None,
    ..Opening::ANY
};

const CLIENT_HELLO: u8 = 1;
/// Bytes from the type to the lengths.
const HEAD: usize = 9;

/// The version that the client offers, if these bytes are its hello.
///
/// # Errors
/// `More`: it is not complete. `Other`: it is something else.
pub(super) fn version(bytes: &[u8]) -> Result<u16, Progress> {
    let head = &bytes[..bytes.len().min(2 + HEAD)];
    let possible = |at: usize, is: fn(u8) -> bool| head.get(at).is_none_or(|&byte| is(byte));
    if !possible(0, |high| matches!(high, 0x80 | 0x81))
        || !possible(2, |kind| kind == CLIENT_HELLO)
        || !possible(3, |major| matches!(major, 0 | 3))
        || !possible(5, |high| high < 2)
    {
        return Err(Progress::Other);
    }
    let &[high, low, _, major, minor, c0, c1, s0, s1, n0, n1] = head else {
        return Err(Progress::More(0));
    };
    let number = |high, low| usize::from(u16::from_be_bytes([high, low]));
    let len = number(high & 0x7f, low);
    let [ciphers, session, challenge] = [number(c0, c1), number(s0, s1), number(n0, n1)];
    let version = u16::from_be_bytes([major, minor]);
    let fits = HEAD + ciphers + session + challenge == len
        && ciphers > 0
        && ciphers.is_multiple_of(3)
        && matches!(session, 0 | 16)
        && (16..=32).contains(&challenge)
        && matches!(version, 0x0002 | 0x0300..=0x0304);
    match fits {
        false => Err(Progress::Other),
        true if bytes.len() < 2 + len => Err(Progress::More(0)),
        true => Ok(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_are_recognised_by_their_lengths() {
        let hello = |version: [u8; 2]| {
            let head = [0x80, 9 + 6 + 16, 1, version[0], version[1], 0, 6, 0, 0, 0, 16];
            [&head[..], &[1, 0, 0x80, 0, 0, 5], &[7; 16]].concat()
        };
        assert_eq!(version(&hello([0, 2])), Ok(2));
        assert_eq!(version(&hello([3, 1])), Ok(0x0301));
        assert_eq!(version(&hello([3, 9])), Err(Progress::Other));
        let whole = hello([3, 0]);
        for len in 0..whole.len() {
            assert_eq!(version(&whole[..len]), Err(Progress::More(0)), "{len}");
        }
        for at in [1, 2, 6, 8, 10] {
            let mut other = whole.clone();
            other[at] += 1;
            assert_eq!(version(&other), Err(Progress::Other), "{at}");
        }
    }
}
