//! Distance-vector routing of ndnd (`ndnd dv`): one routing daemon at each relay.
//!
//! ```text
//!  ping ─▶ a ── b ── c ◀─ ping server         a ══ b ══ c, and a ── c, which is cut
//! ```
//!
//! A daemon creates faces and routes, chooses strategies, and needs the number of the face that
//! received a neighbour's Interest. The relay announces the server's prefix to it.

use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use ringtap_ndn::relay::ForwardPlan;

use crate::relay::link::Link;
use crate::relay::support::{Background, Ringtap, plans, until};
use crate::relay::tools::Tools;

/// A relay with a routing daemon, which ends first.
struct Router {
    daemon: Option<Background>,
    relay: Ringtap,
}

impl Router {
    /// Starts the relay `name`; its files are in a folder of that name.
    fn start(plan: &ForwardPlan, folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        fs::create_dir(&folder).unwrap();
        Self { daemon: None, relay: Ringtap::with(&folder, plan.clone()) }
    }

    /// Starts the daemon with its neighbours; others may connect to it.
    fn route(&mut self, tools: &Tools, folder: &Path, name: &str, neighbours: &[SocketAddr]) {
        let mut text = format!(
            "dv:\n  network: /net\n  router: /net/{name}\n  keychain: insecure\n\
             \x20 advertise_interval: 1000\n  router_dead_interval: 2000\n"
        );
        if !neighbours.is_empty() {
            text.push_str("  neighbors:\n");
        }
        for neighbour in neighbours {
            writeln!(text, "    - uri: udp4://{neighbour}").unwrap();
        }
        let config = folder.join(name).join("dv.yml");
        fs::write(&config, text).unwrap();
        let words = ["dv", "run", config.to_str().unwrap()];
        let log = format!("{name}/dv.log");
        self.daemon = Some(tools.background(&self.relay.socket, &words, &log));
    }

    /// Waits until the daemon has routes to other routers. A prefix that is announced from then on
    /// is received at once, an earlier one with it, or after half a minute.
    fn wait_for(&self, tools: &Tools, others: [&str; 2]) {
        until("routers are reachable", || {
            let routes = tools.output(&self.relay.socket, &["fw", "route-list"]);
            let has = |other| routes.contains(&format!("/net/32=DV/32=PFS/net/{other}"));
            if others.iter().all(has) { Ok(()) } else { Err(routes) }
        });
    }

    /// Ends the daemon and the relay; the relay must have announced the prefixes of `exposed`
    /// programs.
    fn end(mut self, exposed: u64) {
        self.daemon = None;
        let report = self.relay.end();
        let [announced, acknowledged] = report.announced();
        assert!(announced >= exposed && acknowledged >= exposed, "{report:?}");
        assert_eq!(announced > 0, exposed > 0, "{report:?}");
    }
}

#[test]
fn a_prefix_at_one_end_of_a_line_is_reached_from_the_other() {
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let Some(tools) = Tools::find(folder) else { return };
        let [mut a, mut b, mut c] = ["a", "b", "c"].map(|name| Router::start(&plan, folder, name));
        // The server registers its prefix before the daemon connects.
        let words = ["pingserver", "/far/early", "--expose"];
        let _early = tools.background(&c.relay.socket, &words, "early.log");
        a.route(&tools, folder, "a", &[b.relay.udp]);
        b.route(&tools, folder, "b", &[c.relay.udp]);
        c.route(&tools, folder, "c", &[]);
        a.wait_for(&tools, ["b", "c"]);
        b.wait_for(&tools, ["a", "c"]);
        c.wait_for(&tools, ["a", "b"]);
        let words = ["pingserver", "/far/late", "--expose"];
        let late = tools.background(&c.relay.socket, &words, "late.log");
        tools.ping(&a.relay.socket, "/far/late");
        tools.ping(&a.relay.socket, "/far/early");
        // The routes end with the server.
        drop(late);
        until("the route is removed", || {
            let routes = tools.output(&a.relay.socket, &["fw", "route-list"]);
            if routes.contains("/far/late") { Err(routes) } else { Ok(()) }
        });
        tools.ping(&a.relay.socket, "/far/early");
        a.end(0);
        b.end(0);
        c.end(2);
    }
}

#[test]
fn a_link_that_fails_is_routed_around() {
    for plan in plans() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let Some(tools) = Tools::find(folder) else { return };
        let [mut a, mut b, mut c] = ["a", "b", "c"].map(|name| Router::start(&plan, folder, name));
        let [a_b, b_c, c_a] = [(&a, &b), (&b, &c), (&c, &a)]
            .map(|(one, other)| Link::between([one.relay.udp, other.relay.udp]));
        a.route(&tools, folder, "a", &[a_b.ends[0], c_a.ends[1]]);
        b.route(&tools, folder, "b", &[b_c.ends[0], a_b.ends[1]]);
        c.route(&tools, folder, "c", &[c_a.ends[0], b_c.ends[1]]);
        a.wait_for(&tools, ["b", "c"]);
        b.wait_for(&tools, ["a", "c"]);
        c.wait_for(&tools, ["a", "b"]);
        let words = ["pingserver", "/far", "--expose"];
        let _server = tools.background(&c.relay.socket, &words, "server.log");
        // Five Interests and five Data; the daemons send fewer packets in this time.
        let ping_over = |link: &Link| {
            until("pings take the link", || {
                let [before, _] = link.counts();
                tools.ping(&a.relay.socket, "/far");
                let [after, _] = link.counts();
                if after >= before + 10 { Ok(()) } else { Err(format!("{before} to {after}")) }
            });
        };
        ping_over(&c_a);
        c_a.cut();
        ping_over(&b_c);
        assert!(c_a.counts()[1] > 0);
        a.end(0);
        b.end(0);
        c.end(1);
    }
}
