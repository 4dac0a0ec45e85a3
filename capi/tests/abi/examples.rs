//! The examples in C and Go over the bundled capture, beside a run of the library in Rust.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use ringtap_testkit::have;

use crate::{office, path};

/// The folder with the libraries that cargo built for these tests.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().unwrap().to_owned();
    for name in ["libringtap_c.so", "libringtap_c.a"] {
        assert!(folder.join(name).is_file(), "no {name} in {}", folder.display());
    }
    folder
}

/// Compiles the example in C with these further arguments.
fn example(folder: &Path, further: &[String]) -> PathBuf {
    let program = folder.join("flows");
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-I"]);
    command.arg(path("capi/include")).arg(path("examples/c/flows.c")).arg("-o").arg(&program);
    assert!(command.args(further).status().unwrap().success());
    program
}

fn shared() -> [String; 4] {
    let folder = libraries().display().to_string();
    ["-L".into(), folder.clone(), "-lringtap_c".into(), format!("-Wl,-rpath,{folder}")]
}

/// The standard output and error of a program, and its exit code.
fn output(program: &Path, options: &[&str]) -> (String, String, i32) {
    let output = Command::new(program).args(options).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

/// The lines in any order: workers end flows at the same time.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The last line of the examples, by a run of the library.
fn totals() -> String {
    let sums = Arc::new(Mutex::new([0; 3]));
    let own = Arc::clone(&sums);
    let run =
        ringtap::Monitor::builder().files([path("examples/office.pcap")]).on_flow(move |flow| {
            let more = [1, flow.packets.iter().sum::<u64>(), flow.octets.iter().sum()];
            own.lock().unwrap().iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        });
    run.run().unwrap();
    let [flows, packets, octets] = *sums.lock().unwrap();
    assert!(flows > 0 && packets > flows && octets > packets);
    format!("{flows} flows, {packets} packets, {octets} octets, 0 lost")
}

#[test]
fn the_example_in_c_has_the_records_of_the_library() {
    if !have("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = example(folder.path(), &shared());
    let (records, errors, code) = output(&program, &[&office()]);
    assert_eq!((errors.as_str(), code), ("", 0));
    assert_eq!(records.lines().last(), Some(&*totals()));
    let question = |line: &&str| line.contains(" protocol 17 ") && line.contains(" dns ");
    let question = records.lines().find(question).unwrap();
    assert!(question.contains(" 1:"), "no Community ID: {question}");

    let (dns, _, _) = output(&program, &[&office(), "--flows=udp port 53", "sequential"]);
    let [lines @ .., _] = &dns.lines().collect::<Vec<_>>()[..] else { panic!("no totals") };
    assert!(!lines.is_empty() && lines.iter().all(|line| records.contains(line)), "{dns}");
    assert!(lines.len() < records.lines().count() - 1);

    let (_, errors, code) = output(&program, &["read=/no/such/file"]);
    assert!(code == 2 && errors.contains("/no/such/file"), "{errors}");
}

#[test]
fn the_static_library_is_enough() {
    if !have("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = libraries().join("libringtap_c.a").display().to_string();
    let mut further = [&library, "-lm", "-lpthread", "-ldl"].map(str::to_owned).to_vec();
    // The tests are built with the feature dpdk where it is installed (scripts/features.sh).
    if let Ok(dpdk) = Command::new("pkg-config").args(["--libs", "libdpdk"]).output() {
        let flags = String::from_utf8(dpdk.stdout).unwrap();
        further.extend(flags.split_whitespace().map(str::to_owned));
    }
    let (records, errors, code) = output(&example(folder.path(), &further), &[&office()]);
    assert_eq!((errors.as_str(), code), ("", 0));
    assert_eq!(records.lines().last(), Some(&*totals()));
}

#[test]
fn the_example_in_go_prints_what_the_one_in_c_does() {
    // cgo calls the compiler of C.
    if !have("go") || !have("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("flows-go");
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(&program).arg(".").current_dir(path("examples/go"));
    command.env("CGO_ENABLED", "1").env("CGO_LDFLAGS", shared().join(" "));
    command.env("GOTOOLCHAIN", "local").env("GOFLAGS", "-buildvcs=false").env("GOWORK", "off");
    if std::env::var_os("HOME").is_none() {
        command.env("GOCACHE", folder.path().join("cache"));
    }
    assert!(command.status().unwrap().success());
    let (records, errors, code) = output(&program, &[&office()]);
    assert_eq!((errors.as_str(), code), ("", 0));
    let (expected, _, _) = output(&example(folder.path(), &shared()), &[&office()]);
    assert_eq!(sorted(&records), sorted(&expected));

    let (_, errors, code) = output(&program, &["reed=x"]);
    assert!(code == 2 && errors.contains("--reed"), "{errors}");
}
