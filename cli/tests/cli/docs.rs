//! Tests of README, CONTRIBUTING, docs and site: the commands shown run or at least parse, and named
//! files, links and targets exist.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{have, office, output_of, ringtap};
use crate::formats::tool;
use crate::net::{Background, Net, Right};

/// The page of `ringtap-ndn`.
const NDN_PAGE: &str = "programs/ringtap-ndn/README.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Path and text of README, CONTRIBUTING, all pages of `docs` and `site`, and those of the programs.
fn pages() -> Vec<(String, String)> {
    let folders = ["docs", "site"].into_iter();
    let pages = folders.flat_map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let pages = pages.map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = pages.filter(|path| path.extension() == Some("md".as_ref())).collect();
    let others = ["README.md", "CONTRIBUTING.md", NDN_PAGE];
    pages.extend(others.map(|name| root().join(name)));
    pages.sort();
    let page = |path: &PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    pages.iter().map(page).collect()
}

/// The fenced blocks of a page, and the code spans in its prose.
fn code(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut blocks, mut prose, mut fenced) = (Vec::new(), String::new(), false);
    for line in page.lines() {
        match line.starts_with("```") {
            true => {
                fenced = !fenced;
                if fenced {
                    blocks.push(String::new());
                }
            }
            false if fenced => {
                let block = blocks.last_mut().unwrap();
                block.push_str(line);
                block.push('\n');
            }
            false => {
                prose.push_str(line);
                prose.push(' ');
            }
        }
    }
    assert!(!fenced, "a fenced block without an end");
    let spans = prose.split('`').skip(1).step_by(2);
    (blocks, spans.map(|span| span.replace("\\|", "|")).collect())
}

/// A line of a block without the remark after two spaces or a hash.
fn without_remark(line: &str) -> &str {
    let line = line.trim();
    let end = line.find("  ").unwrap_or(line.len());
    line[..end].split(" #").next().unwrap().trim_end()
}

/// The programs.
const PROGRAMS: [&str; 3] = ["ringtap", "ringtap-ndn", "ringtap-lab"];

/// The command lines of all programs that a page shows, in blocks, sentences and tables.
fn shown(page: &str) -> BTreeSet<String> {
    let (blocks, spans) = code(page);
    let lines = blocks.iter().flat_map(|block| block.lines()).map(without_remark);
    let all = lines.chain(spans.iter().map(String::as_str));
    let all = all.map(|line| line.trim_start_matches("sudo "));
    let begins = PROGRAMS.map(|program| format!("{program} "));
    let all = all.filter(|line| {
        begins.iter().any(|begin| line.starts_with(begin)) || line.contains("| ringtap ")
    });
    all.map(str::to_owned).collect()
}

/// The program and the arguments of the command in a line. Text before and after the command is
/// removed; each choice of `a|b` gives a list of arguments.
fn arguments(line: &str) -> (&'static str, Vec<Vec<String>>) {
    let rest = |program| Some((program, line.strip_prefix(program)?.strip_prefix(' ')?));
    let (program, line) = PROGRAMS
        .into_iter()
        .find_map(rest)
        .unwrap_or_else(|| ("ringtap", line.split_once("ringtap ").expect("the command").1));
    let line = line.split([';', '>']).next().unwrap().split(" | ").next().unwrap();
    let line = line.replace(['[', ']'], "").replace("ADDRESS", "192.0.2.1");
    let mut all = vec![Vec::<String>::new()];
    for (place, part) in line.split('\'').enumerate() {
        let quoted = place % 2 == 1;
        let words: Vec<_> = if quoted { vec![part] } else { part.split_whitespace().collect() };
        for word in words {
            let word = word.trim_end_matches('…');
            if word.is_empty() && !quoted {
                // `…` stands for a value: its flag is removed, too.
                all.iter_mut().for_each(|words| {
                    words.pop_if(|last| last.starts_with('-'));
                });
                continue;
            }
            let choices: Vec<_> = if quoted { vec![word] } else { word.split('|').collect() };
            let longer = |begin: &Vec<String>| -> Vec<_> {
                let with = |choice: &&str| [&begin[..], &[(*choice).to_owned()]].concat();
                choices.iter().map(with).collect()
            };
            all = all.iter().flat_map(longer).collect();
        }
    }
    (program, all)
}

