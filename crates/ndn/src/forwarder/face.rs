//! The properties of faces that forwarding depends on.

/// Face numbers are below this. They index arrays, so larger ones would waste memory.
pub const FACES_MAX: u32 = 1 << 16;

/// The number of a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaceId(pub u32);

/// The properties of a face that forwarding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// Whether the other end is a program on this machine.
    pub local: bool,
    /// Which neighbours receive a sent packet.
    pub link: LinkKind,
}

impl Face {
    /// A face to one neighbour.
    pub const NEIGHBOUR: Self = Self { local: false, link: LinkKind::PointToPoint };
    /// A face to a program on this machine.
    pub const LOCAL: Self = Self { local: true, link: LinkKind::PointToPoint };
}

/// Which neighbours receive a sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// One neighbour.
    PointToPoint,
    /// Several neighbours, which also receive each other's packets.
    MultiAccess,
    /// Several neighbours, which may not receive each other's packets: a packet may have to be sent
    /// on the face that received it.
    AdHoc,
}

/// Use of the tables by one face.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaceUse {
    /// Interests of this face that a received Data satisfied.
    pub exchanges: u64,
    /// Interests of this face that the content store answered.
    pub cs_hits: u64,
    /// Interests of this face that are pending.
    pub pending: u64,
}

impl FaceUse {
    /// Adds the use of another shard's tables.
    pub fn add(&mut self, other: &Self) {
        self.exchanges += other.exchanges;
        self.cs_hits += other.cs_hits;
        self.pending += other.pending;
    }
}

/// Maximum number of refused Interests of a face that are answered in an interval. A face whose
/// Interests are all refused would cost as much as one whose Interests are forwarded.
const REFUSALS_MAX: u32 = 100;
const REFUSALS_NS: u64 = 100_000_000;

/// Counters of one face.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FaceCounts {
    pub(crate) exchanges: u64,
    pub(crate) cs_hits: u64,
    /// Refused Interests that were answered in the interval that began at this time.
    refusals: u32,
    refusals_since_ns: u64,
}

impl FaceCounts {
    /// Counts a refused Interest. Returns whether it is answered.
    pub(crate) fn answers_refusal(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.refusals_since_ns) >= REFUSALS_NS {
            (self.refusals, self.refusals_since_ns) = (0, now_ns);
        }
        self.refusals = self.refusals.saturating_add(1);
        self.refusals <= REFUSALS_MAX
    }
}

/// All faces, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faces {
    faces: Vec<Option<Face>>,
    /// By number: count of next hops in the FIB on that face.
    routes: Vec<u32>,
    /// By number: counters since the face was created.
    counts: Vec<FaceCounts>,
}

impl Faces {
    pub(crate) fn set(&mut self, id: FaceId, face: Option<Face>) {
        let at = id.0 as usize;
        if id.0 < FACES_MAX {
            if self.faces.len() <= at {
                self.faces.resize(at + 1, None);
                self.counts.resize(at + 1, FaceCounts::default());
            }
            self.faces[at] = face;
            if face.is_none() {
                // The next face may have the same number.
                self.counts[at] = FaceCounts::default();
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<Face> {
        self.faces.get(id.0 as usize).copied().flatten()
    }

    /// The counters of a face.
    pub(crate) fn counts(&self, id: FaceId) -> FaceCounts {
        self.counts.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// The counters of a face, to count.
    #[inline]
    pub(crate) fn counts_mut(&mut self, id: FaceId) -> Option<&mut FaceCounts> {
        self.counts.get_mut(id.0 as usize)
    }

    /// Changes the count of next hops on a face.
    pub(crate) fn count_routes(&mut self, id: FaceId, count: impl Fn(u32) -> u32) {
        let at = id.0 as usize;
        if id.0 < FACES_MAX {
            if self.routes.len() <= at {
                self.routes.resize(at + 1, 0);
            }
            self.routes[at] = count(self.routes[at]);
        }
    }

    /// Whether the FIB has next hops on a face; true for numbers from [`FACES_MAX`] on, which are
    /// not counted.
    pub(crate) fn has_routes(&self, id: FaceId) -> bool {
        id.0 >= FACES_MAX || self.routes.get(id.0 as usize).is_some_and(|&count| count > 0)
    }
}
