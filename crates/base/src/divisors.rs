//! Numbers that divide others.

/// The greatest number that divides both; the other one if one is 0.
pub const fn greatest_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_divisor(other, one % other) }
}

/// The least number that both divide, at most [`u64::MAX`]; 0 if one is 0.
pub const fn least_multiple(one: u64, other: u64) -> u64 {
    match one.checked_div(greatest_divisor(one, other)) {
        Some(factor) => factor.saturating_mul(other),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_and_multiples_of_two() {
        for (one, other, divisor, multiple) in [
            (300, 60, 60, 300),
            (45, 300, 15, 900),
            (7, 10, 1, 70),
            (5, 0, 5, 0),
            (0, 0, 0, 0),
            (u64::MAX, u64::MAX - 1, 1, u64::MAX),
        ] {
            assert_eq!(
                (greatest_divisor(one, other), least_multiple(one, other)),
                (divisor, multiple)
            );
            assert_eq!(greatest_divisor(other, one), divisor);
            assert_eq!(least_multiple(other, one), multiple);
        }
    }
}
