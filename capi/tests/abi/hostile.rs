//! Hostile use: NULL, invalid options, runs that are stopped, closed early or read slowly.

use std::ffi::{CStr, CString, c_char};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use ringtap_c::{
    Flow, Run, ringtap_close, ringtap_error, ringtap_lost, ringtap_next, ringtap_number,
    ringtap_open, ringtap_report, ringtap_stop, ringtap_text, ringtap_version,
};

use ringtap_testkit::{End, Net, send_all};

use crate::{office, path};

/// A run that is closed on drop.
struct Open(*mut Run);

// SAFETY: any thread may stop a run; the tests read it in one.
unsafe impl Sync for Open {}
// SAFETY: a run belongs to no thread.
unsafe impl Send for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: it is open.
        unsafe { ringtap_close(self.0) }
    }
}

fn text<'a>(text: *const c_char) -> &'a str {
    // SAFETY: texts of the library end with a NUL, and live until the next call.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap()
}

fn open(options: &[&str]) -> Result<Open, String> {
    let options: Vec<_> = options.iter().map(|one| CString::new(*one).unwrap()).collect();
    let mut list: Vec<_> = options.iter().map(|one| one.as_ptr()).collect();
    list.push(ptr::null());
    let mut error = [1; 1_000];
    // SAFETY: a list with its end, and a buffer with its size.
    let run = unsafe { ringtap_open(list.as_ptr(), error.as_mut_ptr(), error.len()) };
    if run.is_null() { Err(text(error.as_ptr()).to_owned()) } else { Ok(Open(run)) }
}

impl Open {
    /// The next record; `None` at the end.
    fn next(&self) -> Result<Option<Flow>, String> {
        let mut flow = MaybeUninit::<Flow>::uninit();
        // SAFETY: an open run and the struct with its size, which is written if the result is 1.
        match unsafe { ringtap_next(self.0, flow.as_mut_ptr(), size_of::<Flow>()) } {
            // SAFETY: written.
            1 => Ok(Some(unsafe { flow.assume_init() })),
            0 => Ok(None),
            got => {
                assert_eq!(got, -1);
                Err(self.error())
            }
        }
    }

    /// The packets of all records that follow.
    fn packets(&self) -> Result<u64, String> {
        let mut packets = 0;
        while let Some(flow) = self.next()? {
            packets += flow.packets.iter().sum::<u64>();
        }
        Ok(packets)
    }

    fn error(&self) -> String {
        // SAFETY: an open run.
        text(unsafe { ringtap_error(self.0) }).to_owned()
    }

    fn report(&self) -> Option<&str> {
        // SAFETY: an open run.
        let report = unsafe { ringtap_report(self.0) };
        (!report.is_null()).then(|| text(report))
    }

    fn lost(&self) -> u64 {
        // SAFETY: an open run.
        unsafe { ringtap_lost(self.0) }
    }

    /// The text of a field cut to `size` bytes, and its length.
    fn text(&self, field: &CStr, index: usize, size: usize) -> (String, i64) {
        let mut own = [1; 100];
        // SAFETY: an open run, a text, and a buffer with its size.
        let len = unsafe { ringtap_text(self.0, field.as_ptr(), index, own.as_mut_ptr(), size) };
        assert_eq!(own[size], 1, "a byte after the buffer was written");
        if len < 0 { (self.error(), len) } else { (text(own.as_ptr()).to_owned(), len) }
    }

    fn number(&self, field: &CStr) -> (u64, i32) {
        let mut number = u64::MAX;
        // SAFETY: an open run, a text and a number.
        let got = unsafe { ringtap_number(self.0, field.as_ptr(), 0, &mut number) };
        (number, got)
    }
}

/// A pipe with the head of a capture, and its end that is written.
fn pipe(folder: &Path) -> (PathBuf, File) {
    let pipe = folder.join("pipe.pcap");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    // Opened for reading, too, it does not wait for a reader.
    let mut file = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    file.write_all(&fs::read(path("examples/office.pcap")).unwrap()[..24]).unwrap();
    (pipe, file)
}

