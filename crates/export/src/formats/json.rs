//! JSON lines: one object a line; fields have the names of IPFIX Information Elements.
//!
//! ```text
//! {"flowStartMilliseconds":1,"flowEndMilliseconds":2,"sourceIPv4Address":"10.0.0.1",…,"communityId":"1:…"}
//! ```
//!
//! Fields without a value are left out. The text is formatted by hand; only names and facts need escaping. Counts
//! are integers up to 2⁶⁴ - 1; readers with doubles lose digits above 2⁵³.

use ringtap_flow::FlowRecord;

use crate::fields::{Presence, Row, View, Visit, visit};
use crate::formats::{Interfaces, TextFormat};

pub(super) const FORMAT: Option<TextFormat> = Some(TextFormat { head: None, line, tail: None });

/// Appends the line of a record.
pub(crate) fn line(line: &mut Vec<u8>, record: &FlowRecord, _interfaces: &Interfaces) {
    let (start, mut reversed) = (line.len(), None);
    visit(&mut Object { line, view: View::of(record, &mut reversed) });
    // A comma precedes each field.
    line[start] = b'{';
    line.extend_from_slice(b"}\n");
}

struct Object<'a> {
    line: &'a mut Vec<u8>,
    view: View<'a>,
}

impl Visit for Object<'_> {
    #[inline(always)]
    fn row<R: Row>(&mut self) {
        if R::FIELD.presence != Presence::Parquet
            && let Some(value) = R::of(&self.view)
        {
            // With the quote of a text.
            let key = R::FIELD.keys[usize::from(value.is_v6())].as_bytes();
            if value.is_plain() {
                self.line.extend_from_slice(key);
                value.text(self.line);
                self.line.push(b'"');
            } else {
                self.line.extend_from_slice(&key[..key.len() - 1]);
                value.json(self.line);
            }
        }
    }
}
