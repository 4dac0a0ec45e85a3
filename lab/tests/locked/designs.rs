//! The designs of a forwarder that are compared with a single one: shared tables.

use ringtap_lab::exclusion::locked::{Locked, Sharing};
use ringtap_ndn::forwarder::{Counters, Face, FaceId, FaceUse, Parallel, Settings, Strategy};
use ringtap_ndn::packets::{Headers, Name};

use crate::support::design::{Design, Out};

/// The designs with locks.
pub(crate) const LOCKED: [Sharing; 3] = [Sharing::Buckets, Sharing::BucketsNaive, Sharing::Global];

/// Designs with the same tables that each have one part for each worker; so here with one.
const OWNED: [Sharing; 2] = [Sharing::BucketsOwned, Sharing::BucketsElided];

/// Few buckets, so that names share them.
pub(crate) const LOCKS: usize = 8;

/// All designs, each with one of these numbers of workers.
pub(crate) fn of(settings: &Settings, workers: &[usize]) -> Vec<(String, Box<dyn Design>)> {
    let design = |(sharing, &workers): (Sharing, &usize)| -> (String, Box<dyn Design>) {
        let (parallel, _) = Locked::workers(settings, workers, sharing, LOCKS);
        (format!("{workers} workers, {sharing}"), Box::new(InOrder(parallel)))
    };
    let shared = LOCKED.into_iter().zip(workers.iter().cycle());
    shared.chain(OWNED.map(|sharing| (sharing, &1))).map(design).collect()
}

/// Workers, run by one thread: entries that other workers create later are younger, also at the same time.
struct InOrder(Parallel<Locked>);

impl Design for InOrder {
    fn set_face(&mut self, id: FaceId, face: Face) {
        self.0.set_face(id, face);
    }

    fn remove_face(&mut self, id: FaceId) -> bool {
        self.0.remove_face(id)
    }

    fn add_route(
        &mut self,
        now_ns: u64,
        prefix: &Name<'_>,
        face: FaceId,
        cost: u64,
        mut out: Out<'_>,
    ) {
        self.0.add_route(now_ns, prefix, face, cost, &mut out).unwrap();
    }

    fn remove_route(&mut self, prefix: &Name<'_>, face: FaceId) -> bool {
        self.0.remove_route(prefix, face)
    }

    fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) {
        self.0.set_strategy(prefix, strategy).unwrap();
    }

    fn advance(&mut self, now_ns: u64) {
        self.0.advance(now_ns);
    }

    fn take(
        &mut self,
        now_ns: u64,
        from: FaceId,
        headers: &Headers,
        wire: &[u8],
        mut out: Out<'_>,
    ) {
        self.0.take(now_ns, from, headers, wire, &mut out);
        let workers = self.0.workers_mut();
        let latest = workers.iter_mut().filter_map(|worker| worker.tables_mut().latest()).max();
        for worker in workers {
            worker.tables_mut().set_latest(latest.unwrap_or(0));
        }
    }

    fn pending(&self) -> usize {
        self.0.pending()
    }

    fn face_use(&self, face: FaceId) -> FaceUse {
        self.0.face_use(face)
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }
}