/// The folder of the programs; it contains the others if the whole workspace was built.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_ringtap")).parent().unwrap().to_owned()
}

/// Whether the program is built; prints a `SKIPPED` line if not.
fn is_built(program: &str) -> bool {
    let is_built = programs().join(program).exists();
    if !is_built {
        eprintln!("SKIPPED: {program} is not built (cargo build --workspace)");
    }
    is_built
}

#[test]
fn all_commands_shown_parse() {
    let built: Vec<_> = PROGRAMS.into_iter().filter(|program| is_built(program)).collect();
    let mut count = 0;
    for (page, text) in pages() {
        for line in shown(&text) {
            let (program, all) = arguments(&line);
            for arguments in all.iter().filter(|_| built.contains(&program)) {
                // Help is printed only if all arguments before it parse.
                let mut command = assert_cmd::Command::new(programs().join(program));
                let (out, errors, code) = output_of(command.args(arguments).arg("--help"));
                assert!(code == 0 && !out.is_empty(), "{page}: {line}: {errors}");
                count += 1;
            }
        }
    }
    assert!(count > 80, "only {count} commands found");
}

/// Parts of commands that need minutes, a terminal, a device or another program.
const NOT_RUN: [&str; 14] = [
    "ringtap-lab ",
    "ringtap-ndn ping ",
    "ringtap-ndn server ",
    "ringtap-ndn load ",
    "ringtap-ndn key ",
    "ringtap doctor",
    "--tui",
    "--method live",
    "--capture dpdk",
    "kafka://",
    "kcat ",
    "ringtap man DIR",
    "--rate recorded",
    "--advise",
];

/// Whether the line can run as it is: it is not only a command name, and has no placeholders.
fn is_whole(line: &str) -> bool {
    let stands_for = ["FILE", "IFACE", "PATH", "REV", "NAME", "PREFIX", "FOLDER", "…", "|s", "[-"];
    let names_command = line.starts_with("ringtap") && line.split(' ').count() == 2;
    !names_command && !stands_for.iter().any(|word| line.contains(word))
}

/// The words that a live command prints when it is ready; `None` if the command ends without a
/// signal.
fn ready(line: &str) -> Option<&'static str> {
    let words = [
        ("ringtap filter -i", "control: "),
        ("ringtap-ndn forward --config", "forwarding at unix://"),
        ("ringtap check -i", "listening: "),
        ("ringtap measure -i", "listening: "),
        ("ringtap monitor -i", "listening: "),
    ];
    let runs = !line.contains("--dry-run");
    words.iter().find(|(start, _)| runs && line.starts_with(start)).map(|&(_, ready)| ready)
}

