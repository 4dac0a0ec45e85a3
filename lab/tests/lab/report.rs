//! Tests of the report page: it is self-contained, lists what is missing, and fits phones and
//! paper.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{EQUAL, builds, experiment, program, run, twice};
use ringtap_lab::{Experiment, Paper, report};
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
    let html = fs::read_to_string(&page).unwrap()
        + &fs::read_to_string(page.with_file_name("test.html")).unwrap();
    for wanted in [
        "<h2><a href=\"test.html\">On &lt;Rings",
        "<a href=\"test.html#test-tiny\">test/tiny</a>",
        "<a href=\"report.html\">All papers</a>",
        "On &lt;Rings&gt; &amp; &quot;Cores&quot;",
        "Figure &lt;1&gt;",
        "fast is twice as fast",
        "<tr id=\"test-tiny-1\">",
        "half of the paper's gain",
        "<p>3 measured claims of 1 papers: <span class=\"badge stronger\">stronger</span> 0 ",
        "<span class=\"badge reproduced\">reproduced</span> 1 ",
        "Counted separately, 2 claims:",
        "counted separately: by construction",
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
    // The overview and two experiments.
    assert_eq!(html.matches("<svg").count(), 3);
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
    assert_eq!(
        lines.next(),
        Some("id,experiment,claim,kind,source,paper,ours,verdict,reason,judged,predicted")
    );
    // Four claims of the lines, one of the bars; the third experiment was not run.
    assert_eq!(lines.count(), 5);
}

#[test]
fn a_missing_run_is_an_error_that_names_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let error = ringtap_lab::RunFolder::latest(folder.path()).unwrap_err().to_string();
    assert!(error.contains("ringtap-lab run"), "{error}");
}

/// A script that returns how wide the page is, the number of its figures, and its faults: text that is cut by a figure or
/// overprinted, empty figures, and text that hardly differs from what is behind it.
const EXAMINE: &str = r"
    for (const details of root.querySelectorAll('details')) details.open = true;
    const faults = [];
    const figures = root.querySelectorAll('svg');
    for (const figure of figures) {
        const frame = figure.getBoundingClientRect();
        const texts = [...figure.querySelectorAll('text')];
        const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]);
        if (!boxes.length || !figure.querySelector('path, rect, circle, line')) faults.push('empty');
        boxes.forEach(([text, box], at) => {
            if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1)
                faults.push('cut ' + text);
            for (const [other, next] of boxes.slice(at + 1)) {
                const wide = Math.min(box.right, next.right) - Math.max(box.left, next.left);
                const high = Math.min(box.bottom, next.bottom) - Math.max(box.top, next.top);
                if (wide > 2 && high > box.height / 4) faults.push('overprinted ' + text + ' / ' + other);
            }
        });
    }
    const light = colour => {
        const [r, g, b] = colour.match(/[0-9.]+/g).map(Number)
            .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const style = element => root.ownerDocument.defaultView.getComputedStyle(element);
    for (const element of root.querySelectorAll('h1, h2, p, li, td, th, small, code, a, .badge, .dot')) {
        let behind = element;
        while (behind && style(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
        const [one, other] = [light(style(element).color), behind ? light(style(behind).backgroundColor) : 1];
        if ((Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5)
            faults.push('pale ' + element.textContent.slice(0, 30));
    }
    return [root.clientWidth, root.scrollWidth, figures.length, ...new Set(faults)].join('; ');";

#[test]
fn pages_are_readable_at_three_widths_light_and_dark() {
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    for (name, figures) in [("report.html", 1), ("test.html", 2)] {
        let html = fs::read_to_string(page.with_file_name(name)).unwrap();
        let dark = html.replace("@media screen and (prefers-color-scheme:dark)", "@media screen");
        assert_ne!(dark, html);
        for (scheme, text, widths) in
            [("light", html, &[360, 768, 1280][..]), ("dark", dark, &[768])]
        {
            let file = page.with_file_name(format!("{scheme}.html"));
            fs::write(&file, text).unwrap();
            for &width in widths {
                let Some(found) = examine(folder.path(), &file, width, EXAMINE) else { return };
                let what = format!("{name}, {scheme}, {width}: {found}");
                let words: Vec<&str> = found.split("; ").collect();
                let [shown, wide, svgs] =
                    [0, 1, 2].map(|at: usize| words[at].parse::<u32>().unwrap());
                assert!((width - 60..=width).contains(&shown) && wide <= shown, "{what}");
                assert_eq!((svgs, words.len()), (figures, 3), "{what}");
            }
        }
    }
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

/// Rows without later columns are read, and their run looks as before.
#[test]
fn reports_of_kept_runs_are_written_again_byte_for_byte() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/runs");
    for kept in fs::read_dir(root).unwrap().flatten() {
        let folder = tempfile::tempdir().unwrap();
        let predictions = kept.path().join("predictions");
        if predictions.exists() {
            fs::create_dir(folder.path().join("predictions")).unwrap();
        }
        for file in fs::read_dir(predictions).into_iter().flatten().flatten() {
            let name = Path::new("predictions").join(file.file_name());
            fs::copy(file.path(), folder.path().join(name)).unwrap();
        }
        for file in fs::read_dir(kept.path()).unwrap().flatten() {
            let name = file.file_name();
            let is_derived = file.path().extension().is_some_and(|end| end == "html");
            if file.path().is_file() && !is_derived && name != "verdicts.csv" {
                fs::copy(file.path(), folder.path().join(name)).unwrap();
            }
        }
        report::write(&ringtap_lab::RunFolder::read(folder.path()).unwrap()).unwrap();
        let figures = fs::read_dir(kept.path().join("figures")).unwrap().flatten();
        let figures = figures.map(|file| Path::new("figures").join(file.file_name()));
        let pages = fs::read_dir(&folder).unwrap().flatten().map(|file| file.file_name().into());
        let pages =
            pages.filter(|name: &PathBuf| name.extension().is_some_and(|end| end == "html"));
        let derived: Vec<PathBuf> = figures.chain(pages).chain(["verdicts.csv".into()]).collect();
        assert!(derived.len() > 5);
        for name in derived {
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
    let index = report::write(&run).unwrap();
    for experiment in ringtap_lab::catalogue::experiments().unwrap() {
        let Experiment { id, figure, paper, .. } = &experiment;
        let page = index.with_file_name(format!("{paper}.html"));
        let html = fs::read_to_string(page).unwrap();
        let anchor = format!("<article id=\"{}\">", experiment.file_name());
        assert!(html.contains(&anchor) && html.contains(figure), "{id}");
    }
}
