//! NetFlow v9: RFC 3954.
//!
//! ```text
//!  0               2               4               6               8
//! ├ version = 9 ───┼ count ────────┼ sysUptime, milliseconds ──────┤
//! ├ seconds since 1970 ────────────┼ sequence number ──────────────┤
//! ├ source identifier ─────────────┤                                   20 octets, then flow sets
//! ```
//!
//! Flows are one-direction, so an answered flow becomes two records. The number of a template, minus 256: bit 0 is IPv6, bit
//! 1 ICMP; bits 2 and 3: 0 no link fields, 1 a VLAN tag, 2 also link addresses, 3 also MPLS labels; bit 4: the label of
//! the application, never with ICMP, in a fixed length because v9 has no other. Link
//! addresses and labels are those of the flow's first packet, so the answering direction uses a template
//! without them, unless its own path is known. Options templates contain the exporter's totals (320), sampling (321) and the
//! names of interfaces (322).
//! There are no field types for tunnels. For flows from interfaces every template ends with INPUT_SNMP; the interface is
//! known for the direction of the first packet, and 0 in the other one, likewise.

use ringtap_flow::{FlowRecord, IpVersion};

use super::message::Message;
use super::template::{Group, Template};
use super::uptime::Uptime;
use super::{Encoder, Progress, Refusal, Sealed, as_uniflows, directions, options, put_word, word};
use crate::fields::{self, View, milliseconds};
use crate::formats::Interfaces;
use crate::{RecordTotals, Sampling, Sent};

const HEADER: usize = 20;

/// "The Exporter SHOULD insert some padding bytes so that the subsequent FlowSet starts at a 4-byte aligned boundary"
/// (section 5.3).
const ALIGN: usize = 4;

const TEMPLATE_SET: u16 = 0;
const OPTIONS_TEMPLATE_SET: u16 = 1;

const FIRST_TEMPLATE: u16 = 256;
const IPV6: usize = 1;
const ICMP: usize = 2;

const LINK_SHIFT: usize = 2;

const APPLICATION: usize = 16;

const COUNT: usize = 32;

/// For flows from files, and for flows from interfaces.
static TEMPLATES: [[Template; COUNT]; 2] = [templates(false), templates(true)];

const fn templates(ingress: bool) -> [Template; COUNT] {
    let mut all = [Template::EMPTY; COUNT];
    let mut bits = 0;
    while bits < COUNT {
        all[bits] = template(bits, ingress);
        bits += 1;
    }
    all
}

/// The template with these bits.
const fn template(bits: usize, ingress: bool) -> Template {
    let (is_icmp, link) = (bits & ICMP != 0, bits >> LINK_SHIFT & 3);
    let v6 = bits & IPV6 != 0;
    let addresses = if v6 { Group::AddressesV6 } else { Group::AddressesV4 };
    // ICMP_TYPE (32) for both IP versions: v9 has no other.
    let what = if is_icmp { Group::IcmpOfV4 } else { Group::Ports };
    let mut all = Template::EMPTY.with(addresses).with(what);
    let counts = if is_icmp { Group::Counts } else { Group::CountsAndFlags };
    all = all.with(Group::SpanOfUptime).with(counts);
    if link > 0 {
        all = all.with(Group::OneVlan);
    }
    if link > 1 {
        all = all.with(Group::Ethernet);
    }
    if link > 2 {
        all = all.with(Group::Labels);
    }
    if bits & APPLICATION != 0 {
        all = all.with(Group::Application);
    }
    if ingress {
        all = all.with(Group::Ingress);
    }
    all
}

/// The bits of one direction of a record.
#[inline]
fn bits(record: &FlowRecord, direction: usize) -> usize {
    let (path, is_own) = match (fields::known_paths(record), direction) {
        ((_, Some(other)), 1) => (other, true),
        ((path, _), _) => (path, direction == 0),
    };
    let tagged = usize::from(path.vlan_tags > 0);
    let version = if record.key.version == IpVersion::V6 { IPV6 } else { 0 };
    let application = if record.application.is_some() { APPLICATION } else { 0 };
    let link = match (path.mpls_label, path.macs != [[0; 6]; 2]) {
        _ if !is_own => tagged,
        (Some(_), _) => 3,
        (None, true) => 2,
        (None, false) => tagged,
    };
    let is_icmp = match direction {
        0 => fields::is_icmp(record),
        _ => fields::type_code(record, 1).is_some(),
    };
    let what = if is_icmp { ICMP } else { application };
    what | link << LINK_SHIFT | version
}

