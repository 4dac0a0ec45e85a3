//! Encodes eBPF instructions (RFC 9669) as 64-bit numbers.
//!
//! ```text
//!  | operation 8 | destination 4 | source 4 | offset 16 | immediate 32 |
//! ```

/// A register, R0 to R10.
#[derive(Clone, Copy)]
pub(crate) struct R(pub(crate) u8);

/// The size of a memory access.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

const fn instruction(operation: u8, to: u8, from: u8, offset: i16, immediate: i32) -> u64 {
    operation as u64
        | (to as u64) << 8
        | (from as u64) << 12
        | (offset as u16 as u64) << 16
        | (immediate as u32 as u64) << 32
}

/// to = value (64 bits, sign-extended).
pub(crate) const fn set(to: R, value: i32) -> u64 {
    instruction(0xb7, to.0, 0, 0, value)
}

/// to = from.
pub(crate) const fn copy(to: R, from: R) -> u64 {
    instruction(0xbf, to.0, from.0, 0, 0)
}

/// to += value.
pub(crate) const fn add(to: R, value: i32) -> u64 {
    instruction(0x07, to.0, 0, 0, value)
}

/// to += from.
pub(crate) const fn add_register(to: R, from: R) -> u64 {
    instruction(0x0f, to.0, from.0, 0, 0)
}

/// The low 32 bits: to += value; the high 32 bits become 0.
pub(crate) const fn add_32(to: R, value: u32) -> u64 {
    instruction(0x04, to.0, 0, 0, value as i32)
}

/// The low 32 bits: to *= value; the high 32 bits become 0.
pub(crate) const fn multiply_32(to: R, value: u32) -> u64 {
    instruction(0x24, to.0, 0, 0, value as i32)
}

/// The low 32 bits: to &= value; the high 32 bits become 0.
pub(crate) const fn and_32(to: R, value: u32) -> u64 {
    instruction(0x54, to.0, 0, 0, value as i32)
}

/// The low 32 bits: to ^= value; the high 32 bits become 0.
pub(crate) const fn xor_32(to: R, value: u32) -> u64 {
    instruction(0xa4, to.0, 0, 0, value as i32)
}

/// to >>= bits.
pub(crate) const fn shift_right(to: R, bits: i32) -> u64 {
    instruction(0x77, to.0, 0, 0, bits)
}

/// Converts the low `bits` (16 or 32) of `to` to network byte order.
pub(crate) const fn to_network(to: R, bits: i32) -> u64 {
    instruction(0xdc, to.0, 0, 0, bits)
}

/// to = the value at the address from + offset.
pub(crate) const fn load(size: Size, to: R, from: R, offset: i16) -> u64 {
    instruction(0x61 | size as u8, to.0, from.0, offset, 0)
}

/// The value at the address to + offset = from.
pub(crate) const fn store(size: Size, to: R, offset: i16, from: R) -> u64 {
    instruction(0x63 | size as u8, to.0, from.0, offset, 0)
}

/// The value at the address to + offset = value. 64 bits: sign-extended.
pub(crate) const fn store_value(size: Size, to: R, offset: i16, value: i32) -> u64 {
    instruction(0x62 | size as u8, to.0, 0, offset, value)
}

/// Skips `over` instructions if one > other.
pub(crate) const fn skip_if_greater(one: R, other: R, over: i16) -> u64 {
    instruction(0x2d, one.0, other.0, over, 0)
}

/// Skips `over` instructions if one differs from `value` (64 bits, sign-extended).
pub(crate) const fn skip_if_not(one: R, value: i32, over: i16) -> u64 {
    instruction(0x55, one.0, 0, over, value)
}

/// Skips `over` instructions.
pub(crate) const fn skip(over: i16) -> u64 {
    instruction(0x05, 0, 0, over, 0)
}

/// Calls a helper function of the kernel: arguments in R1 to R5, result in R0.
pub(crate) const fn call(helper: i32) -> u64 {
    instruction(0x85, 0, 0, 0, helper)
}

/// Ends the program with R0 as its return value.
pub(crate) const fn exit() -> u64 {
    instruction(0x95, 0, 0, 0, 0)
}

/// to = the map with descriptor `number`, as an argument for helper functions.
pub(crate) const fn map(to: R, number: i32) -> [u64; 2] {
    [instruction(0x18, to.0, 1, 0, number), 0]
}

/// to = the address of the first value of the array map with descriptor `number`.
pub(crate) const fn map_value(to: R, number: i32) -> [u64; 2] {
    [instruction(0x18, to.0, 2, 0, number), 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes are those of `llvm-mc`.
    #[test]
    fn instructions_equal_those_of_llvm() {
        let bytes = |one: u64| one.to_le_bytes();
        assert_eq!(bytes(set(R(0), 2)), [0xb7, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes(load(Size::Word, R(2), R(1), 16)), [0x61, 0x12, 16, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(store(Size::Half, R(6), 34, R(3))), [0x6b, 0x36, 34, 0, 0, 0, 0, 0]);
        let value = store_value(Size::Double, R(6), 8, 0x0102_0304);
        assert_eq!(bytes(value), [0x7a, 6, 8, 0, 4, 3, 2, 1]);
        assert_eq!(bytes(store_value(Size::Byte, R(6), 8, 9)), [0x72, 6, 8, 0, 9, 0, 0, 0]);
        assert_eq!(bytes(skip_if_greater(R(4), R(3), 5)), [0x2d, 0x34, 5, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(skip_if_not(R(4), 0x2486, 5)), [0x55, 4, 5, 0, 0x86, 0x24, 0, 0]);
        assert_eq!(bytes(call(51)), [0x85, 0, 0, 0, 51, 0, 0, 0]);
        assert_eq!(bytes(to_network(R(1), 16)), [0xdc, 1, 0, 0, 16, 0, 0, 0]);
    }
}
