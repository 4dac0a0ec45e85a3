//! Tests of docs/REPORT.md: its tables are those of the kept runs, and so are the figures in its text.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ringtap_lab::judge::{Judgement, count_verdicts, of_run};
use ringtap_lab::{ClaimKind, Experiment, RunFolder, Verdict, catalogue};

/// A run in experiments/runs.
struct Kept {
    name: String,
    verdicts: Vec<Judgement>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All kept runs, the oldest first; their files of verdicts follow from their rows and today's claims.
fn kept(experiments: &[Experiment]) -> Vec<Kept> {
    let folders = fs::read_dir(root().join("experiments/runs")).unwrap().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|folder| folder.path()).collect();
    folders.sort();
    folders.into_iter().map(|folder| read(&folder, experiments)).collect()
}

fn read(folder: &Path, experiments: &[Experiment]) -> Kept {
    let run = RunFolder::read(folder).unwrap();
    let rows = experiments.iter().flat_map(|one| of_run(&run, one).unwrap().rows);
    for row in rows {
        let is_path =
            |word: &str| word.starts_with('/') || word.contains("=/") || word.contains(":/");
        assert!(!row.command.split(' ').any(is_path), "a path of the machine: {}", row.command);
    }
    let judged = experiments.iter().flat_map(|one| of_run(&run, one).unwrap().judgements);
    let expected: Vec<_> = judged.collect();
    let mut reader = csv::Reader::from_path(folder.join("verdicts.csv")).unwrap();
    let verdicts: Vec<Judgement> = reader.deserialize().map(Result::unwrap).collect();
    assert!(verdicts == expected, "run 'ringtap-lab report {}'", folder.display());
    Kept { name: folder.file_name().unwrap().to_str().unwrap().to_owned(), verdicts }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A verdict and its figure.
fn found(judgement: Option<&Judgement>) -> String {
    match judgement {
        None => "–".into(),
        Some(Judgement { verdict: Verdict::NotPossibleHere, .. }) => "not possible".into(),
        Some(Judgement { verdict, ours, .. }) if ours == "–" => verdict.to_string(),
        Some(Judgement { verdict, ours, .. }) => format!("{verdict}, {}", cell(ours)),
    }
}

/// The head of a table with a column for each run.
fn head(first: &[&str], runs: &[Kept]) -> String {
    let mut head = String::new();
    for name in first {
        let _ = write!(head, "| {name} ");
    }
    for run in runs {
        let page = format!("../experiments/runs/{}/report.html", run.name);
        let short = run.name.trim_end_matches("-full");
        let _ = write!(head, "| [{short}]({page}) ");
    }
    format!("{head}|\n{}|\n", "|---".repeat(first.len() + runs.len()))
}

/// The number of measured claims by verdict, and of the others.
fn summary(runs: &[Kept]) -> String {
    let mut table = head(&["measured claims"], runs);
    let counts: Vec<_> =
        runs.iter().map(|run| count_verdicts(&run.verdicts, &[ClaimKind::Measured])).collect();
    for (at, verdict) in Verdict::ALL.into_iter().enumerate() {
        let _ = write!(table, "| {verdict} ");
        for counts in &counts {
            let _ = write!(table, "| {} ", counts[at].1);
        }
        table += "|\n";
    }
    table += "| claims of other kinds: reproduced or stronger, of all ";
    for run in runs {
        let apart: Vec<_> = run.verdicts.iter().filter(|j| j.kind != ClaimKind::Measured).collect();
        let good = |j: &&&Judgement| matches!(j.verdict, Verdict::Stronger | Verdict::Reproduced);
        let _ = write!(table, "| {} of {} ", apart.iter().filter(good).count(), apart.len());
    }
    table + "|\n"
}

/// The claims of a paper, each with what every run found.
fn of_paper(paper: &str, experiments: &[Experiment], runs: &[Kept]) -> String {
    let mut table = head(&["row", "claim", "paper"], runs);
    for experiment in experiments.iter().filter(|one| one.paper == paper) {
        for (claim, number) in experiment.claims.iter().zip(1..) {
            let id = format!("{}-{number}", experiment.file_name());
            let kind = match claim.kind {
                ClaimKind::Measured => String::new(),
                kind => format!(" ({})", kind.name()),
            };
            let of = |run: &Kept| found(run.verdicts.iter().find(|judged| judged.id == id));
            let cells: Vec<String> = runs.iter().map(of).collect();
            // A link to the page of the latest run that has it.
            let latest = runs.iter().rfind(|run| run.verdicts.iter().any(|j| j.id == id));
            let row = match latest {
                Some(Kept { name, .. }) => {
                    format!("[{id}](../experiments/runs/{name}/{paper}.html#{id})")
                }
                None => id,
            };
            let (text, figure, cells) = (cell(&claim.text), cell(&claim.paper), cells.join(" | "));
            let _ = writeln!(table, "| {row} | {text}{kind} | {figure} | {cells} |");
        }
    }
    table
}

/// The text of docs/REPORT.md with its tables made anew; `<!-- claims: NAME -->` and `<!-- end -->` are around each.
fn made(page: &str, experiments: &[Experiment], runs: &[Kept]) -> String {
    let mut made = String::new();
    let mut rest = page;
    while let Some((before, behind)) = rest.split_once("<!-- claims: ") {
        let (name, table) = behind.split_once(" -->\n").expect("a name");
        let (_, after) = table.split_once("<!-- end -->").expect("an end");
        let table = match name {
            "summary" => summary(runs),
            paper if experiments.iter().any(|one| one.paper == paper) => {
                of_paper(paper, experiments, runs)
            }
            other => panic!("there is no paper {other}"),
        };
        let _ = write!(made, "{before}<!-- claims: {name} -->\n{table}<!-- end -->");
        rest = after;
    }
    made + rest
}

/// With RINGTAP_WRITE=1 the tables are written.
#[test]
fn the_report_has_the_verdicts_of_the_kept_runs() {
    let experiments = catalogue::experiments().unwrap();
    let runs = kept(&experiments);
    let file = root().join("docs/REPORT.md");
    let page = fs::read_to_string(&file).unwrap();
    let made = made(&page, &experiments, &runs);
    if made != page && std::env::var_os("RINGTAP_WRITE").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert!(made == page, "run RINGTAP_WRITE=1 cargo test -p ringtap-lab the_report_has");
    let papers = catalogue::papers().unwrap();
    for (name, _) in papers {
        assert!(page.contains(&format!("<!-- claims: {name} -->")), "{name} is missing");
    }
    let claims: usize = experiments.iter().map(|experiment| experiment.claims.len()).sum();
    let latest = runs.last().unwrap();
    let measured = count_verdicts(&latest.verdicts, &[ClaimKind::Measured]);
    let is_open = |verdict| matches!(verdict, Verdict::Inconclusive | Verdict::NotPossibleHere);
    let decided: usize = measured.iter().filter(|(v, _)| !is_open(*v)).map(|(_, n)| n).sum();
    for (file, words) in [
        ("README.md", format!("the papers' {claims} claims")),
        ("docs/LAB.md", format!("ringtap-lab check experiments/runs/{}", latest.name)),
        ("docs/LAB.md", format!("of {decided} decided measured claims")),
        ("docs/LAB.md", format!("a verdict for each of the {claims} claims")),
        ("docs/REPORT.md", format!("{claims} claims")),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&words), "{file} should say: {words}");
    }
}