/// The exporter's totals. Scope "System" (1); TOTAL_BYTES_EXP, TOTAL_PKTS_EXP, TOTAL_FLOWS_EXP (section 8).
const TOTALS: u16 = 320;
const TOTALS_TEMPLATE: [u16; 11] = [TOTALS, 4, 12, 1, 4, 40, 8, 41, 8, 42, 8];

/// Sampling, by its old field types and by those that name a sampler. Scope "System"; SAMPLING_INTERVAL,
/// SAMPLING_ALGORITHM; FLOW_SAMPLER_ID, FLOW_SAMPLER_MODE, FLOW_SAMPLER_RANDOM_INTERVAL (section 8).
const SAMPLER: u16 = 321;
const SAMPLER_TEMPLATE: [u16; 15] = [SAMPLER, 4, 20, 1, 4, 34, 4, 35, 1, 48, 1, 49, 1, 50, 4];

/// The names of an interface. Scope "Interface" (2); INPUT_SNMP, IF_NAME, IF_DESC, as in IPFIX.
const INTERFACES: u16 = 322;
const INTERFACES_TEMPLATE: [u16; 11] = [INTERFACES, 4, 12, 2, 4, 10, 4, 82, 32, 83, 64];

/// Encodes flow records as NetFlow v9 packets.
pub struct NetFlow9 {
    source: u32,
    sampling: Option<Sampling>,
    interfaces: Interfaces,
    templates: &'static [Template; COUNT],
    sequence: u32,
    uptime: Uptime,
    message: Message,
}

impl NetFlow9 {
    /// Creates an encoder for the source `source`; its messages have at most `limit` octets.
    pub fn new(source: u32, limit: usize) -> Self {
        let message = Message::new(HEADER, limit, ALIGN);
        let (templates, uptime) = (&TEMPLATES[0], Uptime::default());
        let interfaces = Interfaces::default();
        Self { source, sampling: None, interfaces, templates, sequence: 0, uptime, message }
    }

    /// For flows from interfaces, if `yes`: each record has INPUT_SNMP.
    #[must_use]
    pub fn with_ingress(mut self, yes: bool) -> Self {
        self.templates = &TEMPLATES[usize::from(yes)];
        self
    }

    /// Adds the announcement of the names of these interfaces.
    #[must_use]
    pub fn with_names_of(self, interfaces: &Interfaces) -> Self {
        Self { interfaces: interfaces.clone(), ..self }
    }

    /// Uses the clock of another encoder, so that the times in messages of both are relative to the same start.
    #[must_use]
    pub fn with_clock_of(mut self, other: &Self) -> Self {
        self.uptime = other.uptime.share();
        self
    }

    /// Adds the announcement that packets are sampled.
    #[must_use]
    pub fn sampled(mut self, sampling: Option<Sampling>) -> Self {
        self.sampling = sampling;
        self
    }

    /// Seals a separate message.
    fn send_alone(&mut self, message: &mut Message) -> Vec<u8> {
        let bytes = self.header().seal(message).to_vec();
        self.sequence = self.sequence.wrapping_add(1);
        bytes
    }

    fn send_option(&mut self, set: u16, record: &[u8]) -> Vec<u8> {
        let mut message = self.message.another();
        message.copy(set, record);
        self.send_alone(&mut message)
    }

    fn sampler(&mut self, sampling: Sampling) -> Vec<u8> {
        let (of, mode) = (sampling.of().to_be_bytes(), [sampling.mode()]);
        let parts = [&self.source.to_be_bytes()[..], &of, &mode, &[1], &mode, &of];
        self.send_option(SAMPLER, &parts.concat())
    }

    fn header(&self) -> Header {
        let (uptime, seconds) = self.uptime.header();
        Header { uptime, seconds, sequence: self.sequence, source: self.source }
    }
}

impl Encoder for NetFlow9 {
    #[inline]
    fn add(&mut self, record: &FlowRecord, flows: &mut RecordTotals) -> Result<(), Refusal> {
        let (all, templates) = (self.templates, [0, 1].map(|direction| bits(record, direction)));
        let len = |direction: usize| all[templates[direction]].len;
        let set = |direction: usize| FIRST_TEMPLATE + templates[direction] as u16;
        // Both directions are in one message, in up to two sets.
        if !self.message.fits(set(0), len(0) + len(1) + 8) {
            return Err(Refusal::Full);
        }
        let (start, end) = (milliseconds(record.first_ns), milliseconds(record.last_ns));
        let (first, last) = self.uptime.place(start, end, self.message.is_empty())?;
        let view = View::of_first_packet(record, [first, last]);
        for direction in directions(record) {
            let place = self.message.record(set(direction), len(direction));
            all[templates[direction]].put(&view, direction, place);
        }
        let own = as_uniflows(record);
        self.message.flows += own;
        *flows += own;
        Ok(())
    }

