//! Recent results by address: one at each place, which the next address of that place replaces.

use std::net::IpAddr;

/// Places; a power of two.
const PLACES: usize = 1 << 12;

/// Results of a pure function of addresses.
#[derive(Debug)]
pub(crate) struct Recent<T>(Box<[Option<(IpAddr, T)>]>);

impl<T> Recent<T> {
    pub(crate) fn new() -> Self {
        Self((0..PLACES).map(|_| None).collect())
    }

    /// The result for an address; calls `compute` if it is not stored.
    #[inline]
    pub(crate) fn get(&mut self, address: IpAddr, compute: impl FnOnce() -> T) -> &T {
        let bits = match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                (bits >> 64) as u64 ^ (bits as u64).rotate_left(31)
            }
        };
        let place = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.trailing_zeros());
        let place = &mut self.0[place as usize];
        if place.as_ref().is_some_and(|(own, _)| *own != address) {
            *place = None;
        }
        &place.get_or_insert_with(|| (address, compute())).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_the_address() {
        let mut recent = Recent::new();
        for round in 0..2 {
            for number in 0..3 * PLACES as u32 {
                let address = IpAddr::from(number.to_be_bytes());
                assert_eq!(*recent.get(address, || address), address, "{round}");
            }
        }
        let address = IpAddr::from([0, 0, 0, 1]);
        assert_eq!(*recent.get(address, || address), address);
        assert_eq!(*recent.get(address, || unreachable!("it is stored")), address);
    }
}
