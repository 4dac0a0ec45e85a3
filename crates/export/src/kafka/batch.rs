//! A batch of messages for one partition: encoded once, as the records of a batch of version 2, and sent until a broker
//! acknowledges it.
//!
//! ```text
//! records: length │ attributes │ time − first │ place │ key │ value │ headers      (numbers: zigzag varints)
//! batch:   offset │ length │ epoch │ 2 │ CRC │ codec │ last place │ times │ producer │ sequence │ count │ records
//! ```
//!
//! The format is that of <https://kafka.apache.org/documentation/#recordbatch>.

use std::io::{self, Write as _};

use flate2::write::GzEncoder;

use super::message::{Message, Outcome, ProducerId};
use crate::RecordTotals;
use crate::topic::Compression;

/// Bytes of a batch before its records.
const HEADER: usize = 61;

/// Where the CRC begins to count.
const CHECKED: usize = 21;

/// Room for records that a batch begins with.
const LEAST_ROOM: usize = 16 << 10;

/// A message within a batch.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The end of its record.
    end: usize,
    /// Octets of its key and value.
    octets: usize,
    /// The flows that it has; `None` if it does not count.
    flows: Option<RecordTotals>,
}

/// Messages for one partition.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Different for each batch of a producer.
    pub(crate) number: u64,
    /// The batch was sent, so it has all of its messages.
    pub(crate) is_sealed: bool,
    /// What the broker answered when it was last sent.
    pub(crate) answer: Option<Outcome>,
    time_ms: i64,
    records: Vec<u8>,
    parts: Vec<Part>,
}

impl Batch {
    /// An empty batch that is sent at this time, in milliseconds since 1970.
    pub(crate) fn new(number: u64, time_ms: i64) -> Self {
        Self { number, time_ms, ..Self::default() }
    }

    /// Appends a message unless the batch has messages and would be larger than `most` bytes.
    pub(crate) fn push(
        &mut self,
        message: &Message<'_>,
        numbers: &[(&str, &[u8])],
        most: usize,
        scratch: &mut Vec<u8>,
    ) -> bool {
        let Message { key, value, headers, flows } = *message;
        scratch.clear();
        scratch.extend_from_slice(&[0, 0]);
        varint(scratch, self.parts.len());
        sized(scratch, key);
        sized(scratch, value);
        varint(scratch, headers.len() + numbers.len());
        for (name, value) in headers.iter().chain(numbers) {
            sized(scratch, name.as_bytes());
            sized(scratch, value);
        }
        let more = scratch.len() + 5;
        if !self.parts.is_empty() && HEADER + self.records.len() + more > most {
            return false;
        }
        self.reserve(more, most);
        sized(&mut self.records, scratch);
        let octets = key.len() + value.len();
        self.parts.push(Part { end: self.records.len(), octets, flows });
        true
    }

    /// Makes room for bytes. The room doubles, and is at most that of a full batch or of one message.
    fn reserve(&mut self, more: usize, most: usize) {
        let (length, room) = (self.records.len(), self.records.capacity());
        if length + more > room {
            let wanted = (2 * room).clamp(LEAST_ROOM, most.max(LEAST_ROOM)).max(length + more);
            self.records.reserve_exact(wanted - length);
        }
    }

