//! A live flow as it is stored between two runs: its record so far, and what the record does not have.

use crate::fields::{Fields, PATH_LEN, path_bytes};
use crate::record::reverse_of;
use crate::responses::SAVED_REQUESTS;
use crate::tcp::SAVED_CONNECTION;
use ringtap_wire::Path;

use crate::{Class, Facts, FlowRecord, Part, ResponseTimes, TcpPerformance};

/// More of anything is not of a flow: sums of stored numbers must not overflow.
const MOST: u64 = 1 << 62;

/// A live flow between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// The whole flow so far, with all facts; without origins and application. If flows are cut, `part` is the next part.
    pub record: FlowRecord,
    /// State bits of its entry.
    pub(crate) state: u8,
    /// How many of its facts, and of the values left out, earlier parts had.
    pub(crate) reported: (u16, u32),
    /// The path of the first packet in the other direction, even if the record does not have it.
    pub(crate) back: Option<Path>,
    pub(crate) connection: [u8; SAVED_CONNECTION],
    pub(crate) requests: [u8; SAVED_REQUESTS],
}

impl OpenFlow {
    /// Bytes of [`OpenFlow::canonical`].
    pub const CANONICAL_LEN: usize = FlowRecord::CANONICAL_LEN
        + (4 + 1 + 2 + 4 + 4)
        + Self::BACK
        + Self::PART
        + Self::TCP
        + ResponseTimes::CANONICAL_LEN
        + SAVED_CONNECTION
        + SAVED_REQUESTS;
    const BACK: usize = 1 + PATH_LEN + 4;
    const PART: usize = 1 + 4 + 8;
    const TCP: usize = 1 + TcpPerformance::CANONICAL_LEN;

    /// The flow without its facts, whose bytes are those of [`Facts::bytes`].
    pub fn canonical(&self) -> [u8; Self::CANONICAL_LEN] {
        let Self { record, state, reported, back, connection, requests } = self;
        let known = back.unwrap_or_default();
        let part = record.part.unwrap_or(Part { number: 0, flow_first_ns: 0 });
        let fields: [&[u8]; 17] = [
            &record.canonical(),
            &record.path.ingress.to_le_bytes(),
            &[u8::from(back.is_some())],
            &path_bytes(&known),
            &known.ingress.to_le_bytes(),
            &[*state],
            &reported.0.to_le_bytes(),
            &reported.1.to_le_bytes(),
            &record.facts.beyond().to_le_bytes(),
            &[u8::from(record.part.is_some())],
            &part.number.to_le_bytes(),
            &part.flow_first_ns.to_le_bytes(),
            &[u8::from(record.tcp.is_some())],
            &record.tcp.map_or([0; _], |tcp| tcp.canonical()),
            &record.responses.unwrap_or_default().canonical(),
            connection,
            requests,
        ];
        let mut out = [0; Self::CANONICAL_LEN];
        let mut rest = &mut out[..];
        for field in fields {
            let (own, behind) = rest.split_at_mut(field.len());
            own.copy_from_slice(field);
            rest = behind;
        }
        out
    }

    /// The flow of these bytes, as [`OpenFlow::canonical`] and [`Facts::bytes`] returned them; `None` if no flow has such
    /// bytes.
    pub fn from_canonical(bytes: &[u8; Self::CANONICAL_LEN], facts: &[u8]) -> Option<Self> {
        let mut bytes = Fields(bytes);
        let mut record = FlowRecord::from_canonical(&bytes.take())?;
        record.path.ingress = u32::from_le_bytes(bytes.take());
        let [is_known] = bytes.take();
        let mut back = bytes.path()?;
        back.ingress = u32::from_le_bytes(bytes.take());
        let back = (is_known > 0).then_some(back);
        record.reverse_path = back.and_then(|back| reverse_of(&record.path, &back));
        let [state] = bytes.take();
        let reported = (u16::from_le_bytes(bytes.take()), u32::from_le_bytes(bytes.take()));
        record.facts = Facts::restore(facts, u32::from_le_bytes(bytes.take()))?;
        let [is_part] = bytes.take();
        let number = u32::from_le_bytes(bytes.take());
        let part = Part { number, flow_first_ns: u64::from_le_bytes(bytes.take()) };
        // A part was reported before.
        record.part = (is_part > 0).then_some(part);
        let [is_measured] = bytes.take();
        let tcp = TcpPerformance::from_canonical(&bytes.take());
        record.tcp = (is_measured > 0).then_some(tcp);
        record.responses = ResponseTimes::from_canonical(&bytes.take());
        let own = Self {
            record,
            state,
            reported,
            back,
            connection: bytes.take(),
            requests: bytes.take(),
        };
        let is_valid = own.record.first_ns <= own.record.last_ns
            && usize::from(own.reported.0) <= own.record.facts.len()
            && own.record.part.is_none_or(|part| (1..u32::MAX / 2).contains(&part.number))
            && [own.record.packets, own.record.octets].as_flattened().iter().all(|n| *n < MOST);
        (is_valid && own.class().is_some()).then_some(own)
    }

    /// Its class; `None`: none has such a number.
    pub(crate) fn class(&self) -> Option<Class> {
        let class = Class::ALL.get(usize::from(self.state & Class::MASK)).copied()?;
        let own = Class::of(self.record.key.protocol);
        (class == own || class.is_closed() && own == Class::Tcp).then_some(class)
    }
}
