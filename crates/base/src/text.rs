//! Text from packets, files and users, as outputs may contain it: no letter of it controls a terminal, changes the
//! order of other letters, breaks a line, or is invisible.
//!
//! | for | a letter that [acts] becomes | function |
//! |---|---|---|
//! | people: reports, pages, messages | `\u{202e}` | [`shown`] |
//! | JSON | `\u202e`, which decodes to the letter | [`push_json`], [`json_document`] |
//! | CSV, Zeek | `\xHH` for each octet of its UTF-8 | [`push_hex`] |
//!
//! [acts]: acts

use std::borrow::Cow;
use std::fmt::Write;

use crate::hidden::without_secrets;

/// Whether a letter does not show itself: control characters (C0, DEL, C1), line separators, those of writing
/// directions, tags and other format characters, fillers, selectors of variants, and what Unicode has not assigned.
pub fn acts(letter: char) -> bool {
    match letter {
        ' '..='~' => false,
        // Letters without a shape that Unicode counts as letters or marks.
        '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        other => {
            // The standard library escapes what is not printable. A letter before it, because it also escapes a mark that
            // has none to combine with.
            let mut text = [b'a'; 5];
            let length = other.encode_utf8(&mut text[1..]).len();
            let text = str::from_utf8(&text[..=length]).unwrap_or_default();
            text.escape_debug().nth(1) == Some('\\')
        }
    }
}

/// Text for people, without secrets.
pub fn shown(text: &str) -> Cow<'_, str> {
    match without_secrets(text) {
        Cow::Borrowed(text) => safe(text),
        Cow::Owned(text) => Cow::Owned(safe(&text).into_owned()),
    }
}

fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if acts(letter) {
            safe.extend(letter.escape_unicode());
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// [`shown`] for text that may have several lines.
pub fn shown_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(shown).collect();
    lines.join("\n")
}

/// [`shown`] for a message, whose further lines are indented: a name can begin no line that looks like another message.
pub fn shown_message(text: &str) -> String {
    let lines: Vec<_> = text.split("\n  ").map(shown).collect();
    lines.join("\n  ")
}

/// Appends text as a JSON string.
pub fn push_json(line: &mut Vec<u8>, text: &str) {
    line.push(b'"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => line.extend([b'\\', letter as u8]),
            ' '..='~' => line.push(letter as u8),
            other if acts(other) => push_units(line, other),
            other => line.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    line.push(b'"');
}

/// A JSON document that a serialiser wrote. Only strings have letters that act, except for line feeds between values.
pub fn json_document(document: String) -> String {
    let escaped = |letter| letter != '\n' && acts(letter);
    if !document.contains(escaped) {
        return document;
    }
    let mut safe = Vec::with_capacity(document.len() + 16);
    for letter in document.chars() {
        if escaped(letter) {
            push_units(&mut safe, letter);
        } else {
            safe.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    String::from_utf8(safe).unwrap_or_default()
}

/// Appends `\xHH` for each octet of a letter.
pub fn push_hex(text: &mut String, letter: char) {
    for octet in letter.encode_utf8(&mut [0; 4]).bytes() {
        // Writing to a String cannot fail.
        let _ = write!(text, "\\x{octet:02x}");
    }
}

/// Appends `\uHHHH` for each UTF-16 code unit of a letter (RFC 8259, section 7).
fn push_units(line: &mut Vec<u8>, letter: char) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for unit in letter.encode_utf16(&mut [0; 2]) {
        line.extend_from_slice(b"\\u");
        line.extend([12, 8, 4, 0].map(|shift| DIGITS[usize::from(*unit >> shift & 15)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter of each kind that must not reach a terminal.
    const ACTING: &str = "\0\t\n\r\u{1b}\u{7f}\u{80}\u{85}\u{9b}\u{9f}\u{ad}\u{34f}\u{61c}\u{200b}\u{200e}\u{200f}\u{2028}\
        \u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{3164}\u{fe0f}\u{feff}\u{fff9}\u{e000}\u{e0001}\u{e0041}\u{e007f}\
        \u{e0100}\u{1d173}\u{10ffff}";

    /// Letters, marks and symbols of several scripts, and those of our own texts.
    const PLAIN: &str = "aZ09 ~\"\\'\u{e9}e\u{301}ßжあ漢한ا\u{5d0}ไทย→…–·µ█🙂";

    #[test]
    fn letters_that_act_are_shown_by_number_and_others_as_they_are() {
        for letter in ACTING.chars() {
            assert!(acts(letter), "{letter:?}");
        }
        assert_eq!(shown(PLAIN), PLAIN);
        assert!(matches!(shown(PLAIN), Cow::Borrowed(_)));
        assert_eq!(shown("a\u{1b}[2J\u{202e}b"), "a\\u{1b}[2J\\u{202e}b");
        assert!(!shown(ACTING).contains(acts));
        assert_eq!(shown_lines("a\u{9b}\nb"), "a\\u{9b}\nb");
        assert_eq!(shown_message("a\nerror: b\n  c"), "a\\u{a}error: b\n  c");
    }

    #[test]
    fn json_decodes_to_the_same_text() {
        let all = format!("{ACTING}{PLAIN}");
        let mut line = Vec::new();
        push_json(&mut line, &all);
        let line = String::from_utf8(line).unwrap();
        assert!(!line.contains(acts), "{line}");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), all);

        let document = serde_json::to_string_pretty(&[&all, "b"]).unwrap();
        let safe = json_document(document.clone());
        assert!(!safe.replace('\n', "").contains(acts), "{safe}");
        assert_eq!(serde_json::from_str::<[String; 2]>(&safe).unwrap(), [&all, "b"]);
        assert_eq!(json_document("{\n  \"a\": \"é\"\n}".into()), "{\n  \"a\": \"é\"\n}");
    }

    #[test]
    fn octets_are_written_in_hexadecimal() {
        let mut text = String::new();
        for letter in ['\n', '\u{9b}', '\u{202e}'] {
            push_hex(&mut text, letter);
        }
        assert_eq!(text, "\\x0a\\xc2\\x9b\\xe2\\x80\\xae");
    }
}
