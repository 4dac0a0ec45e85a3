//! Lists: an entry on each line, and perhaps a text behind it.

use ringtap_base::{NotANetwork, list_lines};

/// Most bytes of a file.
const BYTES_MAX: u64 = 1 << 30;

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidList {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// The file is too large.
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

/// Reads the file of a list.
///
/// # Errors
/// [`InvalidList::Read`] and [`InvalidList::TooLarge`].
pub fn read(path: &std::path::Path) -> Result<Vec<u8>, InvalidList> {
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
    for (number, line) in list_lines(list) {
        let (line, parsed) = match line {
            Err(bytes) => (String::from_utf8_lossy(bytes), Err("not UTF-8")),
            Ok(text) => {
                let (entry, label) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
                (text.into(), each(entry, label.trim()))
            }
        };
        parsed.map_err(|reason| {
            let line = line.trim().chars().take(80).collect();
            InvalidList::Line { number, line, reason }
        })?;
    }
    Ok(())
}

/// Why a text is not a network, with a remedy; `None` if it is not an address.
pub fn wrong_network(wrong: NotANetwork) -> Option<&'static str> {
    match wrong {
        NotANetwork::Address => None,
        NotANetwork::HostBits(_) => Some("bits behind the network's are not 0"),
        NotANetwork::Length(0, 32) => Some("invalid length of a network: use 0 to 32"),
        NotANetwork::Length(0, _) => Some("invalid length of a network: use 0 to 128"),
        NotANetwork::Length(..) => {
            Some("invalid length of an IPv4-mapped network: use the IPv4 network, or 97 to 128")
        }
    }
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
