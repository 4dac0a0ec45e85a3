//! Description of the machine, and selection of cores for a trial.
//!
//! ```text
//!  package ┬ L2 ┬ core 0  ┐ sibling: they share an L2 (threads of one core do, too)
//!          │    └ core 1  ┘
//!          └ L2 ─ core 2    non-sibling to both: the same package, no L2 in common
//! ```
//!
//! These terms come from the paper on rings. On a machine without such a pair the trial is not
//! possible, and the row holds the reason.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Properties of the machine of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the processor.
    pub processor: String,
    /// Cores that this process may use, by number.
    pub cores: Vec<Core>,
    /// Release of the kernel.
    pub kernel: String,
    /// Governor of the clock frequency, if the kernel reports it.
    pub governor: Option<String>,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// True in a virtual machine.
    pub virtual_machine: bool,
}

/// A logical core and its place in the topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// Number of the logical core.
    pub number: usize,
    /// Logical cores on the same physical core, as a list in the kernel's format.
    pub thread_siblings: String,
    /// Logical cores with the same second-level cache, in the same format.
    pub l2: String,
    /// Number of the processor package.
    pub package: String,
    /// Number of the NUMA node.
    pub node: usize,
}

/// The cores that a trial requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Any cores, physical cores first.
    Anywhere,
    /// Two cores that share a second-level cache.
    Sibling,
    /// Two cores of one package that do not share a second-level cache.
    NonSibling,
    /// Cores of one NUMA node.
    OneNode,
    /// Cores of two NUMA nodes in turn.
    TwoNodes,
}

/// Cores for a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Numbers of the cores.
    pub cores: Vec<usize>,
    /// There are more threads than cores, so the trial does not measure scaling.
    pub oversubscribed: bool,
}

impl Machine {
    /// Describes the machine on which the program runs.
    pub fn this() -> Self {
        let mut usable = Vec::new();
        if let Ok(set) = rustix::thread::sched_getaffinity(None) {
            usable.extend((0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| set.is_set(core)));
        }
        Self::read(Path::new("/"), &usable)
    }

