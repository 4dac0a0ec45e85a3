//! Names of files with strftime fields, in UTC: `flows-%Y%m%dT%H%M.json`, `flows/%Y/%m/%d/%H%M.json`.
//!
//! Invariant: a name that a pattern made, also with a number before its extension, is a name that it recognises.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ringtap_base::civil;

const DAY: u64 = 86_400;

/// A time, for fields.
#[derive(Clone, Copy)]
struct Moment {
    seconds: u64,
    date: (u32, u32, u32),
}

impl Moment {
    fn new(seconds: u64) -> Self {
        Self { seconds, date: civil(seconds / DAY) }
    }

    fn of_day(self, unit: u64, most: u64) -> u64 {
        self.seconds % DAY / unit % most
    }

    /// The day of the year, from 1.
    fn of_year(self) -> u64 {
        let today = self.seconds / DAY;
        let begins = |&back: &u64| civil(today - back).0 != self.date.0;
        (1..=today.min(366)).find(begins).unwrap_or(today + 1)
    }
}

/// A field: its letter, its digits (0: any number), and its value.
struct Field(char, usize, fn(Moment) -> u64);

const FIELDS: [Field; 9] = [
    Field('Y', 4, |at| at.date.0.into()),
    Field('y', 2, |at| (at.date.0 % 100).into()),
    Field('m', 2, |at| at.date.1.into()),
    Field('d', 2, |at| at.date.2.into()),
    Field('j', 3, Moment::of_year),
    Field('H', 2, |at| at.of_day(3600, 24)),
    Field('M', 2, |at| at.of_day(60, 60)),
    Field('S', 2, |at| at.of_day(1, 60)),
    Field('s', 0, |at| at.seconds),
];

/// Shorter forms.
const SHORT: [(char, &str); 2] = [('F', "%Y-%m-%d"), ('T', "%H:%M:%S")];

/// A part of a name.
#[derive(Clone)]
enum Part {
    Text(Vec<u8>),
    /// The index of a field.
    Field(usize),
}

/// A path that is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// There is no such field.
    #[error(
        "unknown field {0} in the path {1:?}: use %Y %m %d %H %M %S %y %j %F %T or %s, and %% for a percent sign"
    )]
    Field(String, String),
}

/// A path with fields, perhaps none.
#[derive(Clone)]
pub struct Pattern {
    /// The deepest folder without fields.
    root: PathBuf,
    /// The name in it, with those of further folders.
    name: Vec<Part>,
    /// The number of further folders.
    depth: usize,
}

impl Pattern {
    /// Reads a path.
    ///
    /// # Errors
    /// A field that is unknown.
    pub fn new(path: &Path) -> Result<Self, InvalidPattern> {
        let bytes = path.as_os_str().as_bytes();
        let parts = |bytes| {
            parts(bytes).map_err(|field| InvalidPattern::Field(field, path.display().to_string()))
        };
        let after = |slash: Option<usize>| slash.map_or(0, |at| at + 1);
        let is_slash = |&byte: &u8| byte == b'/';
        let folders = &bytes[..after(bytes.iter().rposition(is_slash))];
        // The first folder with a field, and all behind it, are in the name.
        let mut at = folders.len();
        let mut begin = 0;
        for folder in folders.split_inclusive(is_slash) {
            if has_fields(&parts(folder)?) {
                at = begin;
                break;
            }
            begin += folder.len();
        }
        let root = OsString::from_vec(expand(&parts(&bytes[..at])?, Moment::new(0))).into();
        let depth = bytes[at..].iter().filter(|byte| is_slash(byte)).count();
        Ok(Self { root, name: parts(&bytes[at..])?, depth })
    }

    /// Whether its name depends on time.
    pub fn has_fields(&self) -> bool {
        has_fields(&self.name)
    }

    /// The deepest folder without fields; empty for the current one.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The number of folders below the root in which files are.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The path of a file that begins at a time, in seconds since 1970.
    pub fn at(&self, seconds: u64) -> PathBuf {
        self.root.join(OsString::from_vec(expand(&self.name, Moment::new(seconds))))
    }

    /// Whether a file has a name of the pattern, perhaps with a number before its extension. The name begins in the root.
    pub fn names(&self, name: &Path) -> bool {
        let name = name.as_os_str().as_bytes();
        matches(&self.name, name)
            || without_number(name).is_some_and(|name| matches(&self.name, &name))
    }
}

fn has_fields(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Field(_)))
}

/// The error is a field that is unknown.
fn parts(text: &[u8]) -> Result<Vec<Part>, String> {
    let mut all = Vec::new();
    let mut literal = Vec::new();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let [letter, behind @ ..] = after else {
            if *first == b'%' {
                return Err("% (at the end)".into());
            }
            literal.push(*first);
            break;
        };
        if *first != b'%' {
            literal.push(*first);
            rest = after;
            continue;
        }
        rest = behind;
        let letter = char::from(*letter);
        if letter == '%' {
            literal.push(b'%');
            continue;
        }
        let mut found = Vec::new();
        if let Some((_, long)) = SHORT.iter().find(|(short, _)| *short == letter) {
            found = parts(long.as_bytes())?;
        } else if let Some(field) = FIELDS.iter().position(|field| field.0 == letter) {
            found.push(Part::Field(field));
        }
        if found.is_empty() {
            return Err(format!("%{letter}"));
        }
        all.push(Part::Text(std::mem::take(&mut literal)));
        all.append(&mut found);
    }
    all.push(Part::Text(literal));
    Ok(all)
}

