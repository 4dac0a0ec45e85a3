//! Tests of the report page: it is self-contained, lists what is missing, and fits phones and
//! paper.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{EQUAL, builds, experiment, program, run, twice};
use ringtap_lab::judge::{Judgement, count_verdicts, judge};
use ringtap_lab::{ClaimKind, Experiment, Paper, report};
use ringtap_testkit::browser::{browse, examine};

/// A page with lines, bars, settings that are not possible, and long words.
fn page(folder: &Path) -> PathBuf {
    let program = program(folder, "ringtap", 1);
    let claims = twice("fast") + &twice("lacking") + &twice("differing") + EQUAL;
    let lines = experiment(&["plain", "fast", "lacking", "differing"], &claims);
    let (_, _) = run(folder, &program, &lines);
    let mut bars =
        experiment(&["plain", "fast", "a candidate with a rather long name, as some have"], EQUAL);
    bars.id = "test/bars".into();
    bars.plot.kind = ringtap_lab::PlotKind::Bars;
    bars.about = "Averylongwordthatnolinebreaksinside".repeat(6);
    let (runs, _) = run(folder, &program, &bars);
    let mut empty = experiment(&["plain"], EQUAL);
    empty.id = "test/empty".into();
    let paper = Paper {
        title: "On <Rings> & \"Cores\"".into(),
        authors: "A. Author".into(),
        venue: "A venue, 2026".into(),
        introduction: "An introduction.".into(),
        machine: "a machine".into(),
    };
    report::write_of(&runs, vec![(paper, vec![lines, bars, empty])]).unwrap()
}

#[test]
fn the_page_is_complete_and_self_contained() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let html = fs::read_to_string(&page).unwrap();
    for wanted in [
        "On &lt;Rings&gt; &amp; &quot;Cores&quot;",
        "Figure &lt;1&gt;",
        "fast is twice as fast",
        "half of the paper's gain",
        "<p>3 measured claims of 1 papers: <span class=\"badge stronger\">stronger</span> 0 ",
        "<span class=\"badge reproduced\">reproduced</span> 1 ",
        "Counted separately, 2 claims:",
        "Counted separately (by construction)",
        "badge reproduced",
        "badge weaker",
        "badge contradicted",
        "badge not-possible-here",
        "no counters here",
        "ringtap-lab run test/tiny --quick",
        "one trial: <code>ringtap measure name=",
        "Not measured in this run.",
        "1,0",
    ] {
        assert!(html.contains(wanted), "{wanted:?} is missing");
    }
    for unwanted in ["<script", "src=", "@import", "http://", "https://", "url("] {
        let html = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!html.contains(unwanted), "the page contains {unwanted:?}");
    }
    assert_eq!(html.matches("<svg").count(), 2);
    let run = page.parent().unwrap();
    let figure = |name: &str| {
        let figure = fs::read_to_string(run.join("figures").join(name)).unwrap();
        assert!(figure.starts_with("<svg") && figure.trim_end().ends_with("</svg>"), "{figure}");
        figure
    };
    figure("test-tiny.svg");
    let overview = figure("verdicts.svg");
    // Three measured claims: one reproduced, one not possible, one of a program with a wrong
    // result. The claim of equal results in both experiments is counted separately.
    for wanted in [
        "3 measured claims of 1 papers",
        "1 reproduced",
        "0 contradicted",
        "1 inconclusive",
        "not counted: 2 by construction",
        "test/tiny",
    ] {
        assert!(overview.contains(wanted), "{wanted:?} is missing in {overview}");
    }
    let verdicts = fs::read_to_string(run.join("verdicts.csv")).unwrap();
    let mut lines = verdicts.lines();
    assert_eq!(lines.next(), Some("experiment,claim,kind,source,paper,ours,verdict,reason,judged"));
    // Four claims of the lines, one of the bars; the third experiment was not run.
    assert_eq!(lines.count(), 5);
}

#[test]
fn a_missing_run_is_an_error_that_names_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let error = ringtap_lab::RunFolder::latest(folder.path()).unwrap_err().to_string();
    assert!(error.contains("ringtap-lab run"), "{error}");
}

#[test]
fn the_page_fits_the_width_of_a_phone() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let script = "for (let details of root.querySelectorAll('details')) details.open = true; \
                  return root.clientWidth + ' shown, ' + root.scrollWidth + ' wide, ' + \
                  root.querySelectorAll('svg').length + ' figures';";
    let Some(found) = examine(folder.path(), &page, 360, script) else { return };
    let numbers: Vec<u32> = found.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!((300..=360).contains(&numbers[0]), "{found}");
    assert!(numbers[1] <= numbers[0] && numbers[2] == 2, "{found}");
}

