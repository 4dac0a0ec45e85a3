//! The networks /24 that sent most octets.

use std::net::IpAddr;

use ringtap::{Analysis, Flow, Room, Table};

struct Networks(Table<[u8; 3], u64>);

impl Analysis for Networks {
    const NAME: &'static str = "networks";
    const FLOW_BYTES: u64 = 96;
    type Report = Vec<(String, u64)>;

    fn new(room: &Room) -> Self {
        Self(Table::new(room.flows))
    }

    fn record(&mut self, flow: &Flow) {
        for (address, octets) in
            [flow.key.source(), flow.key.destination()].into_iter().zip(flow.octets)
        {
            if let IpAddr::V4(address) = address
                && let [a, b, c, _] = address.octets()
                && let Some(sum) = self.0.row([a, b, c])
            {
                *sum += octets;
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
        let named = |([a, b, c], octets): ([u8; 3], u64)| (format!("{a}.{b}.{c}.0/24"), octets);
        self.0.into_largest(10).into_iter().map(named).collect()
    }
}

ringtap::main![Networks];

#[test]
fn equal_everywhere() {
    ringtap::testing::equal_everywhere::<Networks>(["../../office.pcap"]);
}
