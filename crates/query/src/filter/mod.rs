//! The filter language over flow records: tcpdump's words where they exist, fields of records otherwise.
//!
//! ```text
//! host 10.1.2.3 and tcp port 443 and not (octets < 10k or name ~ "[.]example$")
//!  └ Test::Address      └ Test::Port       └ Test::Field    └ Test::Field of several columns
//! ```
//!
//! Every test is true or false: a record without the field fails the test, and so passes its `not`.

mod columns;
mod matcher;
mod parse;
mod sql;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use crate::text::{Misunderstood, Words};
pub use columns::{Column, Source};
pub use matcher::{InvalidPattern, Matcher};

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them.
    And(Vec<Filter>),
    /// One of them, or several.
    Or(Vec<Filter>),
    /// The opposite.
    Not(Box<Filter>),
    /// A test of a record.
    Test(Test),
}

/// Which end of a flow a test is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The source or the destination.
    Either,
    /// The initiator.
    Source,
    /// The other end.
    Destination,
}

/// A test of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// The address of an end is in a network: any of its addresses, and its length in bits.
    Address(End, IpAddr, u8),
    /// The port of an end is in a range.
    Port(End, u16, u16),
    /// The number of the IP protocol.
    Protocol(u8),
    /// 4 or 6.
    Version(u8),
    /// One of the columns compares so with the value.
    Field(Vec<Column>, Comparison, Value),
    /// The initiator sent a SYN, and nothing came back.
    Failed,
    /// The initiator sent a SYN, and a RST came back without a SYN.
    Refused,
}

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`; texts in upper or lower case.
    Equal,
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `~`: a regular expression (RE2) matches a part of it, in upper or lower case.
    Matches,
}

/// What a column is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of a number; also milliseconds since 1970, and of durations.
    Number(u64),
    /// Of a text.
    Text(String),
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn new(text: &str) -> Result<Self, Misunderstood> {
        let mut words = Words::new(text)?;
        let filter = Self::read(&mut words)?;
        match words.peek() {
            None => Ok(filter),
            Some(_) => Err(words.expected("and, or, or the end")),
        }
    }
}
