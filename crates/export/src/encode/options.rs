//! Statistics of an IPFIX exporter: options templates and their records.
//!
//! | template | contents | RFC |
//! |---|---|---|
//! | 320 | exported flows | 7011, section 4.1 |
//! | 321 | flows that were not exported | 7011, section 4.3 |
//! | 322 | the fields of a template that are the flow key | 7011, section 4.4 |
//! | 323 | received packets, and packets that were not metered | 7011, section 4.2 |
//! | 324 | systematic sampling, one packet in N | 5476, section 6.5.2; elements of 5477 |
//! | 325 | random sampling, one packet in N | the same |
//! | 326 | the name and the description of an interface | elements of 7012's registry |
//! | 327 | the name of the observation domain | the same |
//!
//! The last two are announced if there are such names. These have a fixed length, with zeros behind them, because some
//! collectors expect one in options; nfdump reads the number of an interface only behind the scope, so it is there, too.

use crate::formats::Interface;
use crate::sampling::Sampling;
use crate::{Metered, RecordTotals, Sent};

/// An options template: its scope, then its elements.
pub(crate) struct Options {
    pub(crate) id: u16,
    scope: (u16, u16),
    elements: &'static [(u16, u16)],
}

/// observationDomainId; messages, flow records and octets exported.
pub(crate) const STATISTICS: Options =
    Options { id: 320, scope: (149, 4), elements: &[(41, 8), (42, 8), (40, 8)] };
/// exportingProcessId; flows, packets and octets not sent; the first and the last time this was noticed.
pub(crate) const RELIABILITY: Options = Options {
    id: 321,
    scope: (144, 4),
    elements: &[(166, 8), (167, 8), (168, 8), (152, 8), (153, 8)],
};
/// templateId; flowKeyIndicator.
pub(crate) const FLOW_KEYS: Options = Options { id: 322, scope: (145, 2), elements: &[(173, 8)] };
/// observationDomainId; packets seen; packets and octets ignored; the first and the last time this was noticed.
pub(crate) const METERING: Options = Options {
    id: 323,
    scope: (149, 4),
    elements: &[(86, 8), (164, 8), (165, 8), (152, 8), (153, 8)],
};
/// selectorId; selectorAlgorithm, samplingInterval and samplingAlgorithm (old, but supported by more collectors);
/// samplingPacketInterval and samplingPacketSpace.
pub(crate) const SYSTEMATIC: Options = Options {
    id: 324,
    scope: (302, 8),
    elements: &[(304, 2), (34, 4), (35, 1), (305, 4), (306, 4)],
};
/// selectorId; selectorAlgorithm, samplingInterval and samplingAlgorithm; samplingProbability.
pub(crate) const RANDOM: Options =
    Options { id: 325, scope: (302, 8), elements: &[(304, 2), (34, 4), (35, 1), (311, 8)] };

/// ingressInterface; again, and interfaceName, interfaceDescription.
pub(crate) const INTERFACES: Options = Options {
    id: 326,
    scope: (10, 4),
    elements: &[(10, 4), (82, NAME as u16), (83, DESCRIPTION as u16)],
};
/// observationDomainId; observationDomainName.
pub(crate) const DOMAIN: Options =
    Options { id: 327, scope: (149, 4), elements: &[(300, DESCRIPTION as u16)] };

/// Octets of the name of an interface, and of its description or another longer name.
const NAME: usize = 32;
const DESCRIPTION: usize = 64;

impl Options {
    /// The options templates of all exporters.
    pub(crate) const ALL: [&Self; 6] =
        [&STATISTICS, &RELIABILITY, &FLOW_KEYS, &METERING, &SYSTEMATIC, &RANDOM];

    /// The template record.
    pub(crate) fn template(&self) -> Vec<u8> {
        let fields = self.elements.len() as u16 + 1;
        let head = [self.id, fields, 1].into_iter();
        let all = [self.scope].into_iter().chain(self.elements.iter().copied());
        head.chain(all.flat_map(|(id, len)| [id, len])).flat_map(u16::to_be_bytes).collect()
    }
}

/// A data record and the number of its set.
pub(crate) type OptionsData = (u16, Vec<u8>);

pub(crate) fn statistics(domain: u32, sent: &Sent) -> OptionsData {
    let numbers = [sent.messages, sent.flows.records, sent.message_octets];
    (STATISTICS.id, record(&domain.to_be_bytes(), &numbers))
}

