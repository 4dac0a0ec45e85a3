//! DHCP (RFC 2131, RFC 2132) and DHCPv6 (RFC 8415): the host name of the client.
//!
//! ```text
//!   0    1       2      3      4          44       108      236             240
//! | op | htype | hlen | hops | fields … | sname  | file   | 63 82 53 63   | options: | code | length | value | … 255
//!
//!   0      1             4
//! | type | transaction | options: | code, 2 bytes | length, 2 bytes | value | …            DHCPv6
//! | type | hops | link address, 16 | peer address, 16 | options                            its relays
//! ```
//!
//! DHCP is recognised by its magic number, DHCPv6 by its ports. Option 52 makes `file` and `sname` hold further
//! options. The name is option 12; of DHCPv6 it is the domain name in option 39 (RFC 4704), labels joined by dots.

use ringtap_wire::Flags;

use crate::opening::{Bytes, Opening};
use crate::{Extractor, Found, Kind, Payload, Progress, Unread};

const MAGIC: [u8; 4] = [0x63, 0x82, 0x53, 0x63];
/// Positions in a DHCP message.
const SNAME: usize = 44;
const FILE: usize = 108;
const COOKIE: usize = 236;
const OPTIONS: usize = COOKIE + MAGIC.len();

/// Options of DHCP.
const PAD: u8 = 0;
const HOST_NAME: u8 = 12;
const OVERLOAD: u8 = 52;
const END: u8 = 255;

const PORTS_V6: [u16; 2] = [546, 547];
/// Message types of DHCPv6 (RFC 8415, section 7.3), the last two of which are those of relays.
const TYPES_V6: std::ops::RangeInclusive<u8> = 1..=13;
const RELAYED: std::ops::RangeInclusive<u8> = 12..=13;
const HEADER_V6: usize = 4;
const RELAY_HEADER: usize = 34;
/// Options of DHCPv6.
const RELAY_MESSAGE: u16 = 9;
const CLIENT_FQDN: u16 = 39;
/// Most relays that a message passes (HOP_COUNT_LIMIT).
const HOPS: usize = 8;

pub(crate) struct Dhcp;

impl Extractor for Dhcp {
    // A request or a reply, with hardware addresses of six bytes.
    const UDP: &'static [Opening] =
        &[Opening { first: Bytes::of(&[1, 2]), third: Bytes::of(&[6]), ..Opening::ANY }];
    const PORTS: &'static [u16] = &[67, 68, PORTS_V6[0], PORTS_V6[1]];

    type State = ();

    fn read((): &mut (), payload: &Payload<'_>, found: Found<'_>) -> Result<Progress, Unread> {
        let &Payload { record, bytes, .. } = payload;
        let read = if bytes.get(COOKIE..OPTIONS) == Some(&MAGIC) && matches!(bytes[0], 1 | 2) {
            v4(bytes, found)
        } else if PORTS_V6.contains(&record.src_port) || PORTS_V6.contains(&record.dst_port) {
            v6(bytes, found)
        } else {
            return Ok(Progress::Other);
        };
        match read {
            Err(Unread::Malformed) if record.flags.contains(Flags::TRUNCATED) => {
                Err(Unread::Truncated)
            }
            other => other,
        }
    }
}

fn v4(message: &[u8], found: Found<'_>) -> Result<Progress, Unread> {
    found(Kind::Protocol, b"dhcp");
    let mut overload = 0;
    let mut name: Option<&[u8]> = None;
    let mut read = |options| {
        each_option(options, |code, value| match code {
            HOST_NAME if !value.is_empty() => {
                name.get_or_insert(value);
            }
            OVERLOAD => overload = value.first().copied().unwrap_or(0),
            _ => {}
        })
        .map(|()| overload)
    };
    let whole = read(&message[OPTIONS..]).and_then(|overload| {
        if overload & 1 != 0 {
            read(&message[FILE..COOKIE])?;
        }
        if overload & 2 != 0 {
            read(&message[SNAME..FILE])?;
        }
        Ok(Progress::Done)
    });
    if let Some(name) = name {
        // Some clients end it with zeros, which do not belong to it (RFC 2132, section 2).
        let end = name.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if end > 0 {
            found(Kind::DhcpHostname, &name[..end]);
        }
    }
    whole
}

