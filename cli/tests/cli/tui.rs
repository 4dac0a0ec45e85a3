//! `monitor --tui`, on a terminal that the test makes.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Duration;

use ringtap_live::{Method, SendOptions};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::common::{ringtap, said};
use crate::net::{Left, Net, Right};
use crate::signals::frame;
use crate::veth::send_all;

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
    let (mut user, program) = terminal();
    // In a session of its own, of which this is the terminal.
    let mut command = net.program(Right, "setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_ringtap"), "monitor", "-i", "right"]);
    command.args(["--tui", "--report", "json", "--duration", "30s", "--interval", "1s"]);
    let own = || Stdio::from(program.try_clone().unwrap());
    let child = command.stdin(own()).stderr(own()).stdout(Stdio::piped()).spawn().unwrap();
    drop((command, program));

    // What the terminal shows, until it is so.
    let size = |cells| NonZero::new(cells).unwrap();
    let mut shown = vt100::Parser::new(size(24), size(80), 0);
    let mut wait_until = |user: &mut File, is: &dyn Fn(&vt100::Screen) -> bool| {
        let mut piece = [0; 4096];
        while !is(shown.screen()) {
            let read = user.read(&mut piece);
            let len = read.unwrap_or_else(|_| panic!("{}", shown.screen().contents()));
            shown.process(&piece[..len]);
        }
    };
    wait_until(&mut user, &vt100::Screen::alternate_screen);
    wait_until(&mut user, &|screen| screen.contents().contains("Accounts"));
    let mut frame = vec![0; 60];
    frame[12] = 8;
    send_all(
        &mut net.sender(&SendOptions { method: Method::Packet, ..SendOptions::default() }),
        &vec![frame; 777],
    );
    wait_until(&mut user, &|screen| screen.contents().contains("777"));
    user.write_all(b"q").unwrap();
    wait_until(&mut user, &|screen| !screen.alternate_screen());

    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["packets"]["received"], 777);
    assert!(
        report["performance"]["seconds"].as_f64().unwrap() < Duration::from_secs(29).as_secs_f64()
    );
}

/// `q` asks for the report; Ctrl-C while it is made is the first interrupt, not the second.
#[test]
fn an_interrupt_after_the_key_destroys_nothing() {
    let Some(net) = Net::new(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut user, program) = terminal();
    let mut command = net.program(Right, "setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_ringtap"), "monitor", "-i", "right"]);
    command.args(["--tui", "--sequential", "--duration", "300s", "--idle-timeout", "1d"]);
    command.args(["--active-timeout", "1d", "--write", "json:-", "--write", "csv:flows.csv"]);
    let own = || Stdio::from(program.try_clone().unwrap());
    command.current_dir(&folder).stdin(own()).stderr(own()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop((command, program));

    let size = |cells| NonZero::new(cells).unwrap();
    let mut shown = vt100::Parser::new(size(24), size(80), 0);
    let mut wait_until = |user: &mut File, is: &dyn Fn(&vt100::Screen) -> bool| {
        let mut piece = [0; 4096];
        while !is(shown.screen()) {
            let read = user.read(&mut piece);
            let len = read.unwrap_or_else(|_| panic!("{}", shown.screen().contents()));
            shown.process(&piece[..len]);
        }
    };
    wait_until(&mut user, &|screen| screen.contents().contains("Accounts"));
    let frames: Vec<_> = (0..1_500).map(frame).collect();
    send_all(&mut net.sender(&SendOptions::default()), &frames);
    wait_until(&mut user, &|screen| screen.contents().contains("1,500"));
    user.write_all(b"q").unwrap();
    // Records come; they are more than the pipe takes, so the run cannot end.
    let mut out = vec![0];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut out).unwrap();
    user.write_all(b"\x03").unwrap();
    wait_until(&mut user, &|screen| screen.contents().contains("already stopping"));
    let reader = std::thread::spawn(move || {
        stdout.read_to_end(&mut out).unwrap();
        out
    });
    wait_until(&mut user, &|screen| !screen.alternate_screen());
    // The report goes to the terminal.
    wait_until(&mut user, &|screen| screen.contents().contains("residual 0"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let lines = reader.join().unwrap().iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!(lines, 1_500);
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
