//! Makes room in a full table of sums: drops the smaller half.
//!
//! Misra–Gries with several sums a row. A row's rank is the largest of its shares of the totals, so
//! a row that is large by any sum stays. A dropped key starts again at zero, and loses each time at
//! most the largest dropped sum; so the sum of these maxima bounds the loss of any key. Half of the
//! table has to fill before the next time, so the work for each new key is constant.

use ringtap_flow::{Aggregate, Row};

/// Sampled rows to find the median.
const SAMPLE: usize = 1_024;

/// Makes room in `table`, whose rows must be settled, and adds to `lost` the largest loss of any
/// key.
#[cold]
pub(super) fn make_room<R: Row, const N: usize>(
    table: &mut Aggregate<R>,
    lost: &mut [u64; N],
    sums: impl Fn(&R) -> [u64; N],
) {
    let mut totals = [1_u64; N];
    for row in table.rows() {
        for (total, sum) in totals.iter_mut().zip(sums(row)) {
            *total = total.saturating_add(sum);
        }
    }
    let rank = |row: &R| {
        let share = |(sum, total): (u64, u64)| (u128::from(sum) << 32) / u128::from(total);
        sums(row).into_iter().zip(totals).map(share).max().unwrap_or(0)
    };
    let step = table.len().div_ceil(SAMPLE).max(1);
    let mut ranks: Vec<u128> = table.rows().step_by(step).map(rank).collect();
    let middle = ranks.len() / 2;
    let Some(&mut bar) = (!ranks.is_empty()).then(|| ranks.select_nth_unstable(middle).1) else {
        return;
    };
    let mut most = [0; N];
    table.retain(|row| {
        let stays = rank(row) > bar;
        if !stays {
            for (most, sum) in most.iter_mut().zip(sums(row)) {
                *most = sum.max(*most);
            }
        }
        stays
    });
    for (lost, most) in lost.iter_mut().zip(most) {
        *lost = lost.saturating_add(most);
    }
}
