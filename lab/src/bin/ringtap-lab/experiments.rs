//! The commands `list`, `run`, `report`, `check`, `compare` and `trial`.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use ringtap_base::Clock;
use ringtap_lab::agreement::{Agreement, Comparison, Pair};
use ringtap_lab::compare::{self, Change, Compared};
use ringtap_lab::judge::{Judgement, count_verdicts, of_run, show};
use ringtap_lab::machine::Machine;
use ringtap_lab::quiet::{Disturbances, Gate};
use ringtap_lab::{
    ClaimKind, Experiment, LabError, Programs, Progress, RunFolder, Runner, UNAVAILABLE, Verdict,
    catalogue, report, settings, workloads,
};

use crate::args::{CheckArgs, CompareArgs, ReportArgs, RunArgs, Runs};

use ringtap_terminal::console::{self, note, print_message};
use ringtap_terminal::{Form, Usage};

pub(crate) fn list() -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for (number, (name, paper)) in catalogue::papers()?.into_iter().enumerate() {
        text += &format!("{number}  {} ({})\n", paper.title, paper.authors);
        for experiment in catalogue::experiments()?.iter().filter(|e| e.paper == name) {
            let Experiment { id, figure, title, .. } = experiment;
            text += &format!("     {id:26} {title} ({figure})\n");
        }
    }
    console::print(&text).map(|()| ExitCode::SUCCESS)
}

pub(crate) fn measure(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let experiments = match args.paper {
        Some(number) => of_paper(number)?,
        None => chosen(&args.ids)?,
    };
    if let Some(most) = args.cores {
        Machine::this().restrict(most.into())?;
    }
    let machine = Machine::this();
    let programs = Programs::of(std::env::current_exe().context("finding this program")?);
    let mut all = Vec::new();
    for experiment in &experiments {
        all.extend(settings(experiment, args.quick)?);
    }
    let builds = programs.builds(&all)?;
    let mut folder =
        RunFolder::open(&args.runs.folder, &machine, args.quick, !args.no_gate, builds)?;
    note(&machine.describe());
    note(&folder.path.display().to_string());
    let meter = Meter::new();
    let (watch, budget) = (Clock::start(), Duration::from_nanos(args.budget));
    let mut runner = Runner {
        programs: &programs,
        machine: &machine,
        folder: &mut folder,
        seed: args.seed,
        gate: if args.no_gate { Gate::off() } else { Gate::of_this_machine() },
        has_time: &mut || watch.elapsed() < budget,
        progress: &mut |progress| meter.show(progress),
    };
    let done = runner.run(&experiments.iter().collect::<Vec<_>>());
    meter.0.finish_and_clear();
    done?;
    let (mut judgements, mut rows) = (Vec::new(), Vec::new());
    for experiment in &experiments {
        let judged = of_run(&folder, experiment)?;
        judgements.extend(judged.judgements);
        rows.extend(judged.rows);
    }
    let page = report::write(&folder)?;
    console::print(&match args.report {
        Form::Text => verdicts(&judgements),
        Form::Json => serde_json::to_string_pretty(&judgements)? + "\n",
    })?;
    let disturbances = Disturbances::of(&rows);
    if disturbances.disturbed > 0 {
        print_message("warning", &disturbances.to_string());
    }
    note(&format!("the report: {}", page.display()));
    Ok(ExitCode::SUCCESS)
}

/// The experiments of the paper with this number. An unknown number is a usage error.
fn of_paper(number: usize) -> anyhow::Result<Vec<Experiment>> {
    let papers = catalogue::papers()?;
    let Some((name, _)) = papers.get(number) else {
        let last = papers.len() - 1;
        return Err(Usage::of(format!(
            "invalid --paper {number}: use 0 to {last}, see 'ringtap-lab list'"
        )));
    };
    Ok(catalogue::experiments()?.into_iter().filter(|one| one.paper == *name).collect())
}

/// The experiments that `ids` select. An unknown id is a usage error.
fn chosen(ids: &[String]) -> anyhow::Result<Vec<Experiment>> {
    catalogue::chosen(ids).map_err(|error| match error {
        LabError::Unknown { .. } => Usage::of(error),
        other => other.into(),
    })
}

