//! Flow records as messages of a topic.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use prost::Message as _;
use ringtap_flow::FlowRecord;

use super::flow_message::FlowMessage;
use super::message::Message;
use super::producer::Producer;
use super::session::Access;
use crate::RecordTotals;
use crate::block::{Block, Encode, Payload};
use crate::encode::{as_biflow, as_uniflows, directions};
use crate::formats::{CommunityId, Interfaces, json};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::summary::Reason;
use crate::topic::Contents;
use crate::writer::Sink;

/// A value is usually shorter, in bytes.
const VALUE: usize = 4 << 10;

/// Keys and values, one after another.
#[derive(Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    parts: Vec<Part>,
}

/// A message within [`Messages`].
struct Part {
    /// Offset of the end of the key.
    key_end: usize,
    /// Offset of the end of the value.
    end: usize,
    /// Its flows.
    flows: RecordTotals,
}

impl Messages {
    /// Ends a message whose key and value were appended.
    fn end(&mut self, key_end: usize, flows: RecordTotals) {
        self.parts.push(Part { key_end, end: self.bytes.len(), flows });
    }

    fn iter<'a>(&'a self, headers: &'a [(&'a str, &'a [u8])]) -> impl Iterator<Item = Message<'a>> {
        let begins = std::iter::once(0).chain(self.parts.iter().map(|part| part.end));
        self.parts.iter().zip(begins).map(move |(part, begin)| Message {
            key: &self.bytes[begin..part.key_end],
            value: &self.bytes[part.key_end..part.end],
            headers,
            flows: Some(part.flows),
        })
    }
}

impl Payload for Messages {
    fn len(&self) -> usize {
        self.bytes.len() + self.parts.len() * size_of::<Part>()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }
}

/// Encodes flow records. The key is the Community ID, so a topic has both directions of a connection, from all probes,
/// in one partition.
pub(crate) struct RecordEncoder {
    contents: Contents,
    interfaces: Interfaces,
    message: FlowMessage,
    /// The end of a line with the probe's name, instead of `}`.
    end: Vec<u8>,
}

impl RecordEncoder {
    /// `sampler` is the address of this program.
    pub(crate) fn new(contents: Contents, settings: &Settings, sampler: Option<IpAddr>) -> Self {
        let (interfaces, message) =
            (settings.interfaces.clone(), FlowMessage::new(settings, sampler));
        let probe = settings.probe.as_ref().and_then(|name| serde_json::to_string(name).ok());
        let end = probe.map_or("}".into(), |name| format!(",\"probe\":{name}}}"));
        Self { contents, interfaces, message, end: end.into() }
    }

    /// The value of a message about the run, for readers that take every value as a flow: one without packets.
    pub(crate) fn empty(&self) -> Option<Vec<u8>> {
        let is_binary = self.contents == Contents::FlowMessages;
        is_binary.then(|| self.message.encode_length_delimited_to_vec())
    }
}

impl Encode for RecordEncoder {
    type Item = FlowRecord;
    type Payload = Messages;

    fn payload(&self, bytes: usize) -> Messages {
        Messages { bytes: Vec::with_capacity(bytes + VALUE), ..Messages::default() }
    }

    #[inline]
    fn add(
        &mut self,
        record: &FlowRecord,
        messages: &mut Messages,
        flows: &mut RecordTotals,
    ) -> Result<(), Reason> {
        let id = CommunityId::of(record);
        if self.contents != Contents::FlowMessages {
            messages.bytes.extend_from_slice(id.as_bytes());
            let key_end = messages.bytes.len();
            json::line(&mut messages.bytes, record, &self.interfaces);
            // Without the bracket and the line feed.
            messages.bytes.truncate(messages.bytes.len() - 2);
            messages.bytes.extend_from_slice(&self.end);
            messages.end(key_end, as_biflow(record));
        } else {
            for direction in directions(record) {
                messages.bytes.extend_from_slice(id.as_bytes());
                let key_end = messages.bytes.len();
                self.message.fill(record, direction);
                // The only error is lack of space, and the buffer grows.
                let _ = self.message.encode_length_delimited(&mut messages.bytes);
                let (packets, octets) = (record.packets[direction], record.octets[direction]);
                messages.end(key_end, RecordTotals { records: 1, packets, octets });
            }
        }
        *flows += self.counts_of(record);
        Ok(())
    }

    fn counts_of(&self, record: &FlowRecord) -> RecordTotals {
        match self.contents {
            Contents::FlowMessages => as_uniflows(record),
            Contents::Json | Contents::States => as_biflow(record),
        }
    }
}

/// Sends blocks of flow records. The messages have a header `format`, as in the URL.
pub(crate) struct TopicSink {
    format: &'static [u8],
    producer: Producer,
}

