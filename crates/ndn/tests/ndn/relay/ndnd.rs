//! Tests with ndnd, a forwarder with programs in Go: pings and objects of many segments through
//! both forwarders, in both directions.
//!
//! ```text
//!  ping ─▶ ringtap ─ UDP ─▶ ndnd ─▶ ping server         ping ─▶ ndnd ─ UDP ─▶ ringtap ─▶ ping server
//! ```

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::relay::support::{Background, Ringtap, free_address, until};
use crate::relay::tools::Tools;

/// A running forwarder of ndnd.
struct Ndnd {
    udp: SocketAddr,
    socket: PathBuf,
    _running: Background,
}

impl Ndnd {
    fn start(tools: &Tools, folder: &Path) -> Self {
        let (udp, socket) = (free_address(), folder.join("ndnd.sock"));
        let config = folder.join("ndnd.yml");
        let text = format!(
            "core:\n  log_level: WARN\n\
             faces:\n  udp:\n    enabled_multicast: false\n    port_unicast: {}\n\
             \x20 tcp:\n    enabled: false\n  websocket:\n    enabled: false\n\
             \x20 unix:\n    socket_path: {}\nfw:\n  threads: 2\n",
            udp.port(),
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let words = ["fw", "run", config.to_str().unwrap()];
        let running = tools.background(&socket, &words, "ndnd.log");
        until("ndnd listens", || match socket.exists() {
            true => Ok(()),
            false => Err(fs::read_to_string(folder.join("ndnd.log")).unwrap_or_default()),
        });
        Self { udp, socket, _running: running }
    }
}

#[test]
fn ringtap_reaches_producers_behind_ndnd() {
    let folder = tempfile::tempdir().unwrap();
    let Some(tools) = Tools::find(folder.path()) else { return };
    let ndnd_node = Ndnd::start(&tools, folder.path());
    // The prefix is one component long, the names are longer: all workers get some.
    let ringtap = Ringtap::with_workers(folder.path(), &[("/behind", ndnd_node.udp)], 3);
    let _server =
        tools.background(&ndnd_node.socket, &["pingserver", "/behind/them"], "server.log");
    tools.ping(&ringtap.socket, "/behind/them");
    tools.fetch(&ringtap.socket, &ndnd_node.socket, "/behind/object");
    let report = ringtap.end();
    assert!(report.forwarder.interests_out > 35 && report.forwarder.data_in > 35, "{report:?}");
    // ndnd returns our PIT tokens.
    assert!(report.forwarder.tokens_right > 35, "{report:?}");
}

#[test]
fn ndnd_reaches_producers_behind_ringtap() {
    let folder = tempfile::tempdir().unwrap();
    let Some(tools) = Tools::find(folder.path()) else { return };
    let ndnd_node = Ndnd::start(&tools, folder.path());
    let ringtap = Ringtap::with_workers(folder.path(), &[], 2);
    let route = format!("face=udp4://{}", ringtap.udp);
    tools.output(&ndnd_node.socket, &["fw", "route-add", "prefix=/behind", &route]);
    // The server registers its prefix at ringtap.
    let _server = tools.background(&ringtap.socket, &["pingserver", "/behind/us"], "server.log");
    tools.ping(&ndnd_node.socket, "/behind/us");
    tools.fetch(&ndnd_node.socket, &ringtap.socket, "/behind/object");
    let report = ringtap.end();
    assert!(report.forwarder.data_out > 35 && report.managed() >= 2, "{report:?}");
}

#[test]
fn ndnd_tools_query_and_configure_ringtap() {
    let folder = tempfile::tempdir().unwrap();
    let Some(tools) = Tools::find(folder.path()) else { return };
    let ndnd_node = Ndnd::start(&tools, folder.path());
    let ringtap = Ringtap::start(folder.path(), &[("/a", ndnd_node.udp)]);
    let output = |words: &[&str]| tools.output(&ringtap.socket, &[&["fw"], words].concat());
    assert!(output(&["status"]).contains("ringtap test"), "{}", output(&["status"]));
    assert!(output(&["face-list"]).contains(&format!("udp4://{}", ndnd_node.udp)));
    assert!(output(&["route-list"]).contains("/a"), "{}", output(&["route-list"]));
    let made = output(&["route-add", "prefix=/b", "face=udp4://127.0.0.1:9", "cost=7"]);
    assert!(made.contains("Status=200"), "{made}");
    assert!(output(&["fib-list"]).contains("/b"), "{}", output(&["fib-list"]));
    assert!(output(&["strategy-list"]).contains("best-route"), "{}", output(&["strategy-list"]));
    output(&["strategy-set", "prefix=/b", "strategy=/localhost/nfd/strategy/multicast/v=1"]);
    assert!(output(&["strategy-list"]).contains("multicast"));
    output(&["strategy-unset", "prefix=/b"]);
    assert!(output(&["cs-info"]).contains("65536"), "{}", output(&["cs-info"]));
    let removed = output(&["route-remove", "prefix=/b", "face=udp4://127.0.0.1:9"]);
    assert!(removed.contains("Status=200"), "{removed}");
    ringtap.end();
}

#[test]
#[cfg(feature = "signatures")]
fn ndnd_tools_sign_commands_by_digest() {
    use ringtap_ndn::packets::signature::VerifyingKey;
    use ringtap_ndn::relay::{Anchor, Module, TrustSettings};

    use crate::relay::support::output_text;

    let folder = tempfile::tempdir().unwrap();
    let Some(tools) = Tools::find(folder.path()) else { return };
    for (allow, accepted) in [(vec![Module::Rib, Module::Faces], true), (vec![], false)] {
        let folder = tempfile::tempdir().unwrap();
        let anchor = Anchor {
            name: "/".parse().unwrap(),
            key: VerifyingKey::digest().unwrap(),
            allow,
            prefix: "/b".parse().unwrap(),
            valid_ms: (0, u64::MAX),
        };
        let trust = TrustSettings { anchors: vec![anchor], sign_local: true };
        let ringtap = Ringtap::trusting(folder.path(), &[], trust);
        let words = ["fw", "route-add", "prefix=/b/c", "face=udp4://127.0.0.1:9", "cost=7"];
        let output = tools.program(&ringtap.socket, &words).output().unwrap();
        assert_eq!(output_text(&output).contains("Status=200"), accepted, "{output:?}");
        let report = ringtap.end();
        let refused = report.refused_commands();
        assert_eq!(refused.is_empty(), accepted, "{refused:?}");
        assert_eq!(report.routes, usize::from(accepted));
    }
}
