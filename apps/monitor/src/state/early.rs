//! Slices that were made before the mark of their interval, because packets were out of order or far ahead of time. They
//! wait for the part of their interval.

use ringtap_flow::FlowRecord;

/// Most memory of slices that wait for the part of their interval, bytes.
pub(super) const EARLY_BYTES: usize = 4 << 20;

/// The loss of slices that had no room to wait.
pub(crate) const EARLY_LOST: &str = "slices of flows in an earlier part";

/// The slices that wait.
#[derive(Default)]
pub(super) struct Early {
    slices: Vec<FlowRecord>,
    bytes: usize,
}

impl Early {
    fn bytes_of(slice: &FlowRecord) -> usize {
        // The vector may have twice the room.
        2 * size_of::<FlowRecord>() + slice.facts.size()
    }

    /// Keeps a slice; false if there is no room.
    pub(super) fn keep(&mut self, slice: &FlowRecord) -> bool {
        let bytes = self.bytes + Self::bytes_of(slice);
        if bytes > EARLY_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.slices.push(slice.clone());
        true
    }

    /// Takes the slices that begin before a time.
    pub(super) fn take_before(&mut self, time_ns: u64) -> Vec<FlowRecord> {
        let taken: Vec<_> = self.slices.extract_if(.., |own| own.first_ns < time_ns).collect();
        self.bytes -= taken.iter().map(Self::bytes_of).sum::<usize>();
        taken
    }
}

#[cfg(test)]
mod tests {
    use ringtap_flow::{FlowKey, IpVersion};

    use super::*;

    #[test]
    fn early_slices_wait_for_their_time_in_bounded_memory() {
        let (version, protocol) = (IpVersion::V4, 6);
        let (src, dst) = ([1; 16], [2; 16]);
        let key = FlowKey { version, src, dst, src_port: 1, dst_port: 2, protocol };
        let slice = |first_ns| FlowRecord { first_ns, ..FlowRecord::new(key) };
        let mut early = Early::default();
        assert!([10, 5, 20, 15].into_iter().all(|first_ns| early.keep(&slice(first_ns))));
        let mut taken = |time_ns| -> Vec<_> {
            early.take_before(time_ns).iter().map(|slice| slice.first_ns).collect()
        };
        assert_eq!([taken(11), taken(11), taken(21)], [vec![10, 5], vec![], vec![20, 15]]);
        assert_eq!(early.bytes, 0);
        let kept = (0..1_000_000).take_while(|_| early.keep(&slice(1))).count();
        assert!((1_000..1_000_000).contains(&kept) && early.bytes <= EARLY_BYTES, "{kept}");
        assert!(!early.keep(&slice(1)));
    }
}
