# Sourced by the scripts that test and lint. `features` enables all features of the workspace except
# those for DPDK, which need libdpdk. `all_features` also enables these if libdpdk is installed
# (`have_dpdk`).

have_dpdk() {
    pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null
}

features=(--features ringtap-testkit/full,ringtap-extract/fuzz,ringtap-io/fuzz,ringtap-monitor/fuzz,ringtap-io/zstd,ringtap-export/parquet,ringtap-ndn/fuzz,ringtap-ring/arbiter,ringtap-ring/model,ringtap-wire/fuzz)
all_features=("${features[@]}")
! have_dpdk || all_features+=(--features ringtap/dpdk,ringtap-io/dpdk)
