//! Facts from payloads in IPFIX records: fields after those of a template, most of them of variable length.
//!
//! ```text
//! record  | fields of the template | application | first value … | list of further values … |
//! text    | length (1; or 255 and 2) | UTF-8 … |                                  RFC 7011, section 7
//! list    | 255, length (2) | semantic | element | octets | value | value | …     RFC 6313, section 4.5.1
//! ```
//!
//! The first value of a kind is in its element itself, which any collector reads. Further ones are in a basicList of the
//! same element, in order. Addresses have no value that means "none", so all of them are in the list.
//!
//! A [`Layout`] says which kinds a record has; its fields follow from one table. A record gets the first layout that
//! holds all its facts. The layout for several protocols has all values of such kinds in lists, and lacks some kinds, so
//! that there are fewer fields: tshark reads templates of up to 60.
//!
//! Invariants: a record has a bounded size, so it always fits into a message: values that are too long are cut between
//! characters, and further values without room are left out. The result depends on the record and the message's limit
//! alone, not on what is in the message.

use std::net::{Ipv4Addr, Ipv6Addr};

use ringtap_flow::{FlowRecord, Keep, Kind};

use crate::fields::Form::{self, AddressV4, AddressV6, Number, Octets, Text, Word};
use crate::fields::{Element, FIELDS, Presence, VARIABLE};

/// Most octets of the facts of a record, with the lists behind them. Over UDP the message's limit is smaller.
pub(crate) const OCTETS_MAX: usize = 4_096;

/// Memory for [`Layout::put`]: a value is written before it is known that it has no room.
pub(crate) const CAPACITY: usize = OCTETS_MAX + VALUE_MAX + 3;

/// Most octets of a text.
const VALUE_MAX: usize = 512;

/// Longest value whose length takes one octet.
const SHORT_MAX: usize = 254;

/// basicList (element 291).
pub(super) const BASIC_LIST: Element = Element::iana(291, VARIABLE);

/// The semantic "ordered".
pub(super) const ORDERED: u8 = 4;

/// applicationName.
const APPLICATION: Element = Element::iana(96, VARIABLE);

/// Protocols, one bit each.
type Protocols = u8;
const TLS: Protocols = 1;
const SSH: Protocols = 2;
const DNS: Protocols = 4;
const HTTP: Protocols = 8;
/// Facts that the layout for several protocols has no fields for.
const CERTIFICATE: Protocols = 16;
const MORE_DNS: Protocols = 32;
const MORE_HTTP: Protocols = 64;

/// The protocol of a kind of facts with this presence.
const fn protocol(presence: Presence, kind: Kind) -> Protocols {
    match (presence, kind) {
        (_, Kind::DnsId) => MORE_DNS,
        (_, Kind::HttpContentType | Kind::HttpReferer | Kind::HttpLocation) => MORE_HTTP,
        (Presence::Tls, _) => TLS,
        (Presence::Certificate, _) => CERTIFICATE,
        (Presence::Ssh, _) => SSH,
        (Presence::Dns, _) => DNS,
        (Presence::Http, _) => HTTP,
        _ => panic!("facts in IPFIX need a layout for their protocol"),
    }
}

/// A kind of fact and its element.
#[derive(Clone, Copy)]
struct Fact {
    protocol: Protocols,
    kind: Kind,
    element: Element,
}

/// The elements of facts, by protocol and, in each, by form.
const FACTS: [Fact; COUNT] = {
    let first = Fact { protocol: 0, kind: Kind::Protocol, element: BASIC_LIST };
    let (mut all, mut count, mut place) = ([first; COUNT], 0, 0);
    while count < COUNT {
        let mut row = 0;
        while row < FIELDS.len() {
            let mut at = 0;
            while let Some(kind) = FIELDS[row].kind
                && at < FIELDS[row].elements.len()
            {
                let element = FIELDS[row].elements[at];
                let protocol = protocol(FIELDS[row].presence, kind);
                if (protocol as u16) << 4 | element.form.rank() == place {
                    all[count] = Fact { protocol, kind, element };
                    count += 1;
                }
                at += 1;
            }
            row += 1;
        }
        place += 1;
    }
    all
};

/// Number of elements.
const COUNT: usize = {
    let (mut count, mut row) = (0, 0);
    while row < FIELDS.len() {
        if FIELDS[row].kind.is_some() {
            count += FIELDS[row].elements.len();
        }
        row += 1;
    }
    count
};

/// The layouts of facts, in the order in which records try them. Index 0 has none; the last one is for all other records.
pub(crate) static LAYOUTS: [Layout; LAYOUT_COUNT] = [
    Layout::NONE,
    Layout::of(0, Values::First),
    Layout::of(TLS, Values::First),
    Layout::of(SSH, Values::First),
    Layout::of(DNS | MORE_DNS, Values::First),
    Layout::of(DNS | MORE_DNS, Values::FirstAndFurther),
    Layout::of(HTTP | MORE_HTTP, Values::First),
    Layout::of(HTTP | MORE_HTTP, Values::FirstAndFurther),
    Layout::of(TLS | CERTIFICATE, Values::First),
    Layout::of(TLS | SSH | DNS | HTTP, Values::Lists),
];

