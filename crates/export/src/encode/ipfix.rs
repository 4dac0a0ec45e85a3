//! IPFIX: RFC 7011 with the elements of RFC 7012's registry, biflows by RFC 5103.
//!
//! ```text
//!  0               2               4               6               8
//! ├ version = 10 ──┼ length ───────┼ export time, seconds ─────────┤
//! ├ sequence number ───────────────┼ observation domain ───────────┤   16 octets, then sets
//! ```
//!
//! The lower octet of a template's number describes its fields:
//!
//! ```text
//! bits     7           5 4 3                                           2         1      0
//!      two paths  0 nothing, 1 link addresses, 2 also VLAN tags,  answered  ICMP   IPv6
//!                 3 also MPLS labels; 4 and 5: 2 and 3 inside
//!                  a tunnel over IPv4; 6 and 7: over IPv6
//! ```
//!
//! The upper octet, minus 1, is the layout of the facts that follow these fields (`facts.rs`); 0 has none, as all of ICMP.
//! Templates without facts and for one path are announced first, the others before the first message that needs them.
//!
//! A record has *two paths* if the path of the other direction is known and not the mirror. Then link addresses, VLAN tags
//! and labels have reverse elements, too; those that one of the paths has are there for both.
//!
//! For flows from interfaces these fields end with ingressInterface, and for answered flows with its reverse. The
//! interface of the other direction is known with two paths; otherwise that element is 0.
//!
//! Records with statistics of packets end with these (`lists.rs`).
//!
//! An answered flow is one record with reverse elements, with the enterprise number 29305 (RFC 5103, section 6.1); a
//! flow without an answer has none of them. `options.rs` has the exporter's own statistics.

use ringtap_flow::{FlowRecord, IpVersion, LABEL_MAX, Label, Path};

use super::facts::{self, LAYOUTS, Layout};
use super::lists::Statistics;
use super::message::{Message, SPARE};
use super::options::{self, Noticed, Options};
use super::template::{Group, Template};
use super::{Encoder, Progress, Refusal, Sealed, Templates, as_biflow, put_word, word};
use crate::fields::{self, Element, REVERSE, View, milliseconds};
use crate::formats::Interfaces;
use crate::{RecordTotals, Sampling};

const HEADER: usize = 16;
const TEMPLATE_SET: u16 = 2;
const OPTIONS_TEMPLATE_SET: u16 = 3;

/// "Template IDs of Data Sets are numbered from 256 to 65535" (section 3.4.1).
const FIRST_TEMPLATE: u16 = 256;
const IPV6: usize = 1;
const ICMP: usize = 2;
const ANSWERED: usize = 4;
const AROUND_SHIFT: usize = 3;

/// The path of the other direction is not the mirror. In numbers of templates this bit is the next one: options templates
/// have the numbers with bit 6.
const TWO_PATHS: usize = 64;
/// The bits below it.
const ONE_PATH: usize = TWO_PATHS - 1;

const COUNT: usize = 128;

/// A template with two paths, before the statistics, has no more fields than tshark reads by default; with more, records
/// have one path.
const FIELDS_MOST: usize = 60;

/// Distance between the numbers of templates that differ in the layout of their facts.
const LAYOUT_SHIFT: usize = 8;

/// Bits of a variant of all templates: for flows from interfaces, and for parts of flows.
const INGRESS: usize = 1;
const PARTS: usize = 2;

static TEMPLATES: [[Template; COUNT]; 4] = [templates(0), templates(1), templates(2), templates(3)];

const fn templates(variant: usize) -> [Template; COUNT] {
    let mut all = [Template::EMPTY; COUNT];
    let mut bits = 0;
    while bits < COUNT {
        all[bits] = template(bits, variant);
        bits += 1;
    }
    all
}

