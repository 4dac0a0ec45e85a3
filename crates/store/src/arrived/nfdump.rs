//! Files of nfcapd, read by nfdump, which writes one line a record:
//!
//! ```text
//! 2023-11-14 22:13:20.123|2023-11-14 22:13:27.456|192.0.2.1|198.51.100.2|49152|443|6|11|12|2101|1500
//! first                   latest                  ends                   ports   protocol, packets, octets: in and out
//! ```
//!
//! Times are read from dates, because nfdump 1.7.1 writes wrong fractions of seconds since 1970. What nfdump calls in is
//! the direction of a flow's source, and out the answers, if the exporter sent both in one record. The port of an ICMP
//! message is type and code there.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ringtap_base::day_of;
use ringtap_base::text::shown;
use ringtap_export::sums::{Column, Given, NamedRow};

use super::lines::{Line, Lines};
use super::rows::{ArrivedError, Reason, Rows};

/// The program.
const NFDUMP: &str = "nfdump";

/// Fields of a line.
const FORMAT: &str = "fmt:%ts|%te|%sa|%da|%sp|%dp|%pr|%ipkt|%opkt|%ibyt|%obyt";

/// The names of these fields.
const NAMES: [&str; 11] = [
    "flowStartMilliseconds",
    "flowEndMilliseconds",
    "sourceIPAddress",
    "destinationIPAddress",
    "sourceTransportPort",
    "destinationTransportPort",
    "protocolIdentifier",
    "packetDeltaCount",
    "reversePacketDeltaCount",
    "octetDeltaCount",
    "reverseOctetDeltaCount",
];

/// What nfdump writes if a file has no record.
const NOTHING: &[u8] = b"No matching flows";

/// Most bytes of a message.
const MESSAGE_BYTES: u64 = 400;

/// Reads all records.
pub(super) fn read(path: &Path, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    read_by(NFDUMP, path, rows)
}

/// Reads all records by a program.
fn read_by(program: &str, path: &Path, rows: &mut Rows<'_>) -> Result<(), ArrivedError> {
    let mut errors = tempfile::tempfile().map_err(|error| rows.error(error))?;
    let mut nfdump = Nfdump(start(program, path, &errors).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => rows.error(Reason::NoNfdump),
        _ => rows.error(error),
    })?);
    let columns = NAMES.map(Column::named);
    if let Some(output) = nfdump.0.stdout.take() {
        let mut lines = Lines::new(BufReader::new(output));
        while let Some(line) = lines.next().map_err(|error| rows.error(error))? {
            match line {
                Line::Whole(NOTHING) => {}
                Line::Whole(line) => {
                    let added = add(line, &columns, &mut rows.row);
                    rows.end_row(lines.number, added, false);
                }
                Line::TooLong => rows.invalid(lines.number, "no line of nfdump"),
            }
        }
    }
    let status = nfdump.0.wait().map_err(|error| rows.error(error))?;
    // It reports a damaged file on stderr alone.
    let message = message(&mut errors).map_err(|error| rows.error(error))?;
    if message.is_empty() && status.success() {
        return Ok(());
    }
    Err(rows.error(Reason::Nfdump(if message.is_empty() { status.to_string() } else { message })))
}

/// Starts nfdump for a file. Of its flags, `-q` leaves out head and totals, `-N` writes plain numbers, `-6` whole IPv6
/// addresses.
fn start(program: &str, path: &Path, errors: &File) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg("-r").arg(Path::new(".").join(path)).args(["-q", "-N", "-6", "-o", FORMAT]);
    command.env("TZ", "UTC").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors.try_clone()?).spawn()
}

/// The process; it is ended when its output is not read any more.
struct Nfdump(Child);