/// Creates the files and interfaces that the commands use.
fn prepare(net: &Net, folder: &Path, has_ndn: bool) {
    for command in ["link set right down", "link set right name eth0", "link set eth0 up"] {
        net.ip(Right, command);
    }
    net.ip(Right, "address add 192.0.2.2/24 dev eth0");
    net.ip(Right, "link add eth1 type veth peer name eth2");
    net.ip(Right, "link set eth1 up");
    net.ip(Right, "link set eth2 up");
    for name in ["a.pcap", "b.pcap", "trace.pcap", "hour.pcap"] {
        fs::copy(office(), folder.join(name)).unwrap();
    }
    let zip = "gzip -c a.pcap > b.pcapng.gz";
    assert!(Command::new("sh").args(["-c", zip]).current_dir(folder).status().unwrap().success());
    let page = |name| fs::read_to_string(root().join("docs").join(name)).unwrap();
    let block = |page: &str, words: &str| {
        code(page).0.into_iter().find(|block| block.contains(words)).expect(words)
    };
    fs::write(folder.join("rules.txt"), block(&page("FILTER.md"), "default deny")).unwrap();
    let run = folder.display().to_string();
    let forwarder =
        block(&fs::read_to_string(root().join(NDN_PAGE)).unwrap(), "[udp]").replace("/run", &run);
    fs::write(folder.join("ndn.toml"), forwarder).unwrap();
    if has_ndn {
        let mut command = assert_cmd::Command::new(programs().join("ringtap-ndn"));
        let command = command.args(["key", "generate", "/example", "--out", "one"]);
        let (_, errors, code) = output_of(command.current_dir(folder));
        assert_eq!(code, 0, "{errors}");
    }
    fs::create_dir(folder.join("states")).unwrap();
    fs::write(folder.join("list.txt"), "evil.example\n").unwrap();
    fs::write(folder.join("known.txt"), "10.1.2.3 vertical_scan\n").unwrap();
    fs::write(folder.join("networks.txt"), "10.1.0.0/16 office\n").unwrap();
    let number = ("autonomous_system_number", ringtap_testkit::mmdb::Value::Number(64_500));
    let system = ringtap_testkit::mmdb::Value::Map(vec![number]);
    fs::write(
        folder.join("asn.mmdb"),
        ringtap_testkit::mmdb::database("ASN", &[("10.0.0.0/8", system)]),
    )
    .unwrap();
    fs::write(folder.join("ringtap.toml"), "read = [\"a.pcap\"]\nreport = \"json\"\n").unwrap();
    for name in ["a", "b", "c"] {
        let flags = ["measure", "-r", "a.pcap", "--seed", "7", "--write"];
        let mut command = ringtap();
        let command = command.args(flags).arg(format!("sketch:{name}")).current_dir(folder);
        let (_, errors, code) = output_of(command);
        assert_eq!(code, 0, "{errors}");
        let state = format!("{name}.state");
        let flags = ["monitor", "-r", "a.pcap", "-q", "--state", &state];
        let (_, errors, code) = output_of(ringtap().args(flags).current_dir(folder));
        assert_eq!(code, 0, "{errors}");
    }
    let flags = ["monitor", "-r", "a.pcap", "-q", "--interval", "60s", "--state", "states/"];
    let (_, errors, code) = output_of(ringtap().args(flags).current_dir(folder));
    assert_eq!(code, 0, "{errors}");
}

/// The command with a hundredth of the packets and flows, where the page shows millions.
fn smaller(line: &str) -> String {
    let mut words: Vec<_> = line.split(' ').map(str::to_owned).collect();
    for at in 1..words.len() {
        if let ("--packets" | "--flows", Some(millions)) =
            (&*words[at - 1], words[at].strip_suffix('M'))
        {
            words[at] = format!("{millions}0k");
        }
    }
    words.join(" ")
}

