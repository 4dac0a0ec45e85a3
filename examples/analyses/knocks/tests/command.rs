//! The command line of a program with an analysis of its own.

use std::process::Command;

fn monitor(flags: &[&str]) -> String {
    let program = env!("CARGO_BIN_EXE_knocks");
    let output = Command::new(program).arg("monitor").args(flags).output().unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn help_and_errors_name_the_analysis() {
    let help = monitor(&["--help"]);
    assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains("adds to all: knocks"));
    let error = monitor(&["-r", "../../office.pcap", "--analyses", "knock"]);
    assert!(error.contains("unknown analysis \"knock\"") && error.contains("knocks"), "{error}");
}

#[test]
fn the_report_has_a_section() {
    let report = monitor(&["-r", "../../office.pcap", "--analyses", "knocks"]);
    assert!(report.contains("Knocks"), "{report}");
}
