//! Test of constant memory: after the start, no packet causes an allocation, whatever its name.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "ndn/designs.rs"]
mod designs;
#[path = "ndn/support/mod.rs"]
mod support;

use ringtap_base::{Allocator, allocations};
use ringtap_ndn::forwarder::{FaceId, Forwarder, Settings};
use ringtap_ndn::packets::{Headers, NameBuf, NewData, NewInterest};
use support::{A, MS, UP, faces, name};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[test]
fn nothing_is_allocated_after_the_start() {
    let settings = Settings { pit_capacity: 1 << 12, cs_bytes: 1 << 20, ..Settings::default() };
    let mut forwarder = Forwarder::new(settings);
    faces().into_iter().for_each(|(id, face)| forwarder.set_face(id, face));
    let mut sent = 0u64;
    let mut out = |_: FaceId, _: &Headers, _: &[u8]| sent += 1;
    forwarder.add_route(0, &name("/").as_name(), UP, 1, &mut out).unwrap();
    let (mut text, mut interest, mut data) = (NameBuf::default(), Vec::new(), Vec::new());
    let mut before = 0;
    for number in 0..200_000u64 {
        // By then the test harness, whose allocations count, only waits.
        if number == 50_000 {
            before = allocations();
        }
        text.truncate(0);
        text.push(&(number % 97).to_be_bytes());
        text.push(&number.to_be_bytes());
        interest.clear();
        NewInterest { lifetime_ms: Some(50), ..NewInterest::new(text.as_name(), number as u32) }
            .write(&mut interest);
        let now = number * MS / 20;
        forwarder.take(now, A, &Headers::default(), &interest, &mut out);
        // Every third Interest gets no Data and expires.
        if !number.is_multiple_of(3) {
            data.clear();
            NewData { name: text.as_name(), freshness_ms: None, content: &[7; 300] }
                .write(&mut data);
            forwarder.take(now, UP, &Headers::default(), &data, &mut out);
        }
    }
    assert!(before > 0, "the counting allocator is in place");
    assert_eq!(allocations() - before, 0);
    let counters = forwarder.counters();
    assert!(counters.unsatisfied > 60_000 && counters.cs_evicted > 100_000, "{counters:?}");
    assert!(sent > 300_000);
}
