//! A substitute for `ringtap`, an experiment that runs it, and a folder for the run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ringtap_lab::machine::Machine;
use ringtap_lab::quiet::Gate;
use ringtap_lab::{Build, Experiment, Programs, Row, RunFolder, Runner};

/// The substitute: a script that prints a rate by `name=…`, with noise of at most a tenth.
const PROGRAM: &str = r#"#!/bin/sh
[ "$1" = wait ] && exec sleep 60
for word; do case $word in *=*) eval "$word" ;; esac; done
[ -n "$calls" ] && echo "$*" >>"$calls"
[ "$name" = broken ] && { echo 'error: no luck' >&2; exit 1; }
[ "$name" = lacking ] && { echo 'error: no counters here' >&2; exit 69; }
base=1000
case $name in fast) base=2000 ;; slowed) base=1300 ;; fastest) base=5000 ;; esac
digest=same
[ "$name" = differing ] && digest=other
residual=0
[ "$name" = dropping ] && residual=3
behind=0.01
[ "$name" = late ] && { base=2000; behind=0.5; }
noise=$((seed * 37 % 100))
echo "{\"rate\": $((base * FACTOR + noise)), \"digest\": \"$digest\", \"residual\": $residual, \"behind\": $behind}"
"#;

/// Writes a substitute whose rates are about `factor` times 1,000.
pub(crate) fn program(folder: &Path, name: &str, factor: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, PROGRAM.replace("FACTOR", &factor.to_string())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// An experiment that runs the substitute, with these candidates.
pub(crate) fn experiment(candidates: &[&str], claims: &str) -> Experiment {
    let mut text = r#"
        id = "test/tiny"
        paper = "test"
        figure = "Figure <1>"
        title = "A tiny experiment"
        about = "Measures a substitute."
        command = "ringtap measure name={name} size={size} seed={seed}"
        time_limit = 2
        equal = ["/digest"]
        sane = { "/residual" = 0 }
        [sweep]
        size = [1, 2, 4]
        [values.rate]
        at = "/rate"
        unit = "packets/s"
        [quick]
        repeat = 6
        [full]
        repeat = 8
        [plot]
        kind = "lines"
        x = "size"
        y = "rate"
        y_label = "packets/s"
    "#
    .to_owned();
    for name in candidates {
        text += &format!("\n[[candidate]]\nname = '{name}'\nset = {{ name = '{name}' }}\n");
    }
    Experiment::parse("tiny.toml", &(text + claims)).unwrap()
}

/// A claim that `of` is twice as fast as `plain`.
pub(crate) fn twice(of: &str) -> String {
    twice_as(of, "plain")
}

/// A claim that `of` is twice as fast as `to`.
pub(crate) fn twice_as(of: &str, to: &str) -> String {
    format!(
        "\n[[claim]]\ntext = '{of} is twice as fast'\nkind = 'measured'\nsource = 'page 1'\npaper = '2 ×'\n\
         quantity = 'rate'\nof = {{ candidate = '{of}' }}\nto = {{ candidate = '{to}' }}\n\
         each = 'size'\neffect = 2.0\n"
    )
}

/// A claim that all results are equal.
pub(crate) const EQUAL: &str = "\n[[claim]]\ntext = 'all agree'\nkind = 'by-construction'\nsource = 'page 2'\npaper = 'the same'\n\
                         because = 'digests'\n";

/// What the substitute claims to be built from.
pub(crate) fn builds() -> BTreeMap<String, Build> {
    let build = Build {
        version: "0.1.0".into(),
        commit: "0123456789ab".into(),
        profile: "release".into(),
        features: "none".into(),
        compiler: "rustc 1.95.0".into(),
        sha256: "0123456789abcdef".repeat(4),
    };
    [("ringtap".into(), build)].into()
}

/// Runs `experiment` in a folder below `folder`. Returns the run's folder and its rows.
pub(crate) fn run(folder: &Path, program: &Path, experiment: &Experiment) -> (RunFolder, Vec<Row>) {
    let runs = RunFolder::open(&folder.join("runs"), &Machine::this(), true, false, builds());
    run_into(runs.unwrap(), program, experiment, Gate::off(), &mut || true)
}

/// Runs `experiment` in full in a folder below `folder`, with its predictions but without further rounds.
pub(crate) fn run_in_full(
    folder: &Path,
    program: &Path,
    experiment: &Experiment,
) -> (RunFolder, Vec<Row>) {
    let runs = RunFolder::open(&folder.join("runs"), &Machine::this(), false, false, builds());
    run_into(runs.unwrap(), program, experiment, Gate::off(), &mut || false)
}

/// Runs `experiment` into `runs`, through this gate, while there is time for further rounds.
pub(crate) fn run_into(
    mut runs: RunFolder,
    program: &Path,
    experiment: &Experiment,
    gate: Gate,
    has_time: &mut dyn FnMut() -> bool,
) -> (RunFolder, Vec<Row>) {
    let machine = Machine::this();
    let programs = Programs { ringtap: program.into(), ndn: program.into(), lab: program.into() };
    let mut runner = Runner {
        programs: &programs,
        machine: &machine,
        folder: &mut runs,
        seed: 1,
        gate,
        has_time,
        progress: &mut |progress| assert!(progress.done <= progress.total),
    };
    runner.run(&[experiment]).unwrap();
    let rows = runs.measured(experiment).unwrap();
    (runs, rows)
}
