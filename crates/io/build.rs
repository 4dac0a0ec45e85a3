//! Links libpcap into static programs, and compiles the shim against the DPDK that pkg-config knows, with the few
//! libraries that it calls. Drivers of DPDK are plugins, which DPDK finds by itself.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    libpcap();
    #[cfg(feature = "dpdk")]
    libdpdk::build();
}

/// Links `libpcap.a` in the folder RINGTAP_LIBPCAP, if it is set (`scripts/setup-packages.sh`).
fn libpcap() {
    println!("cargo::rustc-check-cfg=cfg(libpcap_static)");
    println!("cargo::rerun-if-env-changed=RINGTAP_LIBPCAP");
    if let Ok(folder) = std::env::var("RINGTAP_LIBPCAP") {
        println!("cargo::rustc-link-search=native={folder}");
        println!("cargo::rustc-link-lib=static=pcap");
        println!("cargo::rustc-cfg=libpcap_static");
    }
}

#[cfg(feature = "dpdk")]
mod libdpdk {
    use std::process::Command;

    const SHIM: &str = "src/dpdk/sys/shim.c";
    const LIBRARIES: [&str; 4] = ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_eal"];

    pub(super) fn build() {
        println!("cargo::rerun-if-changed={SHIM}");
        println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
        let mut shim = cc::Build::new();
        // The headers need the instructions that the library was compiled for.
        pkg_config("--cflags").iter().for_each(|flag| {
            shim.flag(flag);
        });
        shim.file(SHIM).warnings_into_errors(true).compile("ringtap_dpdk_shim");
        for flag in pkg_config("--libs-only-L") {
            let folder = flag.trim_start_matches("-L");
            println!("cargo::rustc-link-search=native={folder}");
        }
        for library in LIBRARIES {
            println!("cargo::rustc-link-lib=dylib={library}");
        }
    }

    fn pkg_config(what: &str) -> Vec<String> {
        println!("cargo::rerun-if-env-changed=PKG_CONFIG");
        let program = std::env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
        let output = Command::new(&program).args([what, "libdpdk >= 22.11"]).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(
            output.status.success(),
            "DPDK 22.11 or later is needed (Debian: libdpdk-dev): {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let flags = String::from_utf8_lossy(&output.stdout);
        flags.split_whitespace().map(str::to_owned).collect()
    }
}
