//! Two network namespaces joined by a veth pair, and helpers for senders and receivers in them.
//!
//! ```text
//!  namespace a: left ─── right :namespace b        no IPv6, no addresses: the kernel sends no frames
//! ```

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use ringtap_io::live::{Options, Receiver, SendOptions, Sender, open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// An end of the pair.
#[derive(Clone, Copy)]
pub enum End {
    Left,
    Right,
}
use End::{Left, Right};

/// Number of polls without progress, 10 ms each, after which a test stops waiting.
const IDLE_MAX: u32 = 300;

/// A pair of namespaces with a veth pair. Dropping it deletes them.
pub struct Net {
    names: [String; 2],
}

impl Net {
    /// A pair with `queues` queues in each direction. Prints `SKIPPED` and returns `None` where
    /// namespaces are not possible.
    pub fn new(queues: u32) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: network namespaces need root");
            return None;
        }
        if Command::new("ip").arg("-V").output().is_err() {
            eprintln!("SKIPPED: no ip here (Debian package iproute2)");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = std::process::id();
        let net = Self { names: ["a", "b"].map(|end| format!("ringtap-{id}-{number}-{end}")) };
        let [a, b] = &net.names;
        for name in [a, b] {
            if !ip(&format!("netns add {name}")) {
                eprintln!("SKIPPED: network namespaces are not possible on this system");
                return None;
            }
        }
        for end in [Left, Right] {
            net.inside(end, || {
                // With IPv6 the kernel would send frames of its own.
                let _ = fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
                let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            });
        }
        let shape = format!("numtxqueues {queues} numrxqueues {queues}");
        assert!(ip(&format!(
            "link add left netns {a} {shape} type veth peer name right netns {b} {shape}"
        )));
        for (name, link) in [(a, "left"), (a, "lo"), (b, "right"), (b, "lo")] {
            assert!(ip(&format!("-n {name} link set {link} up")));
        }
        net.wait_until_up(Left, "left");
        net.wait_until_up(Right, "right");
        Some(net)
    }

    /// Waits until an interface sends: the kernel activates it a while after its peer is up, and
    /// drops all frames until then.
    pub fn wait_until_up(&self, end: End, interface: &str) {
        for _ in 0..IDLE_MAX {
            if let Some(shown) = output_of_ip(&["-n", self.name(end), "link", "show", interface]) {
                let shown = String::from_utf8_lossy(&shown.stdout);
                if shown.contains(" state UP ") && !shown.contains(" qdisc noop ") {
                    return;
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{interface} is not up");
    }

    /// The name of the namespace of an end.
    pub fn name(&self, end: End) -> &str {
        &self.names[end as usize]
    }

    /// Runs `work` in the namespace of an end and returns its result.
    pub fn inside<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        let place = File::open(format!("/run/netns/{}", self.name(end))).unwrap();
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(place.as_fd(), kind).unwrap();
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip ARGUMENTS` in the namespace of an end; panics if it fails.
    pub fn ip(&self, end: End, arguments: &str) {
        assert!(ip(&format!("-n {} {arguments}", self.name(end))), "ip {arguments}");
    }

    /// A command that runs a program in the namespace of an end.
    pub fn program(&self, end: End, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(end), program]).env("NO_COLOR", "1");
        command
    }

    /// Adds a second veth pair: `out` in the namespace of `right`, `far` in that of `left`.
    pub fn add_output(&self) {
        self.ip(Left, &format!("link add far type veth peer name out netns {}", self.name(Right)));
        self.ip(Left, "link set far up");
        self.ip(Right, "link set out up");
    }

    /// Opens receivers at the right end.
    pub fn receivers(&self, options: &Options) -> Vec<Receiver> {
        self.inside(Right, || open("right", options).unwrap())
    }

    /// Opens a sender at the left end.
    pub fn sender(&self, options: &SendOptions) -> Sender {
        self.inside(Left, || Sender::open("left", options).unwrap())
    }

    /// Number of packets that the kernel has received at the right end.
    pub fn arrived(&self) -> u64 {
        let name = self.name(Right);
        let shown = output_of_ip(&["-n", name, "-j", "-s", "link", "show", "right"]).unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let (_, rest) = shown.split_once("\"rx\":{").unwrap();
        let (_, rest) = rest.split_once("\"packets\":").unwrap();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    }

    /// Whether an XDP program is attached to the right end.
    pub fn has_program(&self) -> bool {
        let shown = output_of_ip(&["-n", self.name(Right), "-d", "link", "show", "right"]).unwrap();
        String::from_utf8(shown.stdout).unwrap().contains("prog/xdp")
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

/// A child process that is killed when this is dropped.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `ip ARGUMENTS`; prints why it fails.
fn ip(arguments: &str) -> bool {
    let output = output_of_ip(&arguments.split(' ').collect::<Vec<_>>());
    let done = output.as_ref().is_some_and(|output| output.status.success());
    if !done {
        let error = output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
        eprintln!("ip {arguments}: {}", error.as_deref().unwrap_or("does not start"));
    }
    done
}

/// Runs `ip`, again and again if it does not start: "bad address" was seen beside tests that start DPDK.
fn output_of_ip(arguments: &[&str]) -> Option<Output> {
    let attempt = |number| {
        if number > 0 {
            thread::sleep(Duration::from_millis(10));
        }
        Command::new("ip").args(arguments).output().ok()
    };
    (0..IDLE_MAX).find_map(attempt)
}

/// Sends all frames, with retries; panics if there is no progress for 3 seconds.
pub fn send_all(sender: &mut Sender, frames: &[Vec<u8>]) {
    let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
    let (mut sent, mut idle) = (0, 0);
    while sent < frames.len() {
        let count = sender.send(&frames[sent..]).unwrap();
        sent += count;
        idle = if count == 0 { idle + 1 } else { 0 };
        assert!(idle < IDLE_MAX, "the sender accepts no more frames");
        if count == 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
    assert!(sender.flush(Duration::from_secs(10)).unwrap(), "frames stay pending");
}

/// Whether something becomes true within 3 seconds, such as the effect of a closed socket: a process that
/// another test starts has a copy of the socket until it runs its program.
pub fn soon(is_true: impl Fn() -> bool) -> bool {
    (0..300).any(|_| {
        thread::sleep(Duration::from_millis(10));
        is_true()
    })
}

/// Receives frames until all receivers together have received `count`, or none arrive for 3
/// seconds. Returns (queue, frame, bytes on the wire) for each.
pub fn take(receivers: &mut [Receiver], count: usize) -> Vec<(usize, Vec<u8>, u32)> {
    let (mut frames, mut idle) = (Vec::new(), 0);
    while frames.len() < count && idle < IDLE_MAX {
        let before = frames.len();
        for (queue, receiver) in receivers.iter_mut().enumerate() {
            // No divisor of a block size, so that bursts end within blocks.
            receiver.burst(7, |frame| {
                frames.push((queue, frame.data.to_vec(), frame.original_len));
            });
        }
        if frames.len() > before {
            idle = 0;
            continue;
        }
        idle += 1;
        if let [only] = receivers {
            only.wait(Duration::from_millis(10));
        } else {
            thread::sleep(Duration::from_millis(10));
        }
    }
    frames
}

/// Receives until the counters of the receivers account for `count` frames, or none arrive for 3
/// seconds. Returns the numbers of received and dropped frames.
pub fn account(receivers: &mut [Receiver], count: u64) -> (u64, u64) {
    let mut idle = 0;
    loop {
        let taken: usize = receivers.iter_mut().map(|one| one.burst(4096, |_| ())).sum();
        let counters = receivers.iter_mut().map(Receiver::counters);
        let (received, dropped) = counters.fold((0, 0), |(received, dropped), one| {
            (received + one.received, dropped + one.dropped.total())
        });
        idle = if taken > 0 { 0 } else { idle + 1 };
        if taken == 0 && (received + dropped >= count || idle == IDLE_MAX) {
            return (received, dropped);
        }
        if taken == 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
