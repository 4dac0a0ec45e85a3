//! Port knocking: clients that sent SYNs to three closed ports in order, each within ten seconds of the one before.

use std::net::IpAddr;

use ringtap::{Analysis, Packet, Room, Table};
use serde::Serialize;

/// The ports, in order.
const KNOCKS: [u16; 3] = [7_000, 8_000, 9_000];
const WITHIN_NS: u64 = 10_000_000_000;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// How many knocks in order a client has sent a server, and when the last one was.
#[derive(Default)]
struct Pair {
    knocks: usize,
    last_ns: u64,
    opened: u64,
}

struct Knocks(Table<(IpAddr, IpAddr), Pair>);

#[derive(Serialize)]
struct Knocker {
    client: IpAddr,
    server: IpAddr,
    times: u64,
}

impl Analysis for Knocks {
    const NAME: &'static str = "knocks";
    const TAKES_RECORDS: bool = false;
    const TAKES_MESSAGES: bool = false;
    const FLOW_BYTES: u64 = 192;

    type Report = Vec<Knocker>;

    fn new(room: &Room) -> Self {
        Self(Table::new(room))
    }

    fn packet(&mut self, packet: &Packet) {
        if packet.tcp_flags & (SYN | ACK) != SYN {
            return;
        }
        let place = KNOCKS.iter().position(|port| *port == packet.dst_port);
        let Some(place) = place else { return };
        let (Some(client), Some(server)) = (packet.source(), packet.destination()) else { return };
        let Some(pair) = self.0.row((client, server)) else { return };
        let in_time = packet.ts_ns.abs_diff(pair.last_ns) <= WITHIN_NS;
        pair.knocks = match place {
            0 => 1,
            place if place == pair.knocks && in_time => place + 1,
            _ => 0,
        };
        pair.last_ns = packet.ts_ns;
        pair.opened += u64::from(pair.knocks == KNOCKS.len());
    }

    fn merge(&mut self, other: Self) {
        // Each pair has one worker.
        self.0.merge(other.0, |own, more| own.opened += more.opened);
    }

    fn report(self) -> Vec<Knocker> {
        let all = self.0.into_sorted().into_iter().filter(|(_, pair)| pair.opened > 0);
        all.map(|((client, server), pair)| Knocker { client, server, times: pair.opened }).collect()
    }
}

ringtap::main![Knocks];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_everywhere() {
        ringtap::testing::equal_everywhere::<Knocks>([ringtap::testing::BUNDLED]);
    }

    #[test]
    fn only_knocks_in_order_and_in_time_count() {
        let mut knocks = Knocks(Table::new(&Room::for_flows(10)));
        let mut knock = |dst_port, seconds: u64| {
            let ts_ns = seconds * 1_000_000_000;
            let flags = ringtap::Flags::IPV4;
            knocks.packet(&Packet { dst_port, ts_ns, flags, tcp_flags: SYN, ..Packet::EMPTY });
        };
        for (port, at) in [(7_000, 1), (8_000, 2), (9_000, 3)] {
            knock(port, at);
        }
        for (port, at) in [(7_000, 20), (9_000, 21), (8_000, 22)] {
            knock(port, at);
        }
        for (port, at) in [(7_000, 40), (8_000, 60), (9_000, 61)] {
            knock(port, at);
        }
        let report = knocks.report();
        assert_eq!((report.len(), report[0].times), (1, 1));
    }
}
