//! Parameters and responses of commands.

use crate::packets::write::{put, put_value};
use crate::packets::{Element, Elements, Error, Name, NameBuf, kind};

pub(super) const FACE_ID: u32 = 0x69;
pub(super) const COST: u32 = 0x6a;
pub(super) const STRATEGY: u32 = 0x6b;
pub(super) const FLAGS: u32 = 0x6c;
pub(super) const EXPIRATION_PERIOD: u32 = 0x6d;
pub(super) const ORIGIN: u32 = 0x6f;
const MASK: u32 = 0x70;
pub(super) const URI: u32 = 0x72;
pub(super) const LOCAL_URI: u32 = 0x81;
const CAPACITY: u32 = 0x83;
const COUNT: u32 = 0x84;
pub(super) const FACE_PERSISTENCY: u32 = 0x85;
pub(super) const MTU: u32 = 0x89;

/// Parameters of a command; missing ones are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the protocol's")]
pub struct ControlParameters {
    pub name: Option<NameBuf>,
    pub face: Option<u64>,
    pub uri: Option<String>,
    pub local_uri: Option<String>,
    pub origin: Option<u64>,
    pub cost: Option<u64>,
    pub capacity: Option<u64>,
    pub count: Option<u64>,
    pub flags: Option<u64>,
    pub mask: Option<u64>,
    pub strategy: Option<NameBuf>,
    pub expiration_ms: Option<u64>,
    pub persistency: Option<u64>,
    pub mtu: Option<u64>,
}

impl ControlParameters {
    /// Parses parameters; `wire` must hold exactly one ControlParameters element.
    pub fn read(wire: &[u8]) -> Result<Self, Error> {
        let outer = Element::only(wire)?;
        if outer.kind != kind::CONTROL_PARAMETERS {
            return Err(Error::UnknownPacket);
        }
        Self::of(outer.value)
    }

    fn of(value: &[u8]) -> Result<Self, Error> {
        let mut read = Self::default();
        for element in Elements::of(value) {
            let element = element?;
            let number = || element.number().map(Some);
            match element.kind {
                kind::NAME => read.name = Some(NameBuf::of(Name::of(&element)?.0)),
                FACE_ID => read.face = number()?,
                URI => read.uri = Some(text(&element)?),
                LOCAL_URI => read.local_uri = Some(text(&element)?),
                ORIGIN => read.origin = number()?,
                COST => read.cost = number()?,
                CAPACITY => read.capacity = number()?,
                COUNT => read.count = number()?,
                FLAGS => read.flags = number()?,
                MASK => read.mask = number()?,
                STRATEGY => read.strategy = Some(strategy(&element)?),
                EXPIRATION_PERIOD => read.expiration_ms = number()?,
                FACE_PERSISTENCY => read.persistency = number()?,
                MTU => read.mtu = number()?,
                _ => {}
            }
        }
        Ok(read)
    }

    /// Appends the ControlParameters element to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        if let Some(name) = &self.name {
            put(&mut body, kind::NAME, name.as_bytes());
        }
        put_if(&mut body, FACE_ID, self.face);
        for (kind, text) in [(URI, &self.uri), (LOCAL_URI, &self.local_uri)] {
            if let Some(text) = text {
                put(&mut body, kind, text.as_bytes());
            }
        }
        put_if(&mut body, ORIGIN, self.origin);
        put_if(&mut body, COST, self.cost);
        put_if(&mut body, CAPACITY, self.capacity);
        put_if(&mut body, COUNT, self.count);
        put_if(&mut body, FLAGS, self.flags);
        put_if(&mut body, MASK, self.mask);
        if let Some(name) = &self.strategy {
            put_strategy(&mut body, name);
        }
        put_if(&mut body, EXPIRATION_PERIOD, self.expiration_ms);
        put_if(&mut body, FACE_PERSISTENCY, self.persistency);
        put_if(&mut body, MTU, self.mtu);
        put(out, kind::CONTROL_PARAMETERS, &body);
    }
}

