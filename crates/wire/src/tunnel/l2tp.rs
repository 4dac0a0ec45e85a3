//! L2TP version 2 (RFC 2661) and version 3 (RFC 3931), over UDP and over IP.
//!
//! ```text
//!  version 2       |TL··S·OP | ····2 | length (2)? | tunnel (2) | session (2) | sequence (4)? | offset (2), padding? | PPP
//!  version 3, UDP  |T······· | ····3 | 0 (2) | session (4) | cookie (0, 4, 8)? | sublayer (4)? | frame
//!  version 3, IP   | session (4) | cookie (0, 4, 8)? | sublayer (4)? | frame                     session 0: control
//! ```
//!
//! T: a control message. Only control messages say what a session of version 3 carries and the length of its cookie, so of the
//! possible readings the first is taken in which the bytes are an IP header beyond doubt.

use super::inside::{Content, Inside, of_link};
use crate::ip::check;
use crate::link::LinkType;
use crate::path::TunnelKind;
use crate::span::Span;

const CONTROL: u8 = 0x80;
const LENGTH: u8 = 0x40;
const SEQUENCE: u8 = 0x08;
const OFFSET: u8 = 0x02;

/// Cookies and sublayers.
const BEFORE_FRAME: [usize; 4] = [0, 4, 8, 12];
const FRAMES: [LinkType; 2] = [LinkType::ETHERNET, LinkType::PPP];

pub(super) fn over_udp(data: Span<'_>) -> Option<Inside<'_>> {
    let (&[flags, version], rest) = data.take::<2>()?;
    let (id, content) = match (flags & CONTROL, version & 0x0f) {
        (0, 2) => version_2(flags, rest)?,
        (0, 3) => version_3(rest.skip(2)?)?,
        _ => return None,
    };
    Some(Inside::of(TunnelKind::L2tp, id, content))
}

pub(super) fn over_ip(packet: Span<'_>) -> Option<Inside<'_>> {
    let (id, content) = version_3(packet)?;
    Some(Inside::of(TunnelKind::L2tpIp, id, content))
}

fn version_2(flags: u8, mut rest: Span<'_>) -> Option<(u32, Content<'_>)> {
    if flags & LENGTH != 0 {
        let (&len, inner) = rest.take::<2>()?;
        rest = inner.limit(u32::from(u16::from_be_bytes(len)).checked_sub(4)?);
    }
    let (&id, mut rest) = rest.take::<4>()?;
    if flags & SEQUENCE != 0 {
        rest = rest.skip(4)?;
    }
    if flags & OFFSET != 0 {
        let (&len, inner) = rest.take::<2>()?;
        rest = inner.skip(usize::from(u16::from_be_bytes(len)))?;
    }
    Some((u32::from_be_bytes(id), of_link(LinkType::PPP, rest)?))
}

fn version_3(packet: Span<'_>) -> Option<(u32, Content<'_>)> {
    let (&id, rest) = packet.take::<4>()?;
    if id == [0; 4] {
        return None;
    }
    let read = |(len, link)| of_link(link, rest.skip(len)?);
    let readings = BEFORE_FRAME.into_iter().flat_map(|len| FRAMES.map(|link| (len, link)));
    let content = readings.filter_map(read).find(|content| check::is_proven(&content.network))?;
    Some((u32::from_be_bytes(id), content))
}