/// Runs each command as shown, but with smaller numbers. A live command runs until it is ready and
/// the `ctl` commands for its socket have run.
#[test]
fn the_commands_shown_run() {
    if !["tcpdump", "gzip", "ip"].into_iter().all(have) {
        return;
    }
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let has_ndn = is_built("ringtap-ndn");
    prepare(&net, folder, has_ndn);
    let path = format!("{}:{}", programs().display(), std::env::var("PATH").unwrap());
    let engine = tool("venv/bin/duckdb").and_then(|path| path.canonicalize().ok());
    let shell = |line: &str| {
        let mut command = net.program(Right, "bash");
        command.args(["-o", "pipefail", "-c", line]).current_dir(folder);
        command.env("PATH", &path).env_remove("RINGTAP_LOG");
        if let Some(engine) = &engine {
            command.env("RINGTAP_DUCKDB", engine);
        }
        command
    };
    let all: BTreeSet<_> = pages().iter().flat_map(|(_, text)| shown(text)).collect();
    for reason in NOT_RUN {
        assert!(all.iter().any(|line| line.contains(reason)), "no page shows {reason:?} any more");
    }
    let all = all.iter().filter(|line| is_whole(line));
    let all = all.filter(|line| has_ndn || !line.starts_with("ringtap-ndn "));
    let all = all.filter(|line| engine.is_some() || !line.starts_with("ringtap query "));
    let all: Vec<_> =
        all.filter(|line| !NOT_RUN.iter().any(|reason| line.contains(reason))).collect();
    let (ctl_lines, all): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|line| line.contains(" ctl "));
    let (mut ctl_ran, mut ran) = (BTreeSet::new(), 0);
    for line in all {
        let run = line.replace("/run/", &format!("{}/", folder.display()));
        let run = smaller(&run);
        let run = match run.starts_with("ringtap generate -i") && !run.contains(" -r ") {
            true => format!("{} --packets 1k", run.split(" --packets").next().unwrap()),
            false => run,
        };
        // Commands of different pages write files of the same name.
        let writes = ["-w ", "--write ", "--state ", "--events ", "ipfix-file:", " json:"];
        let run = match writes.iter().any(|flag| run.contains(flag)) {
            true => ["monitor -r", "filter -r", "measure -r", "generate", "merge"].iter().fold(
                run,
                |run, begin| {
                    run.replace(
                        &format!("ringtap {begin} "),
                        &format!("ringtap {begin} --force ").replace("-r --force", "--force -r"),
                    )
                },
            ),
            false => run,
        };
        eprintln!("{run}");
        let Some(words) = ready(&run) else {
            let output = shell(&run).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            // `head` closes the pipe early, which ends the command.
            let left = run.ends_with("| head");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() || left, "{line}: {errors}{text}");
            ran += 1;
            continue;
        };
        let process = Background::start(shell(&format!("exec {run}")), words);
        for ctl_line in &ctl_lines {
            let (begin, _) = ctl_line.split_once(" ctl ").unwrap();
            let place = ctl_line.split(' ').nth(3).unwrap().replace("/run/", "");
            let of_this = run.starts_with(begin)
                && (run.contains(&place) || begin == "ringtap-ndn forward" && place == "ndn.sock");
            if of_this {
                eprintln!("  {ctl_line}");
                let ctl_run = ctl_line.replace("/run/", &format!("{}/", folder.display()));
                let output = shell(&ctl_run).output().unwrap();
                assert!(output.status.success(), "{ctl_line}: {output:?}");
                ctl_ran.insert(*ctl_line);
            }
        }
        process.interrupt();
        let (_, errors, code) = process.end();
        // `check` fails if it received no frame.
        let expected = if run.starts_with("ringtap check") { 3 } else { 0 };
        assert_eq!(code, expected, "{line}: {errors}");
        ran += 1;
    }
    assert_eq!(ctl_ran, ctl_lines.iter().copied().collect(), "no command shown opens their socket");
    assert!(ran > 40, "only {ran} commands ran");
}

/// Runs the blocks of a page as one script in `folder` and returns the output of each.
fn run_blocks(page: &str, folder: &Path, path: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs").join(page)).unwrap();
    let blocks = code(&text).0.into_iter().filter(|block| !block.contains("ringtap "));
    let mut script = String::new();
    let mut count = 0;
    for block in blocks {
        script.push_str(&format!("{block}\necho \"== end of block\"\n"));
        count += 1;
    }
    let mut command = Command::new("bash");
    command.args(["-u", "-c", &script]).current_dir(folder).env("PATH", path);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<_> = text.split("== end of block\n").map(str::to_owned).collect();
    assert_eq!(printed.len(), count + 1, "{page}: {errors}");
    printed
}

