//! Items of 8, 64, 128 or 1,024 bytes. Every word of an item is its number.
//!
//! Every item is written and read completely; checking an item reads all its words.

/// An item of a ring, all of whose words are its number.
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

/// All item sizes, in bytes.
pub const SIZES: [usize; 4] = [8, 64, 128, 1024];

/// Evaluates an expression in which `$item` is the item type of `$bytes` bytes.
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