/// Passes the options of DHCP to `each`.
fn each_option<'a>(mut rest: &'a [u8], mut each: impl FnMut(u8, &'a [u8])) -> Result<(), Unread> {
    while let Some((&code, behind)) = rest.split_first() {
        match code {
            PAD => rest = behind,
            END => break,
            _ => {
                let (&len, behind) = behind.split_first().ok_or(Unread::Malformed)?;
                let (value, behind) =
                    behind.split_at_checked(len.into()).ok_or(Unread::Malformed)?;
                each(code, value);
                rest = behind;
            }
        }
    }
    Ok(())
}

fn v6(mut message: &[u8], found: Found<'_>) -> Result<Progress, Unread> {
    let mut name = None;
    for _ in 0..=HOPS {
        let Some(kind) = message.first().filter(|kind| TYPES_V6.contains(kind)) else {
            return Ok(Progress::Other);
        };
        let header = if RELAYED.contains(kind) { RELAY_HEADER } else { HEADER_V6 };
        let mut rest = message.get(header..).ok_or(Unread::Malformed)?;
        let mut inner = None;
        while let Some((&[c0, c1, l0, l1], behind)) = rest.split_first_chunk() {
            let len = usize::from(u16::from_be_bytes([l0, l1]));
            let (value, behind) = behind.split_at_checked(len).ok_or(Unread::Malformed)?;
            match u16::from_be_bytes([c0, c1]) {
                RELAY_MESSAGE if header == RELAY_HEADER => inner = Some(value),
                CLIENT_FQDN => name = value.get(1..),
                _ => {}
            }
            rest = behind;
        }
        if !rest.is_empty() {
            return Err(Unread::Malformed);
        }
        match inner {
            Some(inner) => message = inner,
            None => break,
        }
    }
    found(Kind::Protocol, b"dhcpv6");
    if let Some(name) = name {
        domain(name, |name| found(Kind::DhcpHostname, name))?;
    }
    Ok(Progress::Done)
}

