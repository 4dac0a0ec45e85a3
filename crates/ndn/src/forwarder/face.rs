//! Faces: who packets come from and go to.

/// The number of a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FaceId(pub u32);

/// What matters of a face to forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face {
    /// Whether it leads to a program on this machine.
    pub local: bool,
    /// Who hears what is sent.
    pub link: LinkKind,
}

impl Face {
    /// To one neighbour.
    pub const NEIGHBOUR: Self = Self { local: false, link: LinkKind::PointToPoint };
    /// To a program on this machine.
    pub const LOCAL: Self = Self { local: true, link: LinkKind::PointToPoint };
}

/// Who hears what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// One neighbour.
    PointToPoint,
    /// Several, who hear each other.
    MultiAccess,
    /// Several, who need not hear each other: what came may have to go out again.
    AdHoc,
}

/// All faces, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faces {
    known: Vec<Option<Face>>,
    /// By number: next hops in the FIB that lead there.
    routes: Vec<u32>,
}

impl Faces {
    /// Faces are numbered densely; those above would cost memory for nothing.
    pub(crate) const MAX: u32 = 1 << 16;

    pub(crate) fn set(&mut self, id: FaceId, face: Option<Face>) {
        let at = id.0 as usize;
        if id.0 < Self::MAX {
            if self.known.len() <= at {
                self.known.resize(at + 1, None);
            }
            self.known[at] = face;
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<Face> {
        self.known.get(id.0 as usize).copied().flatten()
    }

    /// Counts the next hops that lead to a face.
    pub(crate) fn count_routes(&mut self, id: FaceId, count: impl Fn(u32) -> u32) {
        let at = id.0 as usize;
        if id.0 < Self::MAX {
            if self.routes.len() <= at {
                self.routes.resize(at + 1, 0);
            }
            self.routes[at] = count(self.routes[at]);
        }
    }

    /// Whether next hops lead to a face. Numbers that are not counted may have some.
    pub(crate) fn has_routes(&self, id: FaceId) -> bool {
        id.0 >= Self::MAX || self.routes.get(id.0 as usize).is_some_and(|&count| count > 0)
    }
}
