use super::*;

const MS: u64 = 1_000_000;

/// A connection, and the segments sent on it.
struct Wire {
    tcp: Connections,
    ns: u64,
}

impl Wire {
    fn new() -> Self {
        let mut tcp = Connections::default();
        tcp.push();
        Self { tcp, ns: 1_000_000 * MS }
    }

    /// A segment after `ms` milliseconds.
    fn send(&mut self, ms: u64, side: usize, flags: u8, numbers: [u32; 3], window: u16) {
        self.ns += ms * MS;
        let packet =
            PacketRecord { ts_ns: self.ns, tcp_flags: flags, protocol: 6, ..PacketRecord::EMPTY };
        let [sequence, acknowledgment, data_len] = numbers;
        let segment = Segment { sequence, acknowledgment, data_len, window };
        self.tcp.on_segment(0, &packet, &segment, side);
    }

    /// Data from one side, with an acknowledgment.
    fn data(&mut self, ms: u64, side: usize, sequence: u32, ack: u32, len: u32) {
        self.send(ms, side, ACK, [sequence, ack, len], 500);
    }

    /// A handshake of 10 + 2 ms; the first bytes are `isn` + 1.
    fn open(isn: [u32; 2]) -> Self {
        let mut wire = Self::new();
        wire.send(0, 0, SYN, [isn[0], 0, 0], 500);
        wire.send(10, 1, SYN | ACK, [isn[1], isn[0].wrapping_add(1), 0], 500);
        wire.data(2, 0, isn[0].wrapping_add(1), isn[1].wrapping_add(1), 0);
        wire
    }

    fn seen(&self) -> TcpPerformance {
        self.tcp.performance(0).expect("segments")
    }
}

#[test]
fn the_handshake_is_timed_in_both_directions() {
    let wire = Wire::open([u32::MAX, 7]);
    let seen = wire.seen();
    assert_eq!(seen.handshake_us, [Some(10_000), Some(2_000)]);
    assert_eq!(seen.handshake_total_us(), Some(12_000));
    assert_eq!((seen.rtt_us(0), seen.rtt_us(1)), (Some(10_000), Some(2_000)));
    assert_eq!((Wire::new().tcp.performance(0), wire.tcp.performance(1)), (None, None));
}

#[test]
fn a_repeated_syn_is_timed_from_its_latest_copy() {
    let mut wire = Wire::new();
    wire.send(0, 0, SYN, [5, 0, 0], 500);
    wire.send(1000, 0, SYN, [5, 0, 0], 500);
    wire.send(10, 1, SYN | ACK, [9, 6, 0], 500);
    assert_eq!(wire.seen().handshake_us, [Some(10_000), None]);
    assert_eq!(wire.seen().retransmissions, [1, 0]);
    // A SYN-ACK that is repeated after its acknowledgment does not count.
    wire.send(3, 0, ACK, [6, 10, 0], 500);
    wire.send(1000, 1, SYN | ACK, [9, 6, 0], 500);
    wire.send(5, 0, ACK, [6, 10, 0], 500);
    assert_eq!(wire.seen().handshake_us, [Some(10_000), Some(3_000)]);
    // A refused one has no handshake.
    let mut wire = Wire::new();
    wire.send(0, 0, SYN, [5, 0, 0], 500);
    wire.send(10, 1, RST | ACK, [0, 6, 0], 0);
    let seen = wire.seen();
    assert_eq!((seen.handshake_us, seen.rtt_count, seen.zero_windows), ([None; 2], [0; 2], [0; 2]));
}

#[test]
fn an_exact_acknowledgment_is_a_sample() {
    // Sequence numbers wrap in the middle of the data.
    let mut wire = Wire::open([u32::MAX - 150, 7]);
    let first = u32::MAX - 149;
    wire.data(0, 0, first, 8, 100);
    wire.data(1, 0, first.wrapping_add(100), 8, 100);
    // It acknowledges the second, which was not timed.
    wire.data(8, 1, 8, first.wrapping_add(200), 0);
    assert_eq!(wire.seen().rtt_count, [1, 1]);
    wire.data(0, 0, first.wrapping_add(200), 8, 100);
    wire.data(4, 1, 8, first.wrapping_add(300), 0);
    let seen = wire.seen();
    assert_eq!((seen.rtt_ns[0], seen.rtt_count[0]), (14 * MS, 2));
    assert_eq!((seen.retransmissions, seen.out_of_order), ([0; 2], [0; 2]));
    // A retransmission cancels the timing.
    wire.data(0, 0, first.wrapping_add(300), 8, 100);
    wire.data(50, 0, first.wrapping_add(300), 8, 100);
    wire.data(4, 1, 8, first.wrapping_add(400), 0);
    let seen = wire.seen();
    assert_eq!((seen.rtt_count[0], seen.retransmissions), (2, [1, 0]));
}

#[test]
fn what_fills_a_gap_in_time_is_out_of_order() {
    let mut wire = Wire::open([0, 0]);
    for first in [101, 1, 301, 201] {
        wire.data(1, 0, first, 1, 100);
    }
    assert_eq!((wire.seen().out_of_order, wire.seen().retransmissions), ([2, 0], [0; 2]));
    // Later than the handshake's round-trip time, it was lost.
    wire.data(1, 0, 501, 1, 100);
    wire.data(13, 0, 401, 1, 100);
    // Seen before, however soon.
    wire.data(0, 0, 301, 1, 100);
    // Acknowledged before.
    wire.data(1, 1, 1, 601, 0);
    wire.data(0, 0, 501, 1, 100);
    assert_eq!((wire.seen().out_of_order, wire.seen().retransmissions), ([2, 0], [3, 0]));
}

