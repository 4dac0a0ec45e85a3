//! The fields of templates that are no rows of the table: parts of rows, tunnels and NetFlow's own.

use ringtap_flow::{FlowRecord, LABEL_MAX, Tunnel, TunnelKind};

use crate::fields::{self, Element, Row, Value, View};
use crate::fields::{destinationIPAddress, icmpTypeCode, ingressInterface, sourceIPAddress};

/// A field with a fixed number of octets.
pub(super) trait Fixed {
    /// Its name, for the flow key.
    const NAME: &'static str;

    const ELEMENT: Element;

    /// Appends it, in this direction: zeros if the record has no value.
    fn put(view: &View<'_>, direction: usize, out: &mut Out<'_>);
}

/// The bytes of a record, filled from the left.
pub(super) struct Out<'a>(pub(super) &'a mut [u8]);

impl Out<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, octets: &[u8; N]) {
        // The record's length is the sum of its fields' lengths.
        if let Some((place, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut() {
            *place = *octets;
            self.0 = rest;
        }
    }
}

/// The rows of the table whose element has a length.
impl<R: Row> Fixed for R {
    const NAME: &'static str = R::FIELD.name;
    const ELEMENT: Element = match R::FIELD.elements {
        [own, ..] => *own,
        [] => Element::iana(0, 0),
    };

    #[inline(always)]
    fn put(view: &View<'_>, direction: usize, out: &mut Out<'_>) {
        let number = match R::value(view, direction) {
            Some(Value::Mac(octets)) => return out.put(octets),
            Some(Value::Number(number)) => number,
            _ => 0,
        };
        match Self::ELEMENT.len {
            1 => out.put(&(number as u8).to_be_bytes()),
            2 => out.put(&(number as u16).to_be_bytes()),
            4 => out.put(&(number as u32).to_be_bytes()),
            _ => out.put(&number.to_be_bytes()),
        }
    }
}

/// Defines the others: name, element, octets, and the value in a direction.
macro_rules! own_fields {
    (|$v:ident, $d:ident| $($(#[doc = $doc:literal])? $name:ident $id:expr, $len:expr => $value:expr;)+) => {
        $(
            $(#[doc = $doc])?
            pub(super) struct $name;

            impl Fixed for $name {
                const NAME: &'static str = stringify!($name);
                const ELEMENT: Element = Element::iana($id, $len as u16);

                #[inline(always)]
                fn put($v: &View<'_>, $d: usize, out: &mut Out<'_>) {
                    let _ = $d;
                    let octets: &[u8; $len] = &$value;
                    out.put(octets);
                }
            }
        )+
    };
}

const SOURCE: &[Element] = sourceIPAddress::FIELD.elements;
const DESTINATION: &[Element] = destinationIPAddress::FIELD.elements;
const ICMP: &[Element] = icmpTypeCode::FIELD.elements;

own_fields! { |v, d|
    SourceV4 SOURCE[0].id, 4 => first_four(address(v, d));
    DestinationV4 DESTINATION[0].id, 4 => first_four(address(v, 1 - d));
    SourceV6 SOURCE[1].id, 16 => *address(v, d);
    DestinationV6 DESTINATION[1].id, 16 => *address(v, 1 - d);
    IcmpV4 ICMP[0].id, 2 => type_code(v, d);
    IcmpV6 ICMP[1].id, 2 => type_code(v, d);
    FirstSwitched 22, 4 => v.uptimes_ms[0].to_be_bytes();
    LastSwitched 21, 4 => v.uptimes_ms[1].to_be_bytes();
    Dot1qVlan 243, 2 => v.way(d).vlans[0].to_be_bytes();
    /// mplsTopLabelStackSection: the label's 20 bits; traffic class and bottom of stack are not stored, and 0.
    TopLabel 70, 3 => label(v.way(d).mpls_label);
    SecondLabel 71, 3 => label(v.way(d).mpls_second_label);
    OuterSourceV4 SOURCE[0].id, 4 => first_four(&outer(v).src);
    OuterDestinationV4 DESTINATION[0].id, 4 => first_four(&outer(v).dst);
    OuterSourceV6 SOURCE[1].id, 16 => outer(v).src;
    OuterDestinationV6 DESTINATION[1].id, 16 => outer(v).dst;
    OuterProtocol 4, 1 => [outer(v).kind.protocol()];
    /// layer2SegmentId.
    Segment 351, 8 => segment(&outer(v)).to_be_bytes();
    GreKey 296, 4 => id_of(v, &[TunnelKind::Gre, TunnelKind::GreUdp]);
    GtpTeid 507, 4 => id_of(v, &[TunnelKind::GtpU]);
    /// ingressInterface of this direction; INPUT_SNMP of NetFlow v9.
    Ingress ingressInterface::FIELD.elements[0].id, 4 => fields::ingress(v.record, d).to_be_bytes();
    ApplicationName 96, LABEL_MAX => *application(v.record);
}

/// The label of the application, and zeros behind it. A reference: other groups would pay for a copy.
#[inline(always)]
fn application(record: &FlowRecord) -> &[u8; LABEL_MAX] {
    const NONE: &[u8; LABEL_MAX] = &[0; LABEL_MAX];
    record.application.as_ref().map_or(NONE, |one| one.label.padded())
}

/// Type and code of a direction; 0 if it is unknown.
#[inline(always)]
fn type_code(v: &View<'_>, direction: usize) -> [u8; 2] {
    fields::type_code(v.record, direction).unwrap_or_default().to_be_bytes()
}

#[inline(always)]
fn address<'a>(v: &View<'a>, end: usize) -> &'a [u8; 16] {
    if end == 0 { &v.record.key.src } else { &v.record.key.dst }
}

fn first_four(address: &[u8; 16]) -> [u8; 4] {
    let [a, b, c, d, ..] = *address;
    [a, b, c, d]
}

fn label(label: Option<u32>) -> [u8; 3] {
    let [_, a, b, c] = (label.unwrap_or_default() << 4).to_be_bytes();
    [a, b, c]
}

/// The tunnel of a record whose template has one.
fn outer(v: &View<'_>) -> Tunnel {
    let none = Tunnel { kind: TunnelKind::IpIp, ipv6: false, src: [0; 16], dst: [0; 16], id: 0 };
    v.path.tunnel.unwrap_or(none)
}

/// layer2SegmentId (element 351): the type of overlay in the first octet (1 is VXLAN; Geneve and
/// VXLAN-GPE have no number), the
/// network identifier in the last three.
fn segment(tunnel: &Tunnel) -> u64 {
    match tunnel.kind {
        TunnelKind::Vxlan => 1 << 56 | u64::from(tunnel.id),
        TunnelKind::Geneve | TunnelKind::VxlanGpe => u64::from(tunnel.id),
        _ => 0,
    }
}

/// The identifier of a tunnel if it is of one of these kinds; otherwise 0.
fn id_of(v: &View<'_>, kinds: &[TunnelKind]) -> [u8; 4] {
    let tunnel = outer(v);
    let id = if kinds.contains(&tunnel.kind) { tunnel.id } else { 0 };
    id.to_be_bytes()
}
