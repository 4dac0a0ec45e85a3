//! Data sets: faces, routes, next hops, strategies, the content store, and the general status.

use super::control::{
    COST, EXPIRATION_PERIOD, FACE_ID, FACE_PERSISTENCY, FLAGS, LOCAL_URI, MTU, ORIGIN, URI, put_if,
    put_strategy, strategy, text,
};
use crate::packets::write::{put, put_value};
use crate::packets::{Element, Elements, Error, Name, NameBuf, kind};

/// Element type of every row.
const ROW: u32 = 0x80;
/// Element type of a route in a RIB row, and of a next hop in a FIB row.
const INNER: u32 = 0x81;
const FILTER: u32 = 0x96;
const URI_SCHEME: u32 = 0x83;
pub(super) const FACE_SCOPE: u32 = 0x84;
pub(super) const LINK_TYPE: u32 = 0x86;
const IN_INTERESTS: u32 = 0x90;
const IN_DATA: u32 = 0x91;
const OUT_INTERESTS: u32 = 0x92;
const OUT_DATA: u32 = 0x93;
const IN_BYTES: u32 = 0x94;
const OUT_BYTES: u32 = 0x95;
const IN_NACKS: u32 = 0x97;
const OUT_NACKS: u32 = 0x98;

/// The status of a face.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct FaceStatus {
    pub face: u64,
    pub uri: String,
    pub local_uri: String,
    pub expiration_ms: Option<u64>,
    /// 0: another machine; 1: this one.
    pub scope: u64,
    /// 0: persistent, 1: on demand, 2: permanent.
    pub persistency: u64,
    /// 0: point-to-point, 1: multi-access, 2: ad hoc.
    pub link_type: u64,
    pub mtu: Option<u64>,
    pub in_interests: u64,
    pub in_data: u64,
    pub in_nacks: u64,
    pub out_interests: u64,
    pub out_data: u64,
    pub out_nacks: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub flags: u64,
    /// Interests of the face that a received Data satisfied. Specific to ringtap, as are the three
    /// fields below; other programs ignore them.
    pub exchanges: u64,
    /// Interests of the face that the content store answered.
    pub cs_hits: u64,
    /// Interests of the face that are pending.
    pub pending: u64,
    /// Frames lost, for any reason.
    pub lost_frames: u64,
}

impl FaceStatus {
    // Even types that the protocol does not use; other programs ignore them.
    const EXCHANGES: u32 = 0xf0;
    const CS_HITS: u32 = 0xf2;
    const PENDING: u32 = 0xf4;
    const LOST_FRAMES: u32 = 0xf6;

    /// Appends a row.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut row = Vec::new();
        put_value(&mut row, FACE_ID, self.face);
        put(&mut row, URI, self.uri.as_bytes());
        put(&mut row, LOCAL_URI, self.local_uri.as_bytes());
        put_if(&mut row, EXPIRATION_PERIOD, self.expiration_ms);
        put_value(&mut row, FACE_SCOPE, self.scope);
        put_value(&mut row, FACE_PERSISTENCY, self.persistency);
        put_value(&mut row, LINK_TYPE, self.link_type);
        put_if(&mut row, MTU, self.mtu);
        for (kind, number) in [
            (IN_INTERESTS, self.in_interests),
            (IN_DATA, self.in_data),
            (IN_NACKS, self.in_nacks),
            (OUT_INTERESTS, self.out_interests),
            (OUT_DATA, self.out_data),
            (OUT_NACKS, self.out_nacks),
            (IN_BYTES, self.in_bytes),
            (OUT_BYTES, self.out_bytes),
            (FLAGS, self.flags),
            (Self::EXCHANGES, self.exchanges),
            (Self::CS_HITS, self.cs_hits),
            (Self::PENDING, self.pending),
            (Self::LOST_FRAMES, self.lost_frames),
        ] {
            put_value(&mut row, kind, number);
        }
        put(out, ROW, &row);
    }

    /// Parses all rows.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, Error> {
        rows(bytes, |row| {
            let mut read = Self::default();
            for element in Elements::of(row) {
                let element = element?;
                match element.kind {
                    FACE_ID => read.face = element.number()?,
                    URI => read.uri = text(&element)?,
                    LOCAL_URI => read.local_uri = text(&element)?,
                    EXPIRATION_PERIOD => read.expiration_ms = Some(element.number()?),
                    FACE_SCOPE => read.scope = element.number()?,
                    FACE_PERSISTENCY => read.persistency = element.number()?,
                    LINK_TYPE => read.link_type = element.number()?,
                    MTU => read.mtu = Some(element.number()?),
                    IN_INTERESTS => read.in_interests = element.number()?,
                    IN_DATA => read.in_data = element.number()?,
                    IN_NACKS => read.in_nacks = element.number()?,
                    OUT_INTERESTS => read.out_interests = element.number()?,
                    OUT_DATA => read.out_data = element.number()?,
                    OUT_NACKS => read.out_nacks = element.number()?,
                    IN_BYTES => read.in_bytes = element.number()?,
                    OUT_BYTES => read.out_bytes = element.number()?,
                    FLAGS => read.flags = element.number()?,
                    Self::EXCHANGES => read.exchanges = element.number()?,
                    Self::CS_HITS => read.cs_hits = element.number()?,
                    Self::PENDING => read.pending = element.number()?,
                    Self::LOST_FRAMES => read.lost_frames = element.number()?,
                    _ => {}
                }
            }
            Ok(read)
        })
    }
}

