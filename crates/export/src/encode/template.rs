//! Templates, which consist of groups of fields. Templates, records and flow keys are generated from one list.
//!
//! ```text
//! template = OuterV4, TunnelId, PlainV4, reverse CountsAndFlags, Initiative, Ethernet
//!             └─ a group: fields that always occur together; one branch a group when a record is written
//! ```

use std::mem::take;

use super::fields::{Field, Out, View};

/// Defines the groups with their fields, and the function that writes a group: its fields in order, without branches.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident = [$($field:ident),+];)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Group { $($(#[$doc])* $group),+ }

        impl Group {
            const fn fields(self) -> &'static [Field] {
                match self { $(Self::$group => &[$(Field::$field),+]),+ }
            }

            // Inlined into a loop over groups, it would load all fields of the record first.
            #[inline(never)]
            fn put<const DIRECTION: usize>(self, view: &View<'_>, out: &mut Out<'_>) {
                match self { $(Self::$group => {
                    const LEN: usize = octets(Group::$group.fields());
                    // The length is a constant, so the offset of each field is constant, too.
                    if let Some((place, rest)) = take(&mut out.0).split_first_chunk_mut::<LEN>() {
                        let mut place = Out(place);
                        $(Field::$field.put::<DIRECTION>(view, &mut place);)+
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
    /// The outer header of a tunnel, IPv6.
    OuterV6 = [OuterSourceV6, OuterDestinationV6, OuterProtocol];
    /// The tunnel's identifier, by kind; 0 for other kinds.
    TunnelId = [Segment, GreKey, GtpTeid];
    AddressesV4 = [SourceV4, DestinationV4];
    AddressesV6 = [SourceV6, DestinationV6];
    /// All fields of a flow over IPv4 without an answer, except ICMP and encapsulation.
    PlainV4 = [
        SourceV4, DestinationV4, SourcePort, DestinationPort, Protocol, EndReason, Start, End,
        Packets, Octets, Tos, MinTtl, MaxTtl, MinLength, MaxLength, TcpFlags
    ];
    /// The same over IPv6.
    PlainV6 = [
        SourceV6, DestinationV6, SourcePort, DestinationPort, Protocol, EndReason, Start, End,
        Packets, Octets, Tos, MinTtl, MaxTtl, MinLength, MaxLength, TcpFlags
    ];
    Ports = [SourcePort, DestinationPort, Protocol];
    IcmpOfV4 = [Protocol, IcmpV4];
    IcmpOfV6 = [Protocol, IcmpV6];
    /// First and last time, and the end reason.
    Span = [EndReason, Start, End];
    /// First and last time in milliseconds of uptime, and the end reason.
    SpanOfUptime = [EndReason, FirstSwitched, LastSwitched];
    /// The counters of one direction.
    Counts = [Packets, Octets, Tos, MinTtl, MaxTtl, MinLength, MaxLength];
    CountsAndFlags = [Packets, Octets, Tos, MinTtl, MaxTtl, MinLength, MaxLength, TcpFlags];
    /// How the initiator was determined.
    Initiative = [Direction];
    Ethernet = [SourceMac, DestinationMac];
    OneVlan = [Vlan];
    /// The outermost tag by its old and its new element, and the next tag.
    Vlans = [Vlan, Dot1qVlan, CustomerVlan];
    Label = [TopLabel];
    /// The receiving interface of the first packet, for flows from interfaces.
    Ingress = [Ingress];
    /// The label of the application in a fixed length.
    Application = [ApplicationName];
}

/// Length of fields, in octets.
const fn octets(fields: &[Field]) -> usize {
    let (mut len, mut at) = (0, 0);
    while at < fields.len() {
        len += fields[at].element().len as usize;
        at += 1;
    }
    len
}

/// Most groups of a template.
const MOST: usize = 15;

/// The fields of records, in order.
#[derive(Clone, Copy)]
pub(crate) struct Template {
    parts: [Part; MOST],
    count: usize,
    /// Octets of a record.
    pub(crate) len: usize,
}

/// A group in the forward or in the reverse direction.
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

    /// Adds the reverse direction of a group.
    pub(crate) const fn with_reverse(self, group: Group) -> Self {
        self.and(Part::Reverse(group), group)
    }

    const fn and(mut self, part: Part, group: Group) -> Self {
        self.parts[self.count] = part;
        self.count += 1;
        self.len += octets(group.fields());
        self
    }

    /// All fields; the flag is true for the reverse direction.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (Field, bool)> {
        self.parts[..self.count].iter().flat_map(|&part| {
            let (group, reverse) = match part {
                Part::Own(group) => (group, false),
                Part::Reverse(group) => (group, true),
            };
            group.fields().iter().map(move |&field| (field, reverse))
        })
    }

    /// Writes a record into `place`, which has [`len`](Self::len) octets.
    #[inline]
    pub(crate) fn put(&self, view: &View<'_>, place: &mut [u8]) {
        let mut out = Out(place);
        for part in &self.parts[..self.count] {
            match (part, view.direction) {
                (Part::Own(group), 0) | (Part::Reverse(group), 1) => group.put::<0>(view, &mut out),
                (Part::Own(group) | Part::Reverse(group), _) => group.put::<1>(view, &mut out),
            }
        }
        debug_assert!(out.0.is_empty(), "a record is as long as its template says");
    }

    /// flowKeyIndicator (element 173): bit n is set if field n is part of the key; VLAN tags are if `vlans` is true.
    pub(crate) fn keys(&self, vlans: bool) -> u64 {
        let own = |(field, reverse): (Field, bool)| field.is_key(vlans) && !reverse;
        self.fields().enumerate().filter(|&(_, field)| own(field)).map(|(at, _)| 1 << at).sum()
    }
}