/// Passes a domain name to `found`, if it has labels. A partial name has no zero at its end (RFC 4704, section 4.2).
fn domain(mut labels: &[u8], found: impl FnOnce(&[u8])) -> Result<(), Unread> {
    let (mut name, mut len) = ([0; 255], 0);
    while let Some((&label, behind)) = labels.split_first().filter(|(len, _)| **len > 0) {
        if label > 63 {
            return Err(Unread::Malformed);
        }
        let (label, behind) = behind.split_at_checked(label.into()).ok_or(Unread::Malformed)?;
        let dot = usize::from(len > 0);
        let end = len + dot + label.len();
        let place = name.get_mut(len..end).ok_or(Unread::Malformed)?;
        place[..dot].fill(b'.');
        place[dot..].copy_from_slice(label);
        (len, labels) = (end, behind);
    }
    if len > 0 {
        found(&name[..len]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ringtap_wire::PacketRecord;

    use super::*;

    fn read(ports: [u16; 2], bytes: &[u8]) -> (Vec<(Kind, String)>, Result<Progress, Unread>) {
        let [src_port, dst_port] = ports;
        let record = &PacketRecord { src_port, dst_port, ..PacketRecord::EMPTY };
        let mut facts = Vec::new();
        let each: Found<'_> = &mut |kind, value: &[u8]| {
            facts.push((kind, String::from_utf8_lossy(value).into_owned()));
        };
        let read = Dhcp::read(&mut (), &Payload { record, bytes, sequence: 0 }, each);
        (facts, read)
    }

    /// A DHCP message with these options.
    fn message(options: &[u8]) -> Vec<u8> {
        let mut message = vec![0; COOKIE];
        message[..3].copy_from_slice(&[1, 1, 6]);
        message.extend(MAGIC);
        message.extend_from_slice(options);
        message
    }

    fn named(protocol: &str, name: &str) -> (Vec<(Kind, String)>, Result<Progress, Unread>) {
        let facts = [(Kind::Protocol, protocol.into()), (Kind::DhcpHostname, name.into())];
        (facts.into(), Ok(Progress::Done))
    }

    #[test]
    fn the_host_name_is_read() {
        let options = b"\x35\x01\x01\0\0\x0c\x06laptop\x37\x02\x01\x03\xff\0\0";
        assert_eq!(read([68, 67], &message(options)), named("dhcp", "laptop"));
        assert_eq!(read([5_000, 5_001], &message(options)), named("dhcp", "laptop"));
        assert_eq!(read([68, 67], &message(b"\x0c\x04pc\0\0")), named("dhcp", "pc"));
        let nameless = (vec![(Kind::Protocol, "dhcp".into())], Ok(Progress::Done));
        assert_eq!(read([68, 67], &message(b"\x35\x01\x01\x0c\0\xff\x0c\x01x")), nameless);
    }

    #[test]
    fn overloaded_fields_hold_options() {
        let mut both = message(b"\x34\x01\x03\xff");
        both[FILE..FILE + 2].copy_from_slice(b"\x35\x00");
        both[SNAME..SNAME + 6].copy_from_slice(b"\x0c\x03abc\xff");
        assert_eq!(read([68, 67], &both), named("dhcp", "abc"));
        both[OPTIONS + 2] = 1;
        assert_eq!(read([68, 67], &both).0.len(), 1);
    }

    #[test]
    fn broken_options_have_a_reason() {
        let (facts, why) = read([68, 67], &message(b"\x0c\x02ab\x37\x09\x01"));
        assert_eq!((facts.len(), why), (2, Err(Unread::Malformed)));
        assert_eq!(read([68, 67], &message(b"\x0c")).1, Err(Unread::Malformed));
        let other = (Vec::new(), Ok(Progress::Other));
        assert_eq!(read([68, 67], &message(b"")[..COOKIE]), other);
        let mut neither = message(b"");
        neither[0] = 3;
        assert_eq!(read([68, 67], &neither), other);
    }

    #[test]
    fn the_domain_name_of_dhcpv6_is_read() {
        let solicit = b"\x01\x12\x34\x56\0\x08\0\x02\0\0\0\x27\0\x08\0\x02pc\x03lan";
        assert_eq!(read([546, 547], solicit), named("dhcpv6", "pc.lan"));
        let complete = b"\x01\x12\x34\x56\0\x27\0\x09\0\x02pc\x03lan\0";
        assert_eq!(read([546, 547], complete), named("dhcpv6", "pc.lan"));
        let relayed =
            [&[12; 34][..], &[0, 9, 0, solicit.len() as u8], solicit, b"\0\x12\0\x01a"].concat();
        assert_eq!(read([547, 547], &relayed), named("dhcpv6", "pc.lan"));
        assert_eq!(read([1, 2], solicit), (Vec::new(), Ok(Progress::Other)));
        assert_eq!(read([546, 547], &solicit[..20]).1, Err(Unread::Malformed));
        assert_eq!(read([546, 547], b"\x40\0\0\0").1, Ok(Progress::Other));
        assert_eq!(read([546, 547], b"\x01\0\0\0\0\x27\0\x03\0\x40a").1, Err(Unread::Malformed));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(rest in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read([68, 67], &rest);
            let _ = read([68, 67], &message(&rest));
            let _ = read([546, 547], &rest);
            let _ = read([546, 547], &[&[1, 0, 0, 0, 0, 39, 0, rest.len() as u8], &rest[..]].concat());
        }
    }
}
