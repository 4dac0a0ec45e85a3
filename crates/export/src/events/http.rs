//! Values of HTTP in the parts that other programs write.

/// The name and the port in a host (RFC 9110, section 7.2): `example.org:8080`, `[2001:db8::1]:80`.
pub(super) fn host_and_port(host: &[u8]) -> (&[u8], Option<u16>) {
    let Some(colon) = host.iter().rposition(|&byte| byte == b':') else { return (host, None) };
    let (name, digits) = (&host[..colon], &host[colon + 1..]);
    let is_name = !name.contains(&b':') || name.ends_with(b"]");
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if !is_name || !is_number {
        return (host, None);
    }
    (name, str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()))
}

/// A content type without its parameters.
pub(super) fn media_type(value: &[u8]) -> &[u8] {
    let end = value.iter().position(|&byte| byte == b';').unwrap_or(value.len());
    value[..end].trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_types_have_parts() {
        for (host, name, port) in [
            ("example.org", "example.org", None),
            ("example.org:8080", "example.org", Some(8_080)),
            ("[2001:db8::1]:80", "[2001:db8::1]", Some(80)),
            ("2001:db8::1", "2001:db8::1", None),
            ("h:99999", "h", None),
            ("h:", "h:", None),
            (":80", "", Some(80)),
        ] {
            assert_eq!(host_and_port(host.as_bytes()), (name.as_bytes(), port), "{host}");
        }
        assert_eq!(media_type(b"text/html ; charset=utf-8"), b"text/html");
        assert_eq!((media_type(b"a/b"), media_type(b"")), (&b"a/b"[..], &b""[..]));
    }
}
