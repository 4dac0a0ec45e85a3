//! Options of a run: the flags of `ringtap monitor` by their long names, and `flows`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use ringtap::embedded::{Table, Value};

/// What a run reads, and how.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) files: Vec<OsString>,
    pub(crate) flags: Table,
    /// Which records the program gets, in the language of `ringtap query`.
    pub(crate) flows: Option<String>,
}

impl Options {
    /// Adds `flag=value`, or `flag` if it is a switch, also with the two hyphens. A flag that is given again has a list of
    /// values.
    ///
    /// # Errors
    /// What is invalid. Whether a flag exists, the run says.
    pub(crate) fn add(&mut self, option: &[u8]) -> Result<(), String> {
        let option = option.strip_prefix(b"--").unwrap_or(option);
        let end = option.iter().position(|&byte| byte == b'=').unwrap_or(option.len());
        let (name, value) = (&option[..end], option.get(end + 1..));
        if name == b"read" {
            let path = value.ok_or("read has no path: use read=PATH")?;
            self.files.push(OsString::from_vec(path.to_vec()));
            return Ok(());
        }
        let text = |bytes| {
            let shown = || String::from_utf8_lossy(option).into_owned();
            str::from_utf8(bytes).map_err(|_| format!("the option {:?} is not UTF-8", shown()))
        };
        let name = text(name)?;
        if name.is_empty() {
            return Err(format!("invalid option {:?}: use flag=value", text(option)?));
        }
        let value = value.map(text).transpose()?;
        if name == "flows" {
            self.flows = Some(value.ok_or("flows has no expression: use flows=EXPRESSION")?.into());
            return Ok(());
        }
        let value = match value {
            // A switch is a truth; other flags have the word.
            None | Some("true") => Value::Boolean(true),
            Some("false") => Value::Boolean(false),
            Some(word) => Value::String(word.into()),
        };
        match self.flags.get_mut(name) {
            None => drop(self.flags.insert(name.into(), value)),
            Some(Value::Array(list)) => list.push(value),
            Some(one) => *one = Value::Array(vec![one.clone(), value]),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(all: &[&[u8]]) -> Result<Options, String> {
        let mut options = Options::default();
        all.iter().try_for_each(|one| options.add(one))?;
        Ok(options)
    }

    #[test]
    fn flags_have_values_and_lists() {
        let given: [&[u8]; 8] = [
            b"read=a=b.pcap",
            b"--read=\xff.pcap",
            b"digest",
            b"shed=false",
            b"write=json:f",
            b"--write=csv:f",
            b"write=",
            b"flows=port = 53",
        ];
        let options = options(&given).unwrap();
        assert_eq!(options.files[0], "a=b.pcap");
        assert_eq!(options.files[1].clone().into_vec(), b"\xff.pcap");
        assert_eq!(options.flows.as_deref(), Some("port = 53"));
        let expected = "digest = true\nshed = false\nwrite = [\"json:f\", \"csv:f\", \"\"]\n";
        assert_eq!(options.flags, expected.parse::<Table>().unwrap());
    }

    #[test]
    fn errors_name_the_option() {
        for (given, named) in [
            (&b"read"[..], "read has no path"),
            (b"flows", "flows has no expression"),
            (b"", "\"\""),
            (b"--", "\"\""),
            (b"=x", "\"=x\""),
            (b"top=\xff", "\"top=\u{fffd}\""),
            (b"\xff=1", "\"\u{fffd}=1\""),
        ] {
            let error = options(&[given]).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
