//! The values of a configuration file: sizes, addresses, names. Errors say what to write.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::str::FromStr;

use ringtap_ndn::faces::{MTU_MIN, MULTICAST_GROUP, MULTICAST_PORT};
use ringtap_ndn::relay::Strategy;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use ringtap_terminal::units;

/// The size of the content store in bytes, with a unit; 0: none. In earlier versions a plain number
/// was a number of Data, so it is refused.
pub(super) struct StoreSize(pub(super) u64);

/// The largest content store, in bytes.
const STORE_MOST: u64 = 256 << 30;

/// What to write for a content store.
const STORE_FORM: &str = "use a size in bytes with a unit, content-store = \"128M\", or 0 for none";

impl<'de> Deserialize<'de> for StoreSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a size such as \"128M\", or 0")]
        enum Form {
            Plain(i64),
            Text(String),
        }
        let size = match Form::deserialize(deserializer)? {
            Form::Plain(0) => Ok(0),
            Form::Text(text) if text.ends_with(|unit: char| !unit.is_ascii_digit()) => {
                units::bytes(&text)
            }
            Form::Text(text) if text == "0" => Ok(0),
            Form::Plain(number) => Err(format!("invalid content-store {number}: {STORE_FORM}")),
            Form::Text(text) => Err(format!("invalid content-store {text:?}: {STORE_FORM}")),
        };
        let size = size.map_err(D::Error::custom)?;
        if size > STORE_MOST {
            return Err(D::Error::custom("invalid content-store: use at most \"256G\""));
        }
        Ok(Self(size))
    }
}

/// The largest MTU, in bytes: the longest IP packet.
const MTU_MOST: usize = 65_535;

/// The maximum size of a frame or datagram, in bytes.
pub(super) struct Mtu(pub(super) usize);

impl<'de> Deserialize<'de> for Mtu {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Number::<Bytes>::deserialize(deserializer)?.0;
        let mtu = usize::try_from(bytes).ok().filter(|mtu| (MTU_MIN..=MTU_MOST).contains(mtu));
        mtu.map(Self).ok_or_else(|| {
            D::Error::custom(format!("invalid mtu {bytes}: use {MTU_MIN} to {MTU_MOST} bytes"))
        })
    }
}

/// A multicast group; by default that of NFD for IPv4.
pub(super) struct Group(pub(super) SocketAddr);

impl Default for Group {
    fn default() -> Self {
        Self(SocketAddr::from((MULTICAST_GROUP, MULTICAST_PORT)))
    }
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let group = text.parse().ok().filter(|group: &SocketAddr| group.ip().is_multicast());
        group.map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "invalid group {text:?}: use {MULTICAST_GROUP}:{MULTICAST_PORT} or [ff02::1234]:{MULTICAST_PORT}"
            ))
        })
    }
}

/// Listen addresses: one, or a list. As in NFD, the default is all addresses of this machine, with
/// this port.
pub(super) struct Listen<const PORT: u16>(pub(super) Vec<SocketAddr>);

impl<const PORT: u16> Default for Listen<PORT> {
    fn default() -> Self {
        Self(vec![
            SocketAddr::from(([0, 0, 0, 0], PORT)),
            SocketAddr::from(([0_u16, 0, 0, 0, 0, 0, 0, 0], PORT)),
        ])
    }
}

impl<'de, const PORT: u16> Deserialize<'de> for Listen<PORT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "an address with a port, or a list of addresses")]
        enum Form {
            One(String),
            List(Vec<String>),
        }
        let texts = match Form::deserialize(deserializer)? {
            Form::One(text) => vec![text],
            Form::List(texts) => texts,
        };
        let read = |text: &String| {
            text.parse().map_err(|_| {
                D::Error::custom(format!(
                    "invalid address {text:?}: use 0.0.0.0:{PORT} or [::]:{PORT}"
                ))
            })
        };
        texts.iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

/// The file mode of a socket, in octal as for `chmod`.
pub(super) struct FileMode(pub(super) u32);

impl Default for FileMode {
    fn default() -> Self {
        Self(0o600)
    }
}

impl<'de> Deserialize<'de> for FileMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mode = u32::from_str_radix(&text, 8).ok().filter(|&mode| mode <= 0o777);
        mode.map(Self).ok_or_else(|| {
            D::Error::custom(format!("invalid mode {text:?}: use \"0600\", \"0660\" or \"0666\""))
        })
    }
}

/// A value that is parsed from a string.
pub(super) struct Parsed<T>(pub(super) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

pub(super) struct StrategyName(pub(super) Strategy);

impl FromStr for StrategyName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Strategy::ALL.into_iter().find(|strategy| strategy.name() == text);
        known.map(Self).ok_or_else(|| {
            let names = Strategy::ALL.map(Strategy::name).join(", ");
            format!("unknown strategy {text:?}: use {names}")
        })
    }
}

/// A number, or a string with a unit.
pub(super) struct Number<U>(pub(super) u64, PhantomData<U>);

/// The parser of a number with a unit.
pub(super) trait Unit {
    fn read(text: &str) -> Result<u64, String>;
}

pub(super) struct Count;
pub(super) struct Bytes;
pub(super) struct Time;

impl Unit for Count {
    fn read(text: &str) -> Result<u64, String> {
        units::count(text)
    }
}

impl Unit for Bytes {
    fn read(text: &str) -> Result<u64, String> {
        units::bytes(text)
    }
}

impl Unit for Time {
    fn read(text: &str) -> Result<u64, String> {
        units::duration_ns(text)
    }
}

impl<U> Number<U> {
    pub(super) fn of(number: u64) -> Self {
        Self(number, PhantomData)
    }
}

impl<U> Default for Number<U> {
    fn default() -> Self {
        Self::of(0)
    }
}

impl<'de, U: Unit> Deserialize<'de> for Number<U> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor(PhantomData))
    }
}

struct NumberVisitor<U>(PhantomData<U>);

impl<U: Unit> Visitor<'_> for NumberVisitor<U> {
    type Value = Number<U>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a string with a unit, as in \"64k\" or \"10m\"")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        U::read(text).map(Number::of).map_err(E::custom)
    }
}
