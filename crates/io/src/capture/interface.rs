//! An interface of a pcapng section: link type, snaplen, and the unit of its clock.
//!
//! Source: draft-ietf-opsawg-pcapng, section 4.2: `if_tsresol` (9) is one byte, 10⁻ᵉ seconds, or 2⁻ᵉ if the top bit is
//! set; `if_tsoffset` (14) is a signed number of seconds to add. Invariant: any resolution and offset results in a
//! time, saturating at 0 and 2⁶⁴ − 1 ns.

use ringtap_wire::LinkType;

const SECOND_NS: u32 = 1_000_000_000;

pub(crate) struct Interface {
    pub(crate) link: LinkType,
    /// Largest captured length in bytes; `u32::MAX` if unlimited.
    pub(crate) snaplen: u32,
    /// Nanoseconds in one unit of time, or 0 if the unit is not a whole number of nanoseconds or an offset is set.
    unit_ns: u64,
    /// The value of `if_tsresol`.
    resolution: u8,
    /// `if_tsoffset`.
    offset_seconds: i64,
}

impl Interface {
    /// An interface with microseconds since 1970.
    pub(crate) fn new(link: LinkType, snaplen: u32) -> Self {
        Self {
            link,
            snaplen: if snaplen == 0 { u32::MAX } else { snaplen },
            unit_ns: 1000,
            resolution: 6,
            offset_seconds: 0,
        }
    }

    /// Applies an option; false if its value is invalid.
    pub(crate) fn option<const BIG: bool>(&mut self, code: u16, value: &[u8]) -> bool {
        match (code, value) {
            (9, &[resolution]) => self.resolution = resolution,
            (14, &[a, b, c, d, e, f, g, h]) => {
                let bytes = [a, b, c, d, e, f, g, h];
                self.offset_seconds =
                    if BIG { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) };
            }
            (9 | 14, _) => return false,
            _ => {}
        }
        self.unit_ns = match (self.resolution, self.offset_seconds) {
            (exponent @ 0..=9, 0) => 10_u64.pow(9 - u32::from(exponent)),
            _ => 0,
        };
        true
    }

    /// Nanoseconds since 1970 of a time field in a block.
    #[inline(always)]
    pub(crate) fn nanoseconds(&self, time: u64) -> u64 {
        if self.unit_ns != 0 {
            time.saturating_mul(self.unit_ns)
        } else {
            self.nanoseconds_of_unusual(time)
        }
    }

    #[cold]
    fn nanoseconds_of_unusual(&self, time: u64) -> u64 {
        let exponent = u32::from(self.resolution & 0x7f);
        // At most 2⁶⁴ · 10⁹, which is below 2⁹⁴.
        let billionths = u128::from(time) * u128::from(SECOND_NS);
        let since_offset = if self.resolution & 0x80 != 0 {
            billionths >> exponent
        } else {
            // 10³⁹ exceeds 128 bits and every time.
            10_u128.checked_pow(exponent).map_or(0, |units| billionths / units)
        };
        let offset = i128::from(self.offset_seconds) * i128::from(SECOND_NS);
        let ns = since_offset as i128 + offset;
        ns.clamp(0, i128::from(u64::MAX)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(resolution: u8, offset: i64) -> Interface {
        let mut interface = Interface::new(LinkType(1), 0);
        assert!(interface.option::<false>(9, &[resolution]));
        assert!(interface.option::<false>(14, &offset.to_le_bytes()));
        interface
    }

    #[test]
    fn usual_resolutions() {
        assert_eq!(Interface::new(LinkType(1), 0).nanoseconds(7), 7_000);
        assert_eq!(with(6, 0).nanoseconds(7), 7_000);
        assert_eq!(with(9, 0).nanoseconds(7), 7);
        assert_eq!(with(0, 0).nanoseconds(7), 7_000_000_000);
        assert_eq!(with(3, 2).nanoseconds(7), 2_007_000_000);
        assert_eq!(with(6, -1).nanoseconds(1_500_000), 500_000_000);
        assert_eq!(with(12, 0).nanoseconds(1_999), 1);
        assert_eq!(with(0x80 | 1, 0).nanoseconds(3), 1_500_000_000);
        assert_eq!(with(0x80 | 32, 0).nanoseconds(1 << 33), 2_000_000_000);
    }

    #[test]
    fn every_resolution_and_offset_saturates() {
        for resolution in 0..=u8::MAX {
            for offset in [i64::MIN, -1, 0, 1, i64::MAX] {
                let interface = with(resolution, offset);
                let mut last = 0;
                for time in [0, 1, 1 << 32, u64::MAX / 2, u64::MAX] {
                    let ns = interface.nanoseconds(time);
                    assert!(ns >= last, "{resolution:#x} {offset} {time}");
                    last = ns;
                }
            }
            assert_eq!(with(resolution, i64::MIN).nanoseconds(u64::MAX / 2), 0);
            assert_eq!(with(resolution, i64::MAX).nanoseconds(1), u64::MAX);
        }
    }

    #[test]
    fn options_of_wrong_length_are_refused() {
        let mut interface = Interface::new(LinkType(1), 0);
        assert!(!interface.option::<false>(9, &[]));
        assert!(!interface.option::<false>(9, &[9, 9]));
        assert!(!interface.option::<false>(14, &[0; 7]));
        assert!(interface.option::<false>(2, b"eth0"));
        assert_eq!(interface.nanoseconds(1), 1_000);
    }
}
