//! The current date.

/// Today in UTC, as 2026-11-22.
pub(crate) fn today() -> String {
    let (year, month, day) = ringtap_base::civil(ringtap_base::now_ns() / 86_400_000_000_000);
    format!("{year:04}-{month:02}-{day:02}")
}
