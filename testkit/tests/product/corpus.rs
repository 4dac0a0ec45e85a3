//! Replays the committed fuzz corpora as ordinary tests.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

/// Runs every input of a target's corpus. Prints each name first, so that a failure can be
/// attributed.
fn replay(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let archive = File::open(folder.join(format!("{target}.tar.gz"))).unwrap();
    let (mut archive, mut inputs) = (tar::Archive::new(GzDecoder::new(archive)), 0);
    for input in archive.entries().unwrap() {
        let (mut input, mut bytes) = (input.unwrap(), Vec::new());
        println!("{target}: {}", input.path().unwrap().display());
        input.read_to_end(&mut bytes).unwrap();
        run(&bytes);
        inputs += 1;
    }
    assert!(inputs > 10, "only {inputs} inputs: {target}");
}

#[test]
fn decode() {
    replay("decode", ringtap_wire::fuzz);
}

#[test]
fn dns() {
    replay("dns", |bytes| ringtap_extract::fuzz("dns", bytes));
}

#[test]
fn forward() {
    replay("forward", ringtap_ndn::relay::fuzz);
}

#[test]
fn http() {
    replay("http", ringtap_extract::fuzz_http);
}

#[test]
fn ndn() {
    replay("ndn", ringtap_ndn::packets::fuzz);
}

#[test]
fn pcap() {
    replay("pcap", ringtap_io::capture::fuzz_pcap);
}

#[test]
fn pcapng() {
    replay("pcapng", ringtap_io::capture::fuzz_pcapng);
}

#[test]
fn quic() {
    replay("quic", ringtap_extract::fuzz_quic);
}

#[test]
fn ring() {
    replay("ring", ringtap_ring::model::run_script);
}

#[test]
fn state() {
    replay("state", ringtap_monitor::state::fuzz);
}

#[test]
fn tls() {
    replay("tls", |bytes| ringtap_extract::fuzz("tls", bytes));
}

#[test]
fn dhcp() {
    replay("dhcp", |bytes| ringtap_extract::fuzz("dhcp", bytes));
}

#[test]
fn labels() {
    replay("labels", |bytes| ringtap_extract::fuzz("labels", bytes));
}

#[test]
fn ntp() {
    replay("ntp", |bytes| ringtap_extract::fuzz("ntp", bytes));
}

#[test]
fn proxy() {
    replay("proxy", |bytes| ringtap_extract::fuzz("proxy", bytes));
}

#[test]
fn syn() {
    replay("syn", ringtap_extract::fuzz_syn);
}

#[test]
fn ssh() {
    replay("ssh", |bytes| ringtap_extract::fuzz("ssh", bytes));
}
