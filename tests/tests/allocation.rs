//! After warm-up the data path allocates nothing, so its memory does not grow with the file.

use ringtap_memory::{Allocator, allocations};
use ringtap_plan::{Outputs, PacketFeed, Plan, Request, Ring, Tunnels, Watch};
use ringtap_stage::{Fed, Feed};
use ringtap_tests::{Capture, generate, generate_tunnelled, parallel, profile, request, skeletons};
use ringtap_wire::{Decoder, PacketRecord};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// A feed that reads the allocation counter when half of the packets are through, and at the end.
struct Gauge<'a> {
    inner: PacketFeed<'a>,
    half: u64,
    at_half: &'a mut Option<u64>,
    at_end: &'a mut Option<u64>,
}

impl Feed for Gauge<'_> {
    type Item = PacketRecord;
    fn next(&mut self, burst: &mut Vec<PacketRecord>) -> Fed {
        let fed = self.inner.next(burst);
        if self.inner.counts().packets >= self.half {
            self.at_half.get_or_insert_with(allocations);
        }
        if matches!(fed, Fed::Mark(ringtap_stage::Mark::End { .. })) {
            *self.at_end = Some(allocations());
        }
        fed
    }
}

/// Allocations in the second half of a run over traffic whose flows have all been seen.
fn second_half(plan: &Plan, capture: &Capture, packets: u64) -> u64 {
    let paths = std::sync::Arc::default();
    let app = ringtap_plan::app(plan, &paths, Outputs::default());
    let watch = Watch::new();
    let (mut at_half, mut at_end) = (None, None);
    let decoder = Decoder::new(plan.hash_key(), std::sync::Arc::clone(&paths));
    let decoder = decoder.with_tunnels(plan.tunnels);
    let inner = PacketFeed::new(capture.open(), decoder, plan.metering.timeouts.tick_ns(), &watch);
    let gauge = Gauge { inner, half: packets / 2, at_half: &mut at_half, at_end: &mut at_end };
    ringtap_skeleton::run(plan.skeleton, &app, gauge, &plan.options()).unwrap();
    at_end.unwrap() - at_half.unwrap()
}

/// One test, for there is one counter.
#[test]
fn nothing_is_allocated_after_warm_up() {
    assert!(allocations() > 0, "the counting allocator is in place");
    whatever_the_ring();
    whatever_tunnels_carry();
}

fn whatever_the_ring() {
    let packets = 400_000;
    let (bytes, _) = generate(&profile("w1", packets, 3_000), 1);
    let capture = Capture::Bytes(bytes);
    assert_eq!(second_half(&ringtap_tests::reference(request()), &capture, packets), 0);
    for skeleton in skeletons() {
        for ring in Ring::ALL {
            let plan = parallel(request(), skeleton, 2, ring, (1024, 50));
            assert_eq!(second_half(&plan, &capture, packets), 0, "{skeleton}, {ring}");
        }
    }
}

fn whatever_tunnels_carry() {
    let packets = 200_000;
    let (bytes, _) = generate_tunnelled(&profile("w1", packets, 3_000), 1);
    let capture = Capture::Bytes(bytes);
    for tunnels in Tunnels::ALL {
        let request = Request { tunnels, ..request() };
        assert_eq!(second_half(&ringtap_tests::reference(request.clone()), &capture, packets), 0);
        for skeleton in skeletons() {
            let plan = parallel(request.clone(), skeleton, 2, Ring::default(), (1024, 50));
            assert_eq!(second_half(&plan, &capture, packets), 0, "{skeleton}, {tunnels}");
        }
    }
}
