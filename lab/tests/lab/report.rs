//! The page: whole in itself, honest about what is missing, and readable on paper and on a phone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{EQUAL, experiment, program, run, twice};
use ringtap_lab::judge::{Judgement, judge, tally};
use ringtap_lab::{ClaimKind, Experiment, Paper, report};

/// A page with something of everything: lines, what was not possible, bars, and long words.
fn page(folder: &Path) -> PathBuf {
    let program = program(folder, "ringtap", 1);
    let claims = twice("fast") + &twice("lacking") + &twice("liar") + EQUAL;
    let lines = experiment(&["plain", "fast", "lacking", "liar"], &claims);
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
        authors: "A. Nobody".into(),
        venue: "Nowhere 2026".into(),
        introduction: "About nothing.".into(),
        machine: "a machine".into(),
    };
    report::write_of(&runs, vec![(paper, vec![lines, bars, empty])]).unwrap()
}

#[test]
fn the_page_says_everything_and_needs_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let html = fs::read_to_string(&page).unwrap();
    for wanted in [
        "On &lt;Rings&gt; &amp; &quot;Cores&quot;",
        "Figure &lt;1&gt;",
        "fast is twice as fast",
        "half of the gain",
        "<p>3 measured claims of 1 papers: <span class=\"badge reproduced\">reproduced</span> 1 ",
        "Counted apart, 2 claims:",
        "Counted apart (by construction)",
        "badge reproduced",
        "badge not-reproduced",
        "badge not-possible-here",
        "no counters here",
        "ringtap-lab run test/tiny --quick",
        "one trial: <code>ringtap measure who=",
        "Not measured in this run.",
        "1,0",
    ] {
        assert!(html.contains(wanted), "{wanted:?} is not there");
    }
    for unwanted in ["<script", "src=", "@import", "http://", "https://", "url("] {
        let html = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!html.contains(unwanted), "{unwanted:?} is there");
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
    // Three measured claims: one reproduced, one not possible, one of a program with a wrong result. That all agree
    // is counted apart, in both experiments.
    for wanted in [
        "3 measured claims of 1 papers",
        "1 reproduced",
        "0 not reproduced",
        "1 inconclusive",
        "not counted: 2 by construction",
        "test/tiny",
    ] {
        assert!(overview.contains(wanted), "{wanted:?} is not in {overview}");
    }
    let verdicts = fs::read_to_string(run.join("verdicts.csv")).unwrap();
    let mut lines = verdicts.lines();
    assert_eq!(lines.next(), Some("experiment,claim,kind,source,paper,ours,verdict,reason,judged"));
    // Four of the lines, one of the bars; what was not measured has none.
    assert_eq!(lines.count(), 5);
}

#[test]
fn a_run_without_its_folder_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let error = ringtap_lab::RunFolder::latest(folder.path()).unwrap_err().to_string();
    assert!(error.contains("ringtap-lab run"), "{error}");
}

/// What the browser prints.
fn browse(flags: &[&str], page: &Path) -> Option<String> {
    let browser = ["chromium", "chromium-browser"].into_iter().find(|name| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|folder| folder.join(name).is_file())
    });
    let Some(browser) = browser else {
        eprintln!("SKIPPED: chromium is not installed");
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("timeout")
        .args([
            "120",
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(flags)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_phone_shows_it_without_scrolling_sideways() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    // The page within a frame as wide as a phone; the script is the test's.
    let html = fs::read_to_string(&page).unwrap();
    let inner = html.replace('&', "&amp;").replace('"', "&quot;");
    let outer = folder.path().join("phone.html");
    let script = "let frame = document.querySelector('iframe'); let ask = () => { \
                  let root = frame.contentDocument.documentElement; \
                  for (let details of root.querySelectorAll('details')) details.open = true; \
                  document.title = root.clientWidth + ' shown, ' + root.scrollWidth + ' wide, ' + \
                  root.querySelectorAll('svg').length + ' figures'; }; \
                  frame.addEventListener('load', ask);";
    let text = format!(
        "<!doctype html><body><iframe width=\"360\" height=\"640\" srcdoc=\"{inner}\"></iframe><script>{script}</script>"
    );
    fs::write(&outer, text).unwrap();
    let Some(dom) = browse(&["--virtual-time-budget=5000", "--dump-dom"], &outer) else { return };
    let (_, title) = dom.split_once("<title>").expect("the page was asked");
    let title = title.split('<').next().unwrap();
    let numbers: Vec<u32> = title.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!((300..=360).contains(&numbers[0]), "{title}");
    assert!(numbers[1] <= numbers[0] && numbers[2] == 2, "{title}");
}

#[test]
fn it_prints_on_paper() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    let pdf = folder.path().join("report.pdf");
    let flag = format!("--print-to-pdf={}", pdf.display());
    if browse(&[&flag, "--no-pdf-header-footer"], &page).is_none() {
        return;
    }
    let bytes = fs::read(&pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() > 10_000, "{} bytes", bytes.len());
}

/// The verdicts of a kept run are those that its rows and the claims of today give, and docs/PAPERS.md quotes them.
#[test]
fn kept_runs_are_judged_by_the_claims_of_today() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/PAPERS.md")).unwrap();
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
        assert!(verdicts == expected, "'ringtap-lab report {}' makes it anew", run.path.display());
        let name = kept.file_name().into_string().unwrap();
        if page.contains(&name) {
            let [(_, reproduced), (_, not), (_, impossible), (_, open)] =
                tally(&verdicts, &[ClaimKind::Measured]);
            let measured = reproduced + not + impossible + open;
            let apart = verdicts.len() - measured;
            for sentence in [
                format!("- {reproduced} of {measured} measured claims are reproduced"),
                format!("- {not} are not:"),
                format!("- {impossible} need more cores"),
                format!("and {open} drown in its noise"),
                format!("- {apart} claims are counted apart"),
            ] {
                assert!(page.contains(&sentence), "docs/PAPERS.md should say: {sentence}");
            }
            quoted += 1;
        }
    }
    assert_eq!(quoted, 1);
}

/// The experiments that are committed can be shown, measured or not.
#[test]
fn the_page_of_all_experiments_has_a_place_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let machine = ringtap_lab::machine::Machine::this();
    let run = ringtap_lab::RunFolder::open(folder.path(), &machine, true).unwrap();
    let html = fs::read_to_string(report::write(&run).unwrap()).unwrap();
    for experiment in ringtap_lab::catalogue::experiments().unwrap() {
        let Experiment { id, figure, .. } = &experiment;
        let anchor = format!("<article id=\"{}\">", experiment.file_name());
        assert!(html.contains(&anchor) && html.contains(figure), "{id}");
    }
}
