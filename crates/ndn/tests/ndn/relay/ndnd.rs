//! Tests with ndnd, a forwarder with programs in Go: pings and objects of many segments through
//! both forwarders, in both directions.
//!
//! ```text
//!  ping ─▶ ringtap ─ UDP ─▶ ndnd ─▶ ping server         ping ─▶ ndnd ─ UDP ─▶ ringtap ─▶ ping server
//! ```

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use ringtap_ndn::faces::Remote;
use ringtap_ndn::relay::{FaceReport, ForwardPlan};

use crate::relay::support::{Background, Ringtap, free_address, free_tcp_address, until};
use crate::relay::tools::Tools;

/// A running forwarder of ndnd.
struct Ndnd {
    udp: SocketAddr,
    tcp: SocketAddr,
    socket: PathBuf,
    _running: Background,
}

impl Ndnd {
    fn start(tools: &Tools, folder: &Path) -> Self {
        let (udp, tcp) = (free_address(), free_tcp_address());
        let socket = folder.join("ndnd.sock");
        let config = folder.join("ndnd.yml");
        let text = format!(
            "core:\n  log_level: WARN\n\
             faces:\n  udp:\n    enabled_multicast: false\n    port_unicast: {}\n\
             \x20 tcp:\n    port_unicast: {}\n  websocket:\n    enabled: false\n\
             \x20 unix:\n    socket_path: {}\nfw:\n  threads: 2\n",
            udp.port(),
            tcp.port(),
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let words = ["fw", "run", config.to_str().unwrap()];
        let running = tools.background(&socket, &words, "ndnd.log");
        until("ndnd listens", || match socket.exists() {
            true => Ok(()),
            false => Err(fs::read_to_string(folder.join("ndnd.log")).unwrap_or_default()),
        });
        Self { udp, tcp, socket, _running: running }
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
fn both_forwarders_reach_each_other_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let Some(tools) = Tools::find(folder.path()) else { return };
    let ndnd_node = Ndnd::start(&tools, folder.path());
    let two = ForwardPlan { workers: 2, ..ForwardPlan::default() };
    let routes = vec![("/there", Remote::Tcp(ndnd_node.tcp))];
    let ringtap = Ringtap::with_neighbours(folder.path(), routes, two);
    let route = format!("face=tcp4://{}", ringtap.tcp);
    tools.output(&ndnd_node.socket, &["fw", "route-add", "prefix=/here", &route]);
    let _there = tools.background(&ndnd_node.socket, &["pingserver", "/there/ping"], "there.log");
    tools.ping(&ringtap.socket, "/there/ping");
    tools.fetch(&ringtap.socket, &ndnd_node.socket, "/there/object");
    let _here = tools.background(&ringtap.socket, &["pingserver", "/here/ping"], "here.log");
    tools.ping(&ndnd_node.socket, "/here/ping");
    tools.fetch(&ndnd_node.socket, &ringtap.socket, "/here/object");
    let report = ringtap.end();
    let is_tcp = |face: &FaceReport| face.remote.starts_with("tcp4://");
    let data: Vec<_> =
        report.faces.iter().filter(|face| is_tcp(face)).map(|face| face.counters).collect();
    assert_eq!(data.len(), 2, "{report:?}");
    assert!(data.iter().any(|face| face.data_in > 35), "{report:?}");
    assert!(data.iter().any(|face| face.data_out > 35), "{report:?}");
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
    assert!(output(&["cs-info"]).contains("capacity="), "{}", output(&["cs-info"]));
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
