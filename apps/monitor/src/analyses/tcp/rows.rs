//! The performance of TCP connections.

use std::net::IpAddr;

use ringtap_flow::TcpPerformance;
use serde::Serialize;

use crate::volume::is_zero;

/// TCP performance of all flow records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tcp {
    /// Sums of all connections.
    #[serde(flatten)]
    pub totals: TcpTotals,
    /// Services by the time of 95 of 100 responses, slowest first.
    pub slowest_responses: Vec<ResponseRow>,
    /// Servers by mean round-trip time, slowest first.
    pub slowest_round_trips: Vec<RoundTrips>,
    /// Pairs by retransmissions, most first.
    pub lossy_pairs: Vec<LossyPair>,
    /// Records without room for another server, and those without room for another pair. They are in the sums.
    #[serde(skip_serializing_if = "is_zero")]
    pub records_ignored: u64,
    /// Responses in no row, because there was no room for another one.
    #[serde(skip_serializing_if = "is_zero")]
    pub responses_ignored: u64,
}

/// Sums over flow records, both directions together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TcpTotals {
    /// Flow records with TCP segments.
    pub records: u64,
    /// Flow records with a complete handshake.
    pub handshakes: u64,
    /// Sum of their handshakes' round-trip times, microseconds.
    pub handshake_rtt_sum_us: u64,
    /// Samples of round-trip times.
    pub rtt_samples: u64,
    /// Their sum, microseconds.
    pub rtt_sum_us: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// Segments that arrived later than one behind them.
    pub out_of_order: u64,
    /// Acknowledgments that repeat the one before.
    pub duplicate_acks: u64,
    /// Segments that announce a window of zero.
    pub zero_windows: u64,
}

impl TcpTotals {
    /// All sums, in order.
    fn each(&mut self) -> [&mut u64; 9] {
        [
            &mut self.records,
            &mut self.handshakes,
            &mut self.handshake_rtt_sum_us,
            &mut self.rtt_samples,
            &mut self.rtt_sum_us,
            &mut self.retransmissions,
            &mut self.out_of_order,
            &mut self.duplicate_acks,
            &mut self.zero_windows,
        ]
    }

    /// All sums as numbers, for [`TcpTotals::add_numbers`].
    pub(crate) fn numbers(mut self) -> [u64; 9] {
        self.each().map(|own| *own)
    }

    pub(crate) fn add_numbers(&mut self, numbers: [u64; 9]) {
        for (own, more) in self.each().into_iter().zip(numbers) {
            *own = own.saturating_add(more);
        }
    }

    /// The totals of a record.
    pub(crate) fn of(tcp: &TcpPerformance) -> Self {
        let sum = |pair: [u32; 2]| pair.into_iter().map(u64::from).sum::<u64>();
        let handshake = tcp.handshake_total_us();
        Self {
            records: 1,
            handshakes: u64::from(handshake.is_some()),
            handshake_rtt_sum_us: handshake.unwrap_or(0),
            rtt_samples: sum(tcp.rtt_count),
            rtt_sum_us: tcp.rtt_ns.map(|ns| ns / 1000).iter().sum(),
            retransmissions: sum(tcp.retransmissions),
            out_of_order: sum(tcp.out_of_order),
            duplicate_acks: sum(tcp.duplicate_acks),
            zero_windows: sum(tcp.zero_windows),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.add_numbers(other.numbers());
    }
}

/// The response times of an application of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResponseRow {
    /// The address of the server.
    pub server: IpAddr,
    /// Its application, as far as it was known at each response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// What was answered: `http`, `dns`, `tls` or `tcp`.
    pub exchange: &'static str,
    /// Number of responses with a time.
    pub responses: u64,
    /// Further responses: their requests had no room among those that wait for a response.
    #[serde(skip_serializing_if = "is_zero")]
    pub untimed: u64,
    /// Mean time, microseconds, rounded down.
    pub mean_us: u64,
    /// The time of half of all responses at most, microseconds, within 1/64.
    pub p50_us: u64,
    /// Of 95 of 100.
    pub p95_us: u64,
    /// Of 99 of 100.
    pub p99_us: u64,
    /// The longest time, microseconds.
    pub longest_us: u64,
    /// Mean round-trip time of the handshakes from the observer to the server, microseconds: the network's part. It is counted
    /// for each response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
}

/// The responder of connections, and the times of the network to it; not how long it takes to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoundTrips {
    /// Its address.
    pub server: IpAddr,
    /// Its port.
    pub port: u16,
    /// Mean round-trip time from the observer to the server, microseconds.
    pub rtt_us: u64,
    /// Number of samples.
    pub rtt_samples: u64,
    /// Mean time from SYN to SYN-ACK, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_us: Option<u64>,
    /// Flow records with samples.
    pub records: u64,
}

/// Two addresses between which segments were lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossyPair {
    /// The lower address first.
    pub addresses: [IpAddr; 2],
    /// Segments that were sent again, in both directions.
    pub retransmissions: u64,
    /// Segments that arrived later than one behind them, in both directions.
    pub out_of_order: u64,
    /// Packets of the connections with either.
    pub packets: u64,
}
