//! The workload `skeleton`: FastFlow's micro-benchmarks (Danelutto, Deri, De Sensi, slide "FastFlow
//! results"). A matrix product by a farm without collector, quicksort and Fibonacci numbers by
//! divide and conquer. The kernels are those of the examples of ringtap-skeleton.

#[path = "../../../crates/skeleton/examples/kernels/fibonacci.rs"]
mod fibonacci;
#[path = "../../../crates/skeleton/examples/kernels/matmul.rs"]
mod matmul;
#[path = "../../../crates/skeleton/examples/kernels/quicksort.rs"]
mod quicksort;

use ringtap_skeleton::RunError;
use ringtap_skeleton::stream::{Divided, Options, Policy, Stream, divide_and_conquer};
use serde_json::{Value, json};

use super::Arguments;
use super::arguments::bind;
use crate::LabError;
use ringtap_base::Clock;

/// Size and number of workers; with 0 workers the job runs without a skeleton.
struct Plan {
    size: usize,
    workers: usize,
    options: Options<'static>,
}

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let job = arguments.text("job")?;
    let size = arguments.count("size", 1 << 32)? as usize;
    let workers = arguments.optional::<usize>("workers")?.unwrap_or(0).min(512);
    let pin = arguments.cores()?;
    let options = Options { cores: pin.len().max(1), pin, ..Options::default() };
    let plan = Plan { size, workers, options };
    let done = match job.as_str() {
        "matmul" => matrix_product(&plan),
        "quicksort" => sort(&plan),
        "fibonacci" => number(&plan),
        _ => return Err(unknown(&job)),
    };
    let (seconds, right) = done.map_err(|error| LabError::Trial(error.to_string()))?;
    if !right {
        return Err(LabError::Trial(format!("{job}: the result is wrong")));
    }
    Ok(json!({
        "workload": "skeleton",
        "job": job,
        "size": size,
        "workers": workers,
        "seconds": seconds,
        "jobs_per_second": 1.0 / seconds.max(1e-9),
    }))
}

/// The seconds of a job on one core, and those of its longest chain of parts that wait for each other. From both follows
/// what `workers` reach at least, if there is always a part for each that is free (R. P. Brent, 1974).
pub(super) fn span(arguments: &mut Arguments) -> Result<Value, LabError> {
    let job = arguments.text("job")?;
    let size = arguments.count("size", 1 << 32)? as usize;
    let workers = arguments.count("workers", 512)? as f64;
    if let [core, ..] = arguments.cores()?[..] {
        bind(&[core], 0);
    }
    let Spent { work, span } = match job.as_str() {
        "matmul" => spent_on_product(size),
        "quicksort" => spent_on_sorting(&mut quicksort::numbers(size)),
        "fibonacci" => spent_on_number(size as u64),
        _ => return Err(unknown(&job)),
    };
    let seconds = work / workers + span * (1.0 - 1.0 / workers);
    Ok(json!({
        "workload": "span",
        "job": job,
        "size": size,
        "work_seconds": work,
        "span_seconds": span,
        "predicted_jobs_per_second": 1.0 / seconds.max(1e-9),
    }))
}

fn unknown(job: &str) -> LabError {
    LabError::Trial(format!("invalid job={job}: use matmul, quicksort or fibonacci"))
}

/// Seconds of all parts of a job, and of its longest chain.
#[derive(Clone, Copy, Default)]
struct Spent {
    work: f64,
    span: f64,
}

impl Spent {
    /// A part of `seconds`, and then parts that wait for it alone.
    fn then(seconds: f64, parts: impl Iterator<Item = Self>) -> Self {
        parts.fold(Self { work: seconds, span: seconds }, |all, part| Self {
            work: all.work + part.work,
            span: all.span.max(seconds + part.span),
        })
    }
}

fn spent_on_product(n: usize) -> Spent {
    let (a, b) = matmul::matrices(n);
    let mut c = vec![0.0; n * n];
    let block = (matmul::ROWS * n).max(1);
    let parts = a.chunks(block).zip(c.chunks_mut(block)).map(|(a, rows)| {
        let watch = Clock::start();
        matmul::multiply_rows(a, &b, rows, n);
        Spent::then(watch.seconds(), std::iter::empty())
    });
    Spent::then(0.0, parts)
}

fn spent_on_sorting(list: &mut [u32]) -> Spent {
    let watch = Clock::start();
    let divided = divide_list(list);
    let seconds = watch.seconds();
    match divided {
        Divided::Solved(()) => Spent::then(seconds, std::iter::empty()),
        Divided::Split(parts) => Spent::then(seconds, parts.into_iter().map(spent_on_sorting)),
    }
}

