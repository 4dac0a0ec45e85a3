//! Compiles datasketches-cpp if `DATASKETCHES_CPP` is the folder of its sources. Otherwise it is
//! left out, with a warning.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-env-changed=DATASKETCHES_CPP");
    println!("cargo::rustc-check-cfg=cfg(datasketches_cpp)");
    let Some(sources) = std::env::var_os("DATASKETCHES_CPP").map(PathBuf::from) else {
        println!("cargo::warning=datasketches-cpp is left out: DATASKETCHES_CPP is not set");
        return;
    };
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(3).cargo_warnings(false).file("shim/datasketches.cpp");
    for part in ["common", "count", "fi"] {
        build.include(sources.join(part).join("include"));
    }
    match build.try_compile("datasketches_cpp") {
        Ok(()) => println!("cargo::rustc-cfg=datasketches_cpp"),
        Err(why) => println!("cargo::warning=datasketches-cpp is left out: {why}"),
    }
}
