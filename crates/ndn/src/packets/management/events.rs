//! Notifications of events of faces: the content of `faces/events/seq=N`.

use super::control::{FACE_ID, FACE_PERSISTENCY, FLAGS, LOCAL_URI, URI, text};
use super::datasets::{FACE_SCOPE, LINK_TYPE};
use crate::packets::write::{put, put_value};
use crate::packets::{Element, Elements, Error, Name, NameBuf, component};

const NOTIFICATION: u32 = 0xc0;
const EVENT_KIND: u32 = 0xc1;

/// What happened to a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaceEventKind {
    /// The face was created.
    Created,
    /// The face was closed.
    Destroyed,
    /// Its connection was established.
    Up,
    /// Its connection ended; it is connected again later.
    Down,
}

impl FaceEventKind {
    const ALL: [Self; 4] = [Self::Created, Self::Destroyed, Self::Up, Self::Down];

    /// The number in the protocol: 1 to 4.
    fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Destroyed => "destroyed",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// An event of a face, with the properties of the face. The numbers are those of
/// [`FaceStatus`](super::FaceStatus).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct FaceEvent {
    pub kind: FaceEventKind,
    pub face: u64,
    pub uri: String,
    pub local_uri: String,
    pub scope: u64,
    pub persistency: u64,
    pub link_type: u64,
    pub flags: u64,
}

impl FaceEvent {
    /// The prefix of all notifications.
    pub const PREFIX: &'static str = "/localhost/nfd/faces/events";

    /// The name of a notification.
    pub fn name(number: u64) -> NameBuf {
        // The prefix is a valid name.
        let mut name: NameBuf = Self::PREFIX.parse().unwrap_or_default();
        name.push_number(component::SEQUENCE, number);
        name
    }

    /// The number of a notification, which is the last component of its name.
    pub fn number(name: &Name<'_>) -> Option<u64> {
        let last = name.components().last().filter(|last| last.kind == component::SEQUENCE)?;
        last.number().ok()
    }

    /// Parses a notification; `wire` must hold exactly one FaceEventNotification element. An
    /// unknown kind is an error.
    pub fn read(wire: &[u8]) -> Result<Self, Error> {
        let outer = Element::only(wire)?;
        if outer.kind != NOTIFICATION {
            return Err(Error::UnknownPacket);
        }
        let mut kind = None;
        let mut read = Self {
            kind: FaceEventKind::Created,
            face: 0,
            uri: String::new(),
            local_uri: String::new(),
            scope: 0,
            persistency: 0,
            link_type: 0,
            flags: 0,
        };
        for element in Elements::of(outer.value) {
            let element = element?;
            match element.kind {
                EVENT_KIND => {
                    let number = element.number()?;
                    kind = FaceEventKind::ALL.into_iter().find(|one| one.number() == number);
                }
                FACE_ID => read.face = element.number()?,
                URI => read.uri = text(&element)?,
                LOCAL_URI => read.local_uri = text(&element)?,
                FACE_SCOPE => read.scope = element.number()?,
                FACE_PERSISTENCY => read.persistency = element.number()?,
                LINK_TYPE => read.link_type = element.number()?,
                FLAGS => read.flags = element.number()?,
                _ => {}
            }
        }
        Ok(Self { kind: kind.ok_or(Error::UnknownPacket)?, ..read })
    }

    /// Appends the FaceEventNotification element to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        put_value(&mut body, EVENT_KIND, self.kind.number());
        put_value(&mut body, FACE_ID, self.face);
        put(&mut body, URI, self.uri.as_bytes());
        put(&mut body, LOCAL_URI, self.local_uri.as_bytes());
        put_value(&mut body, FACE_SCOPE, self.scope);
        put_value(&mut body, FACE_PERSISTENCY, self.persistency);
        put_value(&mut body, LINK_TYPE, self.link_type);
        put_value(&mut body, FLAGS, self.flags);
        put(out, NOTIFICATION, &body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_notification_is_read_back() {
        for kind in FaceEventKind::ALL {
            let event = FaceEvent {
                kind,
                face: 300,
                uri: "tcp4://192.0.2.1:6363".into(),
                local_uri: "tcp4://192.0.2.2:40000".into(),
                scope: 0,
                persistency: 2,
                link_type: 1,
                flags: 0,
            };
            let mut wire = Vec::new();
            event.write(&mut wire);
            assert_eq!(FaceEvent::read(&wire), Ok(event));
            for cut in 0..wire.len() {
                assert!(FaceEvent::read(&wire[..cut]).is_err());
            }
        }
        // Kind 5 is not in the protocol.
        assert_eq!(FaceEvent::read(&[0xc0, 3, 0xc1, 1, 5]), Err(Error::UnknownPacket));
        let name = FaceEvent::name(70_000);
        assert_eq!(name.to_string(), "/localhost/nfd/faces/events/seq=70000");
        assert_eq!(FaceEvent::number(&name.as_name()), Some(70_000));
        let other: NameBuf = FaceEvent::PREFIX.parse().unwrap();
        assert_eq!(FaceEvent::number(&other.as_name()), None);
    }
}
