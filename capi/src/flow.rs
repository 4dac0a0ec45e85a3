//! Flow records as C reads them: the struct, and single columns by their names.

use std::ffi::{CString, c_char};
use std::net::IpAddr;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

/// A flow record: `ringtap_flow` of `include/ringtap.h`, which describes its members.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the header has them")]
pub struct Flow {
    pub start_ms: u64,
    pub end_ms: u64,
    pub packets: [u64; 2],
    pub octets: [u64; 2],
    pub source: [u8; 16],
    pub destination: [u8; 16],
    pub source_port: u16,
    pub destination_port: u16,
    pub tcp_flags: [u16; 2],
    pub vlan: u16,
    pub ip_version: u8,
    pub protocol: u8,
    pub end_reason: u8,
    pub reserved: [u8; 3],
    pub community_id: [c_char; 32],
    pub application: *const c_char,
}

// Without padding, all of its bytes are initialised.
const _: () = assert!(size_of::<Flow>() == 6 * 8 + 2 * 16 + 5 * 2 + 6 + 32 + size_of::<usize>());

/// The columns of the members, in the order of [`Table::flow`].
const MEMBERS: [&str; 17] = [
    "flowStartMilliseconds",
    "flowEndMilliseconds",
    "packetDeltaCount",
    "reversePacketDeltaCount",
    "octetDeltaCount",
    "reverseOctetDeltaCount",
    "sourceIPAddress",
    "destinationIPAddress",
    "sourceTransportPort",
    "destinationTransportPort",
    "tcpControlBits",
    "reverseTcpControlBits",
    "vlanId",
    "protocolIdentifier",
    "flowEndReason",
    "communityId",
    "application",
];

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Number(u64),
    Text(&'a str),
}

/// The records of a batch, one after the other.
pub(crate) struct Table {
    batch: RecordBatch,
    /// The columns of the members, as far as the run has them.
    members: [Option<ArrayRef>; MEMBERS.len()],
    /// The number of the current record, from 1; 0 before the first.
    record: usize,
}

impl Table {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        let members = MEMBERS.map(|name| batch.column_by_name(name).cloned());
        Self { batch, members, record: 0 }
    }

    /// Goes to the next record, if there is one.
    pub(crate) fn advance(&mut self) -> bool {
        let is_there = self.record < self.batch.num_rows();
        self.record += usize::from(is_there);
        is_there
    }

    /// The current record. `application` gets the text to which it points.
    pub(crate) fn flow(&self, application: &mut CString) -> Flow {
        let row = self.record - 1;
        let cells = self.members.each_ref().map(|column| cell(column.as_deref()?, row, 0));
        let [start, end, packets, packets_back, octets, octets_back, rest @ ..] = cells;
        let [source, destination, source_port, destination_port, flags, flags_back, rest @ ..] =
            rest;
        let [vlan, protocol, end_reason, community_id, label] = rest;
        let (ip_version, source) = address(source);
        *application = c_text(text(label));
        Flow {
            start_ms: number(start),
            end_ms: number(end),
            packets: [number(packets), number(packets_back)],
            octets: [number(octets), number(octets_back)],
            source,
            destination: address(destination).1,
            source_port: number(source_port) as u16,
            destination_port: number(destination_port) as u16,
            tcp_flags: [number(flags) as u16, number(flags_back) as u16],
            vlan: number(vlan) as u16,
            ip_version,
            protocol: number(protocol) as u8,
            end_reason: number(end_reason) as u8,
            reserved: [0; 3],
            community_id: letters(text(community_id)),
            application: application.as_ptr(),
        }
    }

    /// A value of the current record, from 0 if the column is a list; `None` if it has none.
    ///
    /// # Errors
    /// The run has no such column.
    pub(crate) fn value(&self, name: &str, index: usize) -> Result<Option<Cell<'_>>, String> {
        let column = self.batch.column_by_name(name);
        let column = column.ok_or_else(|| format!("records of this run have no field {name:?}"))?;
        Ok(cell(column, self.record - 1, index))
    }
}

