//! Test: after warm-up the data path allocates nothing, so its memory does not grow with the
//! capture.

#[path = "product/common.rs"]
#[allow(dead_code)]
mod common;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::Plan;
use common::{
    Capture, Request, generate, generate_tunnelled, parallel, profile, request, skeletons,
};
use ringtap_base::{Allocator, allocations};
use ringtap_engine::{PacketFeed, Watch};
use ringtap_monitor::Outputs;
use ringtap_ring::Kind as Ring;
use ringtap_stage::{Burst, Fed, Feed};
use ringtap_wire::PacketRecord;
use ringtap_wire::Tunnels;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// A feed that reads the allocation counter after `warm` packets and at the end of the stream.
struct CountingFeed<'a> {
    inner: PacketFeed<'a>,
    watch: &'a Watch,
    warm: u64,
    readings: &'a Readings,
}

/// Values of the allocation counter at two times of a run; 0: not read yet.
#[derive(Default)]
struct Readings {
    at_warm: AtomicU64,
    at_end: AtomicU64,
}

impl Feed for CountingFeed<'_> {
    type Item = PacketRecord;
    fn next(&mut self, burst: &mut Burst<PacketRecord>) -> Fed {
        let fed = self.inner.next(burst);
        let Readings { at_warm, at_end } = self.readings;
        if self.watch.packets.get() >= self.warm && at_warm.load(Relaxed) == 0 {
            at_warm.store(allocations(), Relaxed);
        }
        // At the end of the first queue. The results that workers send afterwards are not part of
        // the data path.
        if matches!(fed, Fed::Mark(ringtap_stage::Mark::End { .. })) && at_end.load(Relaxed) == 0 {
            at_end.store(allocations(), Relaxed);
        }
        fed
    }
}

/// The default request without octets of payload: a burst's room for attachments grows until its largest one came.
fn plain() -> Request {
    request().app(|app| app.statistics_octets = 0)
}

/// Number of allocations after five eighths of the packets, when all flows have been seen.
fn allocations_after_warm_up(plan: &Plan, capture: &Capture, packets: u64) -> u64 {
    let paths = std::sync::Arc::default();
    let app =
        ringtap_monitor::Monitor::new(ringtap_monitor::Setup::of(plan, &paths), Outputs::default());
    let (watch, readings) = (Watch::new(), Readings::default());
    let feeds = PacketFeed::all(plan, &paths, capture.open(), &watch);
    // Workers lag behind the reader, but by less than an eighth of the packets.
    let warm = packets * 5 / 8;
    let counting = |inner| CountingFeed { inner, watch: &watch, warm, readings: &readings };
    let feeds = feeds.into_iter().map(counting).collect();
    ringtap_skeleton::run(plan.arrangement.skeleton, &app, feeds, &plan.run_options()).unwrap();
    let (at_warm, at_end) = (readings.at_warm.into_inner(), readings.at_end.into_inner());
    assert!(at_warm > 0 && at_end > 0);
    at_end - at_warm
}

/// A single test, because all threads share one counter.
#[test]
fn nothing_is_allocated_after_warm_up() {
    assert!(allocations() > 0, "the counting allocator is in place");
    with_every_ring();
    with_every_tunnel_mode();
}

fn with_every_ring() {
    let packets = 400_000;
    let (bytes, _) = generate(&profile("w1", packets, 3_000), 1);
    let capture = Capture::Bytes(bytes);
    assert_eq!(allocations_after_warm_up(&crate::common::reference(plain()), &capture, packets), 0);
    for skeleton in skeletons() {
        for ring in Ring::ALL {
            for shape in [(1, 2), (2, 2)] {
                let plan = parallel(plain(), skeleton, shape, ring, (1024, 50));
                let after = allocations_after_warm_up(&plan, &capture, packets);
                assert_eq!(after, 0, "{skeleton}, {ring}, {shape:?}");
            }
        }
    }
}

fn with_every_tunnel_mode() {
    let packets = 400_000;
    let (bytes, _) = generate_tunnelled(&profile("w1", packets, 3_000), 1);
    let capture = Capture::Bytes(bytes);
    for tunnels in Tunnels::ALL {
        let request = plain().run(|o| o.tunnels = tunnels);
        assert_eq!(
            allocations_after_warm_up(
                &crate::common::reference(request.clone()),
                &capture,
                packets
            ),
            0
        );
        for skeleton in skeletons() {
            let plan = parallel(request.clone(), skeleton, (2, 2), Ring::default(), (1024, 50));
            assert_eq!(
                allocations_after_warm_up(&plan, &capture, packets),
                0,
                "{skeleton}, {tunnels}"
            );
        }
    }
}
