//! DPDK's environment (EAL) of this process.
//!
//! ```text
//!  ringtap --no-shconf --no-telemetry --lcores 0@CPU  --no-pci  --no-huge -m 512
//!         no files, no sockets, no thread per core   │         └ if huge pages are free: --in-memory
//!                                                    └ for a card: -a ADDRESS, so that other cards are not touched
//! ```
//!
//! Invariants: it is started once, by a temporary thread, because DPDK pins the thread that starts it. Calls are
//! serialized.

use std::ffi::CString;
use std::fs;
use std::sync::OnceLock;

use crate::dpdk::device::Device;
use crate::dpdk::error::{OpenError, words};
use crate::dpdk::sys::environment;

/// The result of starting it.
static STARTED: OnceLock<Result<(), String>> = OnceLock::new();

/// Without huge pages, all memory is reserved at the start; the kernel provides it when buffers are used.
const SMALL_PAGES_MIB: &str = "512";

/// Calls `work` while the environment runs, and records DPDK's log for its errors.
pub(crate) fn with<T>(
    device: &Device,
    arguments: &[String],
    work: impl FnOnce() -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let _turn = environment::turn();
    environment::record_log();
    if let Err(why) = STARTED.get_or_init(|| start(&command_line(device, arguments))) {
        return Err(OpenError::Environment { why: why.clone() });
    }
    work()
}

fn start(arguments: &[String]) -> Result<(), String> {
    let arguments: Result<Vec<CString>, _> =
        arguments.iter().map(|argument| CString::new(argument.as_str())).collect();
    let arguments = arguments.map_err(|error| error.to_string())?;
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| environment::start(&arguments));
        let started = starting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        started.map_err(|error| words(&error, &environment::logged()))
    })
}

fn command_line(device: &Device, arguments: &[String]) -> Vec<String> {
    let lcores = format!("0@{}", environment::allowed_cpu());
    let mut line = vec!["ringtap", "--no-shconf", "--no-telemetry", "--lcores", &lcores];
    line.push("--log-level=*:warning");
    match device.on_pci() {
        true => line.extend(["-a", device.text()]),
        false => line.push("--no-pci"),
    }
    match arguments {
        [] if huge_pages_are_free() => line.push("--in-memory"),
        [] => line.extend(["--no-huge", "-m", SMALL_PAGES_MIB]),
        _ => {}
    }
    line.extend(arguments.iter().map(String::as_str));
    line.into_iter().map(str::to_owned).collect()
}

fn huge_pages_are_free() -> bool {
    let sizes = fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    sizes
        .filter_map(|size| fs::read_to_string(size.path().join("free_hugepages")).ok())
        .any(|free| free.trim() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_the_only_one_and_a_virtual_device_needs_none() {
        let line = |name: &str, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            command_line(&Device::parse(name).unwrap(), &arguments).join(" ")
        };
        let card = line("03:00.0", &["-m", "512"]);
        assert!(card.contains(" -a 0000:03:00.0 ") && card.ends_with(" -m 512"), "{card}");
        assert!(!card.contains("--no-pci") && !card.contains("--no-huge"), "{card}");
        let virtual_device = line("net_null0", &[]);
        assert!(virtual_device.contains("--no-pci"), "{virtual_device}");
    }
}