/// The value at `index` in a row; `None` if the row has none there.
fn cell(column: &dyn Array, row: usize, index: usize) -> Option<Cell<'_>> {
    if column.is_null(row) {
        return None;
    }
    if let Some(list) = column.as_list_opt::<i32>() {
        let [start, end] = [row, row + 1].map(|row| list.value_offsets()[row] as usize);
        return if index < end - start { cell(list.values(), start + index, 0) } else { None };
    }
    let value = match column.data_type() {
        DataType::Utf8 => Cell::Text(column.as_string::<i32>().value(row)),
        DataType::UInt8 => Cell::Number(column.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Cell::Number(column.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Cell::Number(column.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Cell::Number(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let times = column.as_primitive::<TimestampMillisecondType>();
            Cell::Number(times.value(row).cast_unsigned())
        }
        _ => return None,
    };
    (index == 0).then_some(value)
}

fn number(cell: Option<Cell<'_>>) -> u64 {
    if let Some(Cell::Number(number)) = cell { number } else { 0 }
}

fn text(cell: Option<Cell<'_>>) -> &str {
    if let Some(Cell::Text(text)) = cell { text } else { "" }
}

/// The IP version and the octets.
fn address(cell: Option<Cell<'_>>) -> (u8, [u8; 16]) {
    let mut octets = [0; 16];
    match text(cell).parse() {
        Ok(IpAddr::V4(address)) => {
            octets[..4].copy_from_slice(&address.octets());
            (4, octets)
        }
        Ok(IpAddr::V6(address)) => (6, address.octets()),
        Err(_) => (0, octets),
    }
}

/// The text with a NUL after it.
fn letters(text: &str) -> [c_char; 32] {
    let mut letters = [0; 32];
    for (place, byte) in letters[..31].iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
    letters
}

/// The text for C, which ends at the first NUL.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{ListBuilder, StringBuilder, UInt16Builder};
    use arrow_array::{StringArray, TimestampMillisecondArray, UInt8Array, UInt64Array};

    use super::*;

    #[test]
    fn members_and_columns_have_the_values_of_the_row() {
        let (mut names, mut codes) =
            (ListBuilder::new(StringBuilder::new()), ListBuilder::new(UInt16Builder::new()));
        names.append_null();
        names.append_value([Some("a"), Some("ä\0")]);
        codes.append_value([Some(1)]);
        codes.append_value([Some(2), Some(3)]);
        let columns: [(&str, ArrayRef); 9] = [
            ("flowStartMilliseconds", Arc::new(TimestampMillisecondArray::from(vec![1, 1 << 40]))),
            ("octetDeltaCount", Arc::new(UInt64Array::from(vec![0, u64::MAX]))),
            ("sourceIPAddress", Arc::new(StringArray::from(vec!["fd20::1", "10.20.0.1"]))),
            ("destinationIPAddress", Arc::new(StringArray::from(vec!["fd20::2", "10.20.0.2"]))),
            ("flowEndReason", Arc::new(UInt8Array::from(vec![Some(5), None]))),
            ("communityId", Arc::new(StringArray::from(vec!["", &"1".repeat(40)]))),
            ("application", Arc::new(StringArray::from(vec![None, Some("dns")]))),
            ("dnsQueryName", Arc::new(names.finish())),
            ("httpStatus", Arc::new(codes.finish())),
        ];
        let mut table = Table::new(RecordBatch::try_from_iter(columns).unwrap());
        let mut application = CString::default();
        assert!(table.advance());
        let flow = table.flow(&mut application);
        assert_eq!((flow.start_ms, flow.end_reason, flow.ip_version), (1, 5, 6));
        assert_eq!((flow.source[0], flow.source[15], flow.destination[15]), (0xfd, 1, 2));
        assert_eq!((application.as_bytes(), table.value("dnsQueryName", 0)), (&b""[..], Ok(None)));

        assert!(table.advance());
        let flow = table.flow(&mut application);
        assert_eq!((flow.start_ms, flow.octets), (1 << 40, [u64::MAX, 0]));
        assert_eq!((flow.ip_version, flow.source[..5].to_vec()), (4, vec![10, 20, 0, 1, 0]));
        assert_eq!((flow.end_reason, application.as_bytes()), (0, &b"dns"[..]));
        assert_eq!((flow.community_id[30], flow.community_id[31]), (b'1' as c_char, 0));
        let values =
            |name: &str| [0, 1, 2, usize::MAX].map(|index| table.value(name, index).unwrap());
        assert_eq!(
            values("dnsQueryName"),
            [Some(Cell::Text("a")), Some(Cell::Text("ä\0")), None, None]
        );
        assert_eq!(
            values("httpStatus"),
            [Some(Cell::Number(2)), Some(Cell::Number(3)), None, None]
        );
        assert_eq!(values("sourceIPAddress"), [Some(Cell::Text("10.20.0.1")), None, None, None]);
        assert!(table.value("x", 0).unwrap_err().contains("\"x\""));
        assert!(!table.advance() && !table.advance());
    }
}
