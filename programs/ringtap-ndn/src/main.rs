//! The program `ringtap-ndn`; the library of this package has its contents.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: ringtap_base::Allocator = ringtap_base::Allocator;

fn main() -> ExitCode {
    ringtap_ndn_program::main()
}