#[test]
fn null_is_an_error() {
    let mut error = [1; 8];
    let mut flow = MaybeUninit::<Flow>::uninit();
    let (none, size) = (ptr::null_mut(), size_of::<Flow>());
    // SAFETY: NULL is allowed everywhere; what is none is a buffer with its size.
    unsafe {
        assert!(ringtap_open(ptr::null(), error.as_mut_ptr(), error.len()).is_null());
        assert_eq!(text(error.as_ptr()), "the opt");
        assert!(ringtap_open(ptr::null(), error.as_mut_ptr(), 0).is_null());
        assert!(ringtap_open(ptr::null(), ptr::null_mut(), 8).is_null());
        assert_eq!(ringtap_next(none, flow.as_mut_ptr(), size), -1);
        assert_eq!(ringtap_text(none, c"application".as_ptr(), 0, error.as_mut_ptr(), 8), -1);
        assert_eq!(ringtap_number(none, c"vlanId".as_ptr(), 0, &mut 0), -1);
        assert_eq!(text(ringtap_error(none)), "the run is NULL");
        assert!(ringtap_report(none).is_null());
        assert_eq!(ringtap_lost(none), 0);
        ringtap_stop(none);
        ringtap_close(none);
    }
    let run = open(&[&office()]).unwrap();
    assert_eq!(run.error(), "");
    // SAFETY: as above.
    unsafe {
        assert_eq!(ringtap_next(run.0, ptr::null_mut(), size), -1);
        assert_eq!(run.error(), "the flow is NULL");
        assert_eq!(ringtap_next(run.0, flow.as_mut_ptr(), 8), -1);
        assert!(run.error().contains("sizeof(ringtap_flow)"));
        assert_eq!(ringtap_text(run.0, ptr::null(), 0, error.as_mut_ptr(), 8), -1);
        assert_eq!(ringtap_text(run.0, c"vlanId".as_ptr(), 0, ptr::null_mut(), 8), -1);
        assert_eq!(ringtap_number(run.0, c"vlanId".as_ptr(), 0, ptr::null_mut()), -1);
        assert_eq!(ringtap_number(run.0, c"\xff".as_ptr(), 0, &mut 0), -1);
        assert!(run.error().contains("UTF-8"));
    }
    assert!(run.packets().unwrap() > 0);
    assert_eq!(text(ringtap_version()), env!("CARGO_PKG_VERSION"));
}

#[test]
fn invalid_options_are_named() {
    for (options, named) in [
        (&["reed=a.pcap"][..], "--reed"),
        (&["read=/no/such.pcap"], "/no/such.pcap"),
        (&["read=/"], "/"),
        (&[&office(), "top=x"], "--top"),
        (&[&office(), "web=127.0.0.1:0"], "web: only the command has it"),
        (&[&office(), "flows=porrt 53"], "porrt"),
        (&[&office(), "analyses=volumes"], "add flows"),
        (&["interface=eth0,eth0"], "eth0 twice"),
        (&[&office(), "interface=eth0"], "--interface"),
    ] {
        let error = open(options).map(|_| ()).unwrap_err();
        assert!(error.contains(named), "{options:?}: {error}");
    }
}

#[test]
fn a_run_that_cannot_begin_has_an_error_and_no_report() {
    for (options, named) in
        [(&["interface=no-such-card"][..], "no-such-card"), (&[], "nothing to read")]
    {
        let run = open(options).unwrap();
        let error = run.next().unwrap_err();
        assert!(error.contains(named), "{error}");
        assert_eq!(run.next().unwrap_err(), error);
        assert_eq!(run.report(), None);
    }
}

#[test]
fn an_error_comes_after_the_records_and_with_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.pcap");
    fs::write(&other, [1; 100]).unwrap();
    let run = open(&[&office(), &format!("read={}", other.display())]).unwrap();
    let mut records = 0;
    let error = loop {
        match run.next() {
            Ok(flow) => records += usize::from(flow.is_some()),
            Err(error) => break error,
        }
    };
    assert!(records > 0 && error.contains("other.pcap: not a capture file"), "{error}");
    assert!(run.report().unwrap().starts_with('{'));
}

#[test]
fn a_warning_is_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.pcap");
    fs::write(&cut, &fs::read(path("examples/office.pcap")).unwrap()[..100_000]).unwrap();
    let run = open(&[&format!("read={}", cut.display())]).unwrap();
    assert!(run.packets().unwrap() > 0);
    assert!(run.report().unwrap().contains("cut off at byte"));
}

