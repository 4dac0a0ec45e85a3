//! Templates, which consist of groups of fields. Templates, records and flow keys are generated from one list.
//!
//! ```text
//! template = OuterV4, TunnelId, PlainV4, reverse CountsAndFlags, Initiative, Ethernet
//!             └─ a group: fields that always occur together; one call a group when a record is written
//! ```

use super::fields::*;
use crate::fields::{
    Element, View, biflowDirection, destinationMacAddress, destinationTransportPort,
    dot1qCustomerVlanId, flowEndMilliseconds, flowEndReason, flowId, flowStartMilliseconds,
    ipClassOfService, maximumIpTotalLength, maximumTTL, minimumIpTotalLength, minimumTTL,
    octetDeltaCount, packetDeltaCount, protocolIdentifier, sourceMacAddress, sourceTransportPort,
    tcpControlBits, vlanId,
};

/// A field of a template.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    name: &'static str,
    pub(crate) element: Element,
}

impl Spec {
    const fn of<F: Fixed>() -> Self {
        Self { name: F::NAME, element: F::ELEMENT }
    }

    /// Returns true if the field is part of the flow key; for VLAN tags if `vlans` is true.
    fn is_key(self, vlans: bool) -> bool {
        const KEY: [&str; 7] = [
            <SourceV4 as Fixed>::NAME,
            <DestinationV4 as Fixed>::NAME,
            <SourceV6 as Fixed>::NAME,
            <DestinationV6 as Fixed>::NAME,
            <sourceTransportPort as Fixed>::NAME,
            <destinationTransportPort as Fixed>::NAME,
            <protocolIdentifier as Fixed>::NAME,
        ];
        const VLANS: [&str; 2] = [<Dot1qVlan as Fixed>::NAME, <dot1qCustomerVlanId as Fixed>::NAME];
        KEY.contains(&self.name) || vlans && VLANS.contains(&self.name)
    }
}

/// Writes the fields of a group at the start of a place, and returns the rest.
type Put = for<'a> fn(&View<'_>, &'a mut [u8]) -> &'a mut [u8];

/// Defines the groups with their fields, and the functions that write a group: its fields in order, without branches.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident = [$($field:ident),+];)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Group { $($(#[$doc])* $group),+ }

        /// The fields of the groups.
        const FIELDS_OF: &[&[Spec]] = &[$(&[$(Spec::of::<$field>()),+]),+];

        /// The functions of the groups, by direction. One function for all groups
        /// would save as many registers as the largest needs.
        static PUT: [[Put; 2]; FIELDS_OF.len()] = [$({
            fn put<'a, const DIRECTION: usize>(view: &View<'_>, out: &'a mut [u8]) -> &'a mut [u8] {
                const LEN: usize = octets(Group::$group.fields());
                // The length is a constant, so the offset of each field is constant, too.
                let Some((place, rest)) = out.split_first_chunk_mut::<LEN>() else { return &mut [] };
                let mut place = Out(place);
                $(<$field as Fixed>::put(view, DIRECTION, &mut place);)+
                rest
            }
            [put::<0>, put::<1>]
        }),+];

        impl Group {
            const fn fields(self) -> &'static [Spec] {
                FIELDS_OF[self as usize]
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
        SourceV4, DestinationV4, sourceTransportPort, destinationTransportPort, protocolIdentifier,
        flowEndReason, flowStartMilliseconds, flowEndMilliseconds,
        packetDeltaCount, octetDeltaCount, ipClassOfService, minimumTTL, maximumTTL,
        minimumIpTotalLength, maximumIpTotalLength, tcpControlBits
    ];
    /// The same over IPv6.
    PlainV6 = [
        SourceV6, DestinationV6, sourceTransportPort, destinationTransportPort, protocolIdentifier,
        flowEndReason, flowStartMilliseconds, flowEndMilliseconds,
        packetDeltaCount, octetDeltaCount, ipClassOfService, minimumTTL, maximumTTL,
        minimumIpTotalLength, maximumIpTotalLength, tcpControlBits
    ];
    Ports = [sourceTransportPort, destinationTransportPort, protocolIdentifier];
    IcmpOfV4 = [protocolIdentifier, IcmpV4];
    IcmpOfV6 = [protocolIdentifier, IcmpV6];
    /// Type and code of the answer.
    AnswerOfV4 = [IcmpV4];
    AnswerOfV6 = [IcmpV6];
    /// First and last time, and the end reason.
    Span = [flowEndReason, flowStartMilliseconds, flowEndMilliseconds];
    /// First and last time in milliseconds of uptime, and the end reason.
    SpanOfUptime = [flowEndReason, FirstSwitched, LastSwitched];
    /// The counters of one direction.
    Counts = [
        packetDeltaCount, octetDeltaCount, ipClassOfService, minimumTTL, maximumTTL,
        minimumIpTotalLength, maximumIpTotalLength
    ];
    CountsAndFlags = [
        packetDeltaCount, octetDeltaCount, ipClassOfService, minimumTTL, maximumTTL,
        minimumIpTotalLength, maximumIpTotalLength, tcpControlBits
    ];
    /// How the initiator was determined.
    Initiative = [biflowDirection];
    Ethernet = [sourceMacAddress, destinationMacAddress];
    OneVlan = [vlanId];
    /// The outermost tag by its old and its new element, and the next tag.
    Vlans = [vlanId, Dot1qVlan, dot1qCustomerVlanId];
    /// The top label and the one below, 0 if there is none.
    Labels = [TopLabel, SecondLabel];
    /// The receiving interface of the first packet of a direction, for flows from interfaces.
    Ingress = [Ingress];
    /// Which flow a part is of.
    Flow = [flowId];
    /// The label of the application in a fixed length.
    Application = [ApplicationName];
}