#[test]
fn the_page_can_be_printed() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let pdf = folder.path().join("report.pdf");
    let flag = format!("--print-to-pdf={}", pdf.display());
    let address = format!("file://{}", page.display());
    if browse(folder.path(), &[&flag, "--no-pdf-header-footer"], &address).is_none() {
        return;
    }
    let bytes = fs::read(&pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() > 10_000, "{} bytes", bytes.len());
}

/// The committed verdicts of a kept run follow from its rows and the current claims, and
/// docs/LAB.md has their numbers.
#[test]
fn verdicts_of_kept_runs_match_the_current_claims() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/LAB.md")).unwrap();
    // Other sections name other runs.
    let page = page.split("\n## ").find(|section| section.starts_with("Measured again")).unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let experiments = ringtap_lab::catalogue::experiments().unwrap();
    let claims: usize = experiments.iter().map(|experiment| experiment.claims.len()).sum();
    let mut quoted = 0;
    for kept in fs::read_dir(root.join("experiments/runs")).unwrap().flatten() {
        let run = ringtap_lab::RunFolder::read(&kept.path()).unwrap();
        let mut expected = Vec::new();
        for experiment in ringtap_lab::catalogue::experiments().unwrap() {
            let rows = run.measured(&experiment).unwrap();
            if !rows.is_empty() {
                expected.extend(judge(&experiment, &rows));
            }
        }
        let mut reader = csv::Reader::from_path(run.path.join("verdicts.csv")).unwrap();
        let verdicts: Vec<Judgement> = reader.deserialize().map(Result::unwrap).collect();
        assert!(
            verdicts == expected,
            "outdated verdicts: run 'ringtap-lab report {}'",
            run.path.display()
        );
        let name = kept.file_name().into_string().unwrap();
        if page.contains(&name) {
            let counts = count_verdicts(&verdicts, &[ClaimKind::Measured]).map(|(_, count)| count);
            let [stronger, reproduced, weaker, contradicted, open, impossible] = counts;
            let measured: usize = counts.iter().sum();
            let apart = verdicts.len() - measured;
            let judged = verdicts.len();
            assert!(
                page.contains(&format!("The five papers make {claims} claims."))
                    && page.contains(&format!("`ringtap-lab run all` put {judged} of them")),
                "docs/LAB.md should say: {judged} of {claims} claims"
            );
            assert!(
                readme.contains(&format!("the papers' {claims} claims")),
                "README.md: {claims}"
            );
            for sentence in [
                format!("- {stronger} of {measured} measured claims are stronger here"),
                format!("- {reproduced} are reproduced:"),
                format!("- {weaker} are weaker:"),
                format!("- {contradicted} are contradicted:"),
                format!("- {open} are inconclusive:"),
                format!("- {impossible} need more cores"),
                format!("- {apart} claims are counted separately"),
            ] {
                assert!(page.contains(&sentence), "docs/LAB.md should say: {sentence}");
            }
            quoted += 1;
        }
    }
    assert_eq!(quoted, 1);
}

/// Rows without later columns are read, and their run looks as before.
#[test]
fn reports_of_kept_runs_are_written_again_byte_for_byte() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/runs");
    for kept in fs::read_dir(root).unwrap().flatten() {
        let folder = tempfile::tempdir().unwrap();
        for file in fs::read_dir(kept.path()).unwrap().flatten() {
            let name = file.file_name();
            if file.path().is_file() && name != "report.html" && name != "verdicts.csv" {
                fs::copy(file.path(), folder.path().join(name)).unwrap();
            }
        }
        report::write(&ringtap_lab::RunFolder::read(folder.path()).unwrap()).unwrap();
        let figures = fs::read_dir(kept.path().join("figures")).unwrap().flatten();
        let figures = figures.map(|file| Path::new("figures").join(file.file_name()));
        for name in figures.chain(["report.html".into(), "verdicts.csv".into()]) {
            let read = |folder: &Path| fs::read(folder.join(&name)).unwrap();
            let is_equal = read(folder.path()) == read(&kept.path());
            assert!(is_equal, "{}: run 'ringtap-lab report'", kept.path().join(&name).display());
        }
    }
}

/// The page lists every experiment of the catalogue, measured or not.
#[test]
fn the_page_has_an_article_for_each_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let machine = ringtap_lab::machine::Machine::this();
    let run = ringtap_lab::RunFolder::open(folder.path(), &machine, true, true, builds()).unwrap();
    let html = fs::read_to_string(report::write(&run).unwrap()).unwrap();
    for experiment in ringtap_lab::catalogue::experiments().unwrap() {
        let Experiment { id, figure, .. } = &experiment;
        let anchor = format!("<article id=\"{}\">", experiment.file_name());
        assert!(html.contains(&anchor) && html.contains(figure), "{id}");
    }
}