/// Whether `text` has this figure, and not as a part of a longer number.
fn has_figure(text: &str, figure: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_digit() || ".,".contains(c);
    !figure.is_empty()
        && text.match_indices(figure).any(|(at, _)| {
            let (before, behind) = (&text[..at], &text[at + figure.len()..]);
            !before.ends_with(goes_on) && !behind.starts_with(goes_on)
        })
}

/// What is wrong with the figures of a page, and how many are right. A figure is a link to a row of a run, which has it: as
/// what was found, or as the paper's.
fn mistakes(page: &str, runs: &[Kept]) -> (Vec<String>, usize) {
    let (mut mistakes, mut figures) = (Vec::new(), 0);
    for (link, _) in page.match_indices("](../experiments/runs/") {
        let text = page[..link].rsplit_once('[').unwrap().1;
        let target = page[link + 2..].split_once(')').unwrap().0;
        let Some((target, id)) = target.split_once('#') else { continue };
        let name = target.split('/').nth(3).unwrap();
        let run = runs.iter().find(|run| run.name == name);
        match run.and_then(|run| run.verdicts.iter().find(|judged| judged.id == id)) {
            None => mistakes.push(format!("{name} has no row {id}")),
            Some(_) if text == id => {}
            Some(row) if has_figure(&row.ours, text) || has_figure(&row.paper, text) => {
                figures += 1
            }
            Some(Judgement { ours, paper, .. }) => {
                mistakes.push(format!("{id}: {text}, but found {ours}, and in the paper {paper}"));
            }
        }
    }
    (mistakes, figures)
}

#[test]
fn figures_in_the_report_are_those_of_their_rows() {
    let runs = kept(&catalogue::experiments().unwrap());
    let page = fs::read_to_string(root().join("docs/REPORT.md")).unwrap();
    let (mistakes, figures) = mistakes(&page, &runs);
    assert_eq!(mistakes, Vec::<String>::new());
    assert!(figures > 15, "{figures} figures");
}

#[test]
fn a_wrong_figure_is_found() {
    let runs = kept(&catalogue::experiments().unwrap());
    let latest = runs.iter().rfind(|run| run.verdicts.iter().any(|j| j.id == "pit-cas-6")).unwrap();
    let row = latest.verdicts.iter().find(|judged| judged.id == "pit-cas-6").unwrap();
    let figure = row.ours.split(" (").next().unwrap();
    let link = |text: &str, id: &str| {
        format!("[{text}](../experiments/runs/{}/pit.html#{id})", latest.name)
    };
    let of = |page: &str| (mistakes(page, &runs).0.len(), mistakes(page, &runs).1);
    assert_eq!(of(&link(figure, "pit-cas-6")), (0, 1), "{figure}");
    // Too short or too long, and a row that is not there.
    assert_eq!(of(&link(&figure[1..], "pit-cas-6")), (1, 0), "{figure}");
    assert_eq!(of(&link(&format!("1{figure}"), "pit-cas-6")), (1, 0), "{figure}");
    assert_eq!(of(&link(figure, "pit-cas-99")), (1, 0));
}

#[test]
fn the_text_around_tables_stays() {
    let experiments = catalogue::experiments().unwrap();
    let runs = kept(&experiments);
    let (paper, _) = catalogue::papers().unwrap().swap_remove(0);
    let page = format!("a\n<!-- claims: {paper} -->\nwrong\n<!-- end -->\nb\n");
    let made = made(&page, &experiments, &runs);
    assert!(made.starts_with("a\n<!-- claims") && made.ends_with("<!-- end -->\nb\n"), "{made}");
    assert!(!made.contains("wrong") && made.lines().count() > 20, "{made}");
}
