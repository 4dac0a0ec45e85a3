//! Order statistics of a few measurements of unknown distribution.
//!
//! The rank test is that of H. B. Mann and D. R. Whitney, "On a Test of Whether One of Two Random
//! Variables is Stochastically Larger than the Other" (1947).

/// Confidence level of an interval over the planned rounds.
pub const CONFIDENCE: f64 = 0.95;
/// Maximum number of pairs for which the rank test is exact, if there are no ties.
const EXACT_PAIRS: usize = 1_600;

/// Median, quartiles and number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Median.
    pub median: f64,
    /// First quartile.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
    /// Number of values.
    pub count: usize,
}

/// The summary of values; `None` if there are none.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let sorted = sorted(values);
    let last = sorted.len().checked_sub(1)?;
    // Linear interpolation between two neighbours.
    let at = |share: f64| {
        let place = share * last as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        low + (high - low) * place.fract()
    };
    Some(Summary { median: at(0.5), low: at(0.25), high: at(0.75), count: sorted.len() })
}

/// The median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    summary(values).map(|summary| summary.median)
}

/// A confidence interval of the true median, from the k-th smallest value to the k-th largest. With
/// enough values, k is the largest for this confidence. With fewer values (five for 95 %) the interval
/// is their range, with lower confidence (five: 94 %, three: 75 %). `None` without values.
pub fn interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let sorted = sorted(values);
    let n = sorted.len();
    let last = n.checked_sub(1)?;
    // The interval misses the median with twice the probability of fewer than k heads in n coin
    // flips.
    let (mut k, mut below, mut term) = (0, 0.0, 0.5f64.powi(n as i32));
    while k < last / 2 {
        below += term;
        term *= (n - k) as f64 / (k + 1) as f64;
        if 2.0 * (below + term) > 1.0 - confidence {
            break;
        }
        k += 1;
    }
    Some((sorted[k], sorted[last - k]))
}

/// The two-sided p-value of the rank test: the probability that two samples of one distribution
/// differ in their ranks at least as much as `a` and `b`. It is 1 if a sample is empty.
pub fn rank_test(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let (n, m) = (a.len() as f64, b.len() as f64);
    let half = |x: f64, y: f64| {
        if x > y {
            1.0
        } else if x == y {
            0.5
        } else {
            0.0
        }
    };
    let u: f64 = a.iter().map(|&x| b.iter().map(|&y| half(x, y)).sum::<f64>()).sum();
    let all = sorted(&[a, b].concat());
    let ties: Vec<f64> = all.chunk_by(|x, y| x == y).map(|same| same.len() as f64).collect();
    if ties.len() == all.len() && a.len() * b.len() <= EXACT_PAIRS {
        return exact(a.len(), b.len(), u.min(n * m - u) as usize);
    }
    let tied: f64 = ties.iter().map(|t| t * t * t - t).sum();
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - tied / (total * (total - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    two_tails(distance / variance.sqrt())
}

/// The share of all arrangements of n and m values with a U of at most `u` or at least nm − u.
fn exact(n: usize, m: usize, u: usize) -> f64 {
    // counts[j][s]: number of arrangements of i values of a and j of b with U = s. If the largest
    // value is of a, it exceeds all j of b; otherwise it adds nothing to U:
    // counts(i, j, s) = counts(i − 1, j, s − j) + counts(i, j − 1, s).
    let mut counts = vec![vec![0.0f64; n * m + 1]; m + 1];
    for row in &mut counts {
        row[0] = 1.0;
    }
    for _ in 0..n {
        for j in 1..=m {
            for s in (0..=n * m).rev() {
                let of_a = if s >= j { counts[j][s - j] } else { 0.0 };
                counts[j][s] = of_a + counts[j - 1][s];
            }
        }
    }
    let all: f64 = counts[m].iter().sum();
    let tail: f64 = counts[m][..=u].iter().sum();
    (2.0 * tail / all).min(1.0)
}

/// The probability beyond ±z of the normal distribution (Abramowitz and Stegun, 26.2.17, with an
/// error below 1.5 × 10⁻⁷).
fn two_tails(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (2.0 * density * polynomial).clamp(0.0, 1.0)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, known: f64, within: f64) {
        assert!((found - known).abs() < within, "{found} is not {known}");
    }

    #[test]
    fn medians_and_quartiles() {
        assert_eq!(summary(&[]), None);
        let four = summary(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(four, Summary { median: 2.5, low: 1.75, high: 3.25, count: 4 });
        assert_eq!(median(&[7.0]), Some(7.0));
    }

    #[test]
    fn intervals_equal_those_of_the_sign_test() {
        let first = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&[], CONFIDENCE), None);
        assert_eq!(interval(&first(3), CONFIDENCE), Some((1.0, 3.0)));
        assert_eq!(interval(&first(5), CONFIDENCE), Some((1.0, 5.0)));
        // Published tables have d = 1 for 6 to 8, 2 for 9 to 11, 3 for 12, 6 for 20, 10 for 30.
        assert_eq!(interval(&first(8), CONFIDENCE), Some((1.0, 8.0)));
        assert_eq!(interval(&first(9), CONFIDENCE), Some((2.0, 8.0)));
        assert_eq!(interval(&first(12), CONFIDENCE), Some((3.0, 10.0)));
        assert_eq!(interval(&first(20), CONFIDENCE), Some((6.0, 15.0)));
        assert_eq!(interval(&first(30), CONFIDENCE), Some((10.0, 21.0)));
        // At 99 % d is 1 for 8, 3 for 15, 8 for 30.
        assert_eq!(interval(&first(8), 0.99), Some((1.0, 8.0)));
        assert_eq!(interval(&first(15), 0.99), Some((3.0, 13.0)));
        assert_eq!(interval(&first(30), 0.99), Some((8.0, 23.0)));
    }

    #[test]
    fn rank_tests_match_published_tables() {
        let upto = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        // All of one above all of the other: 2 / (n + m choose n).
        near(rank_test(&upto(3), &[4.0, 5.0, 6.0]), 2.0 / 20.0, 1e-12);
        near(rank_test(&[6.0, 7.0, 8.0, 9.0, 10.0], &upto(5)), 2.0 / 252.0, 1e-12);
        // U = 23 is the critical value of 10 and 10 at 5 %: 0.0433 there, 0.0524 at 24.
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 16.0, 17.0, 18.0];
        let b = [8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 19.0, 20.0];
        near(rank_test(&a, &b), 0.0524, 5e-5);
        assert_eq!(rank_test(&a, &b), rank_test(&b, &a));
        // With ties or many values the test uses the normal approximation.
        near(rank_test(&[1.0, 1.0, 2.0, 2.0], &[1.0, 1.0, 2.0, 2.0]), 1.0, 1e-6);
        near(two_tails(1.96), 0.05, 1e-4);
        assert_eq!(rank_test(&[], &[1.0]), 1.0);
        assert_eq!(rank_test(&[1.0; 4], &[1.0; 4]), 1.0);
    }
}
