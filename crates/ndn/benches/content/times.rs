//! Times of the operations of the content store.

use ringtap_ndn::forwarder::ContentAlone;
use ringtap_ndn::packets::{Data, Interest};

/// CPU time of this thread, in nanoseconds.
fn core_ns() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of an operation on each item.
fn per_item<T>(items: &[T], mut act: impl FnMut(&T)) -> f64 {
    let start = core_ns();
    items.iter().for_each(&mut act);
    (core_ns() - start) / items.len().max(1) as f64
}

/// A name of an operation, and its time in nanoseconds.
pub(crate) fn all(test: bool) -> Vec<(String, f64)> {
    let (count, rounds) = if test { (1_000, 1) } else { (40_000, 5) };
    [100, 1_000, 8_000].into_iter().flat_map(|size| of_size(size, count, rounds)).collect()
}

/// The times for Data with this number of bytes of content.
fn of_size(size: usize, count: u64, rounds: usize) -> Vec<(String, f64)> {
    let mut wires = Vec::new();
    for key in 0..count {
        let (mut interest, mut data) = (Vec::new(), Vec::new());
        super::packets(key, size, &mut interest, &mut data);
        wires.push((interest, data));
    }
    let packets: Vec<_> = wires
        .iter()
        .filter_map(|(interest, data)| {
            Some((Interest::read(interest).ok()?, Data::read(data).ok()?))
        })
        .collect();
    // The store has room for half of the Data.
    let (stored, new) = packets.split_at(packets.len() / 2);
    let bytes = stored.len() * crate::rivals::weight(size) + (1 << 17);
    let mut best = [f64::INFINITY; 4];
    for _ in 0..rounds {
        let mut content = ContentAlone::new(bytes);
        let mut out = Vec::with_capacity(1 << 14);
        let mut hits = 0;
        let mut look_up = |content: &mut ContentAlone, interest: &Interest<'_>| {
            hits += usize::from(content.look_up(0, interest, &mut out));
        };
        let times = [
            per_item(stored, |(_, data)| content.put(0, data)),
            per_item(stored, |(interest, _)| look_up(&mut content, interest)),
            per_item(new, |(interest, _)| look_up(&mut content, interest)),
            per_item(new, |(_, data)| content.put(0, data)),
        ];
        assert_eq!((hits, content.bytes() <= bytes), (stored.len(), true));
        best = std::array::from_fn(|at| best[at].min(times[at]));
    }
    let names = ["put, empty", "look-up, hit", "look-up, miss", "put, full, all used"];
    names.iter().zip(best).map(|(name, ns)| (format!("{name}, {size} bytes"), ns)).collect()
}
