//! Conformance to the RFCs of IPFIX and NetFlow v9: `conformance/ipfix.tsv` has each requirement with its test, or the
//! reason why there is none. docs/CONFORMANCE.md is made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("../conformance/ipfix.tsv");

/// The documents in their order: number, title, and what of it applies.
const DOCUMENTS: [(&str, &str, &str); 5] = [
    ("7011", "IPFIX", "Requirements for collecting processes do not apply."),
    (
        "5103",
        "Biflows",
        "With `--uniflow` each direction is a flow of its own, and nothing of this applies.",
    ),
    ("5655", "IPFIX files", "`--export ipfix-file:PATH` is the writer of such files."),
    (
        "6313",
        "Structured data",
        "Lists of facts from payloads, of first packets and of bursts: the parts about basicList.",
    ),
    (
        "3954",
        "NetFlow v9",
        "The document is informational. Requirements for collectors do not apply.",
    ),
];

/// Words for requirements; the last one is for what a document defines without such a word.
const LEVELS: [&str; 5] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "–"];

const STATUSES: [&str; 3] = ["met", "not met", "not applicable"];

/// A requirement.
struct Row {
    document: &'static str,
    section: &'static str,
    level: &'static str,
    requirement: &'static str,
    status: &'static str,
    /// Files and names.
    tests: Vec<(&'static str, &'static str)>,
    reason: &'static str,
}

impl Row {
    fn of(line: &'static str) -> Self {
        let cells: Vec<_> = line.split('\t').collect();
        let [document, section, level, requirement, status, tests, reason] = cells[..] else {
            panic!("seven cells: {line}");
        };
        let tests = tests.split_whitespace().map(|test| test.split_once(':').expect(test));
        Self { document, section, level, requirement, status, tests: tests.collect(), reason }
    }

    /// A line of the page.
    fn line(&self) -> String {
        let tests: Vec<_> =
            self.tests.iter().map(|(file, name)| format!("`{name}` ({})", stem(file))).collect();
        let status = if self.status == "not met" { "**not met**" } else { self.status };
        let Self { section, level, requirement, reason, .. } = self;
        let tests = if tests.is_empty() { "–".to_owned() } else { tests.join(", ") };
        format!("| {section} | {level} | {requirement} | {status} | {tests} | {reason} |\n")
    }
}

fn rows() -> Vec<Row> {
    TABLE.lines().skip(1).map(Row::of).collect()
}

/// The name by which the page calls a file.
fn stem(file: &str) -> &str {
    let name = Path::new(file).file_stem().and_then(|name| name.to_str());
    let is_command = file.starts_with("cli/") && name == Some("export");
    if is_command { "export of the command" } else { name.expect(file) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn each_requirement_has_a_test_or_a_reason() {
    let (rows, mut seen) = (rows(), BTreeSet::new());
    for row in &rows {
        let what = format!("{} {}: {}", row.document, row.section, row.requirement);
        assert!(DOCUMENTS.iter().any(|(number, ..)| *number == row.document), "{what}");
        assert!(LEVELS.contains(&row.level) && STATUSES.contains(&row.status), "{what}");
        assert!(row.requirement.ends_with('.') && !TABLE.contains('|'), "{what}");
        let is_met = row.status == "met";
        assert!(!row.reason.is_empty() || is_met && !row.tests.is_empty(), "{what}: no reason");
        assert!(seen.insert(what.clone()), "{what}: twice");
    }
    // In the order of the documents, and of their sections.
    let place = |row: &Row| {
        let document = DOCUMENTS.iter().position(|(number, ..)| *number == row.document);
        let section = row.section.split('.').map(|part| part.parse().expect(row.section));
        (document, section.collect::<Vec<u32>>())
    };
    assert!(rows.iter().map(place).is_sorted());
}

#[test]
fn each_named_test_exists() {
    let mut texts = BTreeMap::new();
    for (file, name) in rows().into_iter().flat_map(|row| row.tests) {
        let text = texts.entry(file).or_insert_with(|| {
            std::fs::read_to_string(root().join(file))
                .unwrap_or_else(|error| panic!("{file}: {error}"))
        });
        let (before, _) = text
            .split_once(&format!("fn {name}("))
            .unwrap_or_else(|| panic!("{file} has no test {name}"));
        // The attribute is above the function, perhaps with others between them.
        let above = before.rsplit("\n\n").next().unwrap_or_default();
        assert!(above.contains("#[test]"), "{file}: {name} is not a test");
    }
    let stems: BTreeSet<_> = texts.keys().map(|file| stem(file)).collect();
    assert_eq!(stems.len(), texts.len(), "files have distinct names on the page");
}

/// The whole page.
fn page() -> String {
    let rows = rows();
    let count = |document: &str, status: &str| {
        rows.iter().filter(|row| row.document == document && row.status == status).count()
    };
    let mut out = String::from(
        "# Conformance\n\n\
         *For operators and authors of collectors.* After this page you know which requirements of IPFIX and NetFlow v9 ringtap meets, which\n\
         it does not meet and why, and which tests prove it.\n\n\
         ringtap is a metering and an exporting process ([OUTPUTS.md](OUTPUTS.md#ipfix-and-netflow)): it has no collecting process, and reads\n\
         neither messages nor files of IPFIX. Each requirement is in our words; the level is the word of the RFC, and – for what it defines\n\
         without one. RFC 8158 (events of address translation) is not claimed.\n\n\
         The page is made of `testkit/conformance/ipfix.tsv` by a test (`RINGTAP_WRITE=1 cargo test -p ringtap-testkit --test conformance`),\n\
         which fails if a named test does not exist.\n\n\
         | document | requirements | met | not met | not applicable |\n|---|---|---|---|---|\n",
    );
    let mut sums = [0; 3];
    for (number, title, _) in DOCUMENTS {
        let counts = STATUSES.map(|status| count(number, status));
        (0..3).for_each(|at| sums[at] += counts[at]);
        let [met, not_met, other] = counts;
        let all = met + not_met + other;
        let anchor = format!("rfc-{number}-{}", title.to_lowercase().replace(' ', "-"));
        out += &format!(
            "| [RFC {number}: {title}](#{anchor}) | {all} | {met} | {not_met} | {other} |\n"
        );
    }
    let [met, not_met, other] = sums;
    out += &format!("| all | {} | {met} | {not_met} | {other} |\n", rows.len());
    for (number, title, about) in DOCUMENTS {
        out += &format!(
            "\n## RFC {number}: {title}\n\n{about}\n\n\
             | section | level | requirement | status | tests | remark or reason |\n|---|---|---|---|---|---|\n"
        );
        let own = rows.iter().filter(|row| row.document == number);
        own.for_each(|row| out += &row.line());
    }
    let files: BTreeSet<_> =
        rows.iter().flat_map(|row| &row.tests).map(|(file, _)| *file).collect();
    out += "\n## Files of the tests\n\n| name | file |\n|---|---|\n";
    for file in files {
        out += &format!("| {} | `{file}` |\n", stem(file));
    }
    out
}

/// With RINGTAP_WRITE=1 the page is written.
#[test]
fn the_page_is_that_of_the_table() {
    let path = root().join("docs/CONFORMANCE.md");
    let (made, page) = (page(), std::fs::read_to_string(&path).unwrap_or_default());
    if made != page && std::env::var_os("RINGTAP_WRITE").is_some() {
        return std::fs::write(&path, made).unwrap();
    }
    assert!(made == page, "run RINGTAP_WRITE=1 cargo test -p ringtap-testkit --test conformance");
}
