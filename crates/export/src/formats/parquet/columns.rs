//! The columns of a row group while it grows: values one after another, and for those that a flow may lack a level,
//! 1 or 0, a row.
//!
//! ```text
//! row              0     1     2
//! minimumTTL       64          32      values [64, 32]          levels [1, 0, 1]
//! tunnelType             gre           bytes "gre", ends [3]    levels [0, 1, 0]
//! httpStatus       200         404     values [200, 404, 500]   levels [2, 0, 2, 2]
//!                              500                              repeats [0, 0, 0, 1]
//! ```
//!
//! A list is an optional group of a repeated group of elements, as the format asks for. Its levels are 2 for a value and 0
//! for a row without values; its repeats are 1 for each further value of a row.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use ringtap_flow::{
    FlowRecord, Initiator, IpVersion, Keep, Kind as Fact, TcpPerformance, Type as FactType,
};

use crate::formats::address::{push_address, push_mac};
use crate::formats::lines::milliseconds;
use crate::formats::origins::{Field, Read, Value};
use crate::formats::protocol::{TCP, has_ports, is_icmp};
use crate::formats::way::{macs, outer_version, vlans, way};
use crate::formats::{Columns, CommunityId};

use super::column::{
    Column,
    Kind::{self, Number, Text, Time},
    Row, Shape, Values,
};

pub(super) const TIMES: [&str; 2] = ["flowStartMilliseconds", "flowEndMilliseconds"];
pub(super) const COMMUNITY_ID: &str = "communityId";

const REQUIRED: Shape = Shape::Required;
const OPTIONAL: Shape = Shape::Optional;

