//! What is measured of a connection, as records have it.

use super::{Counts, UNKNOWN};

/// The performance of a TCP connection. Index 0 of each pair is the initiator's direction, index 1 the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TcpPerformance {
    /// Microseconds from the SYN of this direction, or its SYN-ACK, to the answer.
    pub handshake_us: [Option<u32>; 2],
    /// Sum of the round-trip times from a segment of this direction to its acknowledgment, nanoseconds.
    pub rtt_ns: [u64; 2],
    /// Number of these round-trip times.
    pub rtt_count: [u32; 2],
    /// Segments that were sent again.
    pub retransmissions: [u32; 2],
    /// Segments that arrived later than one behind them, and were not sent again.
    pub out_of_order: [u32; 2],
    /// Acknowledgments that repeat the one before.
    pub duplicate_acks: [u32; 2],
    /// Segments that announce a window of zero.
    pub zero_windows: [u32; 2],
}

impl TcpPerformance {
    /// Nothing was measured.
    pub(super) const NONE: Self = Self {
        handshake_us: [None; 2],
        rtt_ns: [0; 2],
        rtt_count: [0; 2],
        retransmissions: [0; 2],
        out_of_order: [0; 2],
        duplicate_acks: [0; 2],
        zero_windows: [0; 2],
    };

    /// Bytes of [`TcpPerformance::canonical`].
    pub const CANONICAL_LEN: usize = 64;

    /// The mean round-trip time from this direction's segments to their acknowledgments, microseconds, rounded down.
    pub fn rtt_us(&self, direction: usize) -> Option<u64> {
        self.rtt_ns[direction].checked_div(u64::from(self.rtt_count[direction])).map(|ns| ns / 1000)
    }

    /// The round-trip time of the handshake, from SYN to the acknowledgment of the SYN-ACK, microseconds.
    pub fn handshake_total_us(&self) -> Option<u64> {
        let [there, back] = self.handshake_us;
        Some(u64::from(there?) + u64::from(back?))
    }

    /// The names of [`TcpPerformance::fields`] in records. The client is the initiator; times are those from the
    /// observer to that side and back.
    pub const NAMES: [&str; 13] = [
        "tcpHandshakeRttMicroseconds",
        "tcpClientHandshakeRttMicroseconds",
        "tcpServerHandshakeRttMicroseconds",
        "tcpClientRttMicroseconds",
        "tcpServerRttMicroseconds",
        "tcpRetransmissions",
        "reverseTcpRetransmissions",
        "tcpOutOfOrder",
        "reverseTcpOutOfOrder",
        "tcpDuplicateAcks",
        "reverseTcpDuplicateAcks",
        "tcpZeroWindows",
        "reverseTcpZeroWindows",
    ];

    /// The fields of records, in the order of [`TcpPerformance::NAMES`].
    pub fn fields(&self) -> [Option<u64>; Self::NAMES.len()] {
        let [server, client] = self.handshake_us.map(|us| us.map(u64::from));
        let pairs =
            [self.retransmissions, self.out_of_order, self.duplicate_acks, self.zero_windows];
        let times = [self.handshake_total_us(), client, server, self.rtt_us(1), self.rtt_us(0)];
        let mut fields = [None; Self::NAMES.len()];
        fields[..times.len()].copy_from_slice(&times);
        for (field, &count) in fields[times.len()..].iter_mut().zip(pairs.as_flattened()) {
            *field = Some(u64::from(count));
        }
        fields
    }

    /// A fixed byte string for each value, for digests.
    pub fn canonical(&self) -> [u8; Self::CANONICAL_LEN] {
        let mut out = [0; Self::CANONICAL_LEN];
        let (times, counts) = out.split_at_mut(16);
        for (place, ns) in times.chunks_exact_mut(8).zip(self.rtt_ns) {
            place.copy_from_slice(&ns.to_le_bytes());
        }
        let handshake = self.handshake_us.map(|us| us.unwrap_or(UNKNOWN));
        let numbers = [
            handshake,
            self.rtt_count,
            self.retransmissions,
            self.out_of_order,
            self.duplicate_acks,
            self.zero_windows,
        ];
        for (place, number) in counts.chunks_exact_mut(4).zip(numbers.as_flattened()) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// The performance that was counted for both directions.
    pub(super) fn of([own, back]: &[Counts; 2]) -> Self {
        let time = |us| (us != UNKNOWN).then_some(us);
        Self {
            handshake_us: [time(own.handshake_us), time(back.handshake_us)],
            rtt_ns: [own.rtt_ns, back.rtt_ns],
            rtt_count: [own.rtt_count, back.rtt_count],
            retransmissions: [own.retransmissions, back.retransmissions],
            out_of_order: [own.out_of_order, back.out_of_order],
            duplicate_acks: [own.duplicate_acks, back.duplicate_acks],
            zero_windows: [own.zero_windows, back.zero_windows],
        }
    }
}