fn spent_on_number(n: u64) -> Spent {
    let watch = Clock::start();
    let divided = divide_number(n);
    let seconds = watch.seconds();
    match divided {
        Divided::Solved(_) => Spent::then(seconds, std::iter::empty()),
        Divided::Split(parts) => Spent::then(seconds, parts.into_iter().map(spent_on_number)),
    }
}

fn matrix_product(plan: &Plan) -> Result<(f64, bool), RunError> {
    let n = plan.size;
    let (a, b) = matmul::matrices(n);
    let mut c = vec![0.0; n * n];
    let block = (matmul::ROWS * n).max(1);
    let watch = Clock::start();
    let tasks = a.chunks(block).zip(c.chunks_mut(block));
    if plan.workers == 0 {
        tasks.for_each(|(a, rows)| matmul::multiply_rows(a, &b, rows, n));
    } else {
        Stream::from_iter(tasks)
            .farm_for_each(plan.workers, Policy::OnDemand, |_worker| {
                |(a, rows): (&[f64], &mut [f64])| matmul::multiply_rows(a, &b, rows, n)
            })
            .run(&plan.options)?;
    }
    Ok((watch.seconds(), matmul::is_product(&a, &b, &c, n)))
}

fn sort(plan: &Plan) -> Result<(f64, bool), RunError> {
    let mut list = quicksort::numbers(plan.size);
    let before = quicksort::fingerprint(&list);
    let watch = Clock::start();
    if plan.workers == 0 {
        sort_alone(&mut list);
    } else {
        divide_and_conquer(&mut list[..], plan.workers, divide_list, |_parts| (), &plan.options)?;
    }
    let seconds = watch.seconds();
    Ok((seconds, list.is_sorted() && quicksort::fingerprint(&list) == before))
}

/// The same quicksort by recursion, without a skeleton.
fn sort_alone(list: &mut [u32]) {
    match divide_list(list) {
        Divided::Solved(()) => {}
        Divided::Split(parts) => parts.into_iter().for_each(sort_alone),
    }
}

fn divide_list(list: &mut [u32]) -> Divided<(), [&mut [u32]; 2]> {
    if list.len() <= quicksort::CUT {
        list.sort_unstable();
        return Divided::Solved(());
    }
    let (less, more) = quicksort::partition(list);
    Divided::Split([less, more])
}

fn number(plan: &Plan) -> Result<(f64, bool), RunError> {
    let n = plan.size as u64;
    let watch = Clock::start();
    let found = if plan.workers == 0 {
        fibonacci::fibonacci(n)
    } else {
        divide_and_conquer(n, plan.workers, divide_number, |parts| parts.sum(), &plan.options)?
            .result
    };
    Ok((watch.seconds(), found == fibonacci::by_addition(n)))
}

fn divide_number(n: u64) -> Divided<u64, [u64; 2]> {
    if n <= fibonacci::CUT {
        Divided::Solved(fibonacci::fibonacci(n))
    } else {
        Divided::Split([n - 1, n - 2])
    }
}

#[cfg(test)]
mod tests {
    use super::super::run;

    #[test]
    fn the_longest_chain_of_a_job_is_shorter_than_all_of_it() {
        for (job, size) in [("matmul", 96), ("quicksort", 400_000), ("fibonacci", 29)] {
            let words = format!("job={job} size={size} workers=2 cores=");
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            let found = run("span", &words).unwrap();
            let of = |name: &str| found[name].as_f64().unwrap();
            let [work, span] = [of("work_seconds"), of("span_seconds")];
            assert!(0.0 < span && span < work, "{found}");
            let seconds = 1.0 / of("predicted_jobs_per_second");
            assert!((seconds - (work + span) / 2.0).abs() < 1e-6, "{found}");
        }
    }

    #[test]
    fn each_job_is_correct_with_and_without_workers() {
        for (job, size) in [("matmul", 96), ("quicksort", 200_000), ("fibonacci", 27)] {
            for workers in [0, 1, 3] {
                let words =
                    [format!("job={job}"), format!("size={size}"), format!("workers={workers}")];
                let words = [&words[..], &["cores=".to_owned()]].concat();
                let found = run("skeleton", &words).unwrap();
                assert!(found["seconds"].as_f64().unwrap() > 0.0, "{found}");
            }
        }
    }
}
