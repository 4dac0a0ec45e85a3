//! Why an interface could not be opened, and what to do about it.

use std::io;

use thiserror::Error;

use crate::live::capability::Capability;
use crate::live::send::TemplateError;

/// Why an interface could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is no such interface.
    #[error("unknown interface {name:?}: use {}", there.join(", "))]
    NoInterface {
        /// What was asked for.
        name: String,
        /// All that there are.
        there: Vec<String>,
    },
    /// The process may not do what is needed.
    #[error("{}", forbidden(doing, missing, needed))]
    Forbidden {
        /// What was refused.
        doing: &'static str,
        /// Those of the needed capabilities that the process does not have.
        missing: Vec<Capability>,
        /// All that this needs.
        needed: &'static [Capability],
    },
    /// Frames of such a link cannot be decoded.
    #[error("{name}: its kind of link (ARPHRD {hardware}) is not supported{}", by(method))]
    UnsupportedLink {
        /// The interface.
        name: String,
        /// Its kind, as the kernel numbers them.
        hardware: u16,
        /// What does not support it.
        method: &'static str,
    },
    /// Another XDP program is attached to the interface. It is left there.
    #[error(
        "{name}: an XDP program{} hangs in it already and is not replaced \
         (bpftool net shows whose it is; AF_PACKET works beside it)",
        numbered(*id)
    )]
    ProgramInPlace {
        /// The interface.
        name: String,
        /// The program's number.
        id: Option<u32>,
    },
    /// AF_XDP needs as many receivers as there are receive queues.
    #[error(
        "{name} receives by {there} queues, and AF_XDP needs a receiver for each, not {asked} \
         (ethtool -L {name} rx {asked} changes the interface, where its driver can)"
    )]
    Queues {
        /// The interface.
        name: String,
        /// How many were asked for.
        asked: u32,
        /// How many there are.
        there: u32,
    },
    /// Not so many queues can share an interface.
    #[error("{asked} queues: 1 to {most} can share an interface")]
    QueueCount {
        /// How many were asked for.
        asked: u16,
        /// How many there may be.
        most: u16,
    },
    /// Before Linux 6.13 queues share an interface only once it is up.
    #[error(
        "{name} is down, and this kernel lets several queues share it only once it is up (ip link set {name} up)"
    )]
    Down {
        /// The interface.
        name: String,
    },
    /// A queue is already in use by another socket.
    #[error("{name}: queue {queue} has an AF_XDP socket already")]
    QueueTaken {
        /// The interface.
        name: String,
        /// The queue.
        queue: u32,
    },
    /// There is no such queue.
    #[error("{name} has no queue {queue} for AF_XDP")]
    NoQueue {
        /// The interface.
        name: String,
        /// The queue.
        queue: u32,
    },
    /// The memory that was given is too little for anything.
    #[error("{asked} bytes for waiting frames are too few; {needed} are the least here")]
    TooLittleMemory {
        /// What was given.
        asked: usize,
        /// The least.
        needed: usize,
    },
    /// The process may not lock as much memory.
    #[error(
        "the kernel lets this process lock {limit} of memory, and AF_XDP was to have {needed} bytes a queue: \
         raise the limit (ulimit -l unlimited), give the program cap_ipc_lock, or ask for less memory"
    )]
    LockedMemory {
        /// The limit, in words.
        limit: String,
        /// What one queue needs.
        needed: usize,
    },
    /// The kernel refuses an XDP program.
    #[error("{name}: the kernel refuses XDP in {mode} mode: {source}")]
    Xdp {
        /// The interface.
        name: String,
        /// `native` or `generic`.
        mode: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A device by DPDK that could not be opened.
    #[cfg(feature = "dpdk")]
    #[error(transparent)]
    Dpdk(#[from] crate::dpdk::OpenError),
    /// This program knows no DPDK.
    #[error(
        "this program was built without DPDK: build it with --features dpdk, which needs Debian's libdpdk-dev"
    )]
    NoDpdk,
    /// There is no sending by DPDK.
    #[error("frames are received by DPDK, not sent; AF_PACKET and AF_XDP send")]
    NotSent,
    /// A frame to send copies of is not fit for it.
    #[error("the template: {0}")]
    Template(#[from] TemplateError),
    /// Anything else.
    #[error("{doing}: {source}")]
    System {
        /// What failed.
        doing: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl OpenError {
    /// For `map_err`: says what failed, and what is missing if it was forbidden.
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

    /// As [`OpenError::at`], for memory that is locked for frames.
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
            "{doing} is forbidden, though this process has the capabilities for it: a container or a \
             security module stands in the way, or (kernels before 5.11) the limit of locked memory \
             (ulimit -l)"
        );
    }
    let list = |names: Vec<String>| names.join(" and ");
    let upper = list(missing.iter().map(ToString::to_string).collect());
    let all = needed.iter().map(|one| one.name()).collect::<Vec<_>>().join(",");
    let program = std::env::current_exe();
    let program = program.as_ref().map_or("PROGRAM".into(), |path| path.display().to_string());
    format!("{doing} needs {upper}: run as root, or once: sudo setcap {all}+ep {program}")
}

fn numbered(id: Option<u32>) -> String {
    id.map(|id| format!(" (id {id})")).unwrap_or_default()
}

fn by(method: &str) -> String {
    if method.is_empty() { String::new() } else { format!(" by {method}") }
}

/// What the kernel lets this process lock.
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
    fn what_is_missing_is_named_with_the_way_out() {
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
    fn a_limit_is_found() {
        assert!(locked_limit().ends_with("bytes"));
    }
}