impl Drop for Nfdump {
    fn drop(&mut self) {
        // It has ended, unless there was an error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What it wrote to stderr.
fn message(errors: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    errors.rewind()?;
    errors.take(MESSAGE_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).trim().replace('\n', "; ");
    Ok(shown(&text).into_owned())
}

/// Adds the values of a line to the row.
fn add(line: &[u8], columns: &[Option<Column>], row: &mut NamedRow) -> Result<(), String> {
    let invalid = || {
        format!("no line of nfdump: {:?}", String::from_utf8_lossy(&line[..line.len().min(200)]))
    };
    let text = str::from_utf8(line).map_err(|_| invalid())?;
    let mut fields = [""; NAMES.len()];
    let mut count = 0;
    for field in text.split('|') {
        *fields.get_mut(count).ok_or_else(invalid)? = field.trim();
        count += 1;
    }
    if count < fields.len() {
        return Err(invalid());
    }
    let is_icmp = matches!(fields[6], "1" | "58");
    for (at, (field, column)) in fields.into_iter().zip(columns).enumerate() {
        let Some(column) = *column else { continue };
        let added = match at {
            0 | 1 => row.add(column, Given::Number(milliseconds(field).ok_or_else(invalid)?)),
            2 | 3 => {
                let address: IpAddr = field.parse().map_err(|_| invalid())?;
                row.add(column, Given::Text(&address.to_string()))
            }
            4 | 5 if is_icmp => Ok(()),
            _ => row.add(column, Given::Text(field)),
        };
        added.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Milliseconds since 1970 of `2023-11-14 22:13:20.123`.
fn milliseconds(text: &str) -> Option<u64> {
    let (day, time) = text.split_once(' ')?;
    let mut numbers = day.splitn(3, '-').map(|number| number.parse::<u32>().ok());
    let day = day_of(numbers.next()??, numbers.next()??, numbers.next()??)?;
    let (time, thousandths) = time.split_once('.')?;
    let mut numbers = time.splitn(3, ':').map(|number| number.parse::<u64>().ok());
    let (hours, minutes, seconds) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let thousandths: u64 = (thousandths.len() == 3).then(|| thousandths.parse().ok())??;
    let is_time = hours < 24 && minutes < 60 && seconds < 61;
    is_time.then_some((((day * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000 + thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(milliseconds("1970-01-01 00:00:15.469"), Some(15_469));
        assert_eq!(milliseconds("2023-11-14 22:13:20.123"), Some(1_700_000_000_123));
        for text in [
            "",
            "2023-11-14",
            "2023-11-14 22:13:20",
            "2023-11-14 24:00:00.000",
            "2023-11-14 22:13:20.1",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }

    fn sum(line: &str) -> Result<Option<ringtap_export::sums::RowSum>, String> {
        let mut row = NamedRow::default();
        add(line.as_bytes(), &NAMES.map(Column::named), &mut row).map(|()| row.sum())
    }

    #[test]
    fn a_line_has_both_directions_and_icmp_no_ports() {
        const TIMES: &str = "2023-11-14 22:13:20.123|2023-11-14 22:13:27.456";
        let both =
            sum(&format!("{TIMES}|  2001:db8::1|2001:db8:0::2|  49152|443|6    |11|12|2101|1500"));
        let both = both.unwrap().unwrap();
        assert_eq!((both.end_ms, both.directions), (1_700_000_007_456, 2));
        assert_eq!((both.packets, both.octets), (23, 3_601));
        let echo = sum(&format!("{TIMES}|10.0.0.1|10.0.0.2|0|8.0|1|1|0|84|0")).unwrap();
        let plain = sum(&format!("{TIMES}|10.0.0.1|10.0.0.2|0|0|1|1|0|84|0")).unwrap();
        assert_eq!(echo, plain);
        for line in
            ["Summary: total flows: 0", "a|b|c|d|e|f|g|h|i|j|k", "||||||||||", "||||||||||||"]
        {
            assert!(sum(line).unwrap_err().starts_with("no line of nfdump"), "{line}");
        }
        let error = sum(&format!("{TIMES}|10.0.0.1|10.0.0.2|1|2|TCP|1|0|84|0")).unwrap_err();
        assert_eq!(error, "protocolIdentifier is \"TCP\", which is not a number");
    }

    #[test]
    fn a_program_that_is_missing_or_fails_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = |program| {
            let mut each = |_: &_| panic!("a record");
            let mut rows = Rows::new(file.path(), &mut each);
            read_by(program, file.path(), &mut rows).unwrap_err().to_string()
        };
        let missing = error("no-such-nfdump");
        assert!(missing.ends_with("which is not installed: install nfdump"), "{missing}");
        assert!(missing.starts_with(file.path().to_str().unwrap()), "{missing}");
        // It ends with 1 and writes nothing.
        assert!(error("false").ends_with("nfdump cannot read it: exit status: 1"));
        // It writes to stderr: it has no such flags.
        assert!(error("ls").contains("nfdump cannot read it: ls: "));
    }
}
