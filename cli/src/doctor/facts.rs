//! Facts about the machine, from /sys and /proc. A missing file leaves its fact unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ringtap_engine::Machine;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use crate::cards::{Advice, Card, Interface};

const CPUS: &str = "/sys/devices/system/cpu";

/// All facts.
#[derive(Serialize)]
pub(super) struct Facts {
    pub(super) kernel: String,
    pub(super) clock_source: Option<String>,
    /// Whether the kernel compiles BPF programs, which distribute and redirect frames.
    pub(super) bpf_jit: Option<bool>,
    /// Whether Landlock is available.
    pub(super) landlock: Option<bool>,
    pub(super) cores: Cores,
    pub(super) memory: Memory,
    pub(super) interfaces: Vec<Nic>,
    pub(super) limits: Limits,
    /// Capabilities of this process for capturing.
    pub(super) capabilities: BTreeMap<&'static str, bool>,
}

#[derive(Serialize)]
pub(super) struct Cores {
    pub(super) model: Option<String>,
    pub(super) online: usize,
    /// Cores that this process may use.
    pub(super) usable: usize,
    pub(super) packages: Option<usize>,
    pub(super) numa_nodes: Option<usize>,
    /// Groups of logical cores that share a physical one, in the kernel's list syntax.
    pub(super) siblings: Vec<String>,
    /// Caches of the first core.
    pub(super) caches: Vec<Cache>,
}

#[derive(Serialize)]
pub(super) struct Cache {
    pub(super) level: u8,
    pub(super) kind: String,
    pub(super) size: String,
    /// Cores that share it, in the kernel's list syntax.
    pub(super) shared_by: String,
}

#[derive(Serialize)]
pub(super) struct Memory {
    pub(super) total_bytes: Option<u64>,
    pub(super) available_bytes: Option<u64>,
    pub(super) hugepages: Vec<HugePages>,
    /// `always`, `madvise` or `never`.
    pub(super) transparent_hugepages: Option<String>,
}

#[derive(Serialize)]
pub(super) struct HugePages {
    pub(super) bytes: u64,
    pub(super) total: u64,
    pub(super) free: u64,
}

#[derive(Serialize)]
pub(super) struct Nic {
    pub(super) name: String,
    pub(super) state: String,
    /// `None` for interfaces without a device.
    pub(super) driver: Option<String>,
    pub(super) rx_queues: usize,
    pub(super) tx_queues: usize,
    pub(super) speed_mbps: Option<u64>,
    /// The NUMA node of its device, if there are several.
    pub(super) numa_node: Option<u64>,
    /// The cores of that node, in the kernel's list syntax.
    pub(super) local_cores: Option<String>,
    /// Its settings.
    pub(super) card: Option<Card>,
    /// What would improve them.
    #[serde(skip)]
    pub(super) changes: Vec<Advice>,
}

impl Nic {
    /// Whether it has a device, and is up.
    pub(super) fn is_card_up(&self) -> bool {
        self.driver.is_some() && self.state == "up"
    }
}

/// `None` is unlimited.
#[derive(Serialize)]
pub(super) struct Limits {
    pub(super) locked_memory_bytes: Option<u64>,
    pub(super) open_files: Option<u64>,
}

impl Facts {
    /// Reads all facts.
    pub(super) fn gather() -> Self {
        Self {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            bpf_jit: read("/proc/sys/net/core/bpf_jit_enable").map(|mode| mode != "0"),
            landlock: read("/sys/kernel/security/lsm")
                .map(|list| list.split(',').any(|name| name == "landlock")),
            cores: Cores::gather(),
            memory: Memory::gather(),
            interfaces: interfaces(),
            limits: Limits {
                locked_memory_bytes: getrlimit(Resource::Memlock).current,
                open_files: getrlimit(Resource::Nofile).current,
            },
            capabilities: capabilities(),
        }
    }
}

impl Cores {
    fn gather() -> Self {
        let cores: Vec<PathBuf> = entries(CPUS)
            .into_iter()
            .filter(|path| numbered(path, "cpu") && path.join("topology").exists())
            .collect();
        let topology = |file: &'static str| {
            cores.iter().filter_map(move |core| read(core.join("topology").join(file)))
        };
        let packages: BTreeSet<_> = topology("physical_package_id").collect();
        let nodes =
            entries("/sys/devices/system/node").iter().filter(|p| numbered(p, "node")).count();
        let usable = Machine::this().cores;
        Self {
            model: value("/proc/cpuinfo", "model name"),
            online: cores.len().max(usable),
            usable,
            packages: (!packages.is_empty()).then_some(packages.len()),
            numa_nodes: (nodes > 0).then_some(nodes),
            siblings: in_order(topology("thread_siblings_list").collect()),
            caches: caches(),
        }
    }

    /// One core of each sibling group, as a list for `--cores`; `None` without siblings.
    pub(super) fn one_of_each_sibling_group(&self) -> Option<String> {
        let first = |group: &String| group.split([',', '-']).next().map(str::to_string);
        let shared = self.siblings.iter().any(|group| group.contains([',', '-']));
        let enough = self.siblings.len() > 1;
        (shared && enough)
            .then(|| self.siblings.iter().filter_map(first).collect::<Vec<_>>().join(","))
    }
}