/// What follows a claim that is counted separately.
fn apart(kind: ClaimKind) -> String {
    match kind {
        ClaimKind::Measured => String::new(),
        kind => format!(" [{}]", kind.name()),
    }
}

fn verdicts(judgements: &[Judgement]) -> String {
    let mut text = String::new();
    let mut of = "";
    for judgement in judgements {
        let Judgement { experiment, claim, kind, paper, ours, verdict, reason, predicted, .. } =
            judgement;
        if of != experiment {
            text += &format!("{experiment}\n");
            of = experiment;
        }
        text += &format!(
            "  {:17}  {claim}{}\n{:21}paper {paper}; here {ours}\n",
            verdict.name(),
            apart(*kind),
            ""
        );
        if !reason.is_empty() {
            text += &format!("{:21}{reason}\n", "");
        }
        if !predicted.is_empty() {
            text += &format!("{:21}predicted: {predicted}\n", "");
        }
    }
    let counts = |kinds: &[ClaimKind]| {
        let counts = count_verdicts(judgements, kinds).into_iter().filter(|(_, count)| *count > 0);
        let counts: Vec<_> = counts.map(|(verdict, count)| format!("{count} {verdict}")).collect();
        if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
    };
    text += &format!("measured claims: {}\n", counts(&[ClaimKind::Measured]));
    let others = &ClaimKind::ALL[1..];
    if judgements.iter().any(|judgement| others.contains(&judgement.kind)) {
        text += &format!("other claims (by construction, model, absolute): {}\n", counts(others));
    }
    text
}

/// The run at a path; by default the latest one.
fn run_at(path: Option<&PathBuf>, runs: &Runs) -> Result<RunFolder, LabError> {
    path.map_or_else(|| RunFolder::latest(&runs.folder), |path| RunFolder::read(path))
}

