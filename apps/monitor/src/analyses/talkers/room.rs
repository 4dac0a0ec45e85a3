//! Room in a full table of sums: the lesser half goes.
//!
//! Misra–Gries with several sums a row. A row's rank is the largest of its shares of the totals, so who is large by any
//! of its sums stays. A key that comes again begins anew, and has lost at each time at most what the largest of those
//! that went had; so the sum of these maxima bounds what any key lost, kept or not. Half of the table has to fill before
//! the next time, so the work for each new key is constant.

use ringtap_flow::Dense;

/// Rows that are asked where the middle is.
const ASKED: usize = 1_024;

/// Makes room in `rows`, and adds to `lost` what any key may have lost by it.
#[cold]
pub(super) fn make_room<T, const N: usize>(
    rows: &mut Dense<T>,
    lost: &mut [u64; N],
    sums: impl Fn(&T) -> [u64; N],
    hash: impl Fn(&T) -> u32,
) {
    let mut totals = [1_u64; N];
    for row in rows.rows() {
        for (total, sum) in totals.iter_mut().zip(sums(row)) {
            *total = total.saturating_add(sum);
        }
    }
    let rank = |row: &T| {
        let share = |(sum, total): (u64, u64)| (u128::from(sum) << 32) / u128::from(total);
        sums(row).into_iter().zip(totals).map(share).max().unwrap_or(0)
    };
    let step = rows.len().div_ceil(ASKED).max(1);
    let mut asked: Vec<u128> = rows.rows().iter().step_by(step).map(rank).collect();
    let middle = asked.len() / 2;
    let Some(&mut bar) = (!asked.is_empty()).then(|| asked.select_nth_unstable(middle).1) else {
        return;
    };
    let mut most = [0; N];
    let keep = |row: &T| {
        let stays = rank(row) > bar;
        if !stays {
            for (most, sum) in most.iter_mut().zip(sums(row)) {
                *most = sum.max(*most);
            }
        }
        stays
    };
    rows.retain(keep, hash);
    for (lost, most) in lost.iter_mut().zip(most) {
        *lost = lost.saturating_add(most);
    }
}
