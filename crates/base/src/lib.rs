//! Shared basics: clocks, seeded random numbers, counters, named choices, addresses as users write
//! them, safe text, secrets, the allocator, prefetching, bytes in a register, a table whose entries are listed by age.
//!
//! Invariants: a counter has one writer, so no read-modify-write; readers may see a slightly old
//! value, never a torn one. There are no locks but that of secrets. The `unsafe` code of the allocator, the prefetch
//! and vector instructions, the time stamp counter, the user database and the CPU time of child processes is kept here, so
//! that its callers need none.
#![deny(missing_docs, unsafe_code)]

mod addresses;
mod aged;
#[allow(unsafe_code, reason = "a global allocator is unsafe by its trait")]
mod allocator;
#[allow(unsafe_code, reason = "a system call")]
mod child;
mod choices;
mod clock;
mod counter;
mod date;
mod divisors;
mod hidden;
mod latency;
mod ledger;
#[allow(unsafe_code, reason = "an instruction of the processor")]
mod prefetch;
mod random;
pub mod text;
#[allow(unsafe_code, reason = "an instruction of the processor")]
mod ticks;
mod usage;
#[allow(unsafe_code, reason = "system calls")]
mod user;
#[allow(unsafe_code, reason = "instructions of the processor")]
mod vector;

pub use addresses::{Network, NotANetwork, list_lines, parse_address};
pub use aged::Aged;
pub use allocator::{Allocator, allocations};
pub use child::{Waited, try_wait};
pub use choices::UnknownChoice;
pub use clock::{Clock, now_ns, steady_ns};
pub use counter::Counter;
pub use date::{Rfc3339, civil, day_of};
pub use divisors::{greatest_divisor, least_multiple};
pub use hidden::{hide, without_secrets};
pub use latency::Latency;
pub use ledger::{Ledger, Stage};
pub use prefetch::{prefetch, prefetch_all, prefetch_write};
pub use random::SplitMix;
pub use ticks::{TICK, ticks};
pub use usage::{Usage, rss_bytes};
pub use user::{User, can_become_root};
pub use vector::Bytes16;