/// Number of layouts.
pub(crate) const LAYOUT_COUNT: usize = 10;

/// Whether values of this form are in lists alone.
const fn is_in_lists_alone(form: Form) -> bool {
    matches!(form, AddressV4 | AddressV6)
}

/// Appends a value, whose text has at most `room` octets, with its length if that is variable. Values of the wrong form
/// are as if there was none.
fn put(form: Form, kind: Kind, value: &[u8], room: usize, out: &mut Vec<u8>) {
    match form {
        Word | Text => put_variable(out, |out| put_utf8(value, room, out)),
        Octets => put_variable(out, |out| put_octets(value, room, out)),
        Number(octets) => {
            // Numbers above the range of the element become its greatest.
            let most = u64::MAX >> (64 - 8 * u32::from(octets));
            let number = kind.number(value).unwrap_or(0).min(most).to_be_bytes();
            out.extend_from_slice(&number[8 - usize::from(octets)..]);
        }
        Form::Plain | Form::Presence => out.push(1),
        AddressV4 => out.extend(address::<Ipv4Addr>(value).iter().flat_map(Ipv4Addr::octets)),
        AddressV6 => out.extend(address::<Ipv6Addr>(value).iter().flat_map(Ipv6Addr::octets)),
    }
}

/// A field of a layout.
#[derive(Clone, Copy)]
enum Slot {
    /// The label of the application.
    Application,
    /// The first value of this line of the table.
    First(usize),
    /// The further values of this line.
    Further(usize),
    /// All values of this line.
    All(usize),
}

impl Slot {
    const fn element(self) -> Element {
        match self {
            Self::Application => APPLICATION,
            Self::First(at) => FACTS[at].element,
            Self::Further(_) | Self::All(_) => BASIC_LIST,
        }
    }

    /// Octets without a value.
    const fn least(self) -> usize {
        match self {
            Self::Application => 1,
            Self::First(at) => match FACTS[at].element.len {
                VARIABLE => 1,
                fixed => fixed as usize,
            },
            // Length, semantic, element and its length.
            Self::Further(at) | Self::All(at) => 3 + 1 + FACTS[at].element.spec_len(),
        }
    }
}

/// Most fields of a layout: the application, and each line as a value and as a list.
const MOST: usize = 1 + 2 * FACTS.len();

/// The fields of kinds that may have several values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    /// One field, for the first value.
    First,
    /// One field for the first value, and a list of the further values.
    FirstAndFurther,
    /// A list of all.
    Lists,
}

impl Values {
    /// The field with one value of a line of the table, or its list; `None` if there is none.
    const fn slot(self, line: usize, in_list: bool) -> Option<Slot> {
        let Fact { kind, element: Element { form, .. }, .. } = FACTS[line];
        let several = matches!(kind.keep(), Keep::List);
        let all = is_in_lists_alone(form) || several && matches!(self, Self::Lists);
        match (in_list, self) {
            (false, _) if !all => Some(Slot::First(line)),
            (true, Self::FirstAndFurther | Self::Lists) if all => Some(Slot::All(line)),
            (true, Self::FirstAndFurther) if several => Some(Slot::Further(line)),
            _ => None,
        }
    }
}

/// Which facts a record has.
pub(crate) struct Layout {
    protocols: Protocols,
    values: Values,
    slots: [Slot; MOST],
    pub(super) count: usize,
    /// Octets without values.
    pub(super) least: usize,
}

impl Layout {
    const NONE: Self = Self {
        protocols: 0,
        values: Values::First,
        slots: [Slot::Application; MOST],
        count: 0,
        least: 0,
    };

    /// The application and the facts of these protocols.
    const fn of(protocols: Protocols, values: Values) -> Self {
        let mut all = Self { protocols, values, ..Self::NONE }.with(Slot::Application);
        let mut at = 0;
        while at < 2 * FACTS.len() {
            // First all fields with one value, then all lists.
            let (line, in_list) = (at % FACTS.len(), at >= FACTS.len());
            if FACTS[line].protocol & protocols != 0
                && let Some(slot) = values.slot(line, in_list)
            {
                all = all.with(slot);
            }
            at += 1;
        }
        all
    }

    const fn with(mut self, slot: Slot) -> Self {
        self.slots[self.count] = slot;
        self.count += 1;
        self.least += slot.least();
        self
    }

    /// The index of the layout of a record.
    pub(crate) fn index_of(record: &FlowRecord) -> usize {
        let (mut protocols, mut lists, mut seen) = (0, false, 0u64);
        for (kind, _) in record.facts.all() {
            let (protocol, alone) = NEEDS[kind as usize];
            let bit = 1 << kind as u32;
            protocols |= protocol;
            lists |= protocol != 0 && (alone || seen & bit != 0);
            seen |= bit;
        }
        if protocols == 0 {
            return usize::from(record.application.is_some());
        }
        let holds =
            |one: &Self| protocols & !one.protocols == 0 && (one.values != Values::First || !lists);
        LAYOUTS.iter().position(holds).unwrap_or(LAYOUTS.len() - 1)
    }