/// The template with these bits.
const fn template(bits: usize, variant: usize) -> Template {
    let around = bits >> AROUND_SHIFT & 7;
    let (is_v6, is_icmp) = (bits & IPV6 != 0, bits & ICMP != 0);
    let mut all = Template::EMPTY;
    if around >= 4 {
        let outer = if around < 6 { Group::OuterV4 } else { Group::OuterV6 };
        all = all.with(outer).with(Group::TunnelId);
    }
    let answered = bits & ANSWERED != 0;
    all = match (is_icmp, is_v6) {
        (false, false) => all.with(Group::PlainV4),
        (false, true) => all.with(Group::PlainV6),
        (true, false) => all.with(Group::AddressesV4).with(Group::IcmpOfV4),
        (true, true) => all.with(Group::AddressesV6).with(Group::IcmpOfV6),
    };
    if is_icmp {
        all = all.with(Group::Span).with(Group::Counts);
    }
    if answered {
        all = match (is_icmp, is_v6) {
            (false, _) => all.with_reverse(Group::CountsAndFlags),
            (true, false) => all.with_reverse(Group::Counts).with_reverse(Group::AnswerOfV4),
            (true, true) => all.with_reverse(Group::Counts).with_reverse(Group::AnswerOfV6),
        };
        all = all.with(Group::Initiative);
    }
    let link = [
        (around > 0, Group::Ethernet),
        (around > 1, Group::Vlans),
        (around > 1 && around % 2 == 1, Group::Labels),
    ];
    let mut at = 0;
    while at < link.len() {
        let (has, group) = link[at];
        if has {
            all = all.with(group);
            if bits & TWO_PATHS != 0 {
                all = all.with_reverse(group);
            }
        }
        at += 1;
    }
    if variant & INGRESS != 0 {
        all = all.with(Group::Ingress);
        if answered {
            all = all.with_reverse(Group::Ingress);
        }
    }
    if variant & PARTS != 0 {
        all = all.with(Group::Flow);
    }
    all
}

/// The number of the template with these bits and this layout.
const fn set(bits: usize, layout: usize) -> u16 {
    let lower = bits & ONE_PATH | (bits & TWO_PATHS) << 1;
    FIRST_TEMPLATE + (layout << LAYOUT_SHIFT | lower) as u16
}

/// The bits and the layout of the template with this number.
const fn of_set(set: u16) -> (usize, usize) {
    let number = (set - FIRST_TEMPLATE) as usize;
    (number & ONE_PATH | number >> 1 & TWO_PATHS, number >> LAYOUT_SHIFT)
}

/// The bits of a record's template.
#[inline]
fn bits(record: &FlowRecord) -> usize {
    let version = if record.key.version == IpVersion::V6 { IPV6 } else { 0 };
    let icmp = if fields::is_icmp(record) { ICMP } else { 0 };
    let answered = if record.packets[1] > 0 { ANSWERED } else { 0 };
    let around = match &record.reverse_path {
        None => around(&record.path) << AROUND_SHIFT,
        Some(_) => around_both(record),
    };
    around | version | icmp | answered
}

/// What a template has of a path.
#[inline(always)]
fn around(path: &Path) -> usize {
    let labelled = usize::from(path.mpls_label.is_some());
    match &path.tunnel {
        Some(tunnel) => 4 + 2 * usize::from(tunnel.ipv6) + labelled,
        None if labelled == 1 => 3,
        None if path.vlan_tags > 0 => 2,
        None => usize::from(path.macs != [[0; 6]; 2]),
    }
}

/// The bits of two paths, of which an answered flow has both: the tunnel is that of the first.
#[cold]
fn around_both(record: &FlowRecord) -> usize {
    match fields::known_paths(record) {
        (path, Some(other)) if record.packets[1] > 0 => {
            let other = around(&Path { tunnel: path.tunnel, ..*other });
            around(path).max(other) << AROUND_SHIFT | TWO_PATHS
        }
        (path, _) => around(path) << AROUND_SHIFT,
    }
}

