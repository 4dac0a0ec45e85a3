//! The workload `instances`: several flow probes of one thread beside each other, as the slide "Comparisons (nProbe)" has it.
//!
//! Each is a process of its own, reads a capture of its own, and writes its records to a file of its own; the trial ends with
//! the last.

use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::Arguments;
use crate::LabError;
use crate::programs::Programs;

/// One probe, and the capture that it reads.
struct Instance {
    capture: String,
    child: Child,
}

impl Instance {
    /// Ends it; it may have ended itself.
    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn run(arguments: &mut Arguments) -> Result<Value, LabError> {
    let captures = arguments.text("captures")?;
    let scratch = arguments.text("scratch")?;
    let seed: u64 = arguments.optional("seed")?.unwrap_or(1);
    let cores = arguments.cores()?;
    let failed = |reason: String| LabError::Trial(reason);
    let lab = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let program = Programs::of(lab).ringtap;
    let mut started: Vec<Instance> = Vec::new();
    for (number, capture) in captures.split(',').enumerate() {
        let mut command = Command::new(&program);
        command.args(["monitor", "-r", capture, "--analyses", "flows", "--sequential", "--export"]);
        command.arg(format!("ipfix-file:{scratch}/{number}.ipfix"));
        command.args(["--seed", &seed.to_string(), "--report", "json", "-q"]);
        if let Some(core) = cores.get(number % cores.len().max(1)) {
            command.args(["--cores", &core.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        match command.spawn() {
            Ok(child) => started.push(Instance { capture: capture.to_owned(), child }),
            Err(error) => {
                started.iter_mut().for_each(|instance| instance.stop());
                return Err(failed(format!("{}: {error}", program.display())));
            }
        }
    }
    let instances = started.len();
    // All are waited for, even if one fails.
    let ended: Vec<_> = started.into_iter().map(packets_of).collect();
    let packets = ended.into_iter().sum::<Result<u64, String>>().map_err(failed)?;
    Ok(json!({ "workload": "instances", "instances": instances, "packets": packets }))
}

/// Waits for a probe and returns the number of its packets, all of which it must account for.
fn packets_of(Instance { capture, child }: Instance) -> Result<u64, String> {
    let output = child.wait_with_output().map_err(|error| format!("{capture}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{capture}: {}: {}",
            output.status,
            errors.lines().next().unwrap_or_default()
        ));
    }
    let report: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{capture}: {error}"))?;
    match report.pointer("/ledger/residual").and_then(Value::as_i64) {
        Some(0) => {}
        residual => return Err(format!("{capture}: the residual is {residual:?}, not 0")),
    }
    report
        .pointer("/packets/handled")
        .and_then(Value::as_u64)
        .ok_or_else(|| format!("{capture}: the report has no packets"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A program that reports this residual and fails if it is negative.
    fn probe(residual: i64) -> Instance {
        let script = format!(
            "echo '{{\"packets\": {{\"handled\": 7}}, \"ledger\": {{\"residual\": {residual}}}}}'; [ {residual} -ge 0 ]"
        );
        let mut command = Command::new(Path::new("/bin/sh"));
        let child =
            command.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Instance { capture: "a.pcap".into(), child: child.unwrap() }
    }

    #[test]
    fn a_probe_that_fails_or_loses_packets_is_an_error() {
        assert_eq!(packets_of(probe(0)), Ok(7));
        assert!(packets_of(probe(3)).unwrap_err().contains("residual is Some(3)"));
        assert!(packets_of(probe(-1)).unwrap_err().contains("exit status: 1"));
    }
}