    fn slots(&self) -> &[Slot] {
        &self.slots[..self.count]
    }

    /// The elements of its fields.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Element> {
        self.slots().iter().map(|slot| slot.element())
    }

    /// Appends the fields, at most `room` octets, which must be enough for fields without values.
    pub(crate) fn put(&self, record: &FlowRecord, room: usize, out: &mut Vec<u8>) {
        let mut spare = room.min(OCTETS_MAX).saturating_sub(self.least);
        for &slot in self.slots() {
            let before = out.len();
            match slot {
                Slot::Application => {
                    let label = record.application.as_ref().map(|one| one.label);
                    let text = label.as_ref().map_or("", |label| label.as_str());
                    put(Text, Kind::Protocol, text.as_bytes(), text_room(spare), out);
                }
                Slot::First(at) => put_first(&FACTS[at], record, spare, out),
                Slot::Further(at) => put_list(&FACTS[at], record, 1, spare, out),
                Slot::All(at) => put_list(&FACTS[at], record, 0, spare, out),
            }
            spare -= out.len() - before - slot.least();
        }
    }
}

/// The protocol of a kind, and whether each of its values needs a list.
const NEEDS: [(Protocols, bool); Kind::ALL.len()] = {
    let mut needs = [(0, false); Kind::ALL.len()];
    let mut at = 0;
    while at < FACTS.len() {
        let Fact { protocol, kind, element } = FACTS[at];
        needs[kind as usize] = (protocol, is_in_lists_alone(element.form));
        at += 1;
    }
    needs
};

/// Appends the first value, or the field without a value, which `spare` octets more are left for.
fn put_first(fact: &Fact, record: &FlowRecord, spare: usize, out: &mut Vec<u8>) {
    let &Fact { kind, element, .. } = fact;
    match (record.facts.values(kind).next(), element.len) {
        (Some(value), _) => put(element.form, kind, value, text_room(spare), out),
        (None, VARIABLE) => out.push(0),
        (None, fixed) => out.resize(out.len() + usize::from(fixed), 0),
    }
}

/// Appends the list of the values after the first `skipped` ones, as far as `spare` octets more suffice.
fn put_list(fact: &Fact, record: &FlowRecord, skipped: usize, spare: usize, out: &mut Vec<u8>) {
    let &Fact { kind, element, .. } = fact;
    let mut spare = spare;
    put_variable_long(out, |out| {
        out.push(ORDERED);
        element.specify(out);
        for value in record.facts.values(kind).skip(skipped) {
            let before = out.len();
            put(element.form, kind, value, VALUE_MAX, out);
            let Some(left) = spare.checked_sub(out.len() - before) else {
                return out.truncate(before);
            };
            spare = left;
        }
    });
}

/// Octets for a text in a field that may be longer than without one by this number of octets.
fn text_room(spare: usize) -> usize {
    // A length above SHORT_MAX takes two octets more.
    if spare <= SHORT_MAX { spare } else { (spare - 2).clamp(SHORT_MAX, VALUE_MAX) }
}

/// Appends what `put` appends, with its length: "In most cases, the length of the Information Element will be less than
/// 255 octets" (RFC 7011, section 7).
fn put_variable(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(0);
    put(out);
    let len = out.len() - start - 1;
    if len <= SHORT_MAX {
        out[start] = len as u8;
    } else {
        let [high, low] = (len as u16).to_be_bytes();
        out.splice(start..=start, [u8::MAX, high, low]);
    }
}

/// Appends what `put` appends, with the longer form of its length, which may have any value.
pub(super) fn put_variable_long(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[u8::MAX, 0, 0]);
    put(out);
    // At most OCTETS_MAX.
    let len = (out.len() - start - 3) as u16;
    out[start + 1..start + 3].copy_from_slice(&len.to_be_bytes());
}

/// Appends text as UTF-8, cut between characters at `room` octets.
fn put_utf8(text: &[u8], room: usize, out: &mut Vec<u8>) {
    let end = out.len() + room;
    for chunk in text.utf8_chunks() {
        let replacement = if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
        for part in [chunk.valid(), replacement] {
            let cut = part.floor_char_boundary(end - out.len());
            out.extend_from_slice(&part.as_bytes()[..cut]);
            if cut < part.len() {
                return;
            }
        }
    }
}

/// Appends the octets of a hexadecimal text; none if there is no room or a wrong digit.
fn put_octets(text: &[u8], room: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    for pair in text.chunks(2) {
        match pair {
            &[high, low] if let (Some(high), Some(low)) = (digit(high), digit(low)) => {
                out.push((high << 4 | low) as u8);
            }
            _ => return out.truncate(start),
        }
    }
    if out.len() - start > room {
        out.truncate(start);
    }
}

/// The address with this text.
fn address<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