/// Encodes flow records as IPFIX messages.
pub struct Ipfix {
    domain: u32,
    process: u32,
    sampling: Option<Sampling>,
    interfaces: Interfaces,
    domain_name: Option<String>,
    vlans_are_key: bool,
    variant: usize,
    templates: &'static [Template; COUNT],
    /// Whether records end with the statistics of packets, and whether these have the entropy of payloads.
    statistics: bool,
    entropy: bool,
    sequence: u32,
    latest_ms: u64,
    /// Losses in the export and in the metering.
    lost: Noticed,
    ignored: Noticed,
    message: Message,
    /// Facts and statistics of the latest record that has some.
    more: Vec<u8>,
    /// The announced templates: for each layout, a bit for each template.
    active: Templates,
}

const _: () = assert!(COUNT <= u128::BITS as usize);
// With the octet of its length.
const _: () = assert!(LABEL_MAX < SPARE);

/// The templates that are announced first: those for one path.
const FIRST: u128 = (1 << TWO_PATHS) - 1;

impl Ipfix {
    /// Creates an encoder for the observation domain `domain`; its messages have at most `limit` octets. `process`
    /// identifies the exporting process on this machine.
    ///
    /// ```
    /// use ringtap_export::encode::{Encoder, Ipfix};
    ///
    /// let mut encoder = Ipfix::new(7, 1, 1_400);
    /// let templates = encoder.announcement();
    /// assert_eq!(templates[0][..2], [0, 10], "version 10");
    /// assert!(encoder.seal().is_none(), "no record, no message");
    /// ```
    pub fn new(domain: u32, process: u32, limit: usize) -> Self {
        Self {
            domain,
            process,
            sampling: None,
            interfaces: Interfaces::default(),
            domain_name: None,
            vlans_are_key: false,
            variant: 0,
            templates: &TEMPLATES[0],
            statistics: false,
            entropy: false,
            sequence: 0,
            latest_ms: 0,
            lost: Noticed::default(),
            ignored: Noticed::default(),
            message: Message::new(HEADER, limit, 1),
            more: Vec::with_capacity(facts::CAPACITY),
            active: Templates(std::array::from_fn(|layout| if layout == 0 { FIRST } else { 0 })),
        }
    }

    /// Adds the announcement that packets are sampled.
    #[must_use]
    pub fn sampled(mut self, sampling: Option<Sampling>) -> Self {
        self.sampling = sampling;
        self
    }

    /// Adds the announcement that VLAN tags are part of the flow key, or not.
    #[must_use]
    pub fn keyed_by_vlans(mut self, yes: bool) -> Self {
        self.vlans_are_key = yes;
        self
    }

    /// For flows from interfaces, if `yes`: each record has the interface of the first packet.
    #[must_use]
    pub fn with_ingress(self, yes: bool) -> Self {
        self.with(INGRESS, yes)
    }

    /// Adds the announcement of the names of these interfaces.
    #[must_use]
    pub fn with_names_of(self, interfaces: &Interfaces) -> Self {
        Self { interfaces: interfaces.clone(), ..self }
    }

    /// Adds the announcement of the name of the observation domain.
    #[must_use]
    pub fn with_domain_name(self, domain_name: Option<&str>) -> Self {
        Self { domain_name: domain_name.map(str::to_owned), ..self }
    }

    /// For parts of flows, if `yes`: each record has the number of its flow.
    #[must_use]
    pub fn with_parts(self, yes: bool) -> Self {
        self.with(PARTS, yes)
    }

    /// For flows with statistics of packets, if `yes`: each record has them.
    #[must_use]
    pub fn with_statistics(self, yes: bool) -> Self {
        Self { statistics: yes, ..self }
    }

    /// For flows whose statistics have the entropy of payloads, if `yes`: each record has it.
    #[must_use]
    pub fn with_entropy(self, yes: bool) -> Self {
        Self { entropy: yes, ..self }
    }

    fn with(mut self, bit: usize, yes: bool) -> Self {
        self.variant = if yes { self.variant | bit } else { self.variant & !bit };
        self.templates = &TEMPLATES[self.variant];
        self
    }

    fn header(&self) -> Header {
        // It never decreases, so templates are never newer than their data (section 8.2).
        let time = u32::try_from(self.latest_ms.div_ceil(1000)).unwrap_or(u32::MAX);
        Header { time, sequence: self.sequence, domain: self.domain }
    }

