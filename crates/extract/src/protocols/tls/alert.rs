//! Alerts that are not encrypted (RFC 8446, section 6).

use std::borrow::Cow;

use super::records::{ALERT, Record};

/// Names of descriptions (IANA, TLS Alerts registry).
const NAMES: [(u8, &str); 34] = [
    (0, "close_notify"),
    (10, "unexpected_message"),
    (20, "bad_record_mac"),
    (21, "decryption_failed"),
    (22, "record_overflow"),
    (30, "decompression_failure"),
    (40, "handshake_failure"),
    (41, "no_certificate"),
    (42, "bad_certificate"),
    (43, "unsupported_certificate"),
    (44, "certificate_revoked"),
    (45, "certificate_expired"),
    (46, "certificate_unknown"),
    (47, "illegal_parameter"),
    (48, "unknown_ca"),
    (49, "access_denied"),
    (50, "decode_error"),
    (51, "decrypt_error"),
    (60, "export_restriction"),
    (70, "protocol_version"),
    (71, "insufficient_security"),
    (80, "internal_error"),
    (86, "inappropriate_fallback"),
    (90, "user_canceled"),
    (100, "no_renegotiation"),
    (109, "missing_extension"),
    (110, "unsupported_extension"),
    (111, "certificate_unobtainable"),
    (112, "unrecognized_name"),
    (113, "bad_certificate_status_response"),
    (114, "bad_certificate_hash_value"),
    (115, "unknown_psk_identity"),
    (116, "certificate_required"),
    (120, "no_application_protocol"),
];

/// The description in a record that is an alert of level warning or fatal; encrypted alerts are longer.
pub(super) fn description(record: &Record<'_>) -> Option<u8> {
    match (record.kind, record.fragment) {
        (ALERT, &[1 | 2, description]) if record.len == 2 => Some(description),
        _ => None,
    }
}

/// The name of a description.
pub(super) fn name(description: u8) -> Cow<'static, str> {
    match NAMES.iter().find(|(own, _)| *own == description) {
        Some((_, name)) => (*name).into(),
        None => format!("alert_{description}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_have_names() {
        assert!(NAMES.is_sorted_by_key(|(number, _)| *number));
        assert_eq!([40, 48, 200].map(name), ["handshake_failure", "unknown_ca", "alert_200"]);
    }
}
