//! Requests for the management that wait for their turn: the main thread spends only a part of each
//! round on them, so that no program keeps it from forwarding.
//!
//! ```text
//!  request ─▶ credit left? ─▶ executed at once
//!                └─▶ queues by face ─▶ in each round, one of each face in turn, while credit is left
//! ```
//!
//! A request costs [`REQUEST`], a data set that is made one more for each of its rows. An expensive
//! request leaves a debt, which following rounds pay.
//!
//! Invariants: the queues are bounded, in total and by face. Requests of one face are handled in
//! order. What does not fit is counted.

use std::collections::VecDeque;

use crate::packets::Headers;

/// The cost of a request, and the credit of a round.
pub(crate) const REQUEST: u64 = 16;
const ROUND: i64 = 64;

/// Maximum number of requests that wait: in total, of neighbours, and of one face.
const WAITING_MAX: usize = 4_096;
const NEIGHBOURS_MAX: usize = 2_048;
pub(crate) const FACE_MAX: usize = 1_024;

/// Maximum number of their bytes.
const BYTES_MAX: usize = 4 << 20;

/// The requests that wait, and the credit.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Faces whose requests wait, the next one first.
    faces: VecDeque<FaceRequests>,
    len: usize,
    bytes: usize,
    credit: i64,
    /// When reports of the workers were requested for the next request.
    reports_ns: Option<u64>,
}

#[derive(Debug)]
struct FaceRequests {
    face: u32,
    serial: u64,
    requests: VecDeque<Request>,
}

/// A request that waits.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) headers: Headers,
    pub(crate) packet: Box<[u8]>,
}

impl Default for Requests {
    fn default() -> Self {
        Self { faces: VecDeque::new(), len: 0, bytes: 0, credit: ROUND, reports_ns: None }
    }
}

impl Requests {
    /// Number of requests that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether the main thread should go on without waiting for packets.
    pub(crate) fn is_due(&self) -> bool {
        self.len > 0 && self.reports_ns.is_none()
    }

    /// Whether a request may be executed now.
    pub(crate) fn has_credit(&self) -> bool {
        self.credit > 0
    }

    /// Counts the cost of what was executed.
    pub(crate) fn spend(&mut self, cost: u64) {
        self.credit = self.credit.saturating_sub_unsigned(cost);
    }

    /// A round begins. Unspent credit is lost.
    pub(crate) fn begin_round(&mut self) {
        self.credit = self.credit.saturating_add(ROUND).min(ROUND);
    }

    /// Adds a request of the face with this number and serial number; returns false if it has no
    /// room.
    pub(crate) fn add(
        &mut self,
        (face, serial): (u32, u64),
        is_local: bool,
        headers: &Headers,
        packet: &[u8],
    ) -> bool {
        let max = if is_local { WAITING_MAX } else { NEIGHBOURS_MAX };
        if self.len >= max || self.bytes + packet.len() > BYTES_MAX {
            return false;
        }
        let same = |one: &&mut FaceRequests| (one.face, one.serial) == (face, serial);
        let request = Request { headers: *headers, packet: packet.into() };
        match self.faces.iter_mut().find(same) {
            Some(of_face) if of_face.requests.len() >= FACE_MAX => return false,
            Some(of_face) => of_face.requests.push_back(request),
            None => self.faces.push_back(FaceRequests { face, serial, requests: [request].into() }),
        }
        self.len += 1;
        self.bytes += packet.len();
        true
    }

    /// Removes the next request; returns it with the number and serial number of its face.
    pub(crate) fn take(&mut self) -> Option<(u32, u64, Request)> {
        let mut of_face = self.faces.pop_front()?;
        let request = of_face.requests.pop_front()?;
        let (face, serial) = (of_face.face, of_face.serial);
        if !of_face.requests.is_empty() {
            self.faces.push_back(of_face);
        }
        self.len -= 1;
        self.bytes -= request.packet.len();
        Some((face, serial, request))
    }

    /// Puts the request back that was taken last, as the next one.
    pub(crate) fn put_back(&mut self, (face, serial, request): (u32, u64, Request)) {
        self.len += 1;
        self.bytes += request.packet.len();
        let is_last = |one: &FaceRequests| (one.face, one.serial) == (face, serial);
        let mut of_face = match self.faces.pop_back_if(|one| is_last(one)) {
            Some(of_face) => of_face,
            None => FaceRequests { face, serial, requests: VecDeque::new() },
        };
        of_face.requests.push_front(request);
        self.faces.push_front(of_face);
    }

    /// When reports of the workers were requested for the next request.
    pub(crate) fn reports_ns(&mut self) -> &mut Option<u64> {
        &mut self.reports_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(requests: &mut Requests, face: u32, number: u8) -> bool {
        requests.add((face, 0), true, &Headers::NONE, &[number])
    }

    fn next(requests: &mut Requests) -> Option<(u32, u8)> {
        requests.take().map(|(face, _, request)| (face, request.packet[0]))
    }

    #[test]
    fn faces_take_turns_and_requests_of_a_face_keep_their_order() {
        let mut requests = Requests::default();
        for (face, number) in [(1, 0), (1, 1), (1, 2), (2, 3), (3, 4), (3, 5)] {
            assert!(add(&mut requests, face, number));
        }
        let first = requests.take().unwrap();
        assert_eq!((first.0, &*first.2.packet), (1, &[0][..]));
        requests.put_back(first);
        assert_eq!(requests.len(), 6);
        let order: Vec<_> = std::iter::from_fn(|| next(&mut requests)).collect();
        assert_eq!(order, [(1, 0), (2, 3), (3, 4), (1, 1), (3, 5), (1, 2)]);
        assert_eq!((requests.len(), requests.bytes), (0, 0));
    }

    #[test]
    fn the_queues_are_bounded() {
        let mut requests = Requests::default();
        let taken = (0..5_000).filter(|_| add(&mut requests, 1, 0)).count();
        assert_eq!(taken, FACE_MAX);
        let is_local = |face| face < 10;
        let mut of_neighbours = 0;
        for face in (2..5_000).rev() {
            let taken = requests.add((face, 0), is_local(face), &Headers::NONE, &[0; 100]);
            of_neighbours += usize::from(taken && !is_local(face));
        }
        assert_eq!(of_neighbours, NEIGHBOURS_MAX - FACE_MAX);
        // Programs have room left.
        assert_eq!(requests.len(), NEIGHBOURS_MAX + 8);
        let large = vec![0; 8_800];
        let added = (0..5_000)
            .filter(|&face| requests.add((face + 10_000, 0), true, &Headers::NONE, &large));
        assert!(added.count() <= BYTES_MAX / large.len());
        assert!(requests.bytes <= BYTES_MAX);
    }

    #[test]
    fn a_debt_is_paid_by_the_following_rounds() {
        let mut requests = Requests::default();
        requests.spend(REQUEST + 10 * ROUND as u64);
        let rounds = (1..).find(|_| {
            requests.begin_round();
            requests.has_credit()
        });
        assert_eq!(rounds, Some(10));
        // Unspent credit does not add up.
        (0..100).for_each(|_| requests.begin_round());
        assert_eq!(requests.credit, ROUND);
    }
}
