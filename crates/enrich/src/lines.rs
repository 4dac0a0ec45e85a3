//! Lists: an entry on each line, and perhaps a text behind it. `#` at the beginning of a word begins a comment.

/// Most bytes of a file.
const BYTES_MAX: u64 = 1 << 30;

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidList {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is too large.
    #[error("more than 1 GiB")]
    TooLarge,
    /// An entry is wrong.
    #[error("line {number}: {reason}: {line:?}")]
    Line {
        /// Counted from 1.
        number: usize,
        /// Its beginning.
        line: String,
        /// Why, with a remedy.
        reason: &'static str,
    },
}

/// Reads a file.
pub(crate) fn read(path: &std::path::Path) -> Result<Vec<u8>, InvalidList> {
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, BYTES_MAX + 1), &mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX { Err(InvalidList::TooLarge) } else { Ok(bytes) }
}

/// Calls `each` with the entry and the text, which may be empty, of each line.
pub(crate) fn each(
    list: &[u8],
    mut each: impl FnMut(&str, &str) -> Result<(), &'static str>,
) -> Result<(), InvalidList> {
    let list = list.strip_prefix(b"\xef\xbb\xbf").unwrap_or(list);
    for (number, line) in (1..).zip(list.split(|byte| *byte == b'\n')) {
        let parsed = match std::str::from_utf8(line) {
            Err(_) => Err("not UTF-8"),
            Ok(text) => {
                let text = without_comment(text).trim();
                let (entry, label) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                if entry.is_empty() { Ok(()) } else { each(entry, label.trim()) }
            }
        };
        parsed.map_err(|reason| {
            let line = String::from_utf8_lossy(line).trim().chars().take(80).collect();
            InvalidList::Line { number, line, reason }
        })?;
    }
    Ok(())
}

fn without_comment(line: &str) -> &str {
    let mut before = b' ';
    for (at, byte) in line.bytes().enumerate() {
        if byte == b'#' && before.is_ascii_whitespace() {
            return &line[..at];
        }
        before = byte;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_entry_and_a_text() {
        let mut found = Vec::new();
        let list = b"\xef\xbb\xbfa\r\n\n # comment\n b \t label of b # c\nc#d\nlast";
        each(list, |entry, text| {
            found.push(format!("{entry}={text}"));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, ["a=", "b=label of b", "c#d=", "last="]);
        let error = each(b"a\nb c\n", |entry, _| if entry == "b" { Err("why") } else { Ok(()) });
        assert_eq!(error.unwrap_err().to_string(), "line 2: why: \"b c\"");
        assert!(each(b"\xff", |_, _| Ok(())).is_err());
    }
}
