//! Fibonacci numbers by divide and conquer: two parts, which are added up.
//!
//! ```text
//! cargo run --release -p ringtap-skeleton --example fibonacci -- [N] [--workers N] [--seconds-only]
//! ```

#[path = "kernels/arguments.rs"]
mod arguments;
#[path = "kernels/fibonacci.rs"]
mod kernel;

use std::error::Error;
use std::process::ExitCode;

use arguments::Arguments;
use kernel::{CUT, by_addition, fibonacci};
use ringtap_skeleton::stream::{Divided, Options, divide_and_conquer};

fn divide(n: u64) -> Divided<u64, [u64; 2]> {
    if n <= CUT { Divided::Solved(fibonacci(n)) } else { Divided::Split([n - 1, n - 2]) }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::parse(42)?;
    let n = arguments.size as u64;
    let workers = arguments.workers;
    let run = divide_and_conquer(n, workers, divide, |parts| parts.sum(), &Options::default())?;
    let what = format!("fibonacci({n}) = {}", run.result);
    Ok(arguments.report(&what, run.elapsed, run.result == by_addition(n)))
}