/// The filter of a face query; a field that is `None` matches every face.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct FaceFilter {
    pub face: Option<u64>,
    pub scheme: Option<String>,
    pub uri: Option<String>,
    pub local_uri: Option<String>,
    pub scope: Option<u64>,
    pub persistency: Option<u64>,
    pub link_type: Option<u64>,
}

impl FaceFilter {
    /// Parses a filter; `wire` must hold exactly one FaceQueryFilter element.
    pub fn read(wire: &[u8]) -> Result<Self, Error> {
        let outer = Element::only(wire)?;
        if outer.kind != FILTER {
            return Err(Error::UnknownPacket);
        }
        let mut read = Self::default();
        for element in Elements::of(outer.value) {
            let element = element?;
            match element.kind {
                FACE_ID => read.face = Some(element.number()?),
                URI_SCHEME => read.scheme = Some(text(&element)?),
                URI => read.uri = Some(text(&element)?),
                LOCAL_URI => read.local_uri = Some(text(&element)?),
                FACE_SCOPE => read.scope = Some(element.number()?),
                FACE_PERSISTENCY => read.persistency = Some(element.number()?),
                LINK_TYPE => read.link_type = Some(element.number()?),
                _ => {}
            }
        }
        Ok(read)
    }

    /// Whether a face matches all fields.
    pub fn matches(&self, face: &FaceStatus) -> bool {
        let scheme = |uri: &str, scheme: &str| uri.split("://").next() == Some(scheme);
        self.face.is_none_or(|number| number == face.face)
            && self
                .scheme
                .as_ref()
                .is_none_or(|one| scheme(&face.uri, one) || scheme(&face.local_uri, one))
            && self.uri.as_ref().is_none_or(|uri| *uri == face.uri)
            && self.local_uri.as_ref().is_none_or(|uri| *uri == face.local_uri)
            && self.scope.is_none_or(|scope| scope == face.scope)
            && self.persistency.is_none_or(|one| one == face.persistency)
            && self.link_type.is_none_or(|one| one == face.link_type)
    }
}

/// A route of one prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct Route {
    pub face: u64,
    pub origin: u64,
    pub cost: u64,
    pub flags: u64,
    pub expiration_ms: Option<u64>,
}

/// All routes of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct RibEntry {
    pub name: NameBuf,
    pub routes: Vec<Route>,
}

impl RibEntry {
    /// Appends a row.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut row = Vec::new();
        put(&mut row, kind::NAME, self.name.as_bytes());
        for route in &self.routes {
            let mut inner = Vec::new();
            put_value(&mut inner, FACE_ID, route.face);
            put_value(&mut inner, ORIGIN, route.origin);
            put_value(&mut inner, COST, route.cost);
            put_value(&mut inner, FLAGS, route.flags);
            put_if(&mut inner, EXPIRATION_PERIOD, route.expiration_ms);
            put(&mut row, INNER, &inner);
        }
        put(out, ROW, &row);
    }

    /// Parses all rows.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, Error> {
        rows(bytes, |row| {
            let mut read = Self::default();
            for element in Elements::of(row) {
                let element = element?;
                match element.kind {
                    kind::NAME => read.name = NameBuf::of(Name::of(&element)?.0),
                    INNER => read.routes.push(route(element.value)?),
                    _ => {}
                }
            }
            Ok(read)
        })
    }
}

