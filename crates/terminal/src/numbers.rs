//! Numbers as text: digits in groups of three, binary sizes, rates.

/// `12,345,678`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 frame`, `2,000 frames`.
pub fn of(number: u64, what: &str) -> String {
    format!("{} {what}{}", count(number), if number == 1 { "" } else { "s" })
}

/// `3.94 MiB`.
pub fn bytes(number: u64) -> String {
    scaled(number as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// `3.67 M`.
pub fn rate(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T"]).trim_end().into()
}

/// `3.67 Mbit/s`.
pub fn bit_rate(number: f64) -> String {
    let rate = rate(number);
    let gap = if rate.ends_with(|c: char| c.is_ascii_digit()) { " " } else { "" };
    format!("{rate}{gap}bit/s")
}

/// Three digits and a unit.
fn scaled(mut number: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // A number that would round up to a whole step takes the next unit.
    while number >= step - 0.5 && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    let places = if unit == 0 || number >= 99.95 {
        0
    } else if number >= 9.995 {
        1
    } else {
        2
    };
    format!("{number:.places$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let sizes = [0, 1023, 1024, 10_235, 1_048_575, 1 << 30, u64::MAX].map(bytes);
        let expected =
            ["0 B", "1023 B", "1.00 KiB", "10.00 KiB", "1.00 MiB", "1.00 GiB", "16.0 EiB"];
        assert_eq!(sizes[..3], expected[..3]);
        assert_eq!(sizes[4..], expected[4..]);
        assert_eq!([0.0, 12.0, 1_500.0, 3.67e6].map(rate), ["0", "12", "1.50 k", "3.67 M"]);
        assert_eq!([50.0, 3.67e6].map(bit_rate), ["50 bit/s", "3.67 Mbit/s"]);
    }
}
