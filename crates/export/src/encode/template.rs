//! Templates, made of groups of fields: one list from which templates, records and flow keys come, so that none
//! contradicts another.
//!
//! ```text
//! template = OuterV4, Tunnel, AddressesV4, Ports, Span, Counts, Flags, reverse Counts, reverse Flags, Direction
//!              └─ a group: the fields that come and go together; one jump a group when a record is written
//! ```

use std::mem::take;

use super::fields::{Field, Out, View};

/// Groups with their fields, and how a group is written: its fields one after the other, without a jump.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident = [$($field:ident),+];)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Group { $($(#[$doc])* $group),+ }

        impl Group {
            const fn fields(self) -> &'static [Field] {
                match self { $(Self::$group => &[$(Field::$field),+]),+ }
            }

            #[inline]
            fn put(self, view: &View<'_>, out: &mut Out<'_>) {
                match self { $(Self::$group => {
                    const LEN: usize = octets(Group::$group.fields());
                    // Of a known length, so that each field has a place that is known, too.
                    if let Some((place, rest)) = take(&mut out.0).split_first_chunk_mut::<LEN>() {
                        let mut place = Out(place);
                        $(Field::$field.put(view, &mut place);)+
                        out.0 = rest;
                    }
                })+ }
            }
        }
    };
}

groups! {
    /// The outer header of a tunnel. RFC 7011, section 8: "[…] when exporting the two source IP addresses of an
    /// IPv4-in-IPv4 packet, the first sourceIPv4Address Information Element occurrence should be the IPv4 address of
    /// the outer header, while the second occurrence should be the address of the inner header."
    OuterV4 = [OuterSourceV4, OuterDestinationV4, OuterProtocol];
    /// The same with IPv6.
    OuterV6 = [OuterSourceV6, OuterDestinationV6, OuterProtocol];
    /// What identifies the tunnel, by its kind; 0 of other kinds.
    TunnelId = [Segment, GreKey, GtpTeid];
    AddressesV4 = [SourceV4, DestinationV4];
    AddressesV6 = [SourceV6, DestinationV6];
    Ports = [SourcePort, DestinationPort, Protocol];
    IcmpOfV4 = [Protocol, IcmpV4];
    IcmpOfV6 = [Protocol, IcmpV6];
    /// When it was, and why it ended.
    Span = [EndReason, Start, End];
    /// The same in milliseconds of uptime.
    SpanOfUptime = [EndReason, FirstSwitched, LastSwitched];
    /// What is counted in each direction.
    Counts = [Packets, Octets, Tos, MinTtl, MaxTtl, MinLength, MaxLength];
    Flags = [TcpFlags];
    /// How it is known who is the source.
    Initiative = [Direction];
    Ethernet = [SourceMac, DestinationMac];
    OneVlan = [Vlan];
    /// The outermost tag by its old and its new element, and the next one.
    Vlans = [Vlan, Dot1qVlan, CustomerVlan];
    Label = [TopLabel];
    /// By which interface the first packet came, of flows from interfaces.
    Ingress = [Ingress];
}

/// Octets of fields.
const fn octets(fields: &[Field]) -> usize {
    let (mut len, mut at) = (0, 0);
    while at < fields.len() {
        len += fields[at].element().len as usize;
        at += 1;
    }
    len
}

/// Groups of a template at the most.
const MOST: usize = 15;

/// The fields of records, in order.
#[derive(Clone, Copy)]
pub(crate) struct Template {
    parts: [Part; MOST],
    count: usize,
    /// Octets of a record.
    pub(crate) len: usize,
}

/// A group in its own direction or in the other one.
#[derive(Clone, Copy)]
enum Part {
    Own(Group),
    Reverse(Group),
}

impl Template {
    pub(crate) const EMPTY: Self =
        Self { parts: [Part::Own(Group::AddressesV4); MOST], count: 0, len: 0 };

    pub(crate) const fn with(self, group: Group) -> Self {
        self.and(Part::Own(group), group)
    }

    /// With the other direction of a group.
    pub(crate) const fn with_reverse(self, group: Group) -> Self {
        self.and(Part::Reverse(group), group)
    }

    const fn and(mut self, part: Part, group: Group) -> Self {
        self.parts[self.count] = part;
        self.count += 1;
        self.len += octets(group.fields());
        self
    }

    /// All fields, and whether they mean the other direction.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (Field, bool)> {
        self.parts[..self.count].iter().flat_map(|&part| {
            let (group, reverse) = match part {
                Part::Own(group) => (group, false),
                Part::Reverse(group) => (group, true),
            };
            group.fields().iter().map(move |&field| (field, reverse))
        })
    }

    /// Writes a record into a place of [`len`](Self::len) octets.
    #[inline]
    pub(crate) fn put(&self, view: &View<'_>, place: &mut [u8]) {
        let mut out = Out(place);
        let other = View { way: 1 - view.way, ..*view };
        for part in &self.parts[..self.count] {
            match part {
                Part::Own(group) => group.put(view, &mut out),
                Part::Reverse(group) => group.put(&other, &mut out),
            }
        }
        debug_assert!(out.0.is_empty(), "a record is as long as its template says");
    }

    /// flowKeyIndicator (element 173): bit n is set if field n is part of the key, as VLAN tags are if `vlans` says so.
    pub(crate) fn keys(&self, vlans: bool) -> u64 {
        let own = |(field, reverse): (Field, bool)| field.is_key(vlans) && !reverse;
        self.fields().enumerate().filter(|&(_, field)| own(field)).map(|(at, _)| 1 << at).sum()
    }
}
