//! Values by number, of a face or of a channel.
//!
//! ```text
//!  | value 0 | removed | value 2 |     FIRST is the number of the first place
//! ```

/// The values, each with the number under which it was set.
#[derive(Debug)]
pub(crate) struct Slots<T, const FIRST: u32 = 0>(Vec<Option<T>>);

/// Values by face. NFD reserves the numbers below 256.
pub(crate) type ByFace<T> = Slots<T, 256>;

impl<T, const FIRST: u32> Slots<T, FIRST> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.0.get(Self::at(number))?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.0.get_mut(Self::at(number))?.as_mut()
    }

    /// Sets the value of a number, which is at least `FIRST`.
    pub(crate) fn set(&mut self, number: u32, value: T) {
        let at = Self::at(number);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(value);
    }

    /// Removes and returns the value of a number.
    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        self.0.get_mut(Self::at(number))?.take()
    }

    /// The number after the largest one that ever had a value.
    pub(crate) fn end(&self) -> u32 {
        FIRST + self.0.len() as u32
    }

    /// The values with their numbers, in order of number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (FIRST..).zip(&self.0).filter_map(|(number, value)| Some((number, value.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (FIRST..).zip(&mut self.0).filter_map(|(number, value)| Some((number, value.as_mut()?)))
    }

    /// The place of a number; beyond the end for one below `FIRST`.
    #[inline]
    fn at(number: u32) -> usize {
        number.wrapping_sub(FIRST) as usize
    }
}
