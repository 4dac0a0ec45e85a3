//! What tests need of a forwarder of any design.

use ringtap_ndn::forwarder::design::Access;
use ringtap_ndn::forwarder::{Counters, Face, FaceId, FaceUse, Forwarder, Parallel, Strategy};
use ringtap_ndn::packets::{Headers, Name};

/// Receives packets that a forwarder sends.
pub(crate) type Out<'a> = &'a mut dyn FnMut(FaceId, &Headers, &[u8]);

/// A forwarder of any design.
pub(crate) trait Design {
    fn set_face(&mut self, id: FaceId, face: Face);
    fn remove_face(&mut self, id: FaceId) -> bool;
    fn add_route(&mut self, now_ns: u64, prefix: &Name<'_>, face: FaceId, cost: u64, out: Out<'_>);
    fn remove_route(&mut self, prefix: &Name<'_>, face: FaceId) -> bool;
    fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy);
    fn advance(&mut self, now_ns: u64);
    fn take(&mut self, now_ns: u64, from: FaceId, headers: &Headers, wire: &[u8], out: Out<'_>);
    fn pending(&self) -> usize;
    fn face_use(&self, face: FaceId) -> FaceUse;
    fn counters(&self) -> Counters;
}

macro_rules! design {
    ($forwarder:ident) => {
        impl<A: Access> Design for $forwarder<A> {
            fn set_face(&mut self, id: FaceId, face: Face) {
                $forwarder::set_face(self, id, face);
            }

            fn remove_face(&mut self, id: FaceId) -> bool {
                $forwarder::remove_face(self, id)
            }

            fn add_route(
                &mut self,
                now_ns: u64,
                prefix: &Name<'_>,
                face: FaceId,
                cost: u64,
                mut out: Out<'_>,
            ) {
                $forwarder::add_route(self, now_ns, prefix, face, cost, &mut out).unwrap();
            }

            fn remove_route(&mut self, prefix: &Name<'_>, face: FaceId) -> bool {
                $forwarder::remove_route(self, prefix, face)
            }

            fn set_strategy(&mut self, prefix: &Name<'_>, strategy: Strategy) {
                $forwarder::set_strategy(self, prefix, strategy).unwrap();
            }

            fn advance(&mut self, now_ns: u64) {
                $forwarder::advance(self, now_ns);
            }

            fn take(
                &mut self,
                now_ns: u64,
                from: FaceId,
                headers: &Headers,
                wire: &[u8],
                mut out: Out<'_>,
            ) {
                $forwarder::take(self, now_ns, from, headers, wire, &mut out);
            }

            fn pending(&self) -> usize {
                $forwarder::pending(self)
            }

            fn face_use(&self, face: FaceId) -> FaceUse {
                $forwarder::face_use(self, face)
            }

            fn counters(&self) -> Counters {
                $forwarder::counters(self)
            }
        }
    };
}

design!(Forwarder);
design!(Parallel);
