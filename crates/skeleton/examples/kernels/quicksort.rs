//! Quicksort's partition, and numbers to be sorted.

/// Lists no longer than this are sorted by the standard library.
pub(crate) const CUT: usize = 1 << 16;

/// Partitions the list so that no item of the first part is larger than one of the second; both are
/// shorter than `list`, which has at least 3 items. Items between the two parts are in their final
/// place.
pub(crate) fn partition(list: &mut [u32]) -> (&mut [u32], &mut [u32]) {
    let last = list.len() - 1;
    list.swap(last, median_of_nine(list));
    let pivot = list[last];
    let mut less = sweep(&mut list[..last], |x| x < pivot);
    list.swap(less, last);
    let mut more = less + 1;
    if less == 0 {
        // Nothing is smaller: items equal to the pivot are in their place, or equal items would
        // recurse for ever.
        more = 1 + sweep(&mut list[1..], |x| x <= pivot);
        less = 0;
    }
    let (first, rest) = list.split_at_mut(more);
    (&mut first[..less], rest)
}

/// Moves the items for which `small` is true to the front, without a branch that could be
/// mispredicted; returns their number.
fn sweep(list: &mut [u32], small: impl Fn(u32) -> bool) -> usize {
    let mut count = 0;
    for at in 0..list.len() {
        list.swap(at, count);
        count += usize::from(small(list[count]));
    }
    count
}

/// The position of a median of medians of three, out of nine.
fn median_of_nine(list: &[u32]) -> usize {
    let last = list.len() - 1;
    let at = |n: usize| n * last / 8;
    let of = |mut three: [usize; 3]| {
        three.sort_unstable_by_key(|&at| list[at]);
        three[1]
    };
    of([of([at(0), at(1), at(2)]), of([at(3), at(4), at(5)]), of([at(6), at(7), at(8)])])
}

/// Pseudo-random numbers (SplitMix64).
pub(crate) fn numbers(n: usize) -> Vec<u32> {
    let mut state = 42u64;
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as u32
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// A value that sorting does not change.
pub(crate) fn fingerprint(list: &[u32]) -> (u64, u32) {
    (list.iter().map(|&x| u64::from(x)).sum(), list.iter().fold(0, |all, x| all ^ x))
}
