//! What all outputs of a run have in common.

use std::path::PathBuf;

use crate::formats::Interfaces;
use crate::metered::Meter;
use crate::refresh::Refresh;
use crate::sampling::Sampling;

/// Certificates for TLS; all in PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Authorities that may sign collectors' certificates; `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// Our certificate with intermediate ones, and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Default memory for the blocks of one output, in bytes.
pub const BUFFER_BYTES: usize = 32 << 20;

/// Settings of all outputs of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Observation domain (IPFIX), source identifier (NetFlow v9); its low 16 bits are the engine (NetFlow v5).
    pub observation_domain: u32,
    /// The name of the observation domain, for IPFIX.
    pub domain_name: Option<String>,
    /// When templates are sent again over UDP.
    pub refresh: Refresh,
    /// Certificates for TLS.
    pub tls: Tls,
    /// True if packets of different VLANs belong to different flows.
    pub vlan_in_key: bool,
    /// The name of the probe, for messages of Kafka.
    pub probe: Option<String>,
    /// Equal for runs whose records mean the same, for messages of Kafka.
    pub settings_id: Option<String>,
    /// The interfaces of the flows, for records; empty for files.
    pub interfaces: Interfaces,
    /// The sampling of packets, if any.
    pub sampling: Option<Sampling>,
    /// The source of the metering statistics, if any.
    pub meter: Option<Meter>,
    /// Bytes for the blocks of each output that wait to be written.
    pub buffer_bytes: usize,
    /// True if packets come from an interface. Then a full output loses records and does not delay the run.
    pub live: bool,
    /// True if the source may be idle for long: an interface, a pipe. Then workers hand over blocks at every time mark,
    /// not only at the writer's request.
    pub prompt: bool,
    /// Files begin at multiples of this packet time since 1970, in nanoseconds.
    pub rotate_ns: Option<u64>,
    /// Collectors that take statistics also get them at multiples of this packet time since 1970, in nanoseconds.
    pub statistics_ns: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            observation_domain: 0,
            domain_name: None,
            refresh: Refresh::default(),
            tls: Tls::default(),
            vlan_in_key: false,
            probe: None,
            settings_id: None,
            interfaces: Interfaces::default(),
            sampling: None,
            meter: None,
            buffer_bytes: BUFFER_BYTES,
            live: false,
            prompt: false,
            rotate_ns: None,
            statistics_ns: None,
        }
    }
}
