//! Alerts as syslog messages (RFC 5424) to a local socket or over UDP (RFC 5426), TCP (RFC 6587) and TLS (RFC 5425).

use std::io;
use std::time::UNIX_EPOCH;

use ringtap_base::text::shown;

use super::{Notice, Severity, Target, count_lost, count_sent};
use crate::formats::date::push_rfc_3339;
use crate::settings::Tls;
use crate::shared::{Shared, wall_clock};
use crate::summary::Reason;
use crate::transports::{Delivery, Link, Opened, Route, Trouble};

/// "daemon" (RFC 5424, section 6.2.1).
const FACILITY: u8 = 3;

/// Name of the structured data. The number is that of examples (RFC 5612), because the project has none of its own.
const STRUCTURED_DATA: &str = "ringtap@32473";

/// Longest name of a host (RFC 5424, section 6).
const HOST_NAME: usize = 255;

pub(crate) struct Syslog {
    link: Box<dyn Link>,
    /// Each message is preceded by its length (RFC 6587, section 3.4.1; RFC 5425, section 4.3).
    is_stream: bool,
    /// Octets of the last datagram, while it may still be refused.
    in_doubt: Option<usize>,
    /// The last datagram was refused.
    refused: bool,
    /// Name of this host, program and process.
    origin: String,
}

impl Syslog {
    pub(crate) fn new(route: &Route, tls: &Tls) -> io::Result<Self> {
        let (link, is_stream) = (route.link(tls)?, route.transport.is_stream);
        Ok(Self { link, is_stream, in_doubt: None, refused: false, origin: origin() })
    }

    /// The last datagram was not refused, or it was.
    fn settle(&mut self, delivery: Delivery, shared: &Shared) {
        self.refused = delivery == Delivery::EarlierRefused;
        match (self.in_doubt.take(), delivery) {
            (Some(octets), Delivery::Taken) => count_sent(octets, shared),
            (Some(_), Delivery::EarlierRefused) => count_lost(Reason::Refused, shared),
            (None, _) => {}
        }
    }
}

impl Target for Syslog {
    fn deliver(&mut self, notice: &Notice, shared: &Shared) {
        let text = message(notice, &self.origin);
        let text = if self.is_stream { format!("{} {text}", text.len()) } else { text };
        loop {
            if let Opened::Never(reason) = self.link.open(shared) {
                return count_lost(reason, shared);
            }
            match self.link.send(text.as_bytes(), shared) {
                Ok(delivery) => {
                    self.settle(delivery, shared);
                    if !self.refused {
                        shared.works();
                    }
                    // Only a datagram may be refused later.
                    if self.link.repeats_templates() {
                        self.in_doubt = Some(text.len());
                    } else {
                        count_sent(text.len(), shared);
                    }
                    return;
                }
                Err(Trouble::Broken) => {}
                Err(Trouble::Lost(reason)) => {
                    // Also the error about the datagram before.
                    self.settle(Delivery::EarlierRefused, shared);
                    self.refused = reason == Reason::Refused;
                    return count_lost(reason, shared);
                }
            }
        }
    }

    fn tick(&mut self, shared: &Shared) {
        if self.in_doubt.is_some() {
            let delivery = self.link.settle(shared);
            self.settle(delivery, shared);
        }
    }

    fn finish(&mut self, shared: &Shared) {
        self.tick(shared);
        self.link.close(shared);
    }

    fn is_refused(&self) -> bool {
        self.refused
    }
}

/// HOSTNAME, APP-NAME and PROCID.
fn origin() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = name.trim().chars().filter(char::is_ascii_graphic).take(HOST_NAME).collect();
    let name = if name.is_empty() { "-".into() } else { name };
    format!("{name} ringtap {}", std::process::id())
}

/// The severity of a message (RFC 5424, section 6.2.1): error, warning, notice or informational.
const fn number(severity: Severity) -> u8 {
    match severity {
        Severity::High => 3,
        Severity::Medium => 4,
        Severity::Low => 5,
        Severity::Info => 6,
    }
}

