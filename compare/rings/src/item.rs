//! The items that are sent: 8, 64, 128 or 1,024 bytes, every word of them the item's number.
//!
//! Every item is written in full and read in full: the check is the reading.

/// An item of a ring; see the head.
pub trait Item: Copy + Send + Sync + 'static {
    fn new(number: u64) -> Self;

    /// Reads all words: 0 if each is `number`.
    fn differs(&self, number: u64) -> u64;
}

macro_rules! items {
    ($($item:ident: $words:literal words, aligned to $align:literal;)*) => {$(
        #[derive(Clone, Copy)]
        #[repr(align($align))]
        pub struct $item([u64; $words]);

        impl Item for $item {
            #[inline(always)]
            fn new(number: u64) -> Self {
                Self([number; $words])
            }

            #[inline(always)]
            fn differs(&self, number: u64) -> u64 {
                self.0.iter().fold(0, |all, word| all | (word ^ number))
            }
        }
    )*};
}

items! {
    Bytes8: 1 words, aligned to 8;
    Bytes64: 8 words, aligned to 64;
    Bytes128: 16 words, aligned to 64;
    Bytes1024: 128 words, aligned to 64;
}

/// The item sizes there are, in bytes.
pub const SIZES: [usize; 4] = [8, 64, 128, 1024];

/// Evaluates an expression with `$item` standing for the item type of so many bytes.
macro_rules! with_item {
    ($bytes:expr, $item:ident => $body:expr) => {
        match $bytes {
            8 => {
                type $item = $crate::item::Bytes8;
                $body
            }
            64 => {
                type $item = $crate::item::Bytes64;
                $body
            }
            128 => {
                type $item = $crate::item::Bytes128;
                $body
            }
            1024 => {
                type $item = $crate::item::Bytes1024;
                $body
            }
            other => unreachable!("items of {other} bytes"),
        }
    };
}
pub(crate) use with_item;
