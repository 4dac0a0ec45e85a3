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
pub(crate) struct Faces(Vec<Option<Face>>);

impl Faces {
    /// Faces are numbered densely; those above would cost memory for nothing.
    pub(crate) const MAX: u32 = 1 << 16;

    pub(crate) fn set(&mut self, id: FaceId, face: Option<Face>) {
        let at = id.0 as usize;
        if id.0 < Self::MAX {
            if self.0.len() <= at {
                self.0.resize(at + 1, None);
            }
            self.0[at] = face;
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: FaceId) -> Option<Face> {
        self.0.get(id.0 as usize).copied().flatten()
    }
}
