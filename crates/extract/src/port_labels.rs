//! The user's labels of ports: a port with its protocol and a label on each line.
//!
//! ```text
//! 8443/tcp  internal-api     # a comment
//! 5000/udp  telemetry
//! ```
//!
//! Of equal ports the last one counts. The list is sorted by protocol and port, and searched by halves.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::label::{Application, ApplicationReason, InvalidNames, LABEL_MAX, Label, TCP, UDP, key};

/// Protocols with ports.
const PROTOCOLS: [(&str, u8); 5] =
    [("tcp", TCP), ("udp", UDP), ("dccp", 33), ("sctp", 132), ("udplite", 136)];

/// Labels of ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortLabels(Vec<(u32, Label)>);

impl PortLabels {
    /// Parses a list.
    pub(crate) fn parse(list: &[u8]) -> Result<Self, InvalidNames> {
        let mut all = Vec::new();
        for (line, text) in ringtap_base::list_lines(list) {
            let invalid = |why| InvalidNames { line, why };
            let text = text.map_err(|_| invalid("not UTF-8".to_owned()))?;
            let mut words = text.split_whitespace();
            let (Some(port), Some(label), None) = (words.next(), words.next(), words.next()) else {
                return Err(invalid(format!(
                    "{text:?} is not a port and a label: write a line such as \"8443/tcp internal-api\""
                )));
            };
            let port = number(port).ok_or_else(|| {
                let names = PROTOCOLS.map(|(name, _)| name).join(", ");
                invalid(format!(
                    "invalid port {port:?}: use 1 to 65535, / and one of {names}, as in 8443/tcp"
                ))
            })?;
            let own = Label::new(label.as_bytes()).ok_or_else(|| {
                invalid(format!(
                    "invalid label {label:?}: use up to {LABEL_MAX} printable characters of ASCII"
                ))
            })?;
            all.push((port, own));
        }
        // Stable: of equal ports the last one stays, which is now the first.
        all.reverse();
        all.sort_by_key(|&(port, _)| port);
        all.dedup_by_key(|&mut (port, _)| port);
        all.shrink_to_fit();
        Ok(Self(all))
    }

    /// The application of the lower port, else of the higher one.
    #[inline]
    pub(crate) fn find(&self, protocol: u8, [one, other]: [u16; 2]) -> Option<Application> {
        if self.0.is_empty() {
            return None;
        }
        let label = |port| {
            let at = self.0.binary_search_by_key(&key(protocol, port), |&(port, _)| port).ok()?;
            Some(self.0[at].1)
        };
        let label = label(one.min(other)).or_else(|| label(one.max(other)))?;
        Some(Application { label, reason: ApplicationReason::Port })
    }

    /// The different labels.
    pub(crate) fn labels(&self) -> BTreeSet<Label> {
        self.0.iter().map(|&(_, label)| label).collect()
    }

    /// Adds the ports and labels to a digest; nothing if there are none.
    pub(crate) fn digest(&self, hasher: &mut Sha256) {
        for (port, label) in &self.0 {
            hasher.update([0]);
            hasher.update(port.to_le_bytes());
            hasher.update(label.padded());
        }
    }

    /// Memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<(u32, Label)>()
    }
}

/// The key of a port such as `8443/tcp`.
fn number(text: &str) -> Option<u32> {
    let (port, protocol) = text.split_once('/')?;
    let port = port.parse().ok().filter(|&port: &u16| port > 0)?;
    let named = |(name, _): &&(&str, u8)| name.eq_ignore_ascii_case(protocol);
    PROTOCOLS.iter().find(named).map(|&(_, protocol)| key(protocol, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applications::tests::facts;
    use crate::applications::{LABELS_MAX, Names};
    use crate::{Facts, Kind};

    fn names(list: &str) -> Names {
        Names::parse(b"example.org service").unwrap().with_ports(list.as_bytes()).unwrap()
    }

    #[test]
    fn a_label_of_a_port_is_before_the_table_and_after_payloads() {
        let names = names("8443/tcp internal-api\n443/UDP mine # ours\n22/tcp x\n22/tcp jump\n");
        let of = |protocol, ports, facts: &Facts| {
            let found = names.application(protocol, ports, facts)?;
            Some((found.label.as_str().to_owned(), found.reason.name()))
        };
        let none = Facts::default();
        let by = |label: &str, reason| Some((label.to_owned(), reason));
        assert_eq!(of(TCP, [50_000, 8_443], &none), by("internal-api", "port"));
        assert_eq!(of(TCP, [22, 8_443], &none), by("jump", "port"), "the last, and the lower port");
        assert_eq!(of(TCP, [8_443, 443], &none), by("internal-api", "port"), "before the table");
        assert_eq!(of(UDP, [443, 50_000], &none), by("mine", "port"));
        assert_eq!(of(UDP, [8_443, 50_000], &none), None);
        assert_eq!(of(TCP, [443, 50_000], &none), by("https", "port"));
        assert_eq!(of(1, [0, 0], &none), None);
        let tls = facts(&[(Kind::Protocol, "tls")]);
        assert_eq!(of(TCP, [50_000, 8_443], &tls), by("tls", "content"));
        let named = facts(&[(Kind::Protocol, "tls"), (Kind::TlsServerName, "www.example.org")]);
        assert_eq!(of(TCP, [50_000, 8_443], &named), by("service", "name"));
    }

    #[test]
    fn labels_count_once_and_change_the_digest() {
        let plain = Names::parse(b"example.org service").unwrap();
        let same = names("# none\n");
        assert_eq!((same.digest(), same.labels()), (plain.digest(), 1));
        let one = names("1/tcp service\n2/tcp a\n3/sctp a\n");
        assert_eq!(one.each_label().collect::<Vec<_>>(), ["service", "a"]);
        assert_ne!(one.digest(), plain.digest());
        assert_ne!(one.digest(), names("1/tcp service\n2/tcp a\n3/dccp a\n").digest());
        assert!(one.memory() > plain.memory());
        // More ports than there are labels.
        let ports =
            |(name, _)| (1..=u16::MAX).map(move |port| format!("{port}/{name} {name}{port}\n"));
        let many: String = PROTOCOLS[..2].iter().copied().flat_map(ports).collect();
        let error = Names::default().with_ports(many.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&format!("more than {LABELS_MAX} labels")), "{error}");
    }

    #[test]
    fn a_wrong_line_is_an_error_with_its_number() {
        let error = |list: &str| {
            let error = Names::default().with_ports(list.as_bytes()).unwrap_err();
            (error.line, error.to_string())
        };
        for (list, words) in [
            ("8443/tcp", "write a line such as"),
            ("8443/tcp a b", "write a line such as"),
            ("8443 a", "invalid port \"8443\""),
            ("0/tcp a", "invalid port \"0/tcp\""),
            ("65536/tcp a", "use 1 to 65535"),
            ("1/icmp a", "tcp, udp, dccp, sctp, udplite"),
            ("1/tcp é", "printable characters of ASCII"),
            ("1/tcp 0123456789012345678901234567890", "up to 30"),
        ] {
            let (line, text) = error(&format!("# ports\n{list}\n"));
            assert!(line == 2 && text.contains(words), "{list}: {text}");
        }
    }
}
