//! Numbers and text in lines.

use ringtap_base::text;
use ringtap_flow::{Keep, Kind, Type};

const fn digits(number: usize) -> [u8; 3] {
    [b'0' + (number / 100) as u8, b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

/// Numbers below a thousand, which are the most frequent: their digits from the left, and the number of digits.
static SMALL: [[u8; 4]; 1_000] = {
    let (mut all, mut number) = ([[0; 4]; 1_000], 0);
    while number < all.len() {
        let [a, b, c] = digits(number);
        all[number] = match number {
            0..10 => [c, 0, 0, 1],
            10..100 => [b, c, 0, 2],
            _ => [a, b, c, 3],
        };
        number += 1;
    }
    all
};

/// The decimal digits of a number, the first in the lowest byte, and how many there are.
#[inline]
pub(super) fn small(number: u8) -> (u32, usize) {
    let [a, b, c, count] = SMALL[usize::from(number)];
    (u32::from_le_bytes([a, b, c, 0]), usize::from(count))
}

/// Appends a number in decimal digits.
#[inline]
pub(crate) fn push_number(line: &mut Vec<u8>, number: impl Into<u64>) {
    let number = number.into();
    let Some(digits) = usize::try_from(number).ok().and_then(|number| SMALL.get(number)) else {
        line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        return;
    };
    // Copying a fixed length is a single store; the excess is removed.
    line.extend_from_slice(digits);
    line.truncate(line.len() - 4 + usize::from(digits[3]));
}

/// Appends the last `N` decimal digits, with leading zeros.
#[inline]
pub(crate) fn push_digits<const N: usize>(line: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0; N];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    line.extend_from_slice(&digits);
}

/// Appends two hexadecimal digits.
#[inline]
pub(crate) fn push_hex(line: &mut Vec<u8>, byte: u8) {
    line.extend_from_slice(&hex(byte));
}

/// Two hexadecimal digits.
#[inline]
pub(super) const fn hex(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// Appends text as a JSON string; invalid UTF-8 becomes U+FFFD.
pub(crate) fn push_json(line: &mut Vec<u8>, text: &[u8]) {
    text::push_json(line, &String::from_utf8_lossy(text));
}

/// Appends the values of a kind as JSON: a list, if a flow keeps several, else the first one.
pub(crate) fn push_fact<'a>(
    line: &mut Vec<u8>,
    kind: Kind,
    values: impl Iterator<Item = &'a [u8]>,
) {
    let list = kind.keep() == Keep::List;
    if list {
        line.push(b'[');
    }
    for (at, value) in values.take(if list { usize::MAX } else { 1 }).enumerate() {
        if at > 0 {
            line.push(b',');
        }
        match kind.value_type() {
            Type::Text => push_json(line, value),
            Type::Number => line.extend_from_slice(value),
        }
    }
    if list {
        line.push(b']');
    }
}

/// The number that a fact has as digits.
pub(crate) fn number_of(digits: &[u8]) -> u64 {
    let digits = digits.iter().filter(|digit| digit.is_ascii_digit());
    digits.fold(0, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')))
}

/// Appends text; invalid UTF-8 becomes U+FFFD.
pub(crate) fn push_valid(line: &mut Vec<u8>, text: &[u8]) {
    if text.is_ascii() {
        return line.extend_from_slice(text);
    }
    for chunk in text.utf8_chunks() {
        line.extend_from_slice(chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            line.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Appends texts as one field of CSV (RFC 4180), separated by semicolons. Semicolons, backslashes and letters that act
/// on a terminal become `\xHH`, so that a record is one line; invalid UTF-8 becomes U+FFFD.
pub(crate) fn push_csv<'a>(line: &mut Vec<u8>, texts: impl Iterator<Item = &'a [u8]>) {
    let mut out = String::new();
    for (place, text) in texts.enumerate() {
        if place > 0 {
            out.push(';');
        }
        for letter in String::from_utf8_lossy(text).chars() {
            if letter == ';' || letter == '\\' || text::acts(letter) {
                text::push_hex(&mut out, letter);
            } else {
                out.push(letter);
            }
        }
    }
    if out.contains([',', '"']) {
        out = format!("\"{}\"", out.replace('"', "\"\""));
    }
    line.extend_from_slice(out.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_json_string() {
        let text = |text: &[u8]| {
            let mut line = Vec::new();
            push_json(&mut line, text);
            serde_json::from_slice::<String>(&line).unwrap()
        };
        assert_eq!(text(b"example.org"), "example.org");
        assert_eq!(text("a\"b\\c\n\u{0}\u{e9}".as_bytes()), "a\"b\\c\n\u{0}\u{e9}");
        assert_eq!(text(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(text("\u{7f}\u{9b}\u{202e}".as_bytes()), "\u{7f}\u{9b}\u{202e}");
    }

    #[test]
    fn any_list_is_one_field() {
        let field = |texts: &[&[u8]]| {
            let mut line = Vec::new();
            push_csv(&mut line, texts.iter().copied());
            String::from_utf8(line).unwrap()
        };
        assert_eq!(field(&[]), "");
        assert_eq!(field(&[b"example.org", b"b"]), "example.org;b");
        assert_eq!(field(&[b"a,b", b"c\"d;e\n"]), "\"a,b;c\"\"d\\x3be\\x0a\"");
        assert_eq!(field(&["\u{9b}\u{202e}\\".as_bytes()]), "\\xc2\\x9b\\xe2\\x80\\xae\\x5c");
    }
}