    /// Adds a record that may have facts and statistics; apart, because most records have none.
    #[inline(never)]
    fn add_with_more(
        &mut self,
        record: &FlowRecord,
        flows: &mut RecordTotals,
    ) -> Result<(), Refusal> {
        let mut bits = bits(record);
        let layout = if bits & ICMP == 0 { Layout::index_of(record) } else { 0 };
        if self.templates[bits].fields + LAYOUTS[layout].count > FIELDS_MOST {
            bits &= !TWO_PATHS;
        }
        let (set, template) = (set(bits, layout), &self.templates[bits]);
        self.more.clear();
        let room = (self.message.most() - template.len).min(facts::OCTETS_MAX);
        let statistics = self.statistics_of(bits);
        let least = statistics.map_or(0, Statistics::least);
        LAYOUTS[layout].put(record, room.saturating_sub(least), &mut self.more);
        if let Some(fields) = statistics {
            fields.put(record, room.saturating_sub(self.more.len()), &mut self.more);
        }
        let len = template.len + self.more.len();
        if !self.message.fits(set, len) {
            return Err(Refusal::Full);
        }
        let (fields, more) = self.message.record(set, len).split_at_mut(template.len);
        template.put(&View::of_first_packet(record, [0; 2]), 0, fields);
        more.copy_from_slice(&self.more);
        self.count(record, flows);
        Ok(())
    }

    /// The statistics that records with this template end with, if any do.
    fn statistics_of(&self, bits: usize) -> Option<Statistics> {
        let own = Statistics { entropy: self.entropy, answered: bits & ANSWERED != 0 };
        self.statistics.then_some(own)
    }

    /// Counts a record that was added to the message.
    #[inline(always)]
    fn count(&mut self, record: &FlowRecord, flows: &mut RecordTotals) {
        let own = as_biflow(record);
        self.message.flows += own;
        *flows += own;
        self.latest_ms = self.latest_ms.max(milliseconds(record.last_ns));
    }

    /// The templates with these bits.
    fn numbered(&self, templates: &Templates) -> Vec<Numbered> {
        let mut all = Vec::new();
        for (layout, set_bits) in templates.0.iter().enumerate() {
            let is_active = |bits: &usize| set_bits >> bits & 1 != 0;
            all.extend((0..COUNT).filter(is_active).map(|bits| Numbered {
                number: set(bits, layout),
                fields: &self.templates[bits],
                layout: &LAYOUTS[layout],
                statistics: self.statistics_of(bits),
            }));
        }
        all
    }

    /// Encodes these records with their set numbers as messages; `counted` if they are Data Records.
    fn pack(
        &mut self,
        records: impl IntoIterator<Item = (u16, Vec<u8>)>,
        counted: bool,
    ) -> Vec<Vec<u8>> {
        let mut finished = Vec::new();
        let mut message = self.message.another();
        let mut finish = |message: &mut Message| {
            finished.push(self.header().seal(message).to_vec());
            let records = if counted { message.records } else { 0 };
            self.sequence = self.sequence.wrapping_add(u32::from(records));
            message.clear();
        };
        for (set, record) in records {
            if !message.fits(set, record.len()) {
                finish(&mut message);
            }
            message.copy(set, &record);
        }
        finish(&mut message);
        finished
    }
}

impl Encoder for Ipfix {
    #[inline]
    fn add(&mut self, record: &FlowRecord, flows: &mut RecordTotals) -> Result<(), Refusal> {
        if !record.facts.is_empty() || self.statistics {
            return self.add_with_more(record, flows);
        }
        let bits = bits(record);
        // Without branches, because in most traffic flows with a label and those without one mix at random. A template
        // with the label fits into any message, and has few fields.
        let label = record.application.as_ref().map_or(&Label::EMPTY, |own| &own.label);
        let layout = usize::from(record.application.is_some() & (bits & ICMP == 0));
        let (set, template) = (set(bits, layout), &self.templates[bits]);
        let len = template.len + layout * (1 + usize::from(label.octets()));
        if !self.message.fits(set, len) {
            return Err(Refusal::Full);
        }
        let place = self.message.record_and_spare(set, len);
        let (fields, spare) = place.split_at_mut(template.len);
        template.put(&View::of_first_packet(record, [0; 2]), 0, fields);
        spare[0] = label.octets();
        spare[1..=LABEL_MAX].copy_from_slice(label.padded());
        self.count(record, flows);
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
        self.sequence = self.sequence.wrapping_add(u32::from(self.message.records));
        self.message.clear();
    }