impl TopicSink {
    /// Creates the sink of a topic.
    ///
    /// # Errors
    /// The error of the system if it has no resources for the connections.
    pub(crate) fn new(access: Access, contents: Contents, settings: &Settings) -> io::Result<Self> {
        let format: &[u8] = if contents == Contents::FlowMessages { b"protobuf" } else { b"json" };
        let about = RecordEncoder::new(contents, settings, access.sampler()).empty();
        Ok(Self { format, producer: Producer::new(access)?.with_statistics(about) })
    }
}

impl Sink for TopicSink {
    type Payload = Messages;

    fn write(&mut self, block: &mut Block<Messages>, shared: &Shared) {
        let probe = self.producer.probe().map(str::to_owned);
        let probe = probe.as_ref().map(|name| ("probe", name.as_bytes()));
        let headers: Vec<_> = [("format", self.format)].into_iter().chain(probe).collect();
        for message in block.payload.iter(&headers) {
            self.producer.push(&message, shared);
        }
    }

    fn rest(&mut self, time: Duration, shared: &Shared) -> bool {
        self.producer.rest(time, shared)
    }

    fn tick(&mut self, shared: &Shared) {
        self.producer.tick(shared);
    }

    fn renew(&mut self, _shared: &Shared) {}

    fn finish(&mut self, shared: &Shared) {
        self.producer.finish(shared);
        shared.judge();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Format;
    use ringtap_flow::{FlowKey, IpVersion};

    fn record(answers: u64) -> FlowRecord {
        let (src, dst) = ([1; 16], [2; 16]);
        let key =
            FlowKey { version: IpVersion::V6, src, dst, src_port: 1, dst_port: 2, protocol: 17 };
        let (packets, octets) = ([1, answers], [100, 200 * answers]);
        FlowRecord { packets, octets, ..FlowRecord::new(key) }
    }

    fn encoded(contents: Contents, records: &[FlowRecord]) -> (Messages, RecordTotals) {
        let mut encoder = RecordEncoder::new(contents, &Settings::default(), None);
        let (mut messages, mut flows) = (encoder.payload(0), RecordTotals::default());
        for record in records {
            encoder.add(record, &mut messages, &mut flows).unwrap();
        }
        (messages, flows)
    }

    fn sum(messages: &Messages) -> RecordTotals {
        let mut sum = RecordTotals::default();
        messages.iter(&[]).for_each(|message| sum += message.flows.unwrap());
        sum
    }

    #[test]
    fn a_value_is_the_line_of_a_record() {
        let records = [record(0), record(1)];
        let (messages, flows) = encoded(Contents::Json, &records);
        let lines = Format::Json.encode(&records, &Interfaces::default()).unwrap();
        let values: Vec<_> = messages.iter(&[]).map(|message| message.value).collect();
        assert_eq!([values.join(&b'\n'), vec![b'\n']].concat(), lines);
        for (message, record) in messages.iter(&[]).zip(&records) {
            assert_eq!(message.key, CommunityId::of(record).as_bytes());
        }
        assert_eq!((flows.records, flows.packets, flows.octets), (2, 3, 400));
        assert_eq!(sum(&messages), flows);
        assert!(messages.len() > lines.len());
    }

    #[test]
    fn an_answered_flow_is_two_messages_with_their_lengths() {
        let (messages, flows) = encoded(Contents::FlowMessages, &[record(0), record(1)]);
        let all: Vec<_> = messages.iter(&[]).collect();
        assert_eq!((all.len() as u64, flows.records), (3, 3));
        assert_eq!(sum(&messages), flows);
        let mut expected = FlowMessage::new(&Settings::default(), None);
        for (message, direction) in all.iter().zip([0, 0, 1]) {
            expected.fill(&record(1), direction);
            let mut value = message.value;
            assert_eq!(FlowMessage::decode_length_delimited(&mut value).unwrap(), expected);
            assert!(value.is_empty(), "the length is that of the rest");
            assert_eq!(message.key, all[0].key);
        }
    }

    #[test]
    fn a_record_has_its_probe() {
        let settings = Settings { probe: Some("site \"a\"".into()), ..Settings::default() };
        let lines = Contents::Json;
        let mut encoder = RecordEncoder::new(lines, &settings, None);
        let (mut messages, mut flows) = (encoder.payload(0), RecordTotals::default());
        encoder.add(&record(0), &mut messages, &mut flows).unwrap();
        let value = messages.iter(&[]).next().unwrap().value;
        let value: serde_json::Value = serde_json::from_slice(value).unwrap();
        assert_eq!(value["probe"], "site \"a\"");
        assert!(value["sourceIPv6Address"].is_string(), "{value}");
        assert_eq!(encoder.empty(), None);
        // Statistics of a binary topic are a flow without packets.
        let sampler = "192.0.2.1".parse().ok();
        let encoder = RecordEncoder::new(Contents::FlowMessages, &settings, sampler);
        let empty = encoder.empty().unwrap();
        let empty = FlowMessage::decode_length_delimited(&empty[..]).unwrap();
        assert_eq!(empty, FlowMessage::new(&settings, sampler));
    }
}