fn route(value: &[u8]) -> Result<Route, Error> {
    let mut read = Route::default();
    for element in Elements::of(value) {
        let element = element?;
        match element.kind {
            FACE_ID => read.face = element.number()?,
            ORIGIN => read.origin = element.number()?,
            COST => read.cost = element.number()?,
            FLAGS => read.flags = element.number()?,
            EXPIRATION_PERIOD => read.expiration_ms = Some(element.number()?),
            _ => {}
        }
    }
    Ok(read)
}

/// The next hops of a prefix: face numbers and costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct FibEntry {
    pub name: NameBuf,
    pub next_hops: Vec<(u64, u64)>,
}

impl FibEntry {
    /// Appends a row.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut row = Vec::new();
        put(&mut row, kind::NAME, self.name.as_bytes());
        for &(face, cost) in &self.next_hops {
            let mut inner = Vec::new();
            put_value(&mut inner, FACE_ID, face);
            put_value(&mut inner, COST, cost);
            put(&mut row, INNER, &inner);
        }
        put(out, ROW, &row);
    }
}

/// The strategy of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct StrategyChoice {
    pub name: NameBuf,
    pub strategy: NameBuf,
}

impl StrategyChoice {
    /// Appends a row.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut row = Vec::new();
        put(&mut row, kind::NAME, self.name.as_bytes());
        put_strategy(&mut row, &self.strategy);
        put(out, ROW, &row);
    }

    /// Parses all rows.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, Error> {
        rows(bytes, |row| {
            let mut read = Self::default();
            for element in Elements::of(row) {
                let element = element?;
                match element.kind {
                    kind::NAME => read.name = NameBuf::of(Name::of(&element)?.0),
                    super::control::STRATEGY => read.strategy = strategy(&element)?,
                    _ => {}
                }
            }
            Ok(read)
        })
    }
}

/// The state of the content store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct CsInfo {
    pub capacity: u64,
    /// Bit 0: Data are stored; bit 1: Data are served.
    pub flags: u64,
    pub entries: u64,
    pub hits: u64,
    pub misses: u64,
}

impl CsInfo {
    /// Appends the row.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut row = Vec::new();
        for (kind, number) in [
            (0x83, self.capacity),
            (FLAGS, self.flags),
            (0x87, self.entries),
            (0x81, self.hits),
            (0x82, self.misses),
        ] {
            put_value(&mut row, kind, number);
        }
        put(out, ROW, &row);
    }
}

/// The general status. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct GeneralStatus {
    pub version: String,
    pub started_ms: u64,
    pub now_ms: u64,
    pub name_tree_entries: u64,
    pub fib_entries: u64,
    pub pit_entries: u64,
    pub measurements_entries: u64,
    pub cs_entries: u64,
    pub in_interests: u64,
    pub in_data: u64,
    pub in_nacks: u64,
    pub out_interests: u64,
    pub out_data: u64,
    pub out_nacks: u64,
    pub satisfied: u64,
    pub unsatisfied: u64,
    /// Faces evicted to make room for others. Specific to ringtap, as are the fields below;
    /// other programs ignore them.
    pub evicted_faces: u64,
    /// Frames of senders without a face.
    pub refused_frames: u64,
    /// Interests refused because their face had the maximum pending.
    pub refused_interests: u64,
    /// Commands refused for their sender, signature or key.
    pub refused_commands: u64,
}

impl GeneralStatus {
    const VERSION: u32 = 0x80;
    // Even types that the protocol does not use; other programs ignore them.
    const EVICTED_FACES: u32 = 0xf0;
    const REFUSED_FRAMES: u32 = 0xf2;
    const REFUSED_INTERESTS: u32 = 0xf4;
    const REFUSED_COMMANDS: u32 = 0xf6;

    /// Appends the status.
    pub fn write(&self, out: &mut Vec<u8>) {
        put(out, Self::VERSION, self.version.as_bytes());
        // `numbers` lists the fields for reading and writing; it needs `&mut self`.
        let mut fields = self.clone();
        for (kind, number) in fields.numbers() {
            put_value(out, kind, *number);
        }
    }

