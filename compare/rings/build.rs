//! Compiles the C and C++ rivals whose headers are installed. A missing one is left out, with a
//! warning here and a line in the report.

use std::{
    io::Write,
    process::{Command, Stdio},
};

struct Rival {
    /// Name of its file in shim/ and of its `cfg`.
    name: &'static str,
    header: &'static str,
    /// Its pkg-config package, if it needs compiler flags.
    package: Option<&'static str>,
    /// The library to link, if any.
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
    // Run again when the list of installed packages changes.
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
            println!("cargo::warning={name} is left out: missing header {header}");
        } else if let Err(why) = build.try_compile(name) {
            println!("cargo::warning={name} is left out: {why}");
        } else {
            println!("cargo::rustc-cfg={name}");
            library.iter().for_each(|library| println!("cargo::rustc-link-lib={library}"));
        }
    }
}

/// The compiler flags for a package; none if pkg-config does not find it.
fn flags(package: &str) -> Vec<String> {
    let output = Command::new("pkg-config").args(["--cflags", package]).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text).split_whitespace().map(str::to_owned).collect()
}

/// Whether the compiler is installed and finds a header.
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
