//! The program `ringtap`: the command line of the library, without further analyses.
#![forbid(unsafe_code)]

ringtap::main![];