    fn room_in_place(&self) -> Option<usize> {
        Some(self.message.room())
    }

    fn lend(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        self.message.lend(bytes)
    }

    fn announcement(&mut self) -> Vec<Vec<u8>> {
        let templates = self.numbered(&self.active);
        let records = templates.iter().map(|one| (TEMPLATE_SET, one.record()));
        let interfaces = self.interfaces.numbered().map(options::interface);
        let interfaces: Vec<_> = interfaces.map(|one| (options::INTERFACES.id, one)).collect();
        let domain = self.domain_name.as_ref().map(|name| options::domain(self.domain, name));
        let named = [
            (!interfaces.is_empty()).then_some(&options::INTERFACES),
            domain.as_ref().map(|_| &options::DOMAIN),
        ];
        let options = Options::ALL.iter().map(|one| (OPTIONS_TEMPLATE_SET, one.template()));
        let mut messages = self.pack(records.chain(options), false);
        // A set of its own for each: nfcapd reads the first template of a set.
        for one in named.into_iter().flatten() {
            messages.extend(self.pack([(OPTIONS_TEMPLATE_SET, one.template())], false));
        }
        let vlans = self.vlans_are_key;
        let keys =
            templates.iter().map(|one| options::flow_keys(one.number, one.fields.keys(vlans)));
        // Options data are also Data Records.
        let data = keys.chain(self.sampling.map(options::sampling));
        messages.extend(self.pack(data.chain(interfaces).chain(domain), true));
        messages
    }

    fn note_templates(&self, needed: &mut Templates) {
        needed.add(self.message.bytes());
    }

    fn missing(&mut self, needed: &Templates, copies: usize) -> Vec<Vec<u8>> {
        let missing = needed.without(&self.active);
        if missing == Templates::default() {
            return Vec::new();
        }
        self.active.0.iter_mut().zip(missing.0).for_each(|(own, more)| *own |= more);
        // Flow keys follow with the next announcement: they are those of the templates that were announced first.
        let templates = self.numbered(&missing);
        let records = || templates.iter().map(|one| (TEMPLATE_SET, one.record()));
        (0..copies).flat_map(|_| self.pack(records(), false)).collect()
    }

    fn statistics(&mut self, progress: &Progress) -> Vec<Vec<u8>> {
        let Progress { sent, not_sent, metered } = progress;
        let lost = self.lost.look(not_sent.records, self.latest_ms);
        let mut data = vec![
            options::statistics(self.domain, sent),
            options::reliability(self.process, not_sent, lost),
        ];
        if let Some(metered) = metered {
            let ignored = self.ignored.look(metered.ignored_packets, self.latest_ms);
            data.push(options::metering(self.domain, metered, ignored));
        }
        self.pack(data, true)
    }

    fn farewell(&mut self) -> Vec<Vec<u8>> {
        // A withdrawal is a template record without fields (section 8.1). There is one for each: some collectors reject
        // the short form for all templates, and options templates without a scope.
        let withdrawn = self
            .numbered(&self.active)
            .into_iter()
            .map(|one| [one.number.to_be_bytes(), [0; 2]].concat());
        self.pack(withdrawn.map(|record| (TEMPLATE_SET, record)), false)
    }

    fn restart(&mut self) {
        // "Each SCTP Stream counts sequence numbers separately, while all messages in a TCP connection or UDP session
        // are considered to be part of the same stream." (section 3.1)
        self.sequence = 0;
    }

    fn octets(&self) -> usize {
        self.message.len()
    }

    fn learn(&mut self, message: &[u8]) {
        self.latest_ms = self.latest_ms.max(u64::from(word(message, 4)) * 1000);
    }