    /// Restricts this program, and all that it starts, to at most this number of cores, physical cores first.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn restrict(&self, most: usize) -> std::io::Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        self.physical_first().into_iter().take(most).for_each(|core| set.set(core));
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }

    /// A machine read from `sys` and `proc` below `root`.
    fn read(root: &Path, usable: &[usize]) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        let line = |path: &str| text(path).map(|text| text.trim().to_owned());
        let about = text("proc/cpuinfo").unwrap_or_default();
        let of_cpu = |name: &str| {
            let line = about.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = text("proc/meminfo").unwrap_or_default();
        let kib = memory.lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok()
        });
        let core = |&number: &usize| {
            let of = |file: &str| line(&format!("sys/devices/system/cpu/cpu{number}/{file}"));
            let alone = || number.to_string();
            // The index of the second-level cache differs between processors.
            let l2 =
                (0..8).find(|at| of(&format!("cache/index{at}/level")).as_deref() == Some("2"));
            let node = (0..1_024).find(|node| {
                root.join(format!("sys/devices/system/cpu/cpu{number}/node{node}")).exists()
            });
            Core {
                number,
                thread_siblings: of("topology/thread_siblings_list").unwrap_or_else(alone),
                l2: l2
                    .and_then(|at| of(&format!("cache/index{at}/shared_cpu_list")))
                    .unwrap_or_else(alone),
                package: of("topology/physical_package_id").unwrap_or_default(),
                node: node.unwrap_or(0),
            }
        };
        Self {
            processor: of_cpu("model name").unwrap_or_else(|| "unknown processor".into()),
            cores: usable.iter().map(core).collect(),
            kernel: line("proc/sys/kernel/osrelease").unwrap_or_default(),
            governor: line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory_bytes: kib.unwrap_or(0) * 1_024,
            virtual_machine: of_cpu("flags")
                .is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
        }
    }

    /// A short name: `xeon-2c`.
    pub fn label(&self) -> String {
        // The first word of the processor's name that is not generic.
        let generic =
            ["intel", "amd", "genuine", "authentic", "cpu", "processor", "unknown", "core"];
        let words = self.processor.replace("(R)", " ").replace("(TM)", " ").to_lowercase();
        let name: String = words
            .split_whitespace()
            .find(|word| !generic.contains(word))
            .unwrap_or("cpu")
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        format!("{name}-{}c", self.cores.len())
    }

    /// A description in one line.
    pub fn describe(&self) -> String {
        let gib = self.memory_bytes as f64 / f64::from(1 << 30);
        let nodes: BTreeSet<_> = self.cores.iter().map(|core| core.node).collect();
        let governor = self.governor.as_deref().unwrap_or("unknown");
        let kind = if self.virtual_machine { "virtual machine" } else { "machine" };
        format!(
            "{}; {} cores, {} NUMA node(s), {gib:.0} GiB, Linux {}, frequency governor: {governor}, {kind}",
            self.processor,
            self.cores.len(),
            nodes.len(),
            self.kernel
        )
    }

    /// Cores for a trial with this number of threads. The error states what the machine lacks.
    pub fn placement(&self, place: Place, threads: usize) -> Result<Placement, String> {
        let pair = |fits: &dyn Fn(&Core, &Core) -> bool| {
            let others = |a: usize| self.cores[a + 1..].iter();
            (0..self.cores.len())
                .find_map(|a| others(a).find(|b| fits(&self.cores[a], b)).map(|b| (a, b.number)))
                .map(|(a, b)| vec![self.cores[a].number, b])
        };
        let cores = match place {
            Place::Anywhere => self.physical_first(),
            Place::Sibling => {
                pair(&|a, b| a.l2 == b.l2).ok_or("no two cores here share a second-level cache")?
            }
            Place::NonSibling => pair(&|a, b| a.l2 != b.l2 && a.package == b.package)
                .ok_or("no two cores of one package here have second-level caches of their own")?,
            Place::OneNode | Place::TwoNodes => self.by_node(place)?,
        };
        let oversubscribed = threads > cores.len();
        Ok(Placement { cores: cores.into_iter().take(threads.max(1)).collect(), oversubscribed })
    }

    /// One thread of each physical core, then the others.
    fn physical_first(&self) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let (first, other): (Vec<_>, Vec<_>) =
            self.cores.iter().partition(|core| seen.insert(&core.thread_siblings));
        first.into_iter().chain(other).map(|core| core.number).collect()
    }

    fn by_node(&self, place: Place) -> Result<Vec<usize>, String> {
        let nodes: BTreeSet<_> = self.cores.iter().map(|core| core.node).collect();
        let mut nodes = nodes.into_iter();
        let (Some(one), Some(other)) = (nodes.next(), nodes.next()) else {
            return Err("this machine has one NUMA node".into());
        };
        let of = |node| {
            let on_it =
                |core: &&usize| self.cores.iter().any(|c| c.number == **core && c.node == node);
            self.physical_first().iter().filter(on_it).copied().collect::<Vec<_>>()
        };
        let (one, other) = (of(one), of(other));
        Ok(match place {
            Place::TwoNodes => one.iter().zip(&other).flat_map(|(a, b)| [*a, *b]).collect(),
            _ => one,
        })
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "sibling" => Self::Sibling,
            "non-sibling" => Self::NonSibling,
            "one-node" => Self::OneNode,
            "two-nodes" => Self::TwoNodes,
            _ => {
                return Err(format!(
                    "unknown placement {text:?}: use sibling, non-sibling, one-node or two-nodes"
                ));
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two packages, each a node, with two physical cores of two threads.
    pub(crate) fn eight() -> Machine {
        let core = |number: usize| {
            let (low, package) = (number / 2 * 2, number / 4);
            let pair = format!("{low}-{}", low + 1);
            let (thread_siblings, l2) = (pair.clone(), pair);
            Core { number, thread_siblings, l2, package: package.to_string(), node: package }
        };
        Machine {
            processor: "Intel(R) Xeon(R) CPU E5 @ 2.3GHz".into(),
            cores: (0..8).map(core).collect(),
            kernel: "6.1".into(),
            governor: None,
            memory_bytes: 1 << 34,
            virtual_machine: false,
        }
    }

    #[test]
    fn cores_are_selected_by_caches_packages_and_nodes() {
        let machine = eight();
        let cores = |place, threads| machine.placement(place, threads).map(|found| found.cores);
        assert_eq!(cores(Place::Anywhere, 5), Ok(vec![0, 2, 4, 6, 1]));
        assert_eq!(cores(Place::Sibling, 2), Ok(vec![0, 1]));
        assert_eq!(cores(Place::NonSibling, 2), Ok(vec![0, 2]));
        assert_eq!(cores(Place::OneNode, 3), Ok(vec![0, 2, 1]));
        assert_eq!(cores(Place::TwoNodes, 4), Ok(vec![0, 4, 2, 6]));
        assert_eq!(machine.label(), "xeon-8c");
    }

    #[test]
    fn a_lack_is_reported_and_too_many_threads_are_marked() {
        let mut machine = eight();
        machine.cores = vec![machine.cores[0].clone(), machine.cores[2].clone()];
        let found = machine.placement(Place::Anywhere, 3).unwrap();
        assert_eq!(found, Placement { cores: vec![0, 2], oversubscribed: true });
        let lacks = machine.placement(Place::Sibling, 2).unwrap_err();
        assert!(lacks.contains("second-level cache"), "{lacks}");
        let lacks = machine.placement(Place::TwoNodes, 2).unwrap_err();
        assert!(lacks.contains("one NUMA node"), "{lacks}");
    }

    #[test]
    fn this_machine_has_cores_and_memory() {
        let machine = Machine::this();
        assert!(!machine.cores.is_empty() && machine.memory_bytes > 1 << 26, "{machine:?}");
        assert!(machine.describe().contains("Linux"));
    }

    /// Cores are set for a thread, so other tests keep theirs.
    #[test]
    fn what_a_restricted_program_starts_has_the_same_cores() {
        let machine = Machine::this();
        machine.restrict(1).unwrap();
        let own = Machine::this().cores;
        assert_eq!(own, machine.cores[..1], "{own:?}");
        let status = std::process::Command::new("cat").arg("/proc/self/status").output().unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(allowed.map(str::trim), Some(own[0].number.to_string().as_str()));
        // More than there are changes nothing.
        machine.restrict(machine.cores.len() + 1).unwrap();
        assert_eq!(Machine::this().cores, machine.cores);
    }
}
