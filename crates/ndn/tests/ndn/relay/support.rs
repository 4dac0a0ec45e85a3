//! A forwarder beside a test, and programs beside both.

use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringtap_ndn::faces::{Remote, Settings as FaceSettings};
use ringtap_ndn::relay::{ForwardPlan, ForwardReport, PlannedRoute, Relay};
use rustix::process::{Pid, Signal, kill_process};

/// How often a test looks, a tenth of a second apart, before it gives up.
const PATIENCE: u32 = 100;

/// A forwarder of ours in a thread of its own.
pub(crate) struct Ours {
    pub(crate) udp: SocketAddr,
    pub(crate) socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<ForwardReport>>,
}

impl Ours {
    /// With routes: prefix and neighbour.
    pub(crate) fn start(folder: &Path, routes: &[(&str, SocketAddr)]) -> Self {
        let (udp, socket) = (free_address(), folder.join("ringtap.sock"));
        let route = |&(prefix, to): &(&str, SocketAddr)| PlannedRoute {
            prefix: prefix.parse().unwrap(),
            to: Remote::Udp(to),
            cost: 0,
        };
        let plan = ForwardPlan {
            faces: FaceSettings { udp: vec![udp], ..FaceSettings::default() },
            routes: routes.iter().map(route).collect(),
            unix: Some(socket.display().to_string()),
            ..ForwardPlan::default()
        };
        let listener = UnixListener::bind(&socket).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let run = move || {
            let relay = Relay::open(plan, Some(listener), "test").unwrap();
            relay.run(|| asked.load(Ordering::Relaxed), |_| ()).unwrap()
        };
        let thread = std::thread::Builder::new().spawn(run).unwrap();
        Self { udp, socket, stop, thread: Some(thread) }
    }

    /// What it has done; every packet is accounted for.
    pub(crate) fn end(mut self) -> ForwardReport {
        self.stop.store(true, Ordering::Relaxed);
        let report = self.thread.take().unwrap().join().unwrap();
        assert_eq!(report.residual(), 0, "{report:?}");
        report
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A program that does not outlive the test.
pub(crate) struct Beside(Child);

impl Beside {
    /// What it says goes to a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).unwrap();
        let errors = log.try_clone().unwrap();
        Self(command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().unwrap())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        for _ in 0..20 {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port of UDP that nobody has just now.
pub(crate) fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Looks until it is so; what was last seen is told if it never is.
pub(crate) fn until(what: &str, mut look: impl FnMut() -> Result<(), String>) {
    let mut seen = String::new();
    for _ in 0..PATIENCE {
        match look() {
            Ok(()) => return,
            Err(now) => seen = now,
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("never {what}: {seen}");
}

/// All that a program said, and how it ended.
pub(crate) fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}{}", text(&output.stdout), text(&output.stderr), output.status)
}
