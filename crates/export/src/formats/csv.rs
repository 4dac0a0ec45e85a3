//! CSV (RFC 4180, but lines end in LF): a header line, then one line a record.
//!
//! ```text
//! flowStartMilliseconds,flowEndMilliseconds,sourceIPAddress,…,flowEndReason,communityId,minimumTTL,…,tunnelId
//! 1700000000000,1700000000250,10.0.0.1,…,3,1:…,64,…,
//! ```
//!
//! Every line has the same number of fields; a missing value is an empty field. Only names and facts from payloads may
//! need quotes; a list of them is separated by semicolons. The header is written even without records. The columns are
//! the same for both IP versions: one name without the version stands for the two Information Elements.

use ringtap_flow::FlowRecord;

use crate::fields::{self, Columns, Row, View, Visit, visit_columns};
use crate::formats::{Interfaces, TextFormat};

pub(super) const FORMAT: Option<TextFormat> =
    Some(TextFormat { head: Some(head), line, tail: None });

/// Appends the header line.
pub(crate) fn head(line: &mut Vec<u8>, _first_ns: u64, interfaces: &Interfaces) {
    for (_, field) in fields::columns(interfaces.columns()).filter(|(_, field)| field.is_in_all()) {
        line.extend_from_slice(field.name.as_bytes());
        line.push(b',');
    }
    end(line);
}

/// Appends the line of a record.
pub(crate) fn line(line: &mut Vec<u8>, record: &FlowRecord, interfaces: &Interfaces) {
    let mut reversed = None;
    let view = View::of(record, &mut reversed);
    visit_columns(&mut Line { line, view, columns: interfaces.columns() });
    end(line);
}

/// A line feed in place of the last comma.
fn end(line: &mut [u8]) {
    if let Some(last) = line.last_mut() {
        *last = b'\n';
    }
}

struct Line<'a> {
    line: &'a mut Vec<u8>,
    view: View<'a>,
    columns: Columns,
}

impl Visit for Line<'_> {
    #[inline(always)]
    fn row<R: Row>(&mut self) {
        if R::FIELD.is_in_all() && self.columns.has(R::FIELD.presence) {
            if let Some(value) = R::of(&self.view) {
                value.csv(self.line);
            }
            self.line.push(b',');
        }
    }
}