/// Distinct lists, ordered by their first number.
fn in_order(lists: BTreeSet<String>) -> Vec<String> {
    let mut lists: Vec<_> = lists.into_iter().collect();
    lists.sort_by_key(|list| list.split([',', '-']).next().and_then(|n| n.parse::<u32>().ok()));
    lists
}

fn caches() -> Vec<Cache> {
    let mut caches: Vec<_> = entries(format!("{CPUS}/cpu0/cache"))
        .into_iter()
        .filter_map(|path| {
            Some(Cache {
                level: read(path.join("level"))?.parse().ok()?,
                kind: read(path.join("type"))?,
                size: read(path.join("size"))?,
                shared_by: read(path.join("shared_cpu_list"))?,
            })
        })
        .collect();
    caches.sort_by(|a, b| (a.level, &a.kind).cmp(&(b.level, &b.kind)));
    caches
}

impl Memory {
    fn gather() -> Self {
        let kib =
            |name| value("/proc/meminfo", name).and_then(|text| number(&text)).map(|n| n * 1024);
        let hugepages = entries("/sys/kernel/mm/hugepages").into_iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            Some(HugePages {
                bytes: kib * 1024,
                total: number(&read(path.join("nr_hugepages"))?)?,
                free: number(&read(path.join("free_hugepages"))?)?,
            })
        });
        let modes = read("/sys/kernel/mm/transparent_hugepage/enabled");
        Self {
            total_bytes: kib("MemTotal"),
            available_bytes: kib("MemAvailable"),
            hugepages: hugepages.collect(),
            transparent_hugepages: modes.and_then(|modes| {
                let (_, rest) = modes.split_once('[')?;
                Some(rest.split_once(']')?.0.to_string())
            }),
        }
    }
}

fn interfaces() -> Vec<Nic> {
    let nic = |path: PathBuf| {
        let queues =
            |kind: &str| entries(path.join("queues")).iter().filter(|p| numbered(p, kind)).count();
        let driver = fs::read_link(path.join("device/driver")).ok();
        let name = path.file_name()?.to_string_lossy().into_owned();
        let (card, changes) = Interface::open(&name, None).ok().map(|one| one.read()).unzip();
        Some(Nic {
            card,
            changes: changes.unwrap_or_default(),
            name,
            state: read(path.join("operstate")).unwrap_or_else(|| "unknown".into()),
            driver: driver.and_then(|to| Some(to.file_name()?.to_string_lossy().into_owned())),
            rx_queues: queues("rx-"),
            tx_queues: queues("tx-"),
            // A link that is down reports -1, or nothing.
            speed_mbps: read(path.join("speed")).and_then(|text| text.parse().ok()),
            // -1 with a single node.
            numa_node: read(path.join("device/numa_node")).and_then(|text| text.parse().ok()),
            local_cores: read(path.join("device/local_cpulist")),
        })
    };
    entries("/sys/class/net").into_iter().filter_map(nic).collect()
}

/// Capabilities for capturing; the numbers are those of linux/capability.h.
const CAPABILITIES: [(&str, u32); 6] = [
    ("CAP_NET_ADMIN", 12),
    ("CAP_NET_RAW", 13),
    ("CAP_IPC_LOCK", 14),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_BPF", 39),
];

fn capabilities() -> BTreeMap<&'static str, bool> {
    let held = value("/proc/self/status", "CapEff");
    let Some(held) = held.and_then(|hex| u64::from_str_radix(&hex, 16).ok()) else {
        return BTreeMap::new();
    };
    CAPABILITIES.iter().map(|&(name, bit)| (name, held >> bit & 1 == 1)).collect()
}

/// The trimmed contents of a file with one value.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// The value of the first line `name: value`.
fn value(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_string())
    })
}

/// The number at the beginning of a value such as `16384 kB`.
fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The entries of a folder, by name.
fn entries(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Whether the file name is `prefix` followed by a number.
fn numbered(path: &Path, prefix: &str) -> bool {
    let rest = path.file_name().and_then(|name| name.to_str()?.strip_prefix(prefix));
    rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}