    /// Reads the status.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut read = Self::default();
        for element in Elements::of(bytes) {
            let element = element?;
            if element.kind == Self::VERSION {
                read.version = text(&element)?;
            } else if let Some((_, number)) =
                read.numbers().into_iter().find(|(kind, _)| *kind == element.kind)
            {
                *number = element.number()?;
            }
        }
        Ok(read)
    }

    fn numbers(&mut self) -> [(u32, &mut u64); 19] {
        [
            (0x81, &mut self.started_ms),
            (0x82, &mut self.now_ms),
            (0x83, &mut self.name_tree_entries),
            (0x84, &mut self.fib_entries),
            (0x85, &mut self.pit_entries),
            (0x86, &mut self.measurements_entries),
            (0x87, &mut self.cs_entries),
            (IN_INTERESTS, &mut self.in_interests),
            (IN_DATA, &mut self.in_data),
            (IN_NACKS, &mut self.in_nacks),
            (OUT_INTERESTS, &mut self.out_interests),
            (OUT_DATA, &mut self.out_data),
            (OUT_NACKS, &mut self.out_nacks),
            (0x99, &mut self.satisfied),
            (0x9a, &mut self.unsatisfied),
            (Self::EVICTED_FACES, &mut self.evicted_faces),
            (Self::REFUSED_FRAMES, &mut self.refused_frames),
            (Self::REFUSED_INTERESTS, &mut self.refused_interests),
            (Self::REFUSED_COMMANDS, &mut self.refused_commands),
        ]
    }
}

/// Parses the value of each row with `read`; skips other elements.
fn rows<T>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let rows = Elements::of(bytes).filter(|row| !matches!(row, Ok(row) if row.kind != ROW));
    rows.map(|row| read(row?.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_rows_are_read_back() {
        let faces: Vec<FaceStatus> = (256..300_u64)
            .map(|face| FaceStatus {
                face,
                uri: format!("udp4://192.0.2.1:{face}"),
                local_uri: "udp4://0.0.0.0:6363".into(),
                expiration_ms: (face % 2 == 0).then_some(face * 1000),
                scope: face % 2,
                persistency: face % 3,
                link_type: face / 2 % 2,
                mtu: Some(8800),
                in_interests: face << 30,
                in_bytes: u64::MAX,
                out_nacks: 3,
                exchanges: face + 1,
                cs_hits: face + 2,
                pending: face + 3,
                lost_frames: face + 4,
                ..FaceStatus::default()
            })
            .collect();
        let mut bytes = Vec::new();
        faces.iter().for_each(|face| face.write(&mut bytes));
        assert_eq!(FaceStatus::read_all(&bytes), Ok(faces.clone()));
        assert!(FaceStatus::read_all(&bytes[..bytes.len() - 1]).is_err());

        let route = Route { face: 256, origin: 255, cost: 9, flags: 1, expiration_ms: Some(1) };
        let rib = vec![
            RibEntry { name: "/".parse().unwrap(), routes: vec![] },
            RibEntry { name: "/a".parse().unwrap(), routes: vec![route, Route::default()] },
        ];
        bytes.clear();
        rib.iter().for_each(|entry| entry.write(&mut bytes));
        assert_eq!(RibEntry::read_all(&bytes), Ok(rib));

        let status = GeneralStatus {
            version: "ringtap".into(),
            pit_entries: 7,
            unsatisfied: 1 << 40,
            ..GeneralStatus::default()
        };
        bytes.clear();
        status.write(&mut bytes);
        assert_eq!(GeneralStatus::read(&bytes), Ok(status));
    }

    #[test]
    fn a_filter_matches_on_all_its_fields() {
        let face = FaceStatus {
            face: 257,
            uri: "udp4://192.0.2.1:6363".into(),
            local_uri: "dev://eth0".into(),
            ..FaceStatus::default()
        };
        let mut wire = Vec::new();
        let mut inner = Vec::new();
        put(&mut inner, URI, b"udp4://192.0.2.1:6363");
        put_value(&mut inner, FACE_ID, 257);
        put(&mut wire, FILTER, &inner);
        let filter = FaceFilter::read(&wire).unwrap();
        assert!(filter.matches(&face) && FaceFilter::default().matches(&face));
        assert!(!filter.matches(&FaceStatus { face: 258, ..face.clone() }));
        for (scheme, expected) in [("udp4", true), ("dev", true), ("udp", false)] {
            let filter = FaceFilter { scheme: Some(scheme.into()), ..FaceFilter::default() };
            assert_eq!(filter.matches(&face), expected, "{scheme}");
        }
    }
}
