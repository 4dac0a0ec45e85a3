//! Values of a configuration that are elsewhere.
//!
//! | in a string | value |
//! |---|---|
//! | `${NAME}` | the environment variable |
//! | `${file:PATH}` | the contents of the file, without a line feed at its end; `${NAME}` may be in PATH |
//! | `$${` | `${` |
//!
//! Invariant: no error has a value; all text for people has the reference instead of it, unless it is a name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ringtap_base::hide;

/// Most bytes of a value.
const MOST_BYTES: u64 = 64 << 10;

/// Keys whose values are names, in records and reports.
const NAMES: [&str; 3] = ["interface", "probe", "user"];

/// A string of a key with its references replaced; `None` if it has none.
///
/// # Errors
/// A reference that is invalid, or whose value is missing or not a line of text.
pub(crate) fn replaced(key: &str, text: &str) -> Result<Option<String>, String> {
    if !text.contains("${") {
        return Ok(None);
    }
    replace(text, &|name| std::env::var_os(name), !NAMES.contains(&key)).map(Some)
}

/// An environment.
type Environment<'a> = &'a dyn Fn(&str) -> Option<std::ffi::OsString>;

fn replace(text: &str, environment: Environment<'_>, hides: bool) -> Result<String, String> {
    let (mut all, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            all += before;
            all += "${";
            rest = after;
            continue;
        }
        all += before;
        let end = end_of(after).ok_or("a ${ without its }: use $${ for ${ itself")?;
        let reference = &after[..end];
        let shown = format!("${{{reference}}}");
        let value = value(reference, environment).map_err(|what| format!("{shown}: {what}"))?;
        if hides {
            hide(&value, &shown);
        }
        all += &value;
        rest = &after[end + 1..];
    }
    Ok(all + rest)
}

/// Where a reference ends that may have others in it.
fn end_of(text: &str) -> Option<usize> {
    let mut open = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' if text[..at].ends_with('$') => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

fn value(reference: &str, environment: Environment<'_>) -> Result<String, String> {
    let bytes = match reference.strip_prefix("file:") {
        Some(path) => contents(Path::new(&replace(path, environment, false)?))?,
        None if is_name(reference) => environment(reference)
            .ok_or("this environment variable is not set")?
            .into_encoded_bytes(),
        None => return Err("use ${NAME} or ${file:PATH}, and $${ for ${ itself".into()),
    };
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {} KiB", MOST_BYTES >> 10));
    }
    let value = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    match value.contains(['\0', '\n', '\r']) {
        true => Err("it has a NUL or several lines".into()),
        false => Ok(value),
    }
}

/// Whether a variable can have such a name.
fn is_name(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_valid) && text.starts_with(|first: char| !first.is_ascii_digit())
}

/// The contents of a file, and perhaps one byte more than are allowed.
fn contents(path: &Path) -> Result<Vec<u8>, String> {
    // A pipe could wait for its writer.
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a file".into());
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    // The line feed at the end is not counted.
    file.take(MOST_BYTES + 2).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Result<String, String> {
        let environment = |name: &str| match name {
            "A" => Some("one".into()),
            "_B2" => Some("${A}".into()),
            "LINES" => Some("secret\nsecret".into()),
            "LONG" => Some("secret".repeat(20_000).into()),
            _ => None,
        };
        replace(text, &environment, false)
    }

    #[test]
    fn references_are_replaced_once() {
        let all = ["plain $A {A} $", "x${A}y${A}", "${_B2}", "$${A} ${A}", "$$${A}"];
        let values = ["plain $A {A} $", "xoneyone", "${A}", "${A} one", "$${A}"];
        assert_eq!(all.map(|text| with(text).unwrap()), values);
    }

    #[test]
    fn faults_say_what_and_have_no_value() {
        for (text, words) in [
            ("${MISSING}", "${MISSING}: this environment variable is not set"),
            ("${LINES}", "several lines"),
            ("${LONG}", "more than 64 KiB"),
            ("${A", "without its }"),
            ("${}", "use ${NAME} or ${file:PATH}"),
            ("${1A}", "use ${NAME}"),
            ("${A-b}", "use ${NAME}"),
            ("${file:/proc/missing/file}", "No such file"),
            ("${file:/}", "not a file"),
            ("${file:${MISSING}/x}", "${MISSING}: this environment variable"),
        ] {
            let error = with(text).unwrap_err();
            assert!(error.contains(words) && !error.contains("secret"), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_has_one_line_of_at_most_64_kib() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one");
        let read = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            with(&format!("<${{file:{}}}>", file.display()))
        };
        let most = vec![b'a'; MOST_BYTES as usize];
        assert_eq!(read(b"secret\n").unwrap(), "<secret>");
        assert_eq!(read(b"secret").unwrap(), "<secret>");
        assert_eq!(read(b"").unwrap(), "<>");
        assert_eq!(read(&most).unwrap().len(), most.len() + 2);
        assert_eq!(read(&[&most[..], b"\n"].concat()).unwrap().len(), most.len() + 2);
        for (bytes, words) in [
            (&[&most[..], b"a"].concat()[..], "more than 64 KiB"),
            (b"secret\n\n", "several lines"),
            (b"\nsecret", "several lines"),
            (b"secret\0", "NUL"),
            (b"secret\xff", "not UTF-8"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.contains(words) && !error.contains("secret"), "{error}");
        }
    }
}
