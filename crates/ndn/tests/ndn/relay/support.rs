//! A relay in a background thread, and programs in the background.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringtap_ndn::faces::{Remote, Settings as FaceSettings};
use ringtap_ndn::relay::{ForwardPlan, ForwardReport, PlannedRoute, Relay, TrustSettings};
use rustix::process::{Pid, Signal, kill_process};

/// Maximum number of checks, a tenth of a second apart.
const ATTEMPTS: u32 = 100;

/// A relay in its own thread.
pub(crate) struct Ringtap {
    pub(crate) udp: SocketAddr,
    pub(crate) tcp: SocketAddr,
    pub(crate) socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<ForwardReport>>,
}

/// The plans with which each test of this folder runs that starts relays by [`Ringtap::with`]: all
/// kinds of forwarders must pass.
pub(crate) fn plans() -> Vec<ForwardPlan> {
    let plan = |workers, parallel| ForwardPlan { workers, parallel, ..ForwardPlan::default() };
    vec![plan(1, false), plan(3, false), plan(3, true)]
}

impl Ringtap {
    /// Starts a relay with routes: prefixes and neighbours.
    pub(crate) fn start(folder: &Path, routes: &[(&str, SocketAddr)]) -> Self {
        Self::with_workers(folder, routes, 1)
    }

    /// As [`Ringtap::start`], with this number of workers.
    pub(crate) fn with_workers(
        folder: &Path,
        routes: &[(&str, SocketAddr)],
        workers: usize,
    ) -> Self {
        Self::routing(folder, routes, ForwardPlan { workers, ..ForwardPlan::default() })
    }

    /// As [`Ringtap::start`], with keys for commands.
    #[cfg(feature = "signatures")]
    pub(crate) fn trusting(
        folder: &Path,
        routes: &[(&str, SocketAddr)],
        trust: TrustSettings,
    ) -> Self {
        Self::routing(folder, routes, ForwardPlan { trust, ..ForwardPlan::default() })
    }

    fn routing(folder: &Path, routes: &[(&str, SocketAddr)], plan: ForwardPlan) -> Self {
        let routes = routes.iter().map(|&(prefix, to)| (prefix, Remote::Udp(to))).collect();
        Self::with_neighbours(folder, routes, plan)
    }

    /// Starts a relay with a plan and routes to neighbours of any kind.
    pub(crate) fn with_neighbours(
        folder: &Path,
        routes: Vec<(&str, Remote)>,
        plan: ForwardPlan,
    ) -> Self {
        let route = |(prefix, to): (&str, Remote)| PlannedRoute {
            prefix: prefix.parse().unwrap(),
            to,
            cost: 0,
        };
        let routes = routes.into_iter().map(route).collect();
        Self::with(folder, ForwardPlan { routes, ..plan })
    }

    /// Starts a relay with a plan; adds a UDP port, and a socket for programs in `folder`.
    pub(crate) fn with(folder: &Path, plan: ForwardPlan) -> Self {
        let (udp, tcp) = (free_address(), free_tcp_address());
        let socket = folder.join("ringtap.sock");
        let plan = ForwardPlan {
            faces: FaceSettings { udp: vec![udp], tcp: vec![tcp], ..plan.faces },
            unix: Some(socket.display().to_string()),
            ..plan
        };
        let listener = UnixListener::bind(&socket).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stop_requested = Arc::clone(&stop);
        let (opened, is_open) = std::sync::mpsc::sync_channel(1);
        let run = move || {
            let relay = Relay::open(plan, Some(listener), "test").unwrap();
            opened.send(()).unwrap();
            relay.run(|| stop_requested.load(Ordering::Relaxed), |_| ()).unwrap()
        };
        let thread = std::thread::Builder::new().spawn(run).unwrap();
        is_open.recv().unwrap();
        Self { udp, tcp, socket, stop, thread: Some(thread) }
    }

    /// Stops the relay and returns its report; checks that its counters cover every packet.
    pub(crate) fn end(mut self) -> ForwardReport {
        self.stop.store(true, Ordering::Relaxed);
        let report = self.thread.take().unwrap().join().unwrap();
        assert_eq!(report.residual(), 0, "{report:?}");
        report
    }
}

impl Drop for Ringtap {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A background program that ends with the test.
pub(crate) struct Background(Child);

impl Background {
    /// Starts the program; its output goes to the file `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).unwrap();
        let errors = log.try_clone().unwrap();
        Self(command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().unwrap())
    }
}

impl Drop for Background {
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

/// An unused UDP port.
pub(crate) fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// An unused TCP port.
pub(crate) fn free_tcp_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Repeats a check until it succeeds; panics with the last error after the last attempt.
pub(crate) fn until(what: &str, mut check: impl FnMut() -> Result<(), String>) {
    let mut seen = String::new();
    for _ in 0..ATTEMPTS {
        match check() {
            Ok(()) => return,
            Err(now) => seen = now,
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("timed out: {what}: {seen}");
}

/// The output and exit status of a program.
pub(crate) fn output_text(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}{}", text(&output.stdout), text(&output.stderr), output.status)
}
