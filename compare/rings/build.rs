//! Compiles the C and C++ rivals whose headers are installed. One that is missing is left out, by
//! name: here as a warning, and in the report.

use std::{
    io::Write,
    process::{Command, Stdio},
};

struct Rival {
    /// Its file in shim/ and its `cfg`.
    name: &'static str,
    header: &'static str,
    /// What pkg-config calls it, where that tells more flags.
    package: Option<&'static str>,
    /// What it is linked with.
    library: Option<&'static str>,
}

const RIVALS: [Rival; 3] = [
    Rival { name: "boost", header: "boost/lockfree/spsc_queue.hpp", package: None, library: None },
    Rival {
        name: "moodycamel",
        header: "readerwriterqueue/readerwriterqueue.h",
        package: None,
        library: None,
    },
    Rival {
        name: "dpdk",
        header: "rte_ring_peek_zc.h",
        package: Some("libdpdk"),
        library: Some("rte_ring"),
    },
];

fn main() {
    println!("cargo::rerun-if-changed=shim");
    // A package may have come or gone: look again whenever the lists of installed ones change.
    println!("cargo::rerun-if-changed=/var/lib/dpkg/status");
    for rival in RIVALS {
        let Rival { name, header, package, library } = rival;
        println!("cargo::rustc-check-cfg=cfg({name})");
        let mut build = cc::Build::new();
        build
            .cpp(true)
            .std("c++17")
            .opt_level(3)
            .cargo_warnings(false)
            .file(format!("shim/{name}.cpp"));
        package.map(flags).unwrap_or_default().iter().for_each(|flag| {
            build.flag(flag);
        });
        if !has(&build, header) {
            println!("cargo::warning={name} is left out: no {header}");
        } else if let Err(why) = build.try_compile(name) {
            println!("cargo::warning={name} is left out: {why}");
        } else {
            println!("cargo::rustc-cfg={name}");
            library.iter().for_each(|library| println!("cargo::rustc-link-lib={library}"));
        }
    }
}

/// The compiler's flags for a package; none where pkg-config does not know it.
fn flags(package: &str) -> Vec<String> {
    let output = Command::new("pkg-config").args(["--cflags", package]).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).split_whitespace().map(str::to_owned).collect()
}

/// Whether the compiler is there and finds a header.
fn has(build: &cc::Build, header: &str) -> bool {
    let Ok(compiler) = build.try_get_compiler() else { return false };
    let mut command = compiler.to_command();
    command.args(["-E", "-x", "c++", "-"]).stdin(Stdio::piped());
    let Ok(mut child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        return false;
    };
    let written =
        child.stdin.take().is_some_and(|mut stdin| writeln!(stdin, "#include <{header}>").is_ok());
    child.wait().is_ok_and(|status| status.success()) && written
}