/// The tshark pipelines of MONITOR.md, and the pipelines of OUTPUTS.md that read records.
#[test]
fn the_pipelines_shown_print_something() {
    let path = std::env::var("PATH").unwrap();
    let folder = tempfile::tempdir().unwrap();
    if have("tshark") {
        fs::create_dir(folder.path().join("examples")).unwrap();
        fs::copy(office(), folder.path().join("examples/office.pcap")).unwrap();
        let printed = run_blocks("MONITOR.md", folder.path(), &path);
        // The first block only sets variables.
        assert!(printed.len() > 7, "{printed:?}");
        for (number, printed) in printed.iter().enumerate().skip(1).take(printed.len() - 2) {
            assert!(!printed.trim().is_empty(), "block {number} of MONITOR.md printed nothing");
        }
    }
    let python = root().join("target/test-tools/venv/bin/python");
    if !python.exists() {
        eprintln!("SKIPPED: no duckdb here (scripts/setup-test.sh installs it)");
        return;
    }
    if !have("jq") {
        return;
    }
    // DuckDB's shell has no package, so its Python module runs the statement.
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let python = std::path::absolute(&python).unwrap();
    let script = format!(
        "#!/bin/sh\nexec {} -c 'import duckdb, sys; print(duckdb.sql(sys.argv[1]))' \"$2\"\n",
        python.display()
    );
    fs::write(tools.join("duckdb"), script).unwrap();
    fs::set_permissions(tools.join("duckdb"), Permissions::from_mode(0o755)).unwrap();
    let flags = ["monitor", "-r"];
    let mut command = ringtap();
    command.args(flags).arg(office()).current_dir(folder.path());
    command.args(["--write", "json:flows.json", "--write", "parquet:flows.parquet"]);
    assert_eq!(output_of(&mut command).2, 0);
    let path = format!("{}:{path}", tools.display());
    let printed = run_blocks("OUTPUTS.md", folder.path(), &path);
    assert!(
        printed[0].contains("sourceIPAddress") && printed[0].lines().count() > 6,
        "{printed:?}"
    );
}

/// Folders of the repository with files that docs name.
const FOLDERS: [&str; 15] = [
    "apps",
    "cli",
    "compare",
    "crates",
    "docs",
    "examples",
    "experiments",
    "lab",
    "packaging",
    "programs",
    "python",
    "scripts",
    "site",
    "tests",
    "fuzz",
];

