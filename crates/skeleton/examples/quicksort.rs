//! Quicksort by divide and conquer, in place: the problems are disjoint parts of one list.
//!
//! ```text
//! cargo run --release -p ringtap-skeleton --example quicksort -- [SIZE] [--workers N] [--seconds-only]
//! ```

#[path = "kernels/arguments.rs"]
mod arguments;
#[path = "kernels/quicksort.rs"]
mod kernel;

use std::error::Error;
use std::process::ExitCode;

use arguments::Arguments;
use kernel::{CUT, fingerprint, numbers, partition};
use ringtap_skeleton::stream::{Divided, Options, divide_and_conquer};

fn divide(list: &mut [u32]) -> Divided<(), [&mut [u32]; 2]> {
    if list.len() <= CUT {
        list.sort_unstable();
        return Divided::Solved(());
    }
    let (less, more) = partition(list);
    Divided::Split([less, more])
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::parse(50_000_000)?;
    let mut list = numbers(arguments.size);
    let before = fingerprint(&list);
    let workers = arguments.workers;
    let options = Options::default();
    let elapsed = divide_and_conquer(&mut list[..], workers, divide, |_| (), &options)?.elapsed;
    let right = list.is_sorted() && fingerprint(&list) == before;
    Ok(arguments.report(&format!("quicksort of {} numbers", list.len()), elapsed, right))
}
