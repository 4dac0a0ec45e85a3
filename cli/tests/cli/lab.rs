//! The lab by its commands; its judgements are tested in its own crate.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{on_small_disk, ringtap, said};

/// Those that others rely on.
const IDS: [&str; 21] = [
    "rings/element-size",
    "rings/capacity",
    "rings/fastforward",
    "rings/cache-misses",
    "monitor/workers",
    "skeletons/microbenchmarks",
    "probe/arrangements",
    "probe/peers",
    "pit/cas",
    "pit/cores",
    "filter/workers",
    "filter/cache-size",
    "filter/random",
    "filter/small-caches",
    "measure/rss-table",
    "measure/non-rss-table",
    "measure/sketch-size",
    "measure/pool-size",
    "measure/cores",
    "measure/packet-size",
    "measure/choose",
];

#[test]
fn all_experiments_are_listed_with_their_figures() {
    let (list, errors, code) = said(ringtap().args(["lab", "list"]));
    assert_eq!((errors.as_str(), code), ("", 0));
    for id in IDS {
        assert!(list.contains(&format!("  {id} ")), "{id}");
    }
    assert!(list.contains("(Figure 13)") && list.contains("Takemasa"), "{list}");
}

#[test]
fn a_run_measures_judges_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = ringtap();
        command.current_dir(&folder).args(["lab", "run", "rings/cache-misses", "--quick"]);
        said(command.args(["--report", "json"]))
    };
    let (out, errors, code) = run();
    assert_eq!(code, 0, "{errors}");
    let judgements: Value = serde_json::from_str(&out).unwrap();
    let judgements = judgements.as_array().unwrap();
    assert_eq!(judgements.len(), 4, "{out}");
    for judgement in judgements {
        let (claim, verdict) =
            (judgement["claim"].as_str().unwrap(), judgement["verdict"].as_str());
        // Counters are a matter of the machine; the simulation is the same everywhere.
        let wanted: &[_] = if claim.contains("simulation") {
            &["reproduced", "not-reproduced"]
        } else {
            &["reproduced", "not-reproduced", "inconclusive", "not-possible-here"]
        };
        assert!(wanted.contains(&verdict.unwrap()), "{judgement}");
    }
    assert!(errors.contains("report.html"), "{errors}");
    let runs: Vec<_> = fs::read_dir(folder.path().join("runs")).unwrap().flatten().collect();
    assert_eq!(runs.len(), 1);
    let rows = fs::read_to_string(runs[0].path().join("rings-cache-misses.csv")).unwrap();
    assert!(rows.lines().count() > 15 && rows.contains(",simulation,"), "{rows}");
    // What is there is not measured again, and the page can be made from it at any time.
    assert_eq!(run().0, out);
    assert_eq!(fs::read_to_string(runs[0].path().join("rings-cache-misses.csv")).unwrap(), rows);
    let (page, _, code) = said(ringtap().current_dir(&folder).args(["lab", "report"]));
    assert!(code == 0 && folder.path().join(Path::new(page.trim())).is_file(), "{page}");
}

#[test]
fn a_workload_prints_its_numbers() {
    let words =
        "lab trial ring kind=mcring bytes=64 capacity=100 batch=10 mode=burst items=50k cores=";
    let (out, errors, code) = said(ringtap().args(words.split(' ')));
    assert_eq!((errors.as_str(), code), ("", 0));
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(found["items"] == 50_000 && found["items_per_second"].as_f64().unwrap() > 0.0, "{out}");
}

#[test]
fn mistakes_are_told() {
    for (words, wanted) in [
        ("lab run rings/colour", "lab list"),
        ("lab run", "ID"),
        ("lab trial rope", "cache-misses"),
        ("lab trial ring kind=mcring", "missing"),
        ("lab compare", "REV"),
    ] {
        let (_, errors, code) = said(ringtap().args(words.split(' ')));
        assert!(code == 2 && errors.contains(wanted), "{words}: {code} {errors}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, errors, code) = said(ringtap().current_dir(&folder).args(["lab", "report"]));
    assert!(code == 1 && errors.contains("ringtap lab run"), "{errors}");
}

#[test]
fn a_full_disk_leaves_no_cut_file_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["lab", "run", "rings/cache-misses", "--quick"];
    let Some((errors, code, left)) = on_small_disk(56, folder.path(), &flags) else { return };
    assert!(code == 1 && errors.contains("No space left on device"), "{code}: {errors}");
    assert!(left.contains(&"runs".into()), "{left:?}");
    let mut folders = vec![folder.path().join("left")];
    let mut files = 0;
    while let Some(path) = folders.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let is_ended = text.ends_with('\n');
            let text = text.trim_end();
            let whole = match path.extension().and_then(|end| end.to_str()) {
                Some("svg") => text.ends_with("</svg>"),
                Some("html") => text.ends_with("</html>"),
                Some("json") => serde_json::from_str::<Value>(text).is_ok(),
                Some("csv") => {
                    let fields = text.lines().map(|line| line.split(',').count());
                    is_ended && fields.min() > Some(1)
                }
                _ => false,
            };
            assert!(whole, "{name}: {text}");
            files += 1;
        }
    }
    assert!(files > 1);
}
