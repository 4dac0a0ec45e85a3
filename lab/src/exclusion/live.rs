//! Measures exchanges through a running forwarder, the [relay](super::relay), with real UDP faces: `ringtap-ndn load`
//! before it and `ringtap-ndn server` behind it, over loopback.
//!
//! ```text
//!  load ─ UDP ─▶ relay, N workers, tables by MODE ─ UDP ─▶ server
//! ```
//!
//! Ticks are those of the forwarder's threads while they run, with all system calls. The load and
//! the server have the lowest priority, so that they do not take time from the workers.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::locked::Sharing;
use ringtap_base::Clock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::programs::Programs;

/// The parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How the workers share the tables.
    pub mode: Sharing,
    /// Number of workers.
    pub workers: usize,
    /// Interests in flight.
    pub window: u64,
    /// Duration of the load.
    pub duration: Duration,
}

/// The result of a measurement.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Interests that were answered.
    pub exchanges: u64,
    /// Answers per second.
    pub per_second: f64,
    /// Nanoseconds of processor time of the forwarder per exchange.
    pub cpu_ns: f64,
    /// Locks that another worker held.
    pub waits: u64,
    /// Packets of each worker.
    pub packets: Vec<u64>,
}

/// Runs a trial; an error if a packet was lost.
pub fn measure(programs: &Programs, trial: &Trial) -> Result<Measured, String> {
    let [udp, server_at] = [free_port()?, free_port()?];
    let program = programs.file("ringtap-ndn")?;
    let mut forward = Command::new(&programs.lab);
    forward.args(["ndn", "relay", "--mode", trial.mode.name()]);
    forward.args(["--workers", &trial.workers.to_string()]);
    forward.args(["--port", &udp.to_string(), "--next-hop", &server_at.to_string()]);
    let mut forward = Running::start(forward.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    forward.wait_for("forwarding at")?;
    let listen = format!("udp://127.0.0.1:{server_at}");
    let mut server = at_low_priority(&program);
    server.args(["server", "/load", "--payload", "100", "--listen", &listen]);
    let mut server = Running::start(server.stdout(Stdio::null()).stderr(Stdio::piped()))?;
    server.wait_for("serving")?;

    let before = cpu_ns(forward.id())?;
    let mut load = at_low_priority(&program);
    let to = format!("udp://127.0.0.1:{udp}");
    let (window, duration) =
        (trial.window.to_string(), format!("{}ms", trial.duration.as_millis()));
    load.args(["load", "/load", "--report", "json", "--to", &to]);
    load.args(["--window", &window, "--duration", &duration]);
    let output = load.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let spent = cpu_ns(forward.id())?.saturating_sub(before);
    let load: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("ringtap-ndn load: {error}"))?;
    let report = forward.end()?;
    let lost = load["lost"].as_u64().unwrap_or(0) + load["nacks"].as_u64().unwrap_or(0);
    let exchanges = load["answered"].as_u64().unwrap_or(0);
    if lost > 0 || exchanges == 0 || report["ledger"]["residual"] != 0 {
        return Err(format!("{lost} of {} Interests were lost", exchanges + lost));
    }
    let by_worker = |field: &str| -> Vec<u64> {
        let rows = report["workers"].as_array().map_or(&[][..], Vec::as_slice);
        rows.iter().map(|row| row[field].as_u64().unwrap_or(0)).collect()
    };
    let packets = by_worker("interests_in").into_iter().zip(by_worker("data_in"));
    Ok(Measured {
        exchanges,
        per_second: load["answered_per_second"].as_f64().unwrap_or(0.0),
        cpu_ns: spent as f64 / exchanges as f64,
        waits: report["lock_waits"].as_u64().unwrap_or(0),
        packets: packets.map(|(interests, data)| interests + data).collect(),
    })
}

/// A program in the background; it ends with this value.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).spawn().map(Self).map_err(|error| error.to_string())
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    /// Reads messages until one contains `words`.
    fn wait_for(&mut self, words: &str) -> Result<(), String> {
        let stderr = self.0.stderr.as_mut().ok_or("no messages")?;
        let mut messages = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains(words) {
                return Ok(());
            }
            messages += &(line + "\n");
        }
        Err(format!("a program ended early: {messages}"))
    }

    /// Ends the program; returns its report.
    fn end(&mut self) -> Result<Value, String> {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let mut text = String::new();
        let stdout = self.0.stdout.as_mut().ok_or("no report")?;
        stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("the forwarder: {error}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let clock = Clock::start();
        while matches!(self.0.try_wait(), Ok(None)) && clock.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn at_low_priority(program: &Path) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(program);
    command
}

/// An unused UDP port.
fn free_port() -> Result<u16, String> {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    Ok(socket.local_addr().map_err(|error| error.to_string())?.port())
}

/// Processor time of all threads of a process, in nanoseconds.
fn cpu_ns(process: u32) -> Result<u64, String> {
    let path = format!("/proc/{process}/task");
    let tasks = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
    let of_task = |task: fs::DirEntry| -> u64 {
        let schedule = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        schedule.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
    };
    Ok(tasks.flatten().map(of_task).sum())
}
