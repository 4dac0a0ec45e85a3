//! Frames to send.

/// `00 … count` different frames of all lengths.
pub(crate) fn assorted(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| {
            let payload = (0..26 + number * 31 % 1440).map(|at| (at + number) as u8).collect();
            let host = number as u16;
            udp(&[], v4([10, 0, 1, host as u8], [10, 0, 2, 1]), 1000 + host, 53, payload)
        })
        .collect()
}

/// Addresses of a packet.
#[derive(Clone)]
pub(crate) enum Pair {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

impl Pair {
    pub(crate) fn reversed(&self) -> Self {
        match *self {
            Self::V4(from, to) => Self::V4(to, from),
            Self::V6(from, to) => Self::V6(to, from),
        }
    }
}

pub(crate) fn v4(from: [u8; 4], to: [u8; 4]) -> Pair {
    Pair::V4(from, to)
}

/// A UDP datagram with these VLAN tags (type and identifier) before it.
pub(crate) fn udp(
    tags: &[(u16, u16)],
    pair: Pair,
    from: u16,
    to: u16,
    payload: Vec<u8>,
) -> Vec<u8> {
    let mut datagram: Vec<u8> =
        [from, to, payload.len() as u16 + 8, 0].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    packet(tags, pair, 17, 0, datagram)
}

/// A fragment at `offset` (in bytes, a multiple of 8) that is not the last.
pub(crate) fn fragment(tags: &[(u16, u16)], pair: Pair, offset: u16, payload: Vec<u8>) -> Vec<u8> {
    match pair {
        Pair::V4(..) => packet(tags, pair, 17, 0x2000 | (offset / 8), payload),
        Pair::V6(..) => {
            let mut whole = vec![17, 0];
            whole.extend((offset | 1).to_be_bytes());
            whole.extend([0, 0, 0, 7]);
            whole.extend(payload);
            packet(tags, pair, 44, 0, whole)
        }
    }
}

fn packet(
    tags: &[(u16, u16)],
    pair: Pair,
    protocol: u8,
    fragment: u16,
    payload: Vec<u8>,
) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for &(kind, identifier) in tags {
        frame.extend(kind.to_be_bytes());
        frame.extend(identifier.to_be_bytes());
    }
    let len = payload.len() as u16;
    match pair {
        Pair::V4(from, to) => {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + len).to_be_bytes());
            frame.extend([0, 7]);
            frame.extend(fragment.to_be_bytes());
            frame.extend([64, protocol, 0, 0]);
            frame.extend(from);
            frame.extend(to);
        }
        Pair::V6(from, to) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(from);
            frame.extend(to);
        }
    }
    frame.extend(payload);
    frame
}

/// An ARP request.
pub(crate) fn arp() -> Vec<u8> {
    let mut frame = vec![255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6];
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.resize(60, 0);
    frame
}
