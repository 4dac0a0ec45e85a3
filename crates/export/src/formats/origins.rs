//! The fields of origins: one list, from which formats with names take theirs. EVE and Zeek's `conn.log` have none.

use ringtap_flow::{FlowRecord, Origin};

/// The origins that a run adds to its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    /// Names of networks.
    pub networks: bool,
    /// Countries and autonomous systems.
    pub geo: bool,
}

/// A field of one endpoint.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Of `networks`, else of `geo`.
    networks: bool,
    /// 0 the source, 1 the destination.
    side: usize,
    pub(crate) read: Read,
}

/// How the value is read.
pub(crate) enum Read {
    Text(fn(&Origin) -> Option<&[u8]>),
    Number(fn(&Origin) -> Option<u32>),
}

/// A value.
pub(crate) enum Value<'a> {
    Text(&'a [u8]),
    Number(u32),
}

const NETWORK: Read = Read::Text(|origin| origin.network.as_deref().map(str::as_bytes));
const COUNTRY: Read = Read::Text(|origin| origin.country.as_ref().map(|code| &code[..]));
const AS_NUMBER: Read = Read::Number(|origin| origin.as_number);
const AS_NAME: Read = Read::Text(|origin| origin.as_name.as_deref().map(str::as_bytes));

const fn field(name: &'static str, networks: bool, side: usize, read: Read) -> Field {
    Field { name, networks, side, read }
}

/// In the order of columns.
pub(crate) static FIELDS: [Field; 8] = [
    field("sourceNetwork", true, 0, NETWORK),
    field("destinationNetwork", true, 1, NETWORK),
    field("sourceCountry", false, 0, COUNTRY),
    field("destinationCountry", false, 1, COUNTRY),
    field("bgpSourceAsNumber", false, 0, AS_NUMBER),
    field("bgpDestinationAsNumber", false, 1, AS_NUMBER),
    field("sourceAsName", false, 0, AS_NAME),
    field("destinationAsName", false, 1, AS_NAME),
];

impl Field {
    /// The value in a record, if it is known.
    pub(crate) fn value<'a>(&self, record: &'a FlowRecord) -> Option<Value<'a>> {
        let origin = &record.origins.as_deref()?[self.side];
        match self.read {
            Read::Text(read) => read(origin).map(Value::Text),
            Read::Number(read) => read(origin).map(Value::Number),
        }
    }
}

impl Origins {
    /// The fields of these origins.
    pub(crate) fn fields(self) -> impl Iterator<Item = &'static Field> {
        FIELDS.iter().filter(move |field| if field.networks { self.networks } else { self.geo })
    }
}
