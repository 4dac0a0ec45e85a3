//! Tests of `monitor --tui` on a pseudoterminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringtap_io::live::{Method, SendOptions};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::common::{output_of, ringtap};
use crate::net::{Left, Net, NetCommands, Right};
use crate::signals::{check_slowly_read, frame, read_slowly};
use ringtap_testkit::{Killed, send_all};

/// The user's end of a pseudoterminal, and a parser that holds the screen.
struct Terminal {
    user: File,
    shown: vt100::Parser,
}

impl Terminal {
    /// Reads until `condition` holds for the screen.
    fn wait_until(&mut self, condition: impl Fn(&vt100::Screen) -> bool) {
        // One octet at a time, so that no intermediate screen is missed.
        let mut octet = [0];
        while !condition(self.shown.screen()) {
            let read = self.user.read_exact(&mut octet);
            read.unwrap_or_else(|_| panic!("{}", self.shown.screen().contents()));
            self.shown.process(&octet);
        }
    }

    fn wait_for(&mut self, words: &str) {
        self.wait_until(|screen| screen.contents().contains(words));
    }

    fn press(&mut self, keys: &[u8]) {
        self.user.write_all(keys).unwrap();
    }
}

/// Starts `monitor -i right --tui` with `flags` in a new session, on a terminal of 24 lines and 80
/// columns.
fn start(net: &Net, folder: &Path, flags: &[&str]) -> (Terminal, Killed) {
    let (user, program) = terminal();
    let mut command = net.program(Right, "setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_ringtap"), "monitor", "-i", "right"]);
    command.arg("--tui").args(flags).current_dir(folder);
    let own = || Stdio::from(program.try_clone().unwrap());
    let child = command.stdin(own()).stderr(own()).stdout(Stdio::piped()).spawn().unwrap();
    let size = |cells| NonZero::new(cells).unwrap();
    (Terminal { user, shown: vt100::Parser::new(size(24), size(80), 0) }, Killed(child))
}

/// Opens a pseudoterminal: the user's end and the program's end.
fn terminal() -> (File, File) {
    let user: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let path = ptsname(&user, Vec::new()).unwrap().into_string().unwrap();
    (user.into(), OpenOptions::new().read(true).write(true).open(path).unwrap())
}

#[test]
fn the_screen_shows_counts_and_a_key_ends_the_run_with_the_report() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--report", "json", "--duration", "300s", "--interval", "1s"];
    let (mut terminal, mut child) = start(&net, folder.path(), &flags);
    terminal.wait_until(vt100::Screen::alternate_screen);
    terminal.wait_for("Busiest hosts");
    let mut frame = vec![0; 60];
    frame[12] = 8;
    send_all(
        &mut net.sender(&SendOptions { method: Method::Packet, ..SendOptions::default() }),
        &vec![frame; 777],
    );
    terminal.wait_for("777");
    // A paused view keeps its time; the run goes on.
    terminal.press(b"p");
    terminal.wait_for("PAUSED");
    terminal.press(b"s");
    terminal.wait_for("by octets sent");
    terminal.press(b"?");
    terminal.wait_for("pause and go on");
    terminal.press(b"xp");
    terminal.wait_until(|screen| !screen.contents().contains("PAUSED"));
    terminal.press(b"q");
    terminal.wait_until(|screen| !screen.alternate_screen());

    let mut report = Vec::new();
    child.0.stdout.take().unwrap().read_to_end(&mut report).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["packets"]["received"], 777);
    assert!(report["performance"]["seconds"].as_f64().unwrap() < 300.0, "the key ended it");
}

/// After `q`, Ctrl-C is the first interrupt, not the second.
#[test]
fn an_interrupt_after_the_key_loses_no_records() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--sequential", "--duration", "300s", "--idle-timeout", "1d"];
    let records = ["--active-timeout", "1d", "--write", "json:-", "--write", "csv:flows.csv"];
    let (mut terminal, mut child) =
        start(&net, folder.path(), &[&flags[..], &records[..]].concat());
    terminal.wait_for("Busiest hosts");
    let frames: Vec<_> = (0..1_500).map(frame).collect();
    send_all(&mut net.sender(&SendOptions::default()), &frames);
    terminal.wait_for("1,500");
    terminal.press(b"q");
    // The records fill the pipe, so the run cannot end.
    let mut stdout = child.0.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    let hurry = Arc::default();
    let reader = read_slowly(stdout, &hurry);
    terminal.press(b"\x03");
    // Reads slowly until here, so that the run does not end before it receives the key.
    terminal.wait_until(|screen| !screen.alternate_screen());
    hurry.store(true, Ordering::Relaxed);
    // The report goes to the terminal.
    terminal.wait_for("residual 0");
    let code = child.0.wait().unwrap().code().unwrap();
    check_slowly_read(&reader.join().unwrap(), 1_500, code);
    assert!(folder.path().join("flows.csv").exists());
}

/// More is drawn than the terminal takes.
#[test]
fn a_terminal_that_is_not_read_does_not_hold_the_run() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut terminal, mut child) = start(&net, folder.path(), &["--report", "json"]);
    terminal.wait_for("Busiest hosts");
    // Help appears and goes away.
    terminal.press(&b"?x".repeat(1_000));
    terminal.press(b"\x03");
    let mut report = Vec::new();
    child.0.stdout.take().unwrap().read_to_end(&mut report).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert!(report["packets"]["received"].is_u64(), "{report}");
}

#[test]
fn an_output_that_fails_is_shown() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let flags =
        ["--duration", "300s", "--export", "ipfix+tcp://127.0.0.1:1", "--write", "json:f.json"];
    let flags = [&flags[..], &["--interval", "1s", "--idle-timeout", "1s"]].concat();
    let (mut terminal, _child) = start(&net, folder.path(), &flags);
    terminal.wait_for("Outputs");
    let frames: Vec<_> = (0..10).map(frame).collect();
    send_all(&mut net.sender(&SendOptions::default()), &frames);
    terminal.wait_for("fails, ");
    terminal.wait_for("10 sent  json:f.json");
}

#[test]
fn without_a_terminal_the_flag_is_an_error_with_a_remedy() {
    let Some(net) = Net::new(1) else { return };
    let (_, errors, code) = net.run(Left, &["monitor", "-i", "left", "--tui"]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("--stats"), "{errors}");
    let (_, errors, code) = output_of(ringtap().args(["monitor", "-r", "x.pcap", "--tui"]));
    assert!(code == 2 && errors.contains("--read"), "{errors}");
}