    fn seal(&mut self) -> Option<Sealed<'_>> {
        if self.message.is_empty() {
            return None;
        }
        let (header, flows) = (self.header(), self.message.flows);
        Some(Sealed { bytes: header.seal(&mut self.message), flows })
    }

    fn done(&mut self) {
        // "Incremental sequence counter of all Export Packets sent from the current Observation Domain by the
        // Exporter." (section 5.1): messages, not records.
        self.sequence = self.sequence.wrapping_add(1);
        self.message.clear();
    }

    fn room_in_place(&self) -> Option<usize> {
        Some(self.message.room())
    }

    fn lend(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        self.message.lend(bytes)
    }

    fn announcement(&mut self) -> Vec<Vec<u8>> {
        let used = |(bits, _): &(usize, _)| bits & (ICMP | APPLICATION) != ICMP | APPLICATION;
        let templates = self.templates.iter().enumerate().filter(used).map(|(bits, template)| {
            let id = FIRST_TEMPLATE + bits as u16;
            let head = [id, template.fields().count() as u16];
            let fields = template.fields().map(|(field, _)| field.element);
            let words = head.into_iter().chain(fields.flat_map(|one| [one.id, one.len]));
            (TEMPLATE_SET, words.collect::<Vec<_>>())
        });
        let totals = (OPTIONS_TEMPLATE_SET, TOTALS_TEMPLATE.to_vec());
        let sampler = self.sampling.map(|_| (OPTIONS_TEMPLATE_SET, SAMPLER_TEMPLATE.to_vec()));
        let names: Vec<_> = self.interfaces.numbered().map(options::interface).collect();
        let named = (OPTIONS_TEMPLATE_SET, INTERFACES_TEMPLATE.to_vec());
        let named = (!names.is_empty()).then_some(named);
        let (mut message, mut messages) = (self.message.another(), Vec::new());
        for (set, words) in templates.chain([totals]).chain(sampler).chain(named) {
            let record: Vec<u8> = words.into_iter().flat_map(u16::to_be_bytes).collect();
            if !message.fits(set, record.len()) {
                messages.push(self.send_alone(&mut message));
                message.clear();
            }
            message.copy(set, &record);
        }
        messages.push(self.send_alone(&mut message));
        messages.extend(self.sampling.map(|sampling| self.sampler(sampling)));
        messages.extend(names.iter().map(|name| self.send_option(INTERFACES, name)));
        messages
    }

    fn statistics(&mut self, progress: &Progress) -> Vec<Vec<u8>> {
        let Sent { flows, messages, message_octets } = progress.sent;
        let mut out = self.source.to_be_bytes().to_vec();
        for total in [message_octets, messages, flows.records] {
            out.extend_from_slice(&total.to_be_bytes());
        }
        vec![self.send_option(TOTALS, &out)]
    }

    fn farewell(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn restart(&mut self) {
        self.sequence = 0;
    }

    fn octets(&self) -> usize {
        self.message.len()
    }

    fn learn(&mut self, message: &[u8]) {
        self.uptime.learn(word(message, 4), word(message, 8));
    }

    fn stamp(&mut self, message: &mut [u8], _flows: RecordTotals) {
        put_word(message, 12, self.sequence);
        self.sequence = self.sequence.wrapping_add(1);
    }
}

/// The message header.
struct Header {
    uptime: u32,
    seconds: u32,
    sequence: u32,
    source: u32,
}

impl Header {
    fn seal<'a>(&self, message: &'a mut Message) -> &'a [u8] {
        // "The total number of records in the Export Packet, which is the sum of Options FlowSet records, Template
        // FlowSet records, and Data FlowSet records." (section 5.1)
        let count = message.records;
        let bytes = message.close();
        bytes[0..2].copy_from_slice(&9u16.to_be_bytes());
        bytes[2..4].copy_from_slice(&count.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.uptime.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.seconds.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.source.to_be_bytes());
        bytes
    }
}
