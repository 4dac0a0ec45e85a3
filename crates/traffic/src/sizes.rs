//! The number of packets of each flow: an exact Zipf law.
//!
//! The flow of rank k (from 1) has the weight k^-s. The packets beyond each flow's least are divided by the cumulated
//! weights: rank k gets the whole numbers between R·W(k-1)/W and R·W(k)/W. So the sum is exactly R, and each flow
//! differs from its expected number by less than one packet. Drawing a random flow for each packet would leave many
//! small flows without any.

/// Divides `packets` among flows, in the order of their ranks.
#[derive(Clone, Debug)]
pub(crate) struct ZipfSizes {
    exponent: f64,
    flows: u64,
    packets: u64,
    weight_total: f64,
    weight: f64,
    rank: u64,
    dealt: u64,
}

impl ZipfSizes {
    pub(crate) fn new(packets: u64, flows: u64, exponent: f64) -> Self {
        let weight_total = (1..=flows).map(|rank| weight(rank, exponent)).sum();
        Self { exponent, flows, packets, weight_total, weight: 0.0, rank: 0, dealt: 0 }
    }
}

impl Iterator for ZipfSizes {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.rank == self.flows {
            return None;
        }
        self.rank += 1;
        self.weight += weight(self.rank, self.exponent);
        let upto = if self.rank == self.flows {
            self.packets
        } else {
            (self.packets as f64 * (self.weight / self.weight_total)) as u64
        };
        let size = upto.saturating_sub(self.dealt);
        self.dealt += size;
        Some(size)
    }
}

fn weight(rank: u64, exponent: f64) -> f64 {
    libm::pow(rank as f64, -exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_sum_up_and_stay_within_one_packet_of_the_law() {
        for (packets, flows, exponent) in
            [(5_000_000, 100_000, 1.0), (3_000_000, 1_000_000, 0.9), (1000, 7, 0.0), (9, 90, 2.5)]
        {
            let total: f64 = (1..=flows).map(|k| (k as f64).powf(-exponent)).sum();
            let mut sum = 0;
            for (k, size) in (1..=flows).zip(ZipfSizes::new(packets, flows, exponent)) {
                let expected = packets as f64 * (k as f64).powf(-exponent) / total;
                assert!((size as f64 - expected).abs() < 1.001, "rank {k}: {size}, not {expected}");
                sum += size;
            }
            assert_eq!(sum, packets);
        }
    }
}