#[test]
fn fields_are_texts_and_numbers() {
    let run = open(&[&office(), "flows=udp port 53"]).unwrap();
    assert_eq!(
        run.text(c"application", 0, 99),
        ("there is no record: call ringtap_next first".into(), -1)
    );
    let flow = run.next().unwrap().unwrap();
    assert_eq!(text(flow.application), "dns");
    assert_eq!(run.text(c"application", 0, 99), ("dns".into(), 3));
    assert_eq!(run.text(c"application", 0, 3), ("dn".into(), 3));
    assert_eq!(run.text(c"application", 1, 99), (String::new(), 0));
    assert_eq!(run.text(c"tlsServerName", 0, 99), (String::new(), 0));
    assert_eq!(run.text(c"destinationTransportPort", 0, 99), ("53".into(), 2));
    assert_eq!(run.number(c"destinationTransportPort"), (53, 1));
    assert_eq!(run.number(c"flowStartMilliseconds"), (flow.start_ms, 1));
    assert_eq!(run.number(c"vlanId"), (u64::MAX, 0));
    assert_eq!(run.number(c"application"), (u64::MAX, -1));
    assert!(run.error().contains("use ringtap_text"));
    assert!(run.text(c"dnsQueryName", 0, 99).1 > 0);
    let (error, code) = run.text(c"noField", 0, 99);
    assert!(code == -1 && error.contains("\"noField\""), "{error}");
    // SAFETY: without a buffer it returns the length.
    let len = unsafe { ringtap_text(run.0, c"application".as_ptr(), 0, ptr::null_mut(), 0) };
    assert_eq!(len, 3);
}

#[test]
fn a_newer_program_gets_zeros_in_further_members() {
    let run = open(&[&office()]).unwrap();
    let mut bytes = [1_u8; size_of::<Flow>() + 9];
    // SAFETY: a struct of 8 bytes more than that of the library, at any address.
    let got = unsafe { ringtap_next(run.0, bytes.as_mut_ptr().cast(), size_of::<Flow>() + 8) };
    assert_eq!((got, &bytes[size_of::<Flow>()..]), (1, &[0, 0, 0, 0, 0, 0, 0, 0, 1][..]));
}

#[test]
fn over_captures_a_slow_program_loses_nothing() {
    // A batch for each second of packet time: more than may wait.
    let run = open(&[&office(), "rotate=1s"]).unwrap();
    let mut packets = 0;
    while let Some(flow) = run.next().unwrap() {
        packets += flow.packets.iter().sum::<u64>();
        std::thread::yield_now();
    }
    assert_eq!(packets, open(&[&office()]).unwrap().packets().unwrap());
    assert_eq!((run.next().unwrap().is_none(), run.lost()), (true, 0));
    assert!(run.report().unwrap().contains("\"packets\""));
}

#[test]
fn a_run_can_be_closed_at_any_time() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, _writer) = pipe(folder.path());
    drop(open(&[&format!("read={}", pipe.display())]).unwrap());
    drop(open(&[&office(), "rotate=1s"]).unwrap());
    let run = open(&[&office(), "rotate=1s"]).unwrap();
    assert!(run.next().unwrap().is_some());
    assert_eq!((run.report(), run.lost()), (None, 0));
}

#[test]
fn another_thread_stops_a_run_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, _writer) = pipe(folder.path());
    let run = open(&[&format!("read={}", pipe.display())]).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| run.packets());
        // SAFETY: an open run.
        unsafe { ringtap_stop(run.0) };
        assert_eq!(reader.join().unwrap(), Ok(0));
    });
    assert!(run.report().unwrap().contains("\"interrupted\": true"));
}

/// Ten thousand frames of UDP flows that only these have.
fn udp(round: u8) -> Vec<Vec<u8>> {
    let frame = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let ethernet = [&[2; 12][..], &[8, 0]].concat();
        let ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, round, 10, 1, high, low];
        [&ethernet[..], &ip, &[16, 0, 0, 53, 0, 8, 0, 0]].concat()
    };
    (0..10_000).map(frame).collect()
}

#[test]
fn what_a_slow_program_misses_of_an_interface_is_counted() {
    let Some(net) = Net::new(1) else { return };
    let mut sender = net.sender(&Default::default());
    let options = ["interface=right", "rotate=1s", "idle-timeout=1s", "memory=160M"];
    let run = net.inside(End::Right, || open(&options)).unwrap();
    // More batches and records than may wait.
    for round in 0..10 {
        send_all(&mut sender, &udp(round));
        std::thread::sleep(Duration::from_millis(1_100));
    }
    // SAFETY: an open run.
    unsafe { ringtap_stop(run.0) };
    let mut records = 0;
    while run.next().unwrap().is_some() {
        records += 1;
    }
    let report: serde_json::Value = serde_json::from_str(run.report().unwrap()).unwrap();
    assert!(records > 0 && run.lost() > 0, "{records} records, {} lost", run.lost());
    assert_eq!(report["flows"]["records"], records + run.lost());
    assert_eq!(report["packets"]["handled"], report["flows"]["records"]);
}