    fn stamp(&mut self, message: &mut [u8], flows: RecordTotals) {
        let Header { time, sequence, .. } = self.header();
        put_word(message, 4, time);
        put_word(message, 8, sequence);
        // Modulo 2³².
        self.sequence = self.sequence.wrapping_add(flows.records as u32);
    }
}

/// The message header.
struct Header {
    time: u32,
    sequence: u32,
    domain: u32,
}

impl Header {
    fn seal<'a>(&self, message: &'a mut Message) -> &'a [u8] {
        let bytes = message.close();
        let length = bytes.len() as u16;
        bytes[0..2].copy_from_slice(&10u16.to_be_bytes());
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        // "Time at which the IPFIX Message Header leaves the Exporter, expressed in seconds since the UNIX epoch"
        // (section 3.1).
        bytes[4..8].copy_from_slice(&self.time.to_be_bytes());
        // "Incremental sequence counter modulo 2^32 of all IPFIX Data Records sent in the current stream from the
        // current Observation Domain by the Exporting Process. […] Template and Options Template Records do not
        // increase the Sequence Number." (section 3.1)
        bytes[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.domain.to_be_bytes());
        bytes
    }
}

/// A template with its number.
struct Numbered {
    number: u16,
    fields: &'static Template,
    layout: &'static Layout,
    statistics: Option<Statistics>,
}

impl Numbered {
    /// The template record.
    fn record(&self) -> Vec<u8> {
        let fields = self.fields.fields().map(|(field, reverse)| {
            let enterprise = if reverse { REVERSE } else { 0 };
            Element { enterprise, ..field.element }
        });
        let statistics = self.statistics.into_iter().flat_map(Statistics::elements);
        let elements: Vec<_> = fields.chain(self.layout.elements()).chain(statistics).collect();
        let head = [self.number, elements.len() as u16];
        let mut out: Vec<u8> = head.into_iter().flat_map(u16::to_be_bytes).collect();
        elements.iter().for_each(|element| element.specify(&mut out));
        out
    }
}

impl Templates {
    /// Adds those that messages of flow records need.
    fn add(&mut self, messages: &[u8]) {
        for set in sets(messages) {
            let (bits, layout) = of_set(set);
            self.0[layout] |= 1 << bits;
        }
    }
}

/// The numbers of the sets in messages of flow records.
fn sets(messages: &[u8]) -> impl Iterator<Item = u16> {
    let half = |at: usize| u16::from_be_bytes([messages[at], messages[at + 1]]);
    let (mut at, mut end) = (0, 0);
    std::iter::from_fn(move || {
        if at == messages.len() {
            return None;
        }
        if at == end {
            end += usize::from(half(at + 2));
            at += HEADER;
        }
        let set = half(at);
        at += usize::from(half(at + 2));
        Some(set)
    })
}

#[cfg(test)]
mod tests {
    use super::super::LEAST_LIMIT;
    use super::*;

    #[test]
    fn every_record_and_every_template_fits_into_the_smallest_message() {
        let most = Message::new(HEADER, LEAST_LIMIT, 1).most();
        for (fields, bits) in TEMPLATES.iter().flat_map(|all| all.iter().zip(0..)) {
            // Any label has room, with any template.
            assert!(fields.len + 1 + LABEL_MAX <= most);
            assert!(fields.fields + LAYOUTS[1].count <= FIELDS_MOST);
            let statistics = Statistics { entropy: true, answered: bits & ANSWERED != 0 };
            for (number, layout) in LAYOUTS.iter().enumerate() {
                // What `add_with_more` never combines.
                let is_large = fields.fields + layout.count > FIELDS_MOST;
                if bits & TWO_PATHS != 0 && is_large || bits & ICMP != 0 && number > 0 {
                    continue;
                }
                assert!(fields.len + layout.least + statistics.least() <= most);
                let numbered =
                    Numbered { number: 256, fields, layout, statistics: Some(statistics) };
                assert!(numbered.record().len() <= most);
                assert!(fields.fields + layout.count <= FIELDS_MOST);
            }
        }
    }
}
