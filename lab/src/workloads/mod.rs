//! Workloads of the lab that no `ringtap` command measures; `ringtap-lab trial` runs them.
//!
//! A workload takes `key=value` arguments, runs once, checks its result and returns its
//! measurements as JSON. Threads are scoped: they end with the workload.

mod arguments;
pub mod cache;
mod instances;
mod pool;
mod ring;
mod skeleton;

use serde_json::Value;

pub use arguments::Arguments;

use crate::LabError;

type Workload = fn(&mut Arguments) -> Result<Value, LabError>;

/// All workloads: name, arguments and function.
const ALL: [(&str, &str, Workload); 6] = [
    ("ring", "kind bytes capacity batch mode items cores", ring::run),
    ("cache-misses", "kind by capacity batch items cores seed", cache::run),
    ("skeleton", "job size workers cores", skeleton::run),
    ("span", "job size workers cores", skeleton::span),
    ("pool", "buffers rate packets memory cores seed", pool::run),
    ("instances", "captures scratch cores seed", instances::run),
];

/// Runs the workload `name` with `key=value` arguments.
pub fn run(name: &str, words: &[String]) -> Result<Value, LabError> {
    let Some((_, _, workload)) = ALL.iter().find(|(known, ..)| *known == name) else {
        let known: Vec<_> = ALL.iter().map(|(name, keys, _)| format!("{name} ({keys})")).collect();
        return Err(LabError::Trial(format!(
            "unknown workload {name:?}: use {}",
            known.join(", ")
        )));
    };
    let mut arguments = Arguments::parse(words)?;
    let found = workload(&mut arguments)?;
    arguments.all_used()?;
    Ok(found)
}