/// A column: its name, the type of its values, and how many a row has.
pub(super) type Definition = (&'static str, Kind, Shape);

/// In the order in which [`Rows::push`] fills them; the facts follow.
const COLUMNS: [Definition; 38] = [
    (TIMES[0], Time, REQUIRED),
    (TIMES[1], Time, REQUIRED),
    ("ipVersion", Number(8), REQUIRED),
    ("sourceIPAddress", Text, REQUIRED),
    ("destinationIPAddress", Text, REQUIRED),
    ("sourceTransportPort", Number(16), OPTIONAL),
    ("destinationTransportPort", Number(16), OPTIONAL),
    ("protocolIdentifier", Number(8), REQUIRED),
    ("octetDeltaCount", Number(64), REQUIRED),
    ("packetDeltaCount", Number(64), REQUIRED),
    ("reverseOctetDeltaCount", Number(64), REQUIRED),
    ("reversePacketDeltaCount", Number(64), REQUIRED),
    ("tcpControlBits", Number(16), OPTIONAL),
    ("reverseTcpControlBits", Number(16), OPTIONAL),
    ("icmpTypeCode", Number(16), OPTIONAL),
    ("vlanId", Number(16), OPTIONAL),
    ("flowEndReason", Number(8), REQUIRED),
    (COMMUNITY_ID, Text, REQUIRED),
    ("minimumTTL", Number(8), OPTIONAL),
    ("maximumTTL", Number(8), OPTIONAL),
    ("minimumIpTotalLength", Number(16), OPTIONAL),
    ("maximumIpTotalLength", Number(16), OPTIONAL),
    ("ipClassOfService", Number(8), OPTIONAL),
    ("reverseMinimumTTL", Number(8), OPTIONAL),
    ("reverseMaximumTTL", Number(8), OPTIONAL),
    ("reverseMinimumIpTotalLength", Number(16), OPTIONAL),
    ("reverseMaximumIpTotalLength", Number(16), OPTIONAL),
    ("reverseIpClassOfService", Number(8), OPTIONAL),
    ("history", Text, OPTIONAL),
    ("biflowDirection", Number(8), REQUIRED),
    ("sourceMacAddress", Text, OPTIONAL),
    ("destinationMacAddress", Text, OPTIONAL),
    ("dot1qCustomerVlanId", Number(16), OPTIONAL),
    ("mplsTopLabel", Number(32), OPTIONAL),
    ("tunnelType", Text, OPTIONAL),
    ("tunnelSourceIPAddress", Text, OPTIONAL),
    ("tunnelDestinationIPAddress", Text, OPTIONAL),
    ("tunnelId", Number(32), OPTIONAL),
];

/// The columns behind the facts.
const APPLICATION: [Definition; 2] =
    [("application", Text, OPTIONAL), ("applicationReason", Text, OPTIONAL)];

/// The column of a field of TCP performance, behind the application.
fn tcp(name: &'static str) -> Definition {
    (name, Number(64), OPTIONAL)
}

/// The last column of records from interfaces.
const INGRESS: Definition = ("ingressInterface", Number(32), OPTIONAL);

/// Memory of facts in rows by their bytes in records: invalid bytes become three, and a value has an end and levels.
const FACT_COST: usize = 4;

/// All columns in order.
pub(super) fn definitions(columns: Columns) -> impl Iterator<Item = Definition> {
    let fact = |fact: Fact| {
        let kind = match fact.value_type() {
            FactType::Text => Text,
            FactType::Number => Number(64),
        };
        (fact.name(), kind, if fact.keep() == Keep::List { Shape::List } else { OPTIONAL })
    };
    let facts = Fact::KEPT.into_iter().map(fact);
    let origin = |field: &Field| match field.read {
        Read::Text(_) => (field.name, Text, OPTIONAL),
        Read::Number(_) => (field.name, Number(32), OPTIONAL),
    };
    let origins = columns.origins.fields().map(origin);
    let ingress = columns.ingress.then_some(INGRESS);
    let rest = TcpPerformance::NAMES.into_iter().map(tcp).chain(origins).chain(ingress);
    COLUMNS.into_iter().chain(facts).chain(APPLICATION).chain(rest)
}

/// Rows in memory, column by column.
pub struct Rows {
    pub(super) columns: Vec<Column>,
    pub(super) further: Columns,
    pub(super) rows: usize,
    /// Bytes of facts and their levels.
    fact_bytes: usize,
}

impl Rows {
    /// No rows, with these columns besides those of all runs.
    pub fn new(further: Columns) -> Self {
        let column = |(_, kind, shape)| Column::new(kind, shape);
        let columns = definitions(further).map(column).collect();
        Self { columns, further, rows: 0, fact_bytes: 0 }
    }

    pub(super) fn schema(&self) -> Result<TypePtr, ParquetError> {
        let fields: Result<Vec<_>, _> = definitions(self.further).map(field).collect();
        Ok(Arc::new(Type::group_type_builder("flows").with_fields(fields?).build()?))
    }

    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }

    /// Returns true if there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Approximate memory of the facts in bytes, in addition to that of the other columns.
    pub const fn fact_bytes(&self) -> usize {
        self.fact_bytes
    }

    /// Removes all rows and keeps their memory.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Column::clear);
        (self.rows, self.fact_bytes) = (0, 0);
    }

    /// Appends copies of all rows of `other`, which has the same columns.
    pub fn append(&mut self, other: &Self) {
        for (own, other) in self.columns.iter_mut().zip(&other.columns) {
            own.append(self.rows, other);
        }
        self.rows += other.rows;
        self.fact_bytes += other.fact_bytes;
    }

    /// Appends a row.
    pub fn push(&mut self, record: &FlowRecord) {
        let mut row = Row { columns: self.columns.iter_mut(), before: self.rows };
        let key = &record.key;
        let ports = has_ports(key.protocol);
        let tcp = key.protocol == TCP;
        let path = way(record);
        let mut vlans = vlans(&path).iter().copied();
        let address = |version: IpVersion, address: [u8; 16]| {
            move |text: &mut Vec<u8>| push_address(text, version, &address)
        };

        row.long(milliseconds(record.first_ns));
        row.long(milliseconds(record.last_ns));
        row.int(key.version as u8);
        row.text(address(key.version, key.src));
        row.text(address(key.version, key.dst));
        row.perhaps_int(ports.then_some(key.src_port));
        row.perhaps_int(ports.then_some(key.dst_port));
        row.int(key.protocol);
        for side in 0..2 {
            row.long(record.octets[side]);
            row.long(record.packets[side]);
        }
        row.perhaps_int(tcp.then_some(record.tcp_flags[0]));
        row.perhaps_int(tcp.then_some(record.tcp_flags[1]));
        row.perhaps_int(is_icmp(key.protocol).then_some(record.icmp_type_code));
        row.perhaps_int(vlans.next());
        row.int(record.end_reason as u8);
        row.text(|text| text.extend_from_slice(CommunityId::of(record).as_bytes()));
        for side in 0..2 {
            let there = record.packets[side] > 0;
            row.perhaps_int(there.then_some(record.ttl[side][0]));
            row.perhaps_int(there.then_some(record.ttl[side][1]));
            row.perhaps_int(there.then_some(record.ip_len[side][0]));
            row.perhaps_int(there.then_some(record.ip_len[side][1]));
            row.perhaps_int(there.then_some(record.tos[side]));
        }
        let history = (record.history != Default::default()).then_some(record.history);
        row.perhaps_text(history, |text, history| {
            text.extend(history.iter().map(|letter| letter as u8));
        });
        row.int(u8::from(record.initiator != Initiator::FirstPacket));
        let macs = macs(&path);
        row.perhaps_text(macs, |text, macs| push_mac(text, &macs[0]));
        row.perhaps_text(macs, |text, macs| push_mac(text, &macs[1]));
        row.perhaps_int(vlans.next());
        row.perhaps_int(path.mpls_label);
        let tunnel = path.tunnel.as_ref();
        row.perhaps_text(tunnel, |text, tunnel| {
            text.extend_from_slice(tunnel.kind.name().as_bytes());
        });
        row.perhaps_text(tunnel, |text, tunnel| {
            push_address(text, outer_version(tunnel), &tunnel.src);
        });
        row.perhaps_text(tunnel, |text, tunnel| {
            push_address(text, outer_version(tunnel), &tunnel.dst);
        });
        row.perhaps_int(tunnel.map(|tunnel| tunnel.id).filter(|&id| id > 0));
        if record.facts.is_empty() {
            row.skip(Fact::KEPT.len());
        } else {
            Fact::KEPT.into_iter().for_each(|kind| row.facts(record.facts.values(kind)));
        }
        self.fact_bytes += record.facts.bytes().len() * FACT_COST;
        let application = record.application.as_ref();
        row.perhaps_text(application, |text, own| {
            text.extend_from_slice(own.label.as_str().as_bytes());
        });
        row.perhaps_text(application, |text, own| {
            text.extend_from_slice(own.reason.name().as_bytes());
        });
        match &record.tcp {
            None => row.skip(TcpPerformance::NAMES.len()),
            Some(tcp) => tcp.fields().into_iter().for_each(|field| row.perhaps_long(field)),
        }
        for field in self.further.origins.fields() {
            let value = field.value(record);
            match (&field.read, value) {
                (Read::Text(_), Some(Value::Text(value))) => {
                    row.perhaps_text(Some(value), |text, value| text.extend_from_slice(value));
                }
                (Read::Text(_), _) => row.perhaps_text(None, |_, ()| {}),
                (Read::Number(_), Some(Value::Number(number))) => row.perhaps_int(Some(number)),
                (Read::Number(_), _) => row.perhaps_int(None::<u32>),
            }
        }
        if self.further.ingress {
            row.perhaps_int(Some(record.path.ingress).filter(|&index| index > 0));
        }
        debug_assert!(row.columns.next().is_none(), "a column was not filled");
        self.rows += 1;
    }

    /// Writes all rows as one row group and removes them.
    pub(super) fn write_to<W: Write + Send>(
        &mut self,
        file: &mut SerializedFileWriter<W>,
    ) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        let mut texts = Vec::new();
        for column in &mut self.columns {
            let Some(mut out) = group.next_column()? else { break };
            column.complete(self.rows);
            let levels = (column.shape != REQUIRED).then_some(&column.levels[..]);
            let repeats = (column.shape == Shape::List).then_some(&column.repeats[..]);
            match &mut column.values {
                Values::Long(values) => {
                    out.typed::<Int64Type>().write_batch(values, levels, repeats)?;
                }
                Values::Int(values) => {
                    out.typed::<Int32Type>().write_batch(values, levels, repeats)?;
                }
                Values::Text { bytes, ends } => {
                    texts.clear();
                    cut(bytes, ends, &mut texts);
                    out.typed::<ByteArrayType>().write_batch(&texts, levels, repeats)?;
                }
            }
            column.clear();
            out.close()?;
        }
        group.close()?;
        (self.rows, self.fact_bytes) = (0, 0);
        Ok(())
    }
}