/// Length of fields, in octets.
const fn octets(fields: &[Spec]) -> usize {
    let (mut len, mut at) = (0, 0);
    while at < fields.len() {
        len += fields[at].element.len as usize;
        at += 1;
    }
    len
}

/// Most groups of a template.
const MOST: usize = 18;

/// The fields of records, in order.
#[derive(Clone, Copy)]
pub(crate) struct Template {
    parts: [Part; MOST],
    count: usize,
    /// Number of fields.
    pub(crate) fields: usize,
    /// Octets of a record.
    pub(crate) len: usize,
}

/// A group in the forward or in the reverse direction.
#[derive(Clone, Copy)]
struct Part {
    group: Group,
    reverse: bool,
}

impl Template {
    pub(crate) const EMPTY: Self = Self {
        parts: [Part { group: Group::AddressesV4, reverse: false }; MOST],
        count: 0,
        fields: 0,
        len: 0,
    };

    pub(crate) const fn with(self, group: Group) -> Self {
        self.and(Part { group, reverse: false })
    }

    /// Adds the reverse direction of a group.
    pub(crate) const fn with_reverse(self, group: Group) -> Self {
        self.and(Part { group, reverse: true })
    }

    const fn and(mut self, part: Part) -> Self {
        self.parts[self.count] = part;
        self.count += 1;
        self.fields += part.group.fields().len();
        self.len += octets(part.group.fields());
        self
    }

    /// All fields; the flag is true for the reverse direction.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (Spec, bool)> {
        self.parts[..self.count].iter().flat_map(|&Part { group, reverse }| {
            group.fields().iter().map(move |&field| (field, reverse))
        })
    }

    /// Writes a direction of a record, 0 from the initiator, into `place`, which has [`len`](Self::len) octets.
    #[inline]
    pub(crate) fn put(&self, view: &View<'_>, direction: usize, place: &mut [u8]) {
        let mut rest = place;
        for &Part { group, reverse } in &self.parts[..self.count] {
            let put = PUT[group as usize][usize::from(reverse) ^ direction & 1];
            rest = put(view, rest);
        }
        debug_assert!(rest.is_empty(), "a record is as long as its template says");
    }

    /// flowKeyIndicator (element 173): bit n is set if field n is part of the key; VLAN tags are if `vlans` is true.
    pub(crate) fn keys(&self, vlans: bool) -> u64 {
        let own = |(field, reverse): (Spec, bool)| field.is_key(vlans) && !reverse;
        self.fields().enumerate().filter(|&(_, field)| own(field)).map(|(at, _)| 1 << at).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{FIELDS, Field};

    #[test]
    fn every_field_with_octets_is_in_a_group() {
        let named: Vec<_> = FIELDS_OF.iter().copied().flatten().map(|spec| spec.name).collect();
        let has_octets = |field: &&Field| matches!(field.elements, [one] if one.len > 0);
        for field in FIELDS.iter().filter(has_octets).filter(|field| field.kind.is_none()) {
            assert!(named.contains(&field.name), "{}: add it to a group", field.name);
        }
    }
}
