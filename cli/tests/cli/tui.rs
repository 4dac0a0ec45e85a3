//! `monitor --tui`, on a terminal that the test makes.

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

use crate::common::{ringtap, said};
use crate::net::{Left, Net, Right, Within};
use crate::signals::{check_slowly_read, frame, read_slowly};
use ringtap_testkit::{Killed, send_all};

/// The user's end of a terminal, and what it shows.
struct Terminal {
    user: File,
    shown: vt100::Parser,
}

impl Terminal {
    /// Reads on until it is so.
    fn wait_until(&mut self, is: impl Fn(&vt100::Screen) -> bool) {
        // One octet at a time: what is shown for a moment only is seen, too.
        let mut octet = [0];
        while !is(self.shown.screen()) {
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

/// `monitor -i right --tui` and more flags, in a session of its own on a terminal of 24 lines of 80 characters.
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

/// Both ends of a terminal: the user's, and the program's.
fn terminal() -> (File, File) {
    let user: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let path = ptsname(&user, Vec::new()).unwrap().into_string().unwrap();
    (user.into(), OpenOptions::new().read(true).write(true).open(path).unwrap())
}

#[test]
fn it_shows_the_run_and_a_key_ends_it_with_the_report() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--report", "json", "--duration", "300s", "--interval", "1s"];
    let (mut terminal, mut child) = start(&net, folder.path(), &flags);
    terminal.wait_until(vt100::Screen::alternate_screen);
    terminal.wait_for("Accounts");
    let mut frame = vec![0; 60];
    frame[12] = 8;
    send_all(
        &mut net.sender(&SendOptions { method: Method::Packet, ..SendOptions::default() }),
        &vec![frame; 777],
    );
    terminal.wait_for("777");
    terminal.press(b"q");
    terminal.wait_until(|screen| !screen.alternate_screen());

    let mut report = Vec::new();
    child.0.stdout.take().unwrap().read_to_end(&mut report).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["packets"]["received"], 777);
    assert!(report["performance"]["seconds"].as_f64().unwrap() < 300.0, "the key ended it");
}

/// `q` asks for the report; Ctrl-C while it is made is the first interrupt, not the second.
#[test]
fn an_interrupt_after_the_key_destroys_nothing() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--sequential", "--duration", "300s", "--idle-timeout", "1d"];
    let records = ["--active-timeout", "1d", "--write", "json:-", "--write", "csv:flows.csv"];
    let (mut terminal, mut child) =
        start(&net, folder.path(), &[&flags[..], &records[..]].concat());
    terminal.wait_for("Accounts");
    let frames: Vec<_> = (0..1_500).map(frame).collect();
    send_all(&mut net.sender(&SendOptions::default()), &frames);
    terminal.wait_for("1,500");
    terminal.press(b"q");
    // Records come; they are more than the pipe takes, so the run cannot end.
    let mut stdout = child.0.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    let told = Arc::default();
    let reader = read_slowly(stdout, &told);
    terminal.press(b"\x03");
    // Read slowly to the end, so that the key is noticed before that.
    terminal.wait_until(|screen| !screen.alternate_screen());
    told.store(true, Ordering::Relaxed);
    // The report goes to the terminal.
    terminal.wait_for("residual 0");
    let code = child.0.wait().unwrap().code().unwrap();
    check_slowly_read(&reader.join().unwrap(), 1_500, code);
    assert!(folder.path().join("flows.csv").exists());
}

#[test]
fn without_a_terminal_it_is_refused_and_says_what_to_do() {
    let Some(net) = Net::new(1) else { return };
    let (_, errors, code) = net.run(Left, &["monitor", "-i", "left", "--tui"]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("--stats"), "{errors}");
    let (_, errors, code) = said(ringtap().args(["monitor", "-r", "x.pcap", "--tui"]));
    assert!(code == 2 && errors.contains("--read"), "{errors}");
}
