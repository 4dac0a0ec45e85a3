//! The networks /24 that sent most octets.

use std::net::{IpAddr, Ipv4Addr};

use ringtap::{Analysis, Flow, Room, Table};

struct Networks(Table<u32, u64>);

impl Analysis for Networks {
    const NAME: &'static str = "networks";
    const FLOW_BYTES: u64 = 96;
    type Report = Vec<(Ipv4Addr, u64)>;

    fn new(room: &Room) -> Self {
        Self(Table::new(room.flows))
    }

    fn record(&mut self, flow: &Flow) {
        let ends = [flow.key.source(), flow.key.destination()];
        for (end, octets) in ends.into_iter().zip(flow.octets) {
            if let IpAddr::V4(address) = end {
                self.0.add(address.to_bits() & !0xff, octets);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.0.merge(other.0, |own, more| *own += more);
    }

    fn lost(&self) -> u64 {
        self.0.lost()
    }

    fn report(self) -> Self::Report {
        let rows = self.0.into_largest(10).into_iter();
        rows.map(|(network, octets)| (network.into(), octets)).collect()
    }
}

ringtap::main![Networks];

#[test]
fn equal_everywhere() {
    ringtap::testing::equal_everywhere::<Networks>(["../../office.pcap"]);
}
