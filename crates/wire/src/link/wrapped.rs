//! Headers of capture programs that contain the link type of the frame behind them.
//!
//! ```text
//!  PPI     | 0 | flags | length (LE) | link type (4, LE) | fields …                up to its length, 8 at the least
//!  PKTAP   | length (4, LE) | record type (4, LE) | link type (4, LE) | …          up to its length, 12 at the least
//! ```
//!
//! Sources: CACE Technologies, *PPI Packet Header Format* (2007); `net/pktap.h` of Darwin. Both contain numbers of the
//! operating system (`DLT_…`), which equal those of capture files for all supported link types except one.

use super::{LinkType, Next, Stack};
use crate::reason::{Layer, NonIp};
use crate::span::Span;

/// Its number in capture files is 100.
const DLT_ATM_RFC1483: u16 = 11;

const TRUNCATED: NonIp = NonIp::Truncated(Layer::Link);
const MALFORMED: NonIp = NonIp::Malformed(Layer::Link);

/// LINKTYPE_PPI.
pub(super) fn ppi<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    let header = frame.bytes.first_chunk::<8>().ok_or(TRUNCATED)?;
    let len = u16::from_le_bytes([header[2], header[3]]);
    if header[0] != 0 || len < 8 {
        return Err(MALFORMED);
    }
    let rest = frame.skip(usize::from(len)).ok_or(TRUNCATED)?;
    follow([header[4], header[5], header[6], header[7]], rest, stack)
}

/// LINKTYPE_PKTAP.
pub(super) fn pktap<'a>(frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    const PACKET: [u8; 4] = [1, 0, 0, 0];
    let header = frame.bytes.first_chunk::<12>().ok_or(TRUNCATED)?;
    let [l0, l1, l2, l3, kind @ .., t0, t1, t2, t3] = *header;
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    if len < 12 || kind != PACKET {
        return Err(MALFORMED);
    }
    let rest = frame.skip(len as usize).ok_or(TRUNCATED)?;
    follow([t0, t1, t2, t3], rest, stack)
}

fn follow<'a>(number: [u8; 4], frame: Span<'a>, stack: &mut Stack) -> Result<Next<'a>, NonIp> {
    stack.wrapped()?;
    let number = u16::try_from(u32::from_le_bytes(number)).map_err(|_| MALFORMED)?;
    let link = match number {
        DLT_ATM_RFC1483 => LinkType::ATM_RFC1483,
        same => LinkType(same),
    };
    Ok(Next::Frame(link, frame))
}
