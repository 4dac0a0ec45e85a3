//! Addresses as text: IPv4 in dotted decimals, IPv6 as in RFC 5952, Ethernet in hexadecimal with colons.
//!
//! ```text
//! 2001:0db8:0000:0000:0001:0000:0000:0000  →  2001:db8:0:0:1::
//!                          the longest run of two or more zero groups, the first of equal ones
//! ```
//!
//! Without `core::fmt`, because two IPv6 addresses through it cost more than all other fields of a record.

use ringtap_flow::IpVersion;

use crate::formats::lines::{hex, small};

/// Appends the address laid out as in [`ringtap_flow::FlowKey::src`].
#[inline]
pub(crate) fn push_address(line: &mut Vec<u8>, version: IpVersion, address: &[u8; 16]) {
    match version {
        IpVersion::V4 => push_ipv4(line, [address[0], address[1], address[2], address[3]]),
        IpVersion::V6 => push_ipv6(line, address),
    }
}

/// Appends an Ethernet address.
pub(crate) fn push_mac(line: &mut Vec<u8>, mac: &[u8; 6]) {
    // In a register: bytes stored one by one would have to reach memory before the text is copied.
    let mut text = 0;
    for (at, &byte) in mac[..5].iter().enumerate() {
        let [high, low] = hex(byte);
        text |= u128::from(u32::from_le_bytes([high, low, b':', 0])) << (24 * at);
    }
    let [high, low] = hex(mac[5]);
    text |= u128::from(high) << 120;
    line.extend_from_slice(&text.to_le_bytes());
    line.push(low);
}

fn push_ipv4(line: &mut Vec<u8>, address: [u8; 4]) {
    // In a register, as in `push_mac`.
    let (mut text, mut len) = (0, 0);
    for byte in address {
        let (digits, count) = small(byte);
        text |= u128::from(digits | u32::from(b'.') << (8 * count)) << (8 * len);
        len += count + 1;
    }
    let before = line.len();
    line.extend_from_slice(&text.to_le_bytes());
    line.truncate(before + len - 1);
}

fn push_ipv6(line: &mut Vec<u8>, address: &[u8; 16]) {
    // RFC 5952, section 5: the prefix of IPv4-mapped addresses is well known.
    if let [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] = *address {
        line.extend_from_slice(b"::ffff:");
        return push_ipv4(line, [a, b, c, d]);
    }
    let mut groups = [0_u16; 8];
    for (group, pair) in groups.iter_mut().zip(address.as_chunks().0) {
        *group = u16::from_be_bytes(*pair);
    }
    let (start, end) = longest_zeros(&groups);
    push_groups(line, &groups[..start]);
    if start < end {
        line.extend_from_slice(b"::");
        push_groups(line, &groups[end..]);
    }
}

/// The groups that `::` replaces, as a half-open range; 8..8 if there are none.
fn longest_zeros(groups: &[u16; 8]) -> (usize, usize) {
    let (mut start, mut longest) = (8, 1);
    let mut run = 0;
    for (index, &group) in groups.iter().enumerate() {
        run = if group == 0 { run + 1 } else { 0 };
        if run > longest {
            longest = run;
            start = index + 1 - run;
        }
    }
    if start == 8 { (8, 8) } else { (start, start + longest) }
}

fn push_groups(line: &mut Vec<u8>, groups: &[u16]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (index, &group) in groups.iter().enumerate() {
        let [high, low] = group.to_be_bytes();
        let digits = [high >> 4, high & 15, low >> 4, low & 15].map(|d| DIGITS[usize::from(d)]);
        let leading_zeros = (group | 1).leading_zeros() as usize / 4;
        if index > 0 {
            line.push(b':');
        }
        line.extend_from_slice(&digits[leading_zeros..]);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    fn text(version: IpVersion, address: [u8; 16]) -> String {
        let mut line = Vec::new();
        push_address(&mut line, version, &address);
        String::from_utf8(line).unwrap()
    }

    /// The examples of RFC 5952, and runs of zeros at both ends.
    #[test]
    fn ipv6_as_rfc_5952_says() {
        for expected in [
            "2001:db8::1",
            "2001:db8::2:1",
            "2001:db8:0:1:1:1:1:1",
            "2001:0:0:1::1",
            "2001:db8::1:0:0:1",
            "::",
            "::1",
            "1::",
            "0:1::",
            "1::1:0",
            "::ffff:192.0.2.1",
            "::fffe:c000:201",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "1234:10:200:3000:4:56:789:abcd",
        ] {
            let address: Ipv6Addr = expected.parse().unwrap();
            assert_eq!(text(IpVersion::V6, address.octets()), expected);
        }
    }

    proptest! {
        /// The standard library gives the same text; zeros are frequent, because they are the difficult part.
        #[test]
        fn addresses_equal_those_of_the_standard_library(
            groups in prop::array::uniform8(prop_oneof![Just(0_u16), Just(0xffff), any::<u16>()])
        ) {
            let six = Ipv6Addr::from(groups);
            prop_assert_eq!(text(IpVersion::V6, six.octets()), six.to_string());
            let four = IpVersion::V4.address(&six.octets());
            prop_assert_eq!(text(IpVersion::V4, six.octets()), four.to_string());
        }
    }
}