    /// Number of messages.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.records.capacity() + self.parts.capacity() * size_of::<Part>()
    }

    /// Bytes before they are compressed.
    pub(crate) fn bytes(&self) -> usize {
        HEADER + self.records.len()
    }

    /// The flows, the messages that count, and the octets of keys and values of these.
    pub(crate) fn counts(&self) -> (RecordTotals, u64, u64) {
        let (mut flows, mut messages, mut octets) = (RecordTotals::default(), 0, 0);
        for part in &self.parts {
            if let Some(own) = part.flows {
                flows += own;
                messages += 1;
                octets += part.octets as u64;
            }
        }
        (flows, messages, octets)
    }

    /// The batch as brokers take it. `sequence` is the number of its first message for this producer and partition.
    ///
    /// # Errors
    /// If it cannot be compressed.
    pub(crate) fn encode(
        &self,
        producer: ProducerId,
        sequence: i32,
        codec: Compression,
    ) -> io::Result<Vec<u8>> {
        let records = compressed(&self.records, codec)?;
        let records = records.as_deref().unwrap_or(&self.records);
        let (length, count) = (HEADER + records.len(), self.parts.len() as i32);
        let mut batch = Vec::with_capacity(length);
        batch.extend_from_slice(&0_i64.to_be_bytes());
        batch.extend_from_slice(&(length as i32 - 12).to_be_bytes());
        batch.extend_from_slice(&(-1_i32).to_be_bytes());
        batch.extend_from_slice(&[2, 0, 0, 0, 0]);
        let attributes: i16 = match codec {
            Compression::None => 0,
            Compression::Gzip => 1,
            Compression::Snappy => 2,
        };
        batch.extend_from_slice(&attributes.to_be_bytes());
        batch.extend_from_slice(&(count - 1).to_be_bytes());
        batch.extend_from_slice(&self.time_ms.to_be_bytes());
        batch.extend_from_slice(&self.time_ms.to_be_bytes());
        batch.extend_from_slice(&producer.id.to_be_bytes());
        batch.extend_from_slice(&producer.epoch.to_be_bytes());
        let sequence = if producer == ProducerId::NONE { -1 } else { sequence };
        batch.extend_from_slice(&sequence.to_be_bytes());
        batch.extend_from_slice(&count.to_be_bytes());
        batch.extend_from_slice(records);
        let crc = crc32c::crc32c(&batch[CHECKED..]);
        batch[CHECKED - 4..CHECKED].copy_from_slice(&crc.to_be_bytes());
        Ok(batch)
    }

    /// Two batches with the same messages in their order.
    pub(crate) fn split(self, number: u64) -> [Self; 2] {
        let half = self.parts.len() / 2;
        let mut halves = [Self::new(self.number, self.time_ms), Self::new(number, self.time_ms)];
        let mut begin = 0;
        for (place, part) in self.parts.iter().enumerate() {
            let own = &mut halves[usize::from(place >= half)];
            let record = after_place(&self.records[begin..part.end]);
            let mut content = vec![0, 0];
            varint(&mut content, own.parts.len());
            content.extend_from_slice(record);
            sized(&mut own.records, &content);
            own.parts.push(Part { end: own.records.len(), ..*part });
            begin = part.end;
        }
        halves
    }
}

/// The rest of a record of ours after its place: it begins with a length, two octets and the place.
fn after_place(record: &[u8]) -> &[u8] {
    let after = |octets: &'_ [u8]| {
        octets.iter().position(|octet| octet & 0x80 == 0).map_or(octets.len(), |last| last + 1)
    };
    let place = after(record) + 2;
    &record[place + after(&record[place..])..]
}

/// The records compressed, if they are.
fn compressed(records: &[u8], codec: Compression) -> io::Result<Option<Vec<u8>>> {
    Ok(match codec {
        Compression::None => None,
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(records)?;
            Some(encoder.finish()?)
        }
        Compression::Snappy => {
            Some(snap::raw::Encoder::new().compress_vec(records).map_err(io::Error::other)?)
        }
    })
}

/// Appends a length and the octets.
fn sized(to: &mut Vec<u8>, octets: &[u8]) {
    varint(to, octets.len());
    to.extend_from_slice(octets);
}

