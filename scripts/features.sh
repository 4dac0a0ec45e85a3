# Sourced by the scripts that test and lint. `features` enables all features of the workspace except
# those for DPDK, which need libdpdk. `all_features` also enables those of the program, and these if libdpdk is
# installed (`have_dpdk`).

# The build of the tests is for one run: a third less work than with sixteen units and line numbers.
export CARGO_PROFILE_DEV_CODEGEN_UNITS=1 CARGO_PROFILE_DEV_DEBUG=none

have_dpdk() {
    pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null
}

features=(--features ringtap-testkit/full,ringtap-extract/fuzz,ringtap-io/fuzz,ringtap-monitor/fuzz,ringtap-io/zstd,ringtap-export/arrow,ringtap-ndn/fuzz,ringtap-ring/model,ringtap-wire/fuzz)
all_features=("${features[@]}" --features ringtap/embedded)
! have_dpdk || all_features+=(--features ringtap/dpdk,ringtap-io/dpdk)
