//! Arguments of the examples: `[SIZE] [--workers N] [--seconds-only]`.

use std::process::ExitCode;
use std::time::Duration;

pub(crate) struct Arguments {
    pub(crate) size: usize,
    /// Default: the number of cores.
    pub(crate) workers: usize,
    seconds_only: bool,
}

impl Arguments {
    /// Parses the arguments; an error shows the usage.
    pub(crate) fn parse(size: usize) -> Result<Self, String> {
        let workers = ringtap_skeleton::free_cores();
        let mut arguments = Self { size, workers, seconds_only: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match (word.as_str(), word.parse()) {
                ("--seconds-only", _) => arguments.seconds_only = true,
                ("--workers", _) => match words.next().map(|n| n.parse()) {
                    Some(Ok(workers)) => arguments.workers = workers,
                    _ => return Err("--workers takes a number".into()),
                },
                (_, Ok(size)) => arguments.size = size,
                _ => {
                    return Err(format!(
                        "unknown argument {word:?}: use [SIZE] [--workers N] [--seconds-only]"
                    ));
                }
            }
        }
        Ok(arguments)
    }

    /// Prints the time and whether the result is right.
    #[expect(clippy::print_stdout, reason = "this is what the example is for")]
    pub(crate) fn report(&self, what: &str, elapsed: Duration, right: bool) -> ExitCode {
        let seconds = elapsed.as_secs_f64();
        if self.seconds_only {
            println!("{seconds:.6}");
        } else {
            let verdict = if right { "ok" } else { "WRONG" };
            println!("{what}: {seconds:.3} s, {} workers, {verdict}", self.workers);
        }
        if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
