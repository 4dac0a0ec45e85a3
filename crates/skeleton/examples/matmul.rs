//! The product of two matrices by a farm without collector: each worker writes some rows of it.
//!
//! ```text
//! cargo run --release -p ringtap-skeleton --example matmul -- [SIZE] [--workers N] [--seconds-only]
//! ```

#[path = "kernels/arguments.rs"]
mod arguments;
#[path = "kernels/matmul.rs"]
mod kernel;

use std::error::Error;
use std::process::ExitCode;

use arguments::Arguments;
use kernel::{ROWS, is_product, matrices, multiply_rows};
use ringtap_skeleton::stream::{Options, Policy, Stream};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::parse(1024)?;
    let n = arguments.size;
    let (a, b) = matrices(n);
    let mut c = vec![0.0; n * n];
    let block = (ROWS * n).max(1);
    let run = Stream::from_iter(a.chunks(block).zip(c.chunks_mut(block)))
        .farm_for_each(arguments.workers, Policy::OnDemand, |_worker| {
            |(a, rows): (&[f64], &mut [f64])| multiply_rows(a, &b, rows, n)
        })
        .run(&Options::default())?;
    let what = format!("matrix product {n} × {n}");
    Ok(arguments.report(&what, run.elapsed, is_product(&a, &b, &c, n)))
}
