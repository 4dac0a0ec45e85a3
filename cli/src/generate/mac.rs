//! MAC addresses of flags, and their replacement in frames.

use std::str::FromStr;

/// A MAC address in the form `02:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("invalid MAC address {text:?}: use 02:00:00:00:00:01");
        let mut bytes = [0; 6];
        let mut parts = text.split([':', '-']);
        for byte in &mut bytes {
            let part = parts.next().filter(|part| (1..=2).contains(&part.len()));
            let digits = part.filter(|part| part.bytes().all(|one| one.is_ascii_hexdigit()));
            *byte = u8::from_str_radix(digits.ok_or_else(error)?, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(Self(bytes)) }
    }
}

/// The addresses to set.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Macs {
    pub(super) source: Option<Mac>,
    pub(super) destination: Option<Mac>,
}

impl Macs {
    /// Sets the addresses of a frame; shorter frames are not changed.
    pub(super) fn rewrite(&self, frame: &mut [u8]) {
        let Some(addresses) = frame.first_chunk_mut::<12>() else { return };
        if let Some(Mac(mac)) = self.destination {
            addresses[..6].copy_from_slice(&mac);
        }
        if let Some(Mac(mac)) = self.source {
            addresses[6..].copy_from_slice(&mac);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses_are_parsed() {
        assert_eq!("02:00:5e:0:fF:1".parse(), Ok(Mac([2, 0, 0x5e, 0, 255, 1])));
        assert_eq!("02-00-00-00-00-09".parse(), Ok(Mac([2, 0, 0, 0, 0, 9])));
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "02:00:00:00:00:100",
            "0g:0:0:0:0:0",
            "+1:0:0:0:0:0",
        ] {
            assert!(wrong.parse::<Mac>().is_err_and(|error| error.contains("02:00")), "{wrong}");
        }
    }

    #[test]
    fn only_the_given_addresses_are_replaced() {
        let mut frame: Vec<u8> = (0..14).collect();
        Macs::default().rewrite(&mut frame);
        assert_eq!(frame, (0..14).collect::<Vec<u8>>());
        Macs { source: Some(Mac([9; 6])), destination: None }.rewrite(&mut frame);
        assert_eq!(frame, [0, 1, 2, 3, 4, 5, 9, 9, 9, 9, 9, 9, 12, 13]);
        let mut short = [1; 11];
        Macs { source: Some(Mac([9; 6])), destination: None }.rewrite(&mut short);
        assert_eq!(short, [1; 11]);
    }
}
