//! A neighbour that sends Interests with distinct names and lifetimes of an hour as fast as it can,
//! while programs exchange packets. `compare/hostile.sh` measures the same at length.

use std::net::UdpSocket;
use std::time::Duration;

use ringtap_ndn::faces::Remote;
use ringtap_ndn::forwarder::Drop;
use ringtap_ndn::packets::{Data, Headers, Interest, NewData, NewInterest};
use ringtap_ndn::relay::{ForwardPlan, PlannedRoute, Settings};

use crate::relay::client::Client;
use crate::relay::support::{Ringtap, plans, until};
use crate::support::name;

const FLOOD: u32 = 100_000;
const LIFETIME_MS: u64 = 3_600_000;

/// Maximum number of pending Interests of a face.
const SHARE: usize = 1_000;

/// Longest wait for a packet before an Interest is sent again.
const WAIT: Duration = Duration::from_secs(1);

fn interest(text: &str, nonce: u32, lifetime_ms: u64) -> Vec<u8> {
    let (name, mut wire) = (name(text), Vec::new());
    let mut interest = NewInterest::new(name.as_name(), nonce);
    interest.lifetime_ms = Some(lifetime_ms);
    interest.write(&mut wire);
    wire
}

/// Numbers of packets that the programs sent.
#[derive(Default)]
struct Sent {
    interests: u64,
    data: u64,
}

/// An exchange between two programs. The Interest is sent again until its Data arrives.
fn exchange(consumer: &mut Client, producer: &mut Client, number: u32, sent: &mut Sent) {
    let text = format!("/served/{number}");
    for attempt in 1..=100 {
        consumer.send(&Headers::NONE, &interest(&text, number << 8 | attempt, 2_000));
        sent.interests += 1;
        let Some((headers, packet)) = producer.receive(WAIT) else { continue };
        let mut data = Vec::new();
        let name = Interest::read(&packet).unwrap().name;
        NewData { name, freshness_ms: None, content: b"" }.write(&mut data);
        producer.send(&Headers { token: headers.token, ..Headers::NONE }, &data);
        sent.data += 1;
        // After an earlier attempt, another Data may arrive.
        while let Some((_, packet)) = consumer.receive(WAIT) {
            if Data::read(&packet).is_ok_and(|data| data.name.to_string() == text) {
                return;
            }
        }
    }
    panic!("{text} is not answered");
}

#[test]
fn a_flood_of_long_lived_interests_takes_only_its_share() {
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = Remote::Udp(silent.local_addr().unwrap());
        let plan = ForwardPlan {
            settings: Settings {
                pit_per_face: Some(SHARE),
                pit_capacity: 4 * SHARE,
                lifetime_max_ms: 2_000,
                ..plan.settings
            },
            routes: vec![PlannedRoute { prefix: name("/void"), to, cost: 0 }],
            ..plan
        };
        let relay = Ringtap::with(folder.path(), plan);
        let mut producer = Client::unix(&relay.socket);
        producer.register("/served");
        let mut consumer = Client::unix(&relay.socket);
        let mut control = Client::unix(&relay.socket);
        let mut flooder = Client::udp(relay.udp);
        let flood = std::thread::Builder::new().spawn(move || {
            for number in 0..FLOOD {
                let text = format!("/void/{number}");
                flooder.send(&Headers::NONE, &interest(&text, number, LIFETIME_MS));
            }
        });
        let flood = flood.unwrap();
        let (mut sent, mut number) = (Sent::default(), 0);
        while !flood.is_finished() || number < 100 {
            number += 1;
            exchange(&mut consumer, &mut producer, number, &mut sent);
            let pending = control.status().pit_entries;
            // The flood's share, and at most one attempt of each program.
            assert!(pending <= SHARE as u64 + 20, "{pending} pending");
        }
        flood.join().unwrap();
        until("nothing is pending", || match control.status().pit_entries {
            0 => Ok(()),
            pending => Err(format!("{pending} pending")),
        });
        let report = relay.end();
        let counts = report.forwarder;
        // A worker that gets no processor drops packets of all faces.
        let (packets, full) = (counts.interests_in + counts.data_in, report.worker_full);
        let all = u64::from(FLOOD) + sent.interests + sent.data;
        assert_eq!(all, packets + full + report.kernel_drops, "{report:?}");
        assert!((counts.data_in..=counts.data_in + full).contains(&sent.data), "{report:?}");
        assert!(counts.dropped(Drop::FaceShare) > 0, "{report:?}");
        // An Interest that was sent again may join the entry of an earlier attempt.
        let dropped = counts.dropped(Drop::FaceShare) + counts.dropped(Drop::PitFull);
        let ends = counts.satisfied + counts.unsatisfied + dropped;
        let again = sent.interests - u64::from(number);
        assert!((ends..=ends + again).contains(&counts.interests_in), "{report:?}");
        assert_eq!((counts.dropped(Drop::PitFull), report.pending), (0, 0), "{report:?}");
    }
}
