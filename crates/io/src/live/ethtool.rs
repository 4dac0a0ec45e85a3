//! Requests of ethtool(8) to the driver of an interface.

use std::io;

use crate::live::error::OpenError;
use crate::live::interface::Interface;

/// An interface whose driver is asked for its settings, or to change them. It may be renamed meanwhile.
pub struct Ethtool(Interface);

impl Ethtool {
    /// The interface called `name`.
    ///
    /// # Errors
    /// No interface has this name.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Interface::open(name).map(Self)
    }

    /// Passes a request to the driver, which writes its answer over it: a struct of `linux/ethtool.h`, with the
    /// command in its first 32 bits. The struct decides which fields the request needs.
    ///
    /// # Errors
    /// That of the driver, such as [`io::ErrorKind::Unsupported`]; invalid input if the answer may be longer than the
    /// request, or the command is none of those for queues, rings, features and hashing.
    pub fn call(&self, request: &mut [u8]) -> io::Result<()> {
        self.0.ethtool(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_room_for_the_answer_is_refused() {
        let lo = Ethtool::open("lo").unwrap();
        let call = |words: &[u32], len: usize| {
            let mut request: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            request.resize(len, 0);
            lo.call(&mut request).map(|()| request)
        };
        // The features of all interfaces are known, in at least one block.
        let features = call(&[0x3a, 1], 24).unwrap();
        assert!(features[8..].iter().any(|&byte| byte != 0), "{features:?}");
        for (words, room) in [
            (&[0x03][..], 196),
            (&[0x10], 36),
            (&[0x3d], 36),
            (&[0x29, 1], 192),
            (&[0x1b, 4], 8204),
            (&[0x3a, 2], 40),
            (&[0x3b, 2], 24),
            (&[0x46, 0, 128, 40], 576),
            (&[0x47, 0, u32::MAX, 40], 64),
            (&[0x3a, u32::MAX], 1 << 16),
            (&[0x46, 0, u32::MAX - 1, u32::MAX], 1 << 16),
        ] {
            let error = call(words, room - 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{words:x?}");
        }
        // ETHTOOL_GSTATS, whose answer has any length.
        let error = call(&[0x1d, 0], 1 << 16).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