pub(crate) fn reliability(process: u32, lost: &RecordTotals, when: Noticed) -> OptionsData {
    let (first, last) = when.times();
    let numbers = [lost.records, lost.packets, lost.octets, first, last];
    (RELIABILITY.id, record(&process.to_be_bytes(), &numbers))
}

pub(crate) fn flow_keys(template: u16, keys: u64) -> OptionsData {
    (FLOW_KEYS.id, record(&template.to_be_bytes(), &[keys]))
}

pub(crate) fn metering(domain: u32, metered: &Metered, when: Noticed) -> OptionsData {
    let (first, last) = when.times();
    let numbers = [metered.packets, metered.ignored_packets, metered.ignored_octets, first, last];
    (METERING.id, record(&domain.to_be_bytes(), &numbers))
}

pub(crate) fn sampling(sampling: Sampling) -> OptionsData {
    // There is one selector, number 1.
    let mut out = 1u64.to_be_bytes().to_vec();
    let of = sampling.of();
    // Selector algorithm 1 is systematic count-based sampling, 4 uniform probabilistic sampling (RFC 5477).
    let algorithm = if sampling.is_random() { 4u16 } else { 1 };
    out.extend_from_slice(&algorithm.to_be_bytes());
    out.extend_from_slice(&of.to_be_bytes());
    out.push(sampling.mode());
    if sampling.is_random() {
        out.extend_from_slice(&f64::from(of).recip().to_be_bytes());
        return (RANDOM.id, out);
    }
    // One packet is selected, the others are not.
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(&(of - 1).to_be_bytes());
    (SYSTEMATIC.id, out)
}

/// The octets of INTERFACES, also of NetFlow v9. Without a description it is the name: some collectors read no other.
pub(crate) fn interface(interface: &Interface) -> Vec<u8> {
    let Interface { index, name, description } = interface;
    let description = if description.is_empty() { name } else { description };
    let (number, name) = (index.to_be_bytes(), padded::<NAME>(name));
    [&number[..], &number, &name, &padded::<DESCRIPTION>(description)].concat()
}

pub(crate) fn domain(domain: u32, name: &str) -> OptionsData {
    (DOMAIN.id, [&domain.to_be_bytes()[..], &padded::<DESCRIPTION>(name)].concat())
}

/// A text in `LEN` octets: cut between characters, with at least one zero behind it, and with a replacement character for
/// each control character.
fn padded<const LEN: usize>(text: &str) -> [u8; LEN] {
    let (mut out, mut len) = ([0; LEN], 0);
    for char in text.chars() {
        let char = if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
        let end = len + char.len_utf8();
        if end >= LEN {
            break;
        }
        char.encode_utf8(&mut out[len..end]);
        len = end;
    }
    out
}

fn record(scope: &[u8], numbers: &[u64]) -> Vec<u8> {
    scope.iter().copied().chain(numbers.iter().flat_map(|number| number.to_be_bytes())).collect()
}

/// Export times of the first and the last increase of a loss counter.
#[derive(Clone, Copy, Default)]
pub(crate) struct Noticed {
    count: u64,
    times_ms: Option<(u64, u64)>,
}

impl Noticed {
    /// Updates the counter.
    pub(crate) fn look(&mut self, count: u64, now_ms: u64) -> Self {
        if count > self.count {
            self.count = count;
            self.times_ms = Some((self.times_ms.map_or(now_ms, |(first, _)| first), now_ms));
        }
        *self
    }

    /// Zeros if there was no loss.
    fn times(self) -> (u64, u64) {
        self.times_ms.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters_and_have_no_control_characters() {
        let text = |name: &str| {
            let octets = padded::<8>(name);
            let text = String::from_utf8(octets.to_vec()).unwrap();
            text.trim_end_matches('\0').to_owned()
        };
        assert_eq!(
            [text(""), text("eth0"), text("1234567"), text("12345678")],
            ["", "eth0", "1234567", "1234567"]
        );
        assert_eq!([text("12345é"), text("123456é")], ["12345é", "123456"]);
        assert_eq!([text("a\0b\n"), text("a\u{1b}[2J")], ["a\u{fffd}b", "a\u{fffd}[2J"]);
        assert_eq!(text(&"\u{7f}x".repeat(1 << 15)), "\u{fffd}x\u{fffd}");
    }
}