fn message(notice: &Notice, origin: &str) -> String {
    let severity = number(if notice.is_end { Severity::Info } else { notice.severity });
    let now = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut time = Vec::new();
    push_rfc_3339(&mut time, now.as_nanos() as u64);
    let time = String::from_utf8_lossy(&time);
    let priority = FACILITY * 8 + severity;
    let mut text = format!("<{priority}>1 {time} {origin} {} [{STRUCTURED_DATA}", notice.kind);
    let lost = Some(notice.lost_before).filter(|lost| *lost > 0);
    let lost = lost.map(|lost| ("lost_before".to_owned(), lost.to_string()));
    for (name, value) in notice.fields.iter().chain(&lost) {
        text.push_str(&format!(" {name}=\""));
        for letter in shown(value).chars() {
            if matches!(letter, '"' | '\\' | ']') {
                text.push('\\');
            }
            text.push(letter);
        }
        text.push('"');
    }
    text.push_str("] ");
    text += &shown(&notice.text);
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::path::Path;

    use super::*;
    use crate::alerts::tests::{notice, shared};
    use crate::transports;

    #[test]
    fn a_message_has_the_form_of_rfc_5424() {
        let mut own = notice("a scans\nb → c");
        own.fields = vec![("id".into(), "7".into()), ("entry".into(), "a\"b\\c]\nd".into())];
        own.lost_before = 2;
        let text = message(&own, "probe ringtap 42");
        let (header, rest) = text.split_once(" probe ").unwrap();
        let (priority, time) = header.split_once("1 ").unwrap();
        assert_eq!((priority, time.ends_with('Z')), ("<28>", true), "{text}");
        assert_eq!(
            rest,
            "ringtap 42 flood [ringtap@32473 id=\"7\" entry=\"a\\\"b\\\\c\\]\\\\u{a}d\" lost_before=\"2\"] a scans\\u{a}b → c"
        );
        for (severity, number) in Severity::ALL.into_iter().zip([30, 29, 28, 27]) {
            own.severity = severity;
            assert!(message(&own, "-").starts_with(&format!("<{number}>1 ")), "{severity:?}");
        }
        own.is_end = true;
        assert!(message(&own, "-").starts_with("<30>1 "));
    }

    fn syslog_to(path: &Path) -> Syslog {
        let local = transports::named("local").unwrap();
        let route = Route::new(local, path.to_str().unwrap(), None).unwrap();
        Syslog::new(&route, &Tls::default()).unwrap()
    }

    #[test]
    fn a_datagram_that_is_too_long_is_lost_and_the_next_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let receiver = UnixDatagram::bind(&path).unwrap();
        let shared = shared();
        let mut syslog = syslog_to(&path);
        syslog.deliver(&notice(&"x".repeat(8 << 20)), &shared);
        syslog.deliver(&notice("next"), &shared);
        let mut bytes = [0; 1024];
        let length = receiver.recv(&mut bytes).unwrap();
        assert!(bytes[..length].ends_with(b"next"));
        let status = shared.status();
        assert_eq!((status.sent, status.lost(Reason::Failed)), (1, 1));
    }

    #[test]
    fn a_local_socket_may_appear_later_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let shared = shared();
        let mut syslog = syslog_to(&path);
        for round in ["one", "two"] {
            let receiver = UnixDatagram::bind(&path).unwrap();
            syslog.deliver(&notice(round), &shared);
            let mut bytes = [0; 1024];
            let length = receiver.recv(&mut bytes).unwrap();
            assert!(bytes[..length].ends_with(round.as_bytes()));
            drop(receiver);
            std::fs::remove_file(&path).unwrap();
        }
        shared.cancel();
        syslog.deliver(&notice("three"), &shared);
        let status = shared.status();
        assert_eq!((status.sent, status.lost(Reason::TooLate)), (2, 1));
    }
}
