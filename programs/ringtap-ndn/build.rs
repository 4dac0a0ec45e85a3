//! Build script: records what the program is built from.

include!("../../scripts/provenance.rs");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../scripts/provenance.rs");
    record_build();
}
