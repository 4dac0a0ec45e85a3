//! Functions that append TLV elements to a buffer.

/// Encoded size of a type or length, in bytes.
pub(crate) fn number_len(number: u64) -> usize {
    match number {
        0..253 => 1,
        253..0x1_0000 => 3,
        0x1_0000..0x1_0000_0000 => 5,
        _ => 9,
    }
}

/// Appends a type or length in its shortest form.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..253 => out.push(number as u8),
        253..0x1_0000 => {
            out.push(253);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(254);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        _ => {
            out.push(255);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Encoded size of an element whose value has `len` bytes.
pub(crate) fn element_len(kind: u32, len: usize) -> usize {
    number_len(kind.into()) + number_len(len as u64) + len
}

/// Appends the type and length of an element.
pub(crate) fn put_head(out: &mut Vec<u8>, kind: u32, len: usize) {
    put_number(out, kind.into());
    put_number(out, len as u64);
}

/// Appends an element.
pub(crate) fn put(out: &mut Vec<u8>, kind: u32, value: &[u8]) {
    put_head(out, kind, value.len());
    out.extend_from_slice(value);
}

/// Encoded size of a number as a value, in bytes.
pub(crate) fn value_len(number: u64) -> usize {
    match number {
        0..0x100 => 1,
        0x100..0x1_0000 => 2,
        0x1_0000..0x1_0000_0000 => 4,
        _ => 8,
    }
}

/// Appends an element whose value is a number, in its shortest form.
pub(crate) fn put_value(out: &mut Vec<u8>, kind: u32, number: u64) {
    put(out, kind, &number.to_be_bytes()[8 - value_len(number)..]);
}
