//! The networks /24 that sent most octets.

use std::net::{IpAddr, Ipv4Addr};

use ringtap::{Analysis, Flow, Room, Table};

struct Networks(Table<Ipv4Addr, u64>);

impl Analysis for Networks {
    const NAME: &'static str = "networks";
    const FLOW_BYTES: u64 = 96;
    type Report = Vec<(Ipv4Addr, u64)>;

    fn new(room: &Room) -> Self {
        Self(Table::new(room))
    }

    fn record(&mut self, flow: &Flow) {
        for (end, octets) in flow.key.addresses().into_iter().zip(flow.octets) {
            if let IpAddr::V4(address) = end {
                self.0.add(Ipv4Addr::from_bits(address.to_bits() & !0xff), octets);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.0.merge(other.0, |own, more| *own += more);
    }

    fn report(self) -> Self::Report {
        self.0.into_largest(10)
    }
}

ringtap::main![Networks];

#[test]
fn equal_everywhere() {
    ringtap::testing::equal_everywhere::<Networks>([ringtap::testing::BUNDLED]);
}
