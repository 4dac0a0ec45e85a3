//! Tests of the forwarder under a service manager, with the restrictions of its unit.

use std::fs;

use ringtap_testkit::restricted::{Place, unit, verify_unit};
use ringtap_testkit::{Background, Net, Right, output_of};

use crate::common::{PROGRAM, ndn};

#[test]
fn the_forwarder_works_under_the_restrictions_of_its_unit() {
    let (Some(place), Some(net)) = (Place::new(PROGRAM), Net::new(1)) else { return };
    let (config, socket) = (place.shown("forward.toml"), place.shown("nfd.sock"));
    let text = format!(
        "[udp]\nlisten = \"127.0.0.1:6363\"\n[unix]\nlisten = \"{socket}\"\n\
         [[ethernet]]\ninterface = \"right\"\n"
    );
    fs::write(&config, text).unwrap();
    let flags = ["forward", "--config", &config, "--duration", "300s", "--report", "json"];
    let command = place.restricted_in(&net, Right, &unit("ringtap-ndn"), &flags);
    let forwarder = Background::start(command, "forwarding at ");
    place.wait_for("READY=1");
    let ctl = |words: &[&str]| {
        let (out, errors, code) =
            output_of(ndn().args(["forward", "ctl"]).arg(&socket).args(words));
        assert_eq!(code, 0, "{words:?}: {errors}");
        out
    };
    assert!(ctl(&["register", "/a", "udp://127.0.0.1:7000"]).contains("/a is routed to face "));
    assert!(ctl(&["routes"]).contains("/a"));
    assert!(ctl(&["faces"]).contains("7000"));
    place.wait_for("WATCHDOG=1");
    place.drain();
    forwarder.interrupt();
    place.wait_for("STOPPING=1");
    let (_, errors, code) = forwarder.end();
    assert_eq!(code, 0, "{errors}");
    assert_eq!(place.denied(), "", "system calls that the unit does not list");
}

#[test]
fn systemd_accepts_the_unit() {
    verify_unit("ringtap-ndn", "ringtap-ndn", PROGRAM);
}

/// The unit reads it under another name.
#[test]
fn the_sample_configuration_is_valid() {
    let sample = unit("ringtap-ndn").with_file_name("forward.toml");
    let (plan, errors, code) =
        output_of(ndn().args(["forward", "--dry-run", "--config"]).arg(&sample));
    assert_eq!((errors.as_str(), code), ("", 0), "{plan}");
    assert!(plan.contains("/run/ringtap-ndn/nfd.sock"), "{plan}");
}
