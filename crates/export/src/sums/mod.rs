//! Sums of flow records, with which a copy of records elsewhere is compared: equal sums mean equal records, in any order
//! and in any format.
//!
//! ```text
//! bytes of a row   = for each field that is not zero or empty, in the order of the table:
//!
//!     | tag | number |      | tag | length | text … |
//!        4      8             4      4                  octets, little-endian; a list has one of these for each value
//!
//! tag              = FNV-1a, 32 bits, of the name of the field's column
//! hash             = XXH3, 128 bits, without a seed
//! all of a row     = hash(bytes of the row)
//! core of a row    = sum of hash(bytes of a direction), for each direction with packets
//! sum of rows      = sum of their numbers, modulo 2¹²⁸
//! ```
//!
//! The fields are those that JSON, CSV and Parquet all have: not `ipVersion`, `payloadValuesOmitted` and `communityId`,
//! which follows from others. A direction has what every NetFlow and IPFIX collector keeps: the flow's start and end, and its own source, destination, ports,
//! protocol, octets and packets, under the names of a one-direction flow. So the core does not depend on whether the two
//! directions of a flow are one record or two.
//!
//! Invariants: zero and absent are equal, because formats differ in which of both they write. No clock and no files;
//! [`RowSum::of`] allocates nothing once its buffer has grown.

mod interval;
mod named;
mod row;
#[cfg(test)]
mod tests;

pub use interval::{INTERVALS_MOST, Sum, Sums};
pub use named::{Column, Given, InvalidValue, NamedRow};
pub use row::RowSum;
