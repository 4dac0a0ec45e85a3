# Sourced by the scripts that test and lint. `features` turns on all features of the workspace but those for DPDK, for which
# libdpdk must be there; `with_dpdk` turns on these as well, where `have_dpdk`.

features=(--features ringtap-capture/fuzz,ringtap-ndn/fuzz,ringtap-ring/model,ringtap-wire/fuzz)
with_dpdk=("${features[@]}" --features ringtap/dpdk,ringtap-live/dpdk,ringtap-dpdk/libdpdk)

have_dpdk() {
    pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null
}