/// Exit code 3 if the runs do not agree.
pub(crate) fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let [expected, here] =
        [RunFolder::read(&args.expected)?, run_at(args.run.as_ref(), &args.runs)?];
    let comparison = Comparison::of(&expected, &here)?;
    if comparison.pairs.is_empty() {
        return Err(Usage::of("the runs have no experiment in common"));
    }
    note(&format!("expected: {}", expected.facts.machine.describe()));
    note(&format!("here: {}", here.facts.machine.describe()));
    console::print(&match args.report {
        Form::Text => agreements(&comparison),
        Form::Json => serde_json::to_string_pretty(&comparison)? + "\n",
    })?;
    Ok(if comparison.agrees() { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// The claims on which two runs do not agree, and how many of each kind there are.
fn agreements(comparison: &Comparison) -> String {
    let Comparison { pairs, left_out } = comparison;
    let mut text = String::new();
    for agreement in [Agreement::Differs, Agreement::Near] {
        for Pair { expected, here, .. } in pairs.iter().filter(|pair| pair.agreement == agreement) {
            let Judgement { experiment, claim, kind, paper, .. } = here;
            text += &format!("  {:9}  {experiment}: {claim}{}\n", agreement.name(), apart(*kind));
            text += &format!("{:13}paper {paper}\n", "");
            for (name, run) in [("expected", expected), ("here", here)] {
                text += &format!("{:13}{name} {}, {}\n", "", run.verdict, run.ours);
            }
        }
    }
    let predicted = pairs.iter().filter(|pair| !pair.expected.predicted.is_empty());
    for Pair { expected, here, .. } in
        predicted.filter(|pair| pair.here.verdict != Verdict::NotPossibleHere)
    {
        text += &format!("  predicted  {}: {}\n", here.experiment, here.claim);
        text += &format!("{:13}there {}\n", "", expected.predicted);
        text += &format!("{:13}here {}, {}\n", "", here.verdict, here.ours);
    }
    if !left_out.is_empty() {
        text += &format!("only in one of the runs: {}\n", left_out.join(", "));
    }
    let of = |kinds: &[ClaimKind]| {
        comparison.count(kinds).map(|(each, count)| format!("{}: {count}", each.name())).join(", ")
    };
    text += &format!("measured claims: {}\n", of(&[ClaimKind::Measured]));
    text + &format!("other claims: {}\n", of(&ClaimKind::ALL[1..]))
}

pub(crate) fn write_report(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let folder = run_at(args.run.as_ref(), &args.runs)?;
    let page = report::write(&folder)?;
    console::print(&format!("{}\n", page.display())).map(|()| ExitCode::SUCCESS)
}

pub(crate) fn compare_with(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let ids = match args.ids.is_empty() {
        true => compare::DEFAULT.iter().map(ToString::to_string).collect(),
        false => args.ids.clone(),
    };
    let experiments = chosen(&ids)?;
    let folder = &args.runs.folder;
    note(&format!(
        "building {} in {}; this takes minutes",
        args.revision,
        folder.join("programs").display()
    ));
    let then = compare::build(&args.revision, &folder.join("programs"))?;
    let now = Programs::of(std::env::current_exe().context("finding this program")?);
    let machine = Machine::this();
    let meter = Meter::new();
    let comparison = compare::Comparison {
        programs: [then, now],
        machine: &machine,
        folder: folder.clone(),
        quick: args.quick,
        rounds: args.rounds,
        seed: args.seed,
    };
    let compared = comparison.run(&experiments, |done, total| {
        meter.0.set_length(total as u64);
        meter.0.set_position(done as u64);
    });
    meter.0.finish_and_clear();
    console::print(&differences(&compared?, &args.revision)).map(|()| ExitCode::SUCCESS)
}

fn differences(compared: &Compared, revision: &str) -> String {
    let Compared { differences, left_out } = compared;
    let count = |wanted| differences.iter().filter(|d| d.verdict == wanted).count();
    let mut text = format!(
        "now against {revision}: {} worse, {} better, {} without a difference that stands out from the noise\n",
        count(Change::Worse),
        count(Change::Better),
        count(Change::None)
    );
    for d in differences {
        let parameters: Vec<_> = d.parameters.iter().map(|(k, v)| format!("{k}={v}")).collect();
        text += &format!(
            "  {:18}  {:.2} ×  p {:.4}  {} {} {}: {} → {}\n",
            d.verdict.name(),
            d.now / d.then,
            d.chance,
            d.experiment,
            d.candidate,
            parameters.join(" "),
            show(d.then, ""),
            show(d.now, &d.unit)
        );
    }
    for reason in left_out {
        text += &format!("  not compared: {reason}\n");
    }
    text
}

pub(crate) fn trial(name: &str, words: &[String]) -> anyhow::Result<ExitCode> {
    match workloads::run(name, words) {
        Ok(found) => {
            let text = serde_json::to_string_pretty(&found)? + "\n";
            console::print(&text).map(|()| ExitCode::SUCCESS)
        }
        Err(LabError::Unavailable(reason)) => {
            print_message("error", &reason);
            Ok(ExitCode::from(UNAVAILABLE))
        }
        Err(LabError::Trial(reason)) => Err(Usage::of(reason)),
        Err(other) => Err(other.into()),
    }
}

/// Progress on stderr: a bar on a terminal, otherwise one line per experiment.
struct Meter(ProgressBar);

impl Meter {
    fn new() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:24} {pos} of {len} trials{msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self(bar)
    }

    fn show(&self, progress: &Progress) {
        let Progress { experiment, done, total, seconds_left, warning } = progress;
        let left = seconds_left.map_or(String::new(), |seconds| {
            format!(
                ", {} left",
                indicatif::HumanDuration(Duration::from_secs_f64(seconds.max(0.0)))
            )
        });
        let begins = !self.0.message().contains(experiment.as_str());
        if let Some(warning) = warning {
            self.0.suspend(|| print_message("warning", warning));
        }
        if begins && !io::stderr().is_terminal() {
            note(&format!("{experiment}: {done} of {total} trials done{left}"));
        }
        self.0.set_length(*total as u64);
        self.0.set_position(*done as u64);
        self.0.set_message(format!("{left}: {experiment}"));
    }
}
