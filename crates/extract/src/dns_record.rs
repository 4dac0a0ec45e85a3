//! The values of [`Kind::DnsRecords`](crate::Kind::DnsRecords), read again.

use std::borrow::Cow;

/// A resource record: `owner type TTL data`, or `owner class/type TTL data` for other classes than IN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DnsRecord<'a> {
    /// The owner, with escapes: see [`DnsRecord::owner`].
    pub owner: &'a [u8],
    /// The class; `None` for IN.
    pub class: Option<&'a [u8]>,
    /// The type, such as `A`, or `TYPE` and a number.
    pub kind: &'a [u8],
    /// The time to live, seconds, in decimal digits.
    pub ttl: &'a [u8],
    /// The data: an address, a name, a text, or several parts.
    pub data: &'a [u8],
}

impl<'a> DnsRecord<'a> {
    /// The record of this value; `None` if it is none.
    ///
    /// ```
    /// use ringtap_extract::DnsRecord;
    ///
    /// let record = DnsRecord::of(br"My\032Printer.local SRV 120 0 0 631 printer.local").unwrap();
    /// assert_eq!(*record.owner(), *b"My Printer.local");
    /// assert_eq!((record.kind, record.ttl), (&b"SRV"[..], &b"120"[..]));
    /// assert_eq!(*record.target().unwrap(), *b"printer.local");
    /// ```
    pub fn of(value: &'a [u8]) -> Option<Self> {
        let mut parts = value.splitn(4, |&byte| byte == b' ');
        let [owner, kind, ttl, data] = std::array::from_fn(|_| parts.next());
        let (owner, kind, ttl, data) = (owner?, kind?, ttl?, data?);
        let (class, kind) = match kind.iter().position(|&byte| byte == b'/') {
            Some(at) => (Some(&kind[..at]), &kind[at + 1..]),
            None => (None, kind),
        };
        Some(Self { owner, class, kind, ttl, data })
    }

    /// The name of the owner.
    pub fn owner(&self) -> Cow<'a, [u8]> {
        unescaped(self.owner)
    }

    /// The address, or the name that the owner leads to; `None` for other types, for data that could not be read, and if an
    /// alias of a service is the owner itself.
    pub fn target(&self) -> Option<Cow<'a, [u8]>> {
        // RFC 3597, section 5.
        if self.data.starts_with(b"\\# ") {
            return None;
        }
        let part = match self.kind {
            b"A" | b"AAAA" | b"NS" | b"CNAME" | b"PTR" | b"DNAME" => {
                return Some(Cow::Borrowed(self.data)).filter(|data| !data.is_empty());
            }
            b"MX" | b"SVCB" | b"HTTPS" => 1,
            b"SRV" => 3,
            _ => return None,
        };
        let is_own = |target: &&[u8]| *target == b"." && part == 1 && self.kind != b"MX";
        self.part(part).filter(|target| !target.is_empty() && !is_own(target)).map(unescaped)
    }

    /// A part of the data.
    pub fn part(&self, number: usize) -> Option<&'a [u8]> {
        self.data.split(|&byte| byte == b' ').nth(number)
    }
}

/// A text without the escapes `\DDD`.
pub fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind
            .first_chunk::<3>()
            .filter(|digits| byte == b'\\' && digits.iter().all(u8::is_ascii_digit));
        let code = digits.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_split_and_targets_found() {
        for (value, expected) in [
            ("a.example A 5 192.0.2.1", Some("192.0.2.1")),
            (r"a.local PTR 5 My Printer\032.local", Some(r"My Printer\032.local")),
            ("example MX 5 10 mail.example", Some("mail.example")),
            (r"example SRV 5 1 2 3 a\032b.example", Some("a b.example")),
            ("example MX 5 0 .", Some(".")),
            ("example HTTPS 5 1 . alpn=h3", None),
            ("example HTTPS 5 0 a.example", Some("a.example")),
            (r"example HTTPS 5 \# 8 0001000003000101", None),
            ("example TXT 5 v=spf1", None),
            ("example ANY/A 0 ", None),
        ] {
            let target = DnsRecord::of(value.as_bytes()).unwrap().target();
            assert_eq!(target.as_deref(), expected.map(str::as_bytes), "{value}");
        }
        assert_eq!(DnsRecord::of(b"example A"), None);
        let deleted = DnsRecord::of(b"host ANY/A 0 ").unwrap();
        assert_eq!((deleted.class, deleted.kind), (Some(&b"ANY"[..]), &b"A"[..]));
    }

    #[test]
    fn escapes_become_bytes() {
        for (text, plain) in [
            (r"a\032b\092c", &b"a b\\c"[..]),
            (r"a\255", b"a\xff"),
            (r"a\256", br"a\256"),
            (r"a\03", br"a\03"),
            (r"a\+12", br"a\+12"),
            ("a\\", b"a\\"),
        ] {
            assert_eq!(*unescaped(text.as_bytes()), *plain, "{text}");
        }
    }
}
