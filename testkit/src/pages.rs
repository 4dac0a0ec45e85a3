//! Commands that the kept pages of the lab print.

use std::fs;
use std::path::Path;

/// The commands of `program` on the kept pages of the lab's runs: their words, without the program.
pub fn printed_commands(program: &str) -> Vec<Vec<String>> {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/runs");
    let mut found = Vec::new();
    for run in fs::read_dir(runs).expect("kept runs").flatten() {
        let files = fs::read_dir(run.path()).expect("a run").flatten().map(|file| file.path());
        let pages = files.filter(|file| file.extension().is_some_and(|end| end == "html"));
        let text: String = pages.map(|page| fs::read_to_string(page).expect("a page")).collect();
        for code in text.split("<code>").skip(1).filter_map(|rest| rest.split("</code>").next()) {
            let code = code.replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
            let mut words = code.split_whitespace().map(|word| word.trim_matches('\'').to_owned());
            if words.next().as_deref() == Some(program) {
                found.push(words.collect());
            }
        }
    }
    found
}
