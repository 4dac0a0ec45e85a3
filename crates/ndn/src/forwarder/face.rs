//! The properties of faces that forwarding depends on.

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

/// All faces, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faces {
    faces: Vec<Option<Face>>,
    /// By number: count of next hops in the FIB on that face.
    routes: Vec<u32>,
}

impl Faces {
    /// Face numbers are below this. They index arrays, so larger ones would waste memory.
    pub(crate) const MAX: u32 = 1 << 16;

    pub(crate) fn set(&mut self, id: FaceId, face: Option<Face>) {
        let at = id.0 as usize;
        if id.0 < Self::MAX {
            if self.faces.len() <= at {
                self.faces.resize(at + 1, None);
            }
            self.faces[at] = face;
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<Face> {
        self.faces.get(id.0 as usize).copied().flatten()
    }

    /// Changes the count of next hops on a face.
    pub(crate) fn count_routes(&mut self, id: FaceId, count: impl Fn(u32) -> u32) {
        let at = id.0 as usize;
        if id.0 < Self::MAX {
            if self.routes.len() <= at {
                self.routes.resize(at + 1, 0);
            }
            self.routes[at] = count(self.routes[at]);
        }
    }

    /// Whether the FIB has next hops on a face; true for numbers from [`Faces::MAX`] on, which are
    /// not counted.
    pub(crate) fn has_routes(&self, id: FaceId) -> bool {
        id.0 >= Self::MAX || self.routes.get(id.0 as usize).is_some_and(|&count| count > 0)
    }
}