/// Splits the bytes of a text column into its values.
fn cut(bytes: &mut Vec<u8>, ends: &mut Vec<usize>, texts: &mut Vec<ByteArray>) {
    let next = Vec::with_capacity(bytes.len());
    let whole = ByteArray::from(std::mem::replace(bytes, next));
    let mut start = 0;
    for end in ends.drain(..) {
        texts.push(whole.slice(start, end - start));
        start = end;
    }
}

fn field((name, kind, shape): Definition) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match kind {
        Time => (Physical::INT64, LogicalType::timestamp(true, TimeUnit::MILLIS)),
        Number(64) => (Physical::INT64, LogicalType::integer(64, false)),
        Number(bits) => (Physical::INT32, LogicalType::integer(bits, false)),
        Text => (Physical::BYTE_ARRAY, LogicalType::String),
    };
    let value = |name, repetition| {
        let value = Type::primitive_type_builder(name, physical).with_logical_type(Some(logical));
        value.with_repetition(repetition).build().map(Arc::new)
    };
    let group = |name, repetition, field, logical| {
        let group = Type::group_type_builder(name).with_fields(vec![field]);
        group.with_repetition(repetition).with_logical_type(logical).build().map(Arc::new)
    };
    match shape {
        Shape::Required => value(name, Repetition::REQUIRED),
        Shape::Optional => value(name, Repetition::OPTIONAL),
        Shape::List => {
            let element = value("element", Repetition::REQUIRED)?;
            let list = group("list", Repetition::REPEATED, element, None)?;
            group(name, Repetition::OPTIONAL, list, Some(LogicalType::List))
        }
    }
}