#[test]
fn gaps_beyond_the_bound_are_joined() {
    let mut wire = Wire::open([0, 0]);
    for first in [101, 301, 501, 701] {
        wire.data(0, 0, first, 1, 100);
    }
    for first in [1, 201, 401, 601] {
        wire.data(1, 0, first, 1, 100);
    }
    assert_eq!((wire.seen().out_of_order, wire.seen().retransmissions), ([4, 0], [0; 2]));
}

#[test]
fn the_middle_of_a_gap_leaves_two() {
    let mut wire = Wire::open([0, 0]);
    wire.data(0, 0, 301, 1, 100);
    for first in [101, 201, 1] {
        wire.data(0, 0, first, 1, 100);
    }
    assert_eq!(wire.seen().out_of_order, [3, 0]);
    assert_eq!(wire.tcp.counts[1][0].gaps.map(|[start, end]| end - start), [0; GAPS]);
}

#[test]
fn a_fast_retransmission_is_not_out_of_order() {
    let mut wire = Wire::open([0, 0]);
    wire.data(0, 0, 101, 1, 100);
    for _ in 0..3 {
        wire.data(1, 1, 1, 1, 0);
    }
    wire.data(1, 0, 1, 1, 100);
    let seen = wire.seen();
    // The first one repeats the SYN-ACK's.
    assert_eq!((seen.duplicate_acks, seen.retransmissions), ([0, 3], [1, 0]));
    assert_eq!(seen.out_of_order, [0; 2]);
}

#[test]
fn keep_alives_and_probes_distort_nothing() {
    let mut wire = Wire::open([0, 0]);
    wire.data(0, 0, 1, 1, 100);
    wire.data(1, 1, 1, 101, 0);
    for len in [0, 1] {
        wire.data(1000, 0, 100, 1, len);
        wire.data(1, 1, 1, 101, 0);
    }
    // The window closes, is probed twice with the next byte, and opens.
    wire.send(1, 1, ACK, [1, 101, 0], 0);
    for _ in 0..2 {
        wire.data(200, 0, 101, 1, 1);
        wire.send(1, 1, ACK, [1, 101, 0], 0);
    }
    wire.send(1, 1, ACK, [1, 101, 0], 500);
    wire.data(1, 0, 101, 1, 100);
    let seen = wire.seen();
    assert_eq!((seen.retransmissions, seen.out_of_order), ([0; 2], [0; 2]));
    assert_eq!((seen.duplicate_acks, seen.zero_windows), ([0; 2], [0, 3]));
}

#[test]
fn another_connection_on_the_same_ports_starts_afresh() {
    let mut wire = Wire::open([1000, 1000]);
    wire.data(0, 0, 1001, 1001, 100);
    wire.send(1, 0, SYN, [50, 0, 0], 500);
    wire.send(3, 1, SYN | ACK, [70, 51, 0], 500);
    wire.data(1, 0, 51, 71, 10);
    let seen = wire.seen();
    assert_eq!((seen.retransmissions, seen.out_of_order), ([0; 2], [0; 2]));
    assert_eq!(seen.handshake_us, [Some(3_000), Some(1_000)]);
}

#[test]
fn a_cut_flow_goes_on_without_its_counts() {
    let mut wire = Wire::open([0, 0]);
    wire.data(0, 0, 1, 1, 100);
    wire.tcp.restart(0, true);
    wire.data(4, 1, 1, 101, 0);
    wire.data(50, 0, 1, 1, 100);
    let seen = wire.seen();
    assert_eq!((seen.handshake_us, seen.rtt_us(0)), ([None; 2], Some(4_000)));
    assert_eq!(seen.retransmissions, [1, 0]);
}

#[test]
fn counts_are_used_again_by_other_flows() {
    let mut wire = Wire::open([0, 0]);
    wire.tcp.push();
    wire.tcp.push();
    wire.tcp.swap_remove(0);
    assert_eq!((wire.tcp.performance(0), wire.tcp.counts.counts()), (None, (1, 1)));
    wire.data(0, 0, 1, 1, 100);
    wire.data(0, 0, 1, 1, 100);
    assert_eq!((wire.seen().retransmissions, wire.seen().rtt_count), ([1, 0], [0; 2]));
    assert_eq!(wire.tcp.counts.counts(), (1, 0));
    wire.tcp.restart(0, false);
    wire.tcp.truncate(0);
    assert_eq!((wire.tcp.performance(0), wire.tcp.counts.counts()), (None, (1, 1)));
}

#[test]
fn the_rest_of_a_gap_needs_a_place() {
    let mut wire = Wire::open([0, 0]);
    for first in [301, 501, 101, 401, 201, 1] {
        wire.data(0, 0, first, 1, 100);
    }
    assert_eq!((wire.seen().out_of_order, wire.seen().retransmissions), ([4, 0], [0; 2]));
}

#[test]
fn a_byte_that_is_sent_again_is_not_timed() {
    let mut wire = Wire::open([0, 0]);
    wire.data(0, 0, 1, 1, 1);
    wire.data(1000, 0, 1, 1, 1);
    wire.data(10, 1, 1, 2, 0);
    assert_eq!((wire.seen().rtt_count, wire.seen().rtt_us(0)), ([1, 1], Some(10_000)));
    // Nor is a step of the clock.
    wire.data(0, 0, 2, 1, 5);
    wire.data(RTT_MAX_NS / MS + 1, 1, 1, 7, 0);
    assert_eq!(wire.seen().rtt_count, [1, 1]);
}