/// Appends a number that is not negative, as a zigzag varint.
fn varint(to: &mut Vec<u8>, number: usize) {
    let mut rest = (number as u64) << 1;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use rskafka::protocol::record::{ControlBatchOrRecords, Record, RecordBatch};
    use rskafka::protocol::traits::ReadType as _;

    use super::*;

    const MOST: usize = 1 << 20;

    fn batch(values: &[&[u8]], most: usize) -> (Batch, usize) {
        let (mut batch, mut scratch) = (Batch::new(7, 1_700_000_000_123), Vec::new());
        let headers: &[(&str, &[u8])] = &[("format", b"json")];
        let flows = Some(RecordTotals { records: 1, packets: 2, octets: 3 });
        let mut taken = 0;
        for (place, value) in values.iter().enumerate() {
            let message = Message { key: b"key", value, headers, flows };
            let number = place.to_string();
            if !batch.push(&message, &[("sequence", number.as_bytes())], most, &mut scratch) {
                break;
            }
            taken += 1;
        }
        (batch, taken)
    }

    /// The batch, read by another program.
    fn read(batch: &Batch, codec: Compression) -> (RecordBatch, Vec<Record>) {
        let encoded = batch.encode(ProducerId { id: 5, epoch: 1 }, 40, codec).unwrap();
        let mut cursor = Cursor::new(&encoded);
        let mut read = RecordBatch::read(&mut cursor).unwrap();
        assert_eq!(cursor.position(), encoded.len() as u64);
        let none = ControlBatchOrRecords::Records(Vec::new());
        match std::mem::replace(&mut read.records, none) {
            ControlBatchOrRecords::Records(records) => (read, records),
            ControlBatchOrRecords::ControlBatch(_) => panic!("not a control batch"),
        }
    }

    #[test]
    fn a_batch_is_read_with_every_codec() {
        let long = [b'x'; 70_000];
        let (batch, taken) = batch(&[b"first", &long, b""], MOST);
        assert_eq!((taken, batch.len()), (3, 3));
        for codec in [Compression::None, Compression::Gzip, Compression::Snappy] {
            let (read, records) = read(&batch, codec);
            assert_eq!((read.producer_id, read.producer_epoch, read.base_sequence), (5, 1, 40));
            assert_eq!((read.last_offset_delta, read.first_timestamp), (2, 1_700_000_000_123));
            for (place, (record, value)) in
                records.iter().zip([&b"first"[..], &long, b""]).enumerate()
            {
                assert_eq!((record.offset_delta, record.timestamp_delta), (place as i32, 0));
                assert_eq!(record.key.as_deref(), Some(&b"key"[..]));
                assert_eq!(record.value.as_deref(), Some(value));
                let headers: Vec<_> =
                    record.headers.iter().map(|one| (one.key.as_str(), &one.value[..])).collect();
                let number = place.to_string();
                assert_eq!(headers, [("format", &b"json"[..]), ("sequence", number.as_bytes())]);
            }
        }
        let none = batch.encode(ProducerId::NONE, 40, Compression::None).unwrap();
        assert!(RecordBatch::read(&mut Cursor::new(none)).is_ok_and(|one| one.base_sequence == -1));
    }

    #[test]
    fn a_batch_is_full_before_a_message_that_does_not_fit_and_has_no_more_memory() {
        let value = [1; 1_000];
        let (full, taken) = batch(&[&value[..]; 100], 20_000);
        assert!((18..20).contains(&taken), "{taken}");
        assert!(full.bytes() <= 20_000 && full.records.capacity() <= 20_000);
        let (alone, taken) = batch(&[&[1; 50_000], b"next"], 20_000);
        assert_eq!(taken, 1, "one always fits");
        assert!(alone.records.capacity() < 51_000);
    }

    #[test]
    fn halves_have_the_messages_in_order_and_places_of_their_own() {
        let values: Vec<Vec<u8>> = (0..300_u32).map(|value| value.to_be_bytes().to_vec()).collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let (whole, _) = batch(&values, MOST);
        let counts = whole.counts();
        assert_eq!(counts, (RecordTotals { records: 300, packets: 600, octets: 900 }, 300, 2_100));
        let halves = whole.split(8);
        let mut all = Vec::new();
        for (half, number) in halves.iter().zip([7, 8]) {
            assert_eq!((half.number, half.counts().1), (number, 150));
            let (_, records) = read(half, Compression::None);
            let places = records.iter().map(|record| record.offset_delta);
            assert!(places.eq(0..150));
            all.extend(records.into_iter().map(|record| record.value.unwrap()));
        }
        assert!(all.iter().eq(&values));
    }
}