fn expand(parts: &[Part], at: Moment) -> Vec<u8> {
    let mut name = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => name.extend_from_slice(text),
            Part::Field(field) => {
                let Field(_, digits, value) = FIELDS[*field];
                name.extend_from_slice(format!("{:0digits$}", value(at)).as_bytes());
            }
        }
    }
    name
}

fn matches(parts: &[Part], name: &[u8]) -> bool {
    let Some((part, parts)) = parts.split_first() else { return name.is_empty() };
    match part {
        Part::Text(text) => name.strip_prefix(&text[..]).is_some_and(|rest| matches(parts, rest)),
        Part::Field(field) => {
            let found = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
            match FIELDS[*field].1 {
                0 => (1..=found).any(|digits| matches(parts, &name[digits..])),
                digits => found >= digits && matches(parts, &name[digits..]),
            }
        }
    }
}

/// `flows.json` for `flows.1.json`, as [`crate::names`] makes them.
fn without_number(name: &[u8]) -> Option<Vec<u8>> {
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let begin = name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let dot = |text: &[u8]| text.iter().rposition(|&byte| byte == b'.').filter(|&at| at > begin);
    let last = dot(name)?;
    if let Some(before) = dot(&name[..last])
        && is_number(&name[before + 1..last])
    {
        return Some([&name[..before], &name[last..]].concat());
    }
    is_number(&name[last + 1..]).then(|| name[..last].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(path: &str) -> Pattern {
        Pattern::new(Path::new(path)).unwrap()
    }

    #[test]
    fn fields_are_those_of_strftime_in_utc() {
        // 2026-11-26 10:05:09, a Thursday, the 330th day.
        let at = 1_795_687_509;
        for (path, name) in [
            ("a/flows-%Y%m%dT%H%M.json", "a/flows-20261126T1005.json"),
            ("%F_%T.%s", "2026-11-26_10:05:09.1795687509"),
            ("%y-%j-%S", "26-330-09"),
            ("100%%/%%d", "100%/%d"),
            ("/x/flows.json", "/x/flows.json"),
            ("/x/%Y/%m/f-%H.json", "/x/2026/11/f-10.json"),
            ("x%%/%Y%m/y/%d", "x%/202611/y/26"),
        ] {
            assert_eq!(pattern(path).at(at), Path::new(name), "{path}");
        }
        assert_eq!(pattern("%j").at(0), Path::new("001"));
        assert_eq!(pattern("%j").at(365 * DAY), Path::new("001"));
        assert_eq!(pattern("%F %j").at(1_735_603_200), Path::new("2024-12-31 366"));
        assert!(pattern("a%%b").at(0).ends_with("a%b") && !pattern("a%%b").has_fields());
    }

    #[test]
    fn an_unknown_field_is_an_error_with_a_remedy() {
        for (path, wrong) in
            [("a-%Q.json", "%Q"), ("a%", "% (at the end)"), ("%", "% (at the end)")]
        {
            let error = Pattern::new(Path::new(path)).err().unwrap().to_string();
            assert!(error.contains(wrong) && error.contains("use %Y"), "{error}");
        }
        assert!(Pattern::new(Path::new("%Q/flows")).is_err());
    }

    #[test]
    fn a_pattern_recognises_its_names_and_no_others() {
        let is = |path: &str, name: &str| pattern(path).names(Path::new(name));
        for name in [
            "flows-20261126T1005.json",
            "flows-20261126T1005.1.json",
            "flows-20261126T1005.42.json",
        ] {
            assert!(is("flows-%Y%m%dT%H%M.json", name), "{name}");
        }
        for name in [
            "flows-20261126T100.json",
            "flows-20261126T10055.json",
            "flows-20261126T1005.json.gz",
            "flows-20261126T1005.x.json",
            "flows-20261126T1005..json",
            "other-20261126T1005.json",
            ".flows-20261126T1005.json.7-a.part",
            "flows.json",
            "",
        ] {
            assert!(!is("flows-%Y%m%dT%H%M.json", name), "{name}");
        }
        assert!(is("r/%Y/%d.json", "2026/01.json") && is("r/%Y/%d.json", "2026/01.7.json"));
        assert!(!is("r/%Y/%d.json", "2026.01/1.json") && !is("r/%Y/%d.json", "01.json"));
        assert_eq!((pattern("r/%Y/%d").root(), pattern("r/%Y/%d").depth()), (Path::new("r/"), 1));
        assert_eq!((pattern("%d").root(), pattern("%d").depth()), (Path::new(""), 0));
        assert!(is("flows.json", "flows.json") && is("flows.json", "flows.7.json"));
        assert!(!is("flows.json", "flows.7.7.json"));
        assert!(
            is("flows", "flows.7")
                && is("%s", "17")
                && is("%s.%s", "1.2")
                && !is("flows", "flows.x")
        );
    }
}
