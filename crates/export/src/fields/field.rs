//! What a row of the table says besides its value.

use ringtap_flow::{Keep, Kind, Type as FactType};

use super::presence::Presence;

/// RFC 5103: the enterprise number of elements for the reverse direction.
pub(crate) const REVERSE: u32 = 29_305;

/// A field of flow records.
pub(crate) struct Field {
    /// In columns, and in JSON unless the name there has the IP version.
    pub(crate) name: &'static str,
    /// In JSON, for IPv4 and IPv6, between `,"` and `":"`.
    pub(crate) keys: [&'static str; 2],
    /// The edition of the columns that added it; 0 for none.
    pub(crate) edition: u8,
    /// 1: it is of the direction to the initiator.
    pub(crate) side: usize,
    /// Elements in IPFIX: two for a field whose element depends on the IP version, and those of a fact.
    pub(crate) elements: &'static [Element],
    /// The kind of a fact.
    pub(crate) kind: Option<Kind>,
    pub(crate) value: Type,
    pub(crate) shape: Shape,
    pub(crate) presence: Presence,
    #[cfg_attr(not(test), expect(dead_code, reason = "for docs/OUTPUTS.md"))]
    pub(crate) meaning: &'static str,
}

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Type {
    /// Milliseconds since 1970, UTC.
    Time,
    /// Unsigned, with this number of bits.
    U8 = 8,
    U16 = 16,
    U32 = 32,
    U64 = 64,
    Text,
}

/// How many values a row has.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// One.
    Required,
    /// None or one.
    Optional,
    /// Any number.
    List,
}

/// The description of a field in a template.
#[derive(Clone, Copy)]
pub(crate) struct Element {
    /// 0 for the elements of IANA's registry.
    pub(crate) enterprise: u32,
    pub(crate) id: u16,
    /// Octets; 0: templates do not have it.
    pub(crate) len: u16,
    pub(crate) form: Form,
}

impl Element {
    /// An element of IANA's registry that is no fact.
    pub(crate) const fn iana(id: u16, len: u16) -> Self {
        Self { enterprise: 0, id, len, form: Form::Plain }
    }

    /// The element of a fact.
    pub(crate) const fn of_fact(enterprise: u32, id: u16, form: Form) -> Self {
        Self { enterprise, id, len: form.len(), form }
    }

    /// Octets of its field specifier.
    pub(crate) const fn spec_len(self) -> usize {
        if self.enterprise == 0 { 4 } else { 8 }
    }

    /// Appends its field specifier (RFC 7011, section 3.2): "E: Enterprise bit"; with it an enterprise number follows.
    pub(crate) fn specify(self, out: &mut Vec<u8>) {
        let bit = if self.enterprise == 0 { 0 } else { 0x8000 };
        out.extend_from_slice(&(self.id | bit).to_be_bytes());
        out.extend_from_slice(&self.len.to_be_bytes());
        if self.enterprise != 0 {
            out.extend_from_slice(&self.enterprise.to_be_bytes());
        }
    }
}

/// How a fact is written in IPFIX, in the order of elements: short ones first, because later ones may be cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Not a fact.
    Plain,
    /// 1 if there is a value, otherwise 0; never in a list.
    Presence,
    /// Short UTF-8.
    Word,
    /// The number of a value, with this number of octets, at most 8; 0 if there is no value.
    Number(u16),
    /// The octets of a hexadecimal text.
    Octets,
    /// UTF-8; invalid octets become U+FFFD.
    Text,
    /// The values that are IPv4 addresses; in lists alone.
    AddressV4,
    /// The values that are IPv6 addresses; in lists alone.
    AddressV6,
}

/// The length, in templates, of elements with their length in the record (RFC 7011, section 7).
pub(crate) const VARIABLE: u16 = u16::MAX;

impl Form {
    /// The length of the element in a template.
    const fn len(self) -> u16 {
        match self {
            Self::Word | Self::Text | Self::Octets => VARIABLE,
            Self::Number(octets) => octets,
            Self::Plain | Self::Presence => 1,
            Self::AddressV4 => 4,
            Self::AddressV6 => 16,
        }
    }

    /// Elements are in the order of this number.
    pub(crate) const fn rank(self) -> u16 {
        match self {
            Self::Plain | Self::Presence => 0,
            Self::Word => 1,
            Self::Number(octets) => 1 + octets,
            Self::Octets => 10,
            Self::Text => 11,
            Self::AddressV4 => 12,
            Self::AddressV6 => 13,
        }
    }
}

impl Field {
    /// Whether JSON, CSV and Parquet all have it.
    pub(crate) const fn is_in_all(&self) -> bool {
        self.edition > 0 && !matches!(self.presence, Presence::Parquet)
    }

    /// Whether sums of records have it: a store has it, too.
    pub(crate) const fn is_summed(&self) -> bool {
        self.is_in_all() && !matches!(self.presence, Presence::Derived)
    }

    /// Whether it is a list of numbers of which zeros are values like others.
    pub(crate) const fn is_list_of_numbers(&self) -> bool {
        matches!(self.presence, Presence::Lists)
    }

    /// The field of a fact: its name and type are those of the kind.
    pub(crate) const fn of_fact(kind: Kind, own: Self) -> Self {
        let value = match kind.value_type() {
            FactType::Text => Type::Text,
            FactType::Number => Type::U64,
        };
        let shape = if matches!(kind.keep(), Keep::List) { Shape::List } else { Shape::Optional };
        Self { kind: Some(kind), value, shape, ..own }
    }
}
