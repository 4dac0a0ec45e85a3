//! Errors of opening an interface. Their texts name the remedy.

use std::io;

use thiserror::Error;

use crate::live::capability::Capability;
use crate::live::send::TemplateError;

/// Why an interface could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// No interface has this name.
    #[error("unknown interface {name:?}: use {}", available.join(", "))]
    NoInterface {
        /// Requested name.
        name: String,
        /// Names of all interfaces.
        available: Vec<String>,
    },
    /// The process lacks the permission.
    #[error("{}", forbidden(doing, missing, needed))]
    Forbidden {
        /// Operation that was refused.
        doing: &'static str,
        /// Needed capabilities that the process does not have.
        missing: Vec<Capability>,
        /// All needed capabilities.
        needed: &'static [Capability],
    },
    /// The link type of the interface is not supported.
    #[error("{name}: unsupported link type (ARPHRD {hardware}){}", by(method))]
    UnsupportedLink {
        /// Name of the interface.
        name: String,
        /// Link type, as a number of the kernel (`ARPHRD_…`).
        hardware: u16,
        /// Method that does not support it; empty if no method does.
        method: &'static str,
    },
    /// Another XDP program is attached to the interface. It stays attached.
    #[error(
        "{name}: another XDP program{} is attached and is not replaced: detach it (bpftool net shows its owner), or \
         use AF_PACKET",
        numbered(*id)
    )]
    ProgramInPlace {
        /// Name of the interface.
        name: String,
        /// Kernel's number of the program, if known.
        id: Option<u32>,
    },
    /// AF_XDP: the requested number of receivers differs from the number of receive queues.
    #[error(
        "invalid number of queues {requested}: {name} has {available} receive queues and AF_XDP uses them all; \
         use {available}, or change the interface (ethtool -L {name} rx {requested}) if its driver can"
    )]
    Queues {
        /// Name of the interface.
        name: String,
        /// Requested number.
        requested: u32,
        /// Receive queues of the interface.
        available: u32,
    },
    /// AF_PACKET: the number of queues is 0 or too large.
    #[error("invalid number of queues {requested}: use 1 to {most}")]
    QueueCount {
        /// Requested number.
        requested: u16,
        /// Largest number.
        most: u16,
    },
    /// AF_PACKET with several queues: before Linux 6.13 the interface must be up.
    #[error(
        "{name} is down: this kernel opens several queues only if the interface is up (ip link set {name} up)"
    )]
    Down {
        /// Name of the interface.
        name: String,
    },
    /// Another AF_XDP socket is bound to the queue.
    #[error("{name}: queue {queue} is in use by another AF_XDP socket")]
    QueueTaken {
        /// Name of the interface.
        name: String,
        /// Index of the queue.
        queue: u32,
    },
    /// The interface has no such queue for AF_XDP.
    #[error("{name} has no queue {queue} for AF_XDP")]
    NoQueue {
        /// Name of the interface.
        name: String,
        /// Index of the queue.
        queue: u32,
    },
    /// The memory is too small for the smallest ring.
    #[error("too little memory for waiting frames, {requested} bytes: use at least {needed}")]
    TooLittleMemory {
        /// Requested memory, in bytes.
        requested: usize,
        /// Smallest possible memory, in bytes.
        needed: usize,
    },
    /// The limit of locked memory is too small.
    #[error(
        "AF_XDP needs {needed} bytes of locked memory per queue, and this process may lock {limit}: raise the limit \
         (ulimit -l unlimited), give the program cap_ipc_lock, or use less memory"
    )]
    LockedMemory {
        /// The limit with its unit, as text.
        limit: String,
        /// Memory of one queue, in bytes.
        needed: usize,
    },
    /// The kernel refuses to attach an XDP program.
    #[error("{name}: the kernel refuses XDP in {mode} mode: {source}")]
    Xdp {
        /// Name of the interface.
        name: String,
        /// `native` or `generic`.
        mode: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A DPDK device cannot be opened.
    #[cfg(feature = "dpdk")]
    #[error(transparent)]
    Dpdk(#[from] crate::dpdk::OpenError),
    /// The program was built without the feature `dpdk`.
    #[error(
        "this program was built without DPDK: build it with --features dpdk, which needs Debian's libdpdk-dev"
    )]
    NoDpdk,
    /// DPDK cannot send.
    #[error("DPDK cannot send frames: use AF_PACKET or AF_XDP")]
    NotSent,
    /// The template for sending is invalid.
    #[error("template: {0}")]
    Template(#[from] TemplateError),
    /// Any other error of the kernel.
    #[error("{doing}: {source}")]
    System {
        /// Operation that failed.
        doing: String,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl OpenError {
    /// For `map_err`: the error for the failed operation `doing`. If permission was denied, it holds the missing
    /// capabilities.
    pub(crate) fn at(
        doing: &'static str,
        needed: &'static [Capability],
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                Self::Forbidden { doing, missing: Capability::missing(needed), needed }
            }
            _ => Self::System { doing: doing.to_owned(), source },
        }
    }

    /// As [`OpenError::at`], for an allocation of `needed` bytes of locked memory.
    pub(crate) fn memory(doing: &'static str, needed: usize) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.raw_os_error() {
            Some(libc::ENOBUFS) => Self::LockedMemory { limit: locked_limit(), needed },
            _ => Self::at(doing, Capability::XDP)(source),
        }
    }
}

fn forbidden(doing: &str, missing: &[Capability], needed: &[Capability]) -> String {
    if missing.is_empty() {
        return format!(
            "{doing} is forbidden, although this process has the capabilities: check the restrictions of the \
             container or security module, and before Linux 5.11 the limit of locked memory (ulimit -l)"
        );
    }
    let upper = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let all = needed.iter().map(|one| one.name()).collect::<Vec<_>>().join(",");
    let program = std::env::current_exe();
    let program = program.as_ref().map_or("PROGRAM".into(), |path| path.display().to_string());
    format!("{doing} needs {upper}: run as root, or once: sudo setcap {all}+ep {program}")
}

/// ` (id 7)`, or nothing.
fn numbered(id: Option<u32>) -> String {
    id.map(|id| format!(" (id {id})")).unwrap_or_default()
}

/// ` for AF_XDP`, or nothing.
fn by(method: &str) -> String {
    if method.is_empty() { String::new() } else { format!(" for {method}") }
}

/// Limit of locked memory of this process, as text with the unit.
fn locked_limit() -> String {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft =
        line.and_then(|line| line.split_whitespace().next()).unwrap_or("a limited number of");
    format!("{soft} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_missing_capabilities_and_the_remedy() {
        let text =
            forbidden("opening an AF_PACKET socket", &[Capability::NetRaw], Capability::PACKET);
        assert!(text.contains("needs CAP_NET_RAW:"), "{text}");
        assert!(text.contains("setcap cap_net_raw+ep /"), "{text}");
        let two = [Capability::NetAdmin, Capability::Bpf];
        let text = forbidden("loading an XDP program", &two, Capability::XDP);
        assert!(text.contains("CAP_NET_ADMIN and CAP_BPF"), "{text}");
        assert!(text.contains("cap_net_raw,cap_net_admin,cap_bpf+ep"), "{text}");
    }

    #[test]
    fn the_limit_of_locked_memory_has_a_unit() {
        assert!(locked_limit().ends_with("bytes"));
    }
}