/// The response to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlResponse {
    /// The status code, as in HTTP: 200 is success.
    pub code: u64,
    /// The status text.
    pub text: String,
    /// The parameters that took effect.
    pub parameters: Option<ControlParameters>,
}

impl ControlResponse {
    /// Parses a response; `wire` must hold exactly one ControlResponse element.
    pub fn read(wire: &[u8]) -> Result<Self, Error> {
        let outer = Element::only(wire)?;
        if outer.kind != kind::CONTROL_RESPONSE {
            return Err(Error::UnknownPacket);
        }
        let mut read = Self { code: 0, text: String::new(), parameters: None };
        for element in Elements::of(outer.value) {
            let element = element?;
            match element.kind {
                kind::STATUS_CODE => read.code = element.number()?,
                kind::STATUS_TEXT => read.text = text(&element)?,
                kind::CONTROL_PARAMETERS => {
                    read.parameters = Some(ControlParameters::of(element.value)?);
                }
                _ => {}
            }
        }
        Ok(read)
    }

    /// Appends the ControlResponse element to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        put_value(&mut body, kind::STATUS_CODE, self.code);
        put(&mut body, kind::STATUS_TEXT, self.text.as_bytes());
        if let Some(parameters) = &self.parameters {
            parameters.write(&mut body);
        }
        put(out, kind::CONTROL_RESPONSE, &body);
    }
}

pub(super) fn put_if(out: &mut Vec<u8>, kind: u32, number: Option<u64>) {
    if let Some(number) = number {
        put_value(out, kind, number);
    }
}

pub(super) fn put_strategy(out: &mut Vec<u8>, name: &NameBuf) {
    let mut inner = Vec::new();
    put(&mut inner, kind::NAME, name.as_bytes());
    put(out, STRATEGY, &inner);
}

pub(super) fn strategy(element: &Element<'_>) -> Result<NameBuf, Error> {
    Ok(NameBuf::of(Name::of(&Element::first(element.value)?.0)?.0))
}

pub(super) fn text(element: &Element<'_>) -> Result<String, Error> {
    String::from_utf8(element.value.to_vec()).map_err(|_| Error::BadLength)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_parameters_and_responses_are_read_back() {
        let whole = ControlParameters {
            name: Some("/a/b".parse().unwrap()),
            face: Some(262),
            uri: Some("udp4://192.0.2.1:6363".into()),
            local_uri: Some("dev://eth0".into()),
            origin: Some(255),
            cost: Some(100_000),
            capacity: Some(1),
            count: Some(2),
            flags: Some(1),
            mask: Some(3),
            strategy: Some("/localhost/nfd/strategy/multicast".parse().unwrap()),
            expiration_ms: Some(60_000),
            persistency: Some(2),
            mtu: Some(8800),
        };
        for parameters in [whole, ControlParameters::default()] {
            let mut wire = Vec::new();
            parameters.write(&mut wire);
            assert_eq!(ControlParameters::read(&wire), Ok(parameters.clone()));
            let response =
                ControlResponse { code: 200, text: "OK".into(), parameters: Some(parameters) };
            wire.clear();
            response.write(&mut wire);
            assert_eq!(ControlResponse::read(&wire), Ok(response));
            for cut in 0..wire.len() {
                assert!(ControlResponse::read(&wire[..cut]).is_err());
            }
        }
    }

    #[test]
    fn hand_written_bytes_are_read() {
        // Name /ping, Flags 1.
        let wire = [0x68, 11, 0x07, 6, 8, 4, b'p', b'i', b'n', b'g', 0x6c, 1, 1];
        let read = ControlParameters::read(&wire).unwrap();
        assert_eq!((read.name.unwrap().to_string(), read.flags), ("/ping".into(), Some(1)));
    }
}