#[test]
fn the_files_and_targets_that_docs_name_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let packages = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let (mut count, mut missing) = (0, Vec::new());
    let mut check = |page: &str, named: &str, is_here: bool| {
        if !is_here {
            missing.push(format!("{page}: {named}"));
        }
        count += 1;
    };
    for (page, text) in pages() {
        let (blocks, spans) = code(&text);
        let lines = blocks.iter().flat_map(|block| block.lines()).map(without_remark);
        for span in lines.chain(spans.iter().map(String::as_str)) {
            let words: Vec<_> = span.split_whitespace().collect();
            let first = words.first().copied().unwrap_or_default();
            let folder = first.split('/').next().unwrap();
            let is_path = first.contains('/') && FOLDERS.contains(&folder);
            if is_path && !["NAME", "PAPER", "…", "*", "<"].iter().any(|mark| first.contains(mark))
            {
                let file = root().join(first.split("::").next().unwrap());
                check(&page, span, file.exists());
                // The flags occur in the script.
                for flag in words.iter().filter(|word| word.starts_with("--")) {
                    let script = fs::read_to_string(&file).unwrap();
                    check(&page, span, script.contains(flag));
                }
            }
            if first == "make" && words.len() > 1 {
                let targets = words[1..].iter().filter(|word| !word.contains('='));
                targets.for_each(|target| {
                    check(&page, span, makefile.contains(&format!("\n{target}:")));
                });
            }
            for pair in words.windows(2).filter(|_| first == "cargo") {
                if pair[0] == "-p" {
                    check(&page, span, packages.contains(&format!("\nname = \"{}\"\n", pair[1])));
                } else if pair[0] == "--example" {
                    check(&page, span, is_example(pair[1]));
                }
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "named in docs, but missing");
    assert!(count > 200, "only {count} names found");
}

/// Whether a package has an example of this name.
fn is_example(name: &str) -> bool {
    ["crates", "apps", "."].into_iter().any(|folder| {
        let packages = fs::read_dir(root().join(folder)).unwrap();
        packages.flatten().any(|one| {
            let examples = one.path().join("examples");
            examples.join(format!("{name}.rs")).exists() || examples.join(name).is_dir()
        })
    })
}

/// Common mistakes: a command, its exit code, and its message.
const MISTAKES: [(&str, i32, &str); 25] = [
    ("monitor", 2, "nothing to read: use -r trace.pcap, -r - for stdin, or -i eth0"),
    ("monitor -r missing.pcap", 1, "opening missing.pcap: no such file"),
    (
        "monitor -r a.pcap udp port 53",
        1,
        "put a filter expression after --: ringtap monitor -r a.pcap -- udp port 53",
    ),
    (
        "monitor -r notes.txt",
        1,
        "opening notes.txt: not a capture file (magic 0x68656c6c): use pcap or pcapng, also compressed with gzip or zstd",
    ),
    (
        "monitor -r empty.pcap",
        1,
        "opening empty.pcap: the file is empty (a capture without packets has a header)",
    ),
    ("monitor -r .", 1, "opening .: is a directory: use the files in it"),
    ("monitor -r cut.pcap", 0, "warning: reading cut.pcap: cut off at byte 3000"),
    ("monitor -i eth9", 1, "unknown interface \"eth9\": use"),
    (
        "monitor -r a.pcap --analyses flow",
        2,
        "unknown analysis \"flow\": use activity, applications, changes, flows, names, passive_dns, scans, statistics, talkers, tcp, udp_scans, volumes, watch or all",
    ),
    (
        "monitor -r a.pcap --idle-timeout 5x",
        2,
        "invalid duration \"5x\": use 30, 30s, 500ms or 1h30m",
    ),
    ("monitor -r a.pcap --memory 1M", 2, "invalid memory limit 1M: use at least"),
    ("monitor -r a.pcap -w 0", 2, "invalid number of workers 0: use 1 to 512"),
    ("monitor -r a.pcap --cores 4095", 2, "core 4095 is not available to this process: use"),
    (
        "monitor -r a.pcap --ring foo",
        2,
        "unknown ring \"foo\": use lock, lamport, fastforward, mcring or vernier",
    ),
    (
        "monitor -r a.pcap --sample 0",
        2,
        "invalid sampling rate \"0\": use 1:100 for one packet in a hundred",
    ),
    (
        "monitor -r a.pcap -- tcp prt 80",
        2,
        "invalid filter expression \"tcp prt 80\": can't parse filter expression: syntax error",
    ),
    (
        "monitor -r a.pcap --write xml:flows",
        2,
        "unknown record format \"xml\": use json, csv, eve, zeek or parquet",
    ),
    (
        "monitor -r a.pcap --write json",
        2,
        "invalid output \"json\": use FORMAT:PATH, as in json:flows.json or csv:-",
    ),
    (
        "monitor -r a.pcap --write json:/no/such/folder/flows",
        1,
        "opening the output json:/no/such/folder/flows: No such file or directory",
    ),
    (
        "monitor -r a.pcap --export ipfix://",
        2,
        "invalid collector \"ipfix://\": use HOST:PORT, as in ipfix://collector.example:4739",
    ),
    (
        "monitor -r a.pcap --config no.toml",
        2,
        "reading the configuration no.toml: No such file or directory",
    ),
    ("generate --profile foo -w a", 2, "unknown profile \"foo\", and no such file: use w1, w2, w3"),
    ("measure -r a.pcap --key foo", 2, "unknown key \"foo\": use five-tuple, source, destination"),
    (
        "merge notes.txt",
        1,
        "reading notes.txt: not a measurement: use a file of 'ringtap measure --write sketch:PATH'",
    ),
    (
        "forward --config ndn.toml",
        2,
        "NDN has a program of its own: use 'ringtap-ndn forward --config ndn.toml'",
    ),
];

/// The folder has captures, a text file, and a capture that ends within a packet.
#[test]
fn mistakes_have_messages_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let office = fs::read(office()).unwrap();
    fs::write(folder.path().join("a.pcap"), &office).unwrap();
    fs::write(folder.path().join("cut.pcap"), &office[..3_000]).unwrap();
    fs::write(folder.path().join("notes.txt"), "hello, this is a text\n").unwrap();
    fs::write(folder.path().join("empty.pcap"), "").unwrap();
    for (command, code, message) in MISTAKES {
        let mut ringtap = ringtap();
        let ringtap = ringtap.args(command.split_whitespace()).current_dir(folder.path());
        let (_, errors, ended) = output_of(ringtap);
        assert!(ended == code && errors.contains(message), "{command}: {ended}, {errors}");
    }
}
