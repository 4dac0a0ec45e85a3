//! Tests of help, usage errors and exit codes.

use crate::common::{have, office, output_of, ringtap};
use ringtap_testkit::printed_commands;

/// The commands that the help lists.
const COMMANDS: [&str; 11] = [
    "monitor",
    "filter",
    "generate",
    "check",
    "measure",
    "merge",
    "query",
    "extract",
    "verify",
    "doctor",
    "check-config",
];

#[test]
fn no_arguments_show_the_help_on_one_screen() {
    let (help, errors, code) = output_of(&mut ringtap());
    assert_eq!((errors.as_str(), code), ("", 0));
    for command in COMMANDS {
        assert!(help.contains(command), "{help}");
    }
    assert!(!help.contains("completions") && !help.contains("ndn"), "{help}");
    assert!(help.lines().count() <= 24, "{} lines", help.lines().count());
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    let (same, _, code) = output_of(ringtap().arg("--help"));
    assert_eq!((same, code), (help, 0));
}

/// First words of the lines of `--version`; the lab reads them.
const BUILD: [&str; 6] = ["ringtap", "commit", "profile", "features", "target", "compiler"];

#[test]
fn every_command_has_help_and_the_program_has_a_version() {
    for command in COMMANDS {
        let (help, _, code) = output_of(ringtap().args([command, "--help"]));
        assert!(code == 0 && help.contains(&format!("ringtap {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    let (version, _, code) = output_of(ringtap().arg("-V"));
    assert_eq!((version, code), (format!("ringtap {}\n", env!("CARGO_PKG_VERSION")), 0));
    let (build, _, code) = output_of(ringtap().arg("--version"));
    let lines: Vec<_> =
        build.lines().map(|line| line.split_once(' ').expect("two words")).collect();
    assert_eq!(lines.iter().map(|(key, _)| *key).collect::<Vec<_>>(), BUILD, "{build}");
    assert_eq!((lines[0].1, code), (env!("CARGO_PKG_VERSION"), 0));
    assert!(lines[4].1.contains("-linux-"), "{build}");
    assert!(lines[5].1.starts_with("rustc 1."), "{build}");
}

#[test]
fn the_commands_on_kept_pages_of_the_lab_are_valid() {
    let commands = printed_commands("ringtap");
    assert!(commands.len() > 8, "{commands:?}");
    for words in commands {
        // With --help the flags are parsed, and nothing runs.
        let (_, errors, code) = output_of(ringtap().args(&words).arg("--help"));
        assert_eq!((errors.as_str(), code), ("", 0), "{words:?}");
    }
}

#[test]
fn usage_errors_name_a_remedy_and_exit_with_2() {
    let office = office();
    let office = office.to_str().unwrap();
    for (flags, words) in [
        (vec!["monitor"], "nothing to read"),
        (vec!["monitr"], "'monitor'"),
        (vec!["monitor", "--read"], "--read"),
        (vec!["monitor", "-r", office, "--worker", "3"], "'--workers'"),
        (vec!["monitor", "-r", office, "--tunnels", "sideways"], "use outer, inner or both"),
        (
            vec!["monitor", "-r", office, "--ring", "foo"],
            "use lock, lamport, fastforward, mcring or vernier",
        ),
        (vec!["monitor", "-r", office, "--skeleton", "foo"], "use reference, farm, pipeline"),
        (
            vec!["monitor", "-r", office, "--analyses", "flow"],
            "activity, applications, changes, flows, names, passive_dns, scans, statistics, talkers",
        ),
        (vec!["monitor", "-r", office, "--sequential", "-w", "2"], "one thread"),
        (vec!["monitor", "-r", office, "-w", "0"], "workers 0: use 1 to 512"),
        (vec!["monitor", "-r", office, "--idle-timeout", "soon"], "1h30m"),
        (vec!["monitor", "-r", office, "--cores", "3-1"], "0,1 or 0-3"),
        (vec!["monitor", "-r", office, "--cores", "0,1023"], "core 1023 is not available"),
        (vec!["measure", "-r", office, "--cores", "1023"], "core 1023 is not available"),
        (vec!["monitor", "-r", office, "--write", "xml:f"], "json, csv"),
        (vec!["monitor", "-r", office, "--write", "flows.json"], "FORMAT:PATH"),
        (vec!["monitor", "-r", office, "--export", "h:1"], "ipfix://HOST:PORT"),
        (vec!["monitor", "-r", office, "--export", "ipfix+tls://"], "HOST:PORT"),
        (vec!["monitor", "-r", office, "--export", "netflow9://h"], "HOST:PORT"),
        (vec!["monitor", "-r", office, "--export", "ipfix://h", "--export", "ipfix://h"], "twice"),
        (
            vec!["monitor", "-r", office, "--export", "ipfix-file:f", "--write", "csv:f"],
            "name the same file",
        ),
        (vec!["monitor", "-r", office, "--template-refresh", "0s"], "600s,4096"),
        (vec!["monitor", "-r", office, "--template-refresh", "600s,0"], "600s,4096"),
        (vec!["monitor", "-r", office, "--observation-domain", "4294967296"], "4294967295"),
        (vec!["monitor", "-r", office, "--config", "no-such.toml"], "no-such.toml"),
        (vec!["monitor", "-i", "eth0", "-r", office], "-i"),
        (vec!["generate"], "--write"),
        (vec!["generate", "--profile", "no-such", "-w", "x"], "w1, w2, w3, mix, scans"),
        (vec!["generate", "--size", "9", "-w", "x"], "64 to 9018"),
        (vec!["generate", "--zipf", "11", "-w", "x"], "0 to 10"),
        (vec!["generate", "-w", "-", "--truth", "-"], "stdout"),
        (vec!["generate", "-i", "x", "--report", "json", "--truth", "-"], "stdout"),
        (vec!["generate", "-i", "x", "-w", "y"], "cannot be used with"),
        (vec!["generate", "--method", "live", "-w", "x"], "--interface"),
        (vec!["generate", "-r", office, "-w", "x"], "--interface"),
        (vec!["generate", "--src-mac", "02:0:0:0:0:1", "-w", "x"], "--interface"),
        (
            vec!["generate", "-i", "x", "--method", "pktgen"],
            "[possible values: af-packet, af-xdp, live]",
        ),
        (vec!["generate", "-i", "x", "--rate", "fast"], "100Mbit or 1Gbit"),
        (vec!["generate", "-i", "x", "--rate", "0"], "100Mbit or 1Gbit"),
        (vec!["generate", "-w", "x", "--rate", "1Gbit"], "packets per second (of packet time)"),
        (vec!["generate", "-w", "x", "--rate", "recorded"], "packets per second (of packet time)"),
        (vec!["generate", "-i", "x", "--dst-mac", "1:2:3"], "02:00:00:00:00:01"),
        (vec!["generate", "-i", "x", "-r", office, "--profile", "mix"], "--profile"),
        (vec!["generate", "-i", "x", "-r", office, "--truth", "t"], "--truth"),
        (vec!["generate", "-i", "x", "-r", office, "--flows", "8"], "applies to profiles"),
        (vec!["generate", "-i", "x", "-r", "-", "--loop", "2"], "only once"),
        (vec!["generate", "-i", "x", "--loop", "2"], "--read"),
        (vec!["generate", "-i", "x", "--queue", "1"], "af-xdp"),
        (vec!["generate", "-i", "x", "--method", "live", "--stamp"], "omit --stamp"),
        (vec!["generate", "-i", "x", "--method", "live", "--truth", "t"], "omit --truth"),
        (vec!["generate", "-i", "x", "--method", "live", "--flows", "100"], "power of two"),
        (vec!["generate", "-i", "x", "--method", "live", "--rate", "2x"], "cannot send 2x"),
        (vec!["generate", "-i", "x", "--method", "live", "--size", "imix"], "one frame size"),
        (vec!["check"], "--interface"),
        (vec!["check", "-i", "x", "--method", "live"], "af-packet, af-xdp"),
        (vec!["check", "-i", "x", "--idle-stop", "soon"], "1h30m"),
        (vec!["ndn"], "use 'ringtap-ndn'"),
        (vec!["ndn", "ping", "/a", "-c", "3"], "use 'ringtap-ndn ping /a -c 3'"),
        (vec!["forward", "--config", "f.toml"], "use 'ringtap-ndn forward --config f.toml'"),
        (vec!["forward", "--help"], "use 'ringtap-ndn forward --help'"),
    ] {
        let (out, errors, code) = output_of(ringtap().args(&flags));
        assert!(errors.contains(words), "{flags:?}: {errors}");
        assert_eq!((out.as_str(), code), ("", 2), "{flags:?}: {errors}");
    }
}

/// The error lists the cores in the process's affinity mask, not all cores.
#[test]
fn a_core_that_the_process_may_not_use_is_refused_and_the_usable_ones_are_listed() {
    let allowed = ringtap_engine::Machine::this().allowed_cores;
    let [first, second, ..] = allowed[..] else {
        eprintln!("SKIPPED: only one core is available");
        return;
    };
    if !have("taskset") {
        return;
    }
    let office = office();
    let on_first = |cores: String| {
        let mut command = assert_cmd::Command::new("taskset");
        command.args(["-c", &first.to_string(), env!("CARGO_BIN_EXE_ringtap")]);
        command.args(["monitor", "--dry-run", "--cores", &cores, "-r"]).arg(&office);
        output_of(&mut command)
    };
    let (plan, errors, code) = on_first(first.to_string());
    assert_eq!(code, 0, "{errors}");
    assert!(plan.contains(&format!("core {first}")), "{plan}");
    let (out, errors, code) = on_first(format!("{first},{second}"));
    let expected = format!("core {second} is not available to this process: use {first}\n");
    assert!(errors.contains(&expected), "{errors}");
    assert_eq!((out.as_str(), code), ("", 2));
}

#[test]
fn the_last_of_two_flags_wins() {
    let office = office();
    for (flags, skeleton) in [
        (["--sequential", "--skeleton", "farm"], "farm"),
        (["--skeleton", "farm", "--sequential"], "reference"),
        (["--skeleton", "reference", "--skeleton=farm"], "farm"),
        (["--sequential", "--skeleton", "pipeline"], "pipeline"),
    ] {
        let mut command = ringtap();
        command.args(["monitor", "--dry-run", "-r"]).arg(&office).args(flags);
        let (plan, errors, _) = output_of(&mut command);
        assert!(plan.contains(skeleton), "{flags:?}: {plan}{errors}");
    }
}

#[test]
fn completions_and_man_pages_list_the_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _, code) = output_of(ringtap().args(["completions", shell]));
        assert!(code == 0 && script.contains("ring-capacity"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    ringtap().arg("man").arg(folder.path()).assert().success();
    let page = std::fs::read_to_string(folder.path().join("ringtap-monitor.1")).unwrap();
    assert!(page.contains("ring\\-capacity") && page.contains(".TH"), "{page}");
    let program = folder.path().join("ringtap.1");
    assert!(program.is_file());
    // Nothing is written if one page exists.
    std::fs::write(&program, "of another program").unwrap();
    std::fs::remove_file(folder.path().join("ringtap-monitor.1")).unwrap();
    let man = |force: &[&str]| output_of(ringtap().arg("man").arg(folder.path()).args(force));
    let (_, errors, code) = man(&[]);
    let advice = ".1: the file exists: use another name, or --force to replace it";
    assert!(code == 2 && errors.contains(advice), "{errors}");
    assert_eq!(std::fs::read(&program).unwrap(), b"of another program");
    assert!(!folder.path().join("ringtap-monitor.1").exists());
    assert_eq!(man(&["--force"]).2, 0);
    assert!(std::fs::read_to_string(&program).unwrap().contains(".TH"));
}

#[test]
fn the_environment_sets_the_level_of_notices() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.pcap");
    let whole = std::fs::read(office()).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 10]).unwrap();
    let printed = |level: &str| {
        let mut command = ringtap();
        command.env("RINGTAP_LOG", level).args(["monitor", "-r"]).arg(&cut).arg("Cargo.toml");
        let (_, errors, code) = output_of(&mut command);
        assert_eq!(code, 1);
        ["alert: ", "warning: ", "error: "].map(|kind| errors.contains(kind))
    };
    assert_eq!(printed("error"), [false, false, true]);
    assert_eq!(printed("warn"), [true, true, true]);
    assert_eq!(printed("Error"), printed("error"));
    let (_, errors, code) = output_of(ringtap().env("RINGTAP_LOG", "loud").arg("doctor"));
    assert_eq!(code, 0);
    assert!(errors.contains("invalid RINGTAP_LOG \"loud\": use error, warn or info"), "{errors}");
}

#[test]
fn a_configuration_is_checked_to_its_first_fault() {
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        std::fs::write(folder.path().join("c.toml"), text).unwrap();
        let mut command = ringtap();
        output_of(command.current_dir(folder.path()).args(["check-config", "c.toml"]))
    };
    let (out, errors, code) =
        check("# A probe.\ninterval = \"60s\"\nshed = true\nexport = [\"ipfix://127.0.0.1\"]\n");
    assert_eq!((out.as_str(), code), ("c.toml: valid\n", 0), "{errors}");
    for (text, words) in [
        (
            "shed = true\n\nintervall = \"60s\"\n",
            "line 3: unknown key \"intervall\": a similar key is \"interval\"",
        ),
        ("shed = true\ninterval = \"soon\"\n", "line 2: invalid value 'soon'"),
        ("shed = 1\n", "line 1: invalid shed: use true or false"),
        ("# x\nshed = \n", "line 2: "),
        ("cut = \"5s\"\nstate = \"/no/such/folder/\"\n", "c.toml"),
    ] {
        let (out, errors, code) = check(text);
        assert_eq!((out.as_str(), code), ("", 2), "{text}: {errors}");
        assert!(errors.contains("the configuration c.toml") && errors.contains(words), "{errors}");
    }
    let (_, errors, code) = output_of(ringtap().args(["check-config", "no.toml"]));
    assert!(code == 2 && errors.contains("no.toml"), "{errors}");
}
