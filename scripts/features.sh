# Sourced by the scripts that test and lint. `features` turns on all features of the workspace but those for DPDK, for which
# libdpdk must be there; `all_features` turns on these as well, where `have_dpdk`.

have_dpdk() {
    pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null
}

features=(--features ringtap-testkit/full,ringtap-io/fuzz,ringtap-io/zstd,ringtap-export/parquet,ringtap-ndn/fuzz,ringtap-ring/arbiter,ringtap-ring/model,ringtap-wire/fuzz)
all_features=("${features[@]}")
! have_dpdk || all_features+=(--features ringtap/dpdk,ringtap-io/dpdk)
