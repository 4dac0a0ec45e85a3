//! Errors of opening a device contain advice.

use ringtap_io::dpdk::{OpenError, Options, open};
use tempfile::TempDir;

use crate::frames::{assorted, capture, reads, small, take};

fn refused(device: &str, options: &Options) -> OpenError {
    open(device, options).err().expect("it cannot be opened")
}

#[test]
fn an_invalid_device_is_an_error() {
    for name in ["", ",x=1"] {
        let error = refused(name, &small());
        assert!(matches!(error, OpenError::Name { .. }), "{error}");
    }
    for (name, words) in [
        ("eth0", "eth0"),
        ("net_nosuchdriver0", "net_nosuchdriver0"),
        ("net_pcap_missing,rx_pcap=/no/such/file.pcap", "/no/such/file.pcap"),
        ("net_null_wrong,nosuchargument=1", "nosuchargument"),
    ] {
        let error = refused(name, &small());
        assert!(matches!(error, OpenError::Attach { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn queues_are_those_of_the_device() {
    let folder = TempDir::new().unwrap();
    let file = capture(&folder, "q.pcap", &assorted(10));
    let device = reads("net_pcap_queues", &[&file, &file]);
    for asked in [0, 1, 3] {
        let options = Options { queues: Some(asked), ..small() };
        let error = refused(&device, &options);
        assert!(error.to_string().contains(&format!("invalid number of queues {asked}")));
    }
    let options = Options { queues: Some(2), ..small() };
    assert_eq!(open(&device, &options).unwrap().0.len(), 2);
}

#[test]
fn too_little_memory_is_an_error_with_the_minimum() {
    let error = refused("net_null_small", &Options { memory: 1 << 20, ..small() });
    assert!(matches!(error, OpenError::TooLittleMemory { needed: 1_245_184, .. }), "{error}");
}

#[test]
fn an_open_device_is_not_opened_again_and_continues() {
    let folder = TempDir::new().unwrap();
    let frames = assorted(500);
    let file = capture(&folder, "taken.pcap", &frames);
    let device = reads("net_pcap_taken", &[&file]);
    let (mut receivers, _) = open(&device, &small()).unwrap();
    let error = refused(&device, &small());
    assert!(matches!(error, OpenError::Port { doing: "configuring it", .. }), "{error}");
    assert!(take(&mut receivers[0], frames.len()) == frames);
}
