//! The configuration file of a forwarder, in TOML. Errors have the line number.
//!
//! Invariant: unknown keys and invalid values are errors, reported before anything is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use ringtap_ndn::faces::{
    EthernetMethod, EthernetSettings, MulticastSettings, Remote, Settings as FaceSettings,
};
use ringtap_ndn::packets::{NameBuf, UDP_PORT};
use ringtap_ndn::relay::{ForwardPlan, PlannedRoute, Settings, TrustSettings, Unsolicited};
use serde::{Deserialize, Serialize};

use super::anchors::{self, AnchorRow};
use super::values::{
    Count, FileMode, Group, Listen, Mtu, Number, Parsed, StoreSize, StrategyName, Time,
};
use ringtap_program::config::toml_error;
use ringtap_terminal::Usage;

/// The longest configuration, in bytes.
const BYTES_MOST: u64 = 64 << 20;

/// NFD's port for WebSocket.
const WEBSOCKET_PORT: u16 = 9696;

/// The error for a configuration without faces.
const NOTHING: &str = "no neighbours and no programs: add [udp], [tcp], [websocket], [unix], \
                       [[ethernet]] or [[multicast]]";

/// The contents of the file.
pub(super) struct Config {
    pub(super) plan: ForwardPlan,
    pub(super) unix: Option<UnixSocket>,
    /// The files of the keys of `[[anchor]]`.
    pub(super) keys: Vec<PathBuf>,
}

/// The socket of programs, and its access rights.
pub(super) struct UnixSocket {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
}

/// Reads and checks the configuration at `path`.
pub(super) fn read(path: &Path) -> anyhow::Result<Config> {
    let shown = path.display();
    let doing = || format!("reading the configuration {shown}");
    let size = std::fs::metadata(path).map_err(Usage::of).with_context(doing)?.len();
    if size > BYTES_MOST {
        return Err(Usage::of(format!("the configuration {shown} exceeds 64 MiB")));
    }
    let text = std::fs::read_to_string(path).map_err(Usage::of).with_context(doing)?;
    parse(&text).map_err(|error| Usage::of(format!("the configuration {shown}: {error}")))
}

fn parse(text: &str) -> Result<Config, String> {
    let file: File = toml::from_str(text).map_err(|error| toml_error(&error, text))?;
    let unix = file.unix.map(|unix| UnixSocket { path: unix.listen, mode: unix.mode.0 });
    let listens = file.udp.is_some()
        || file.tcp.is_some()
        || file.websocket.is_some()
        || unix.is_some()
        || !file.ethernet.is_empty()
        || !file.multicast.is_empty();
    if !listens && file.route.is_empty() {
        return Err(NOTHING.into());
    }
    if file.websocket.is_some() && !cfg!(feature = "websocket") {
        return Err("[websocket] is not available: build with the feature websocket".into());
    }
    let udp = file.udp.unwrap_or_else(|| Udp { listen: Listen(Vec::new()), ..Udp::default() });
    let ethernet = file.ethernet.into_iter().map(|one| EthernetSettings {
        interface: one.interface,
        method: match one.method {
            Method::AfPacket => EthernetMethod::Packet,
            Method::AfXdp => EthernetMethod::Xdp,
        },
        strangers: one.strangers,
        mtu: one.mtu.map(|mtu| mtu.0),
    });
    let multicast = file.multicast.into_iter().map(|one| MulticastSettings {
        interface: one.interface,
        group: one.group.0,
        mtu: one.mtu.map(|mtu| mtu.0),
    });
    let Tables { pit, pit_per_face, content_store, dead_nonces, lifetime_max, .. } = &file.tables;
    for (key, size, most) in [
        ("pit", pit.0, 1 << 24),
        ("dead-nonces", dead_nonces.0, 1 << 28),
        ("most (faces)", file.faces.most.0, 60_000),
    ] {
        if !(1..=most).contains(&size) {
            return Err(format!("invalid {key} {size}: use 1 to {most}"));
        }
    }
    // By default, one face cannot fill the PIT.
    let per_face = pit_per_face.as_ref().map_or(pit.0.div_ceil(4), |number| number.0);
    if !(1..=pit.0).contains(&per_face) {
        return Err(format!("invalid pit-per-face {per_face}: use 1 to {} (pit)", pit.0));
    }
    let on_demand = file.faces.on_demand.map(|number| number.0);
    if let Some(on_demand) = on_demand.filter(|&number| number >= file.faces.most.0) {
        return Err(format!(
            "invalid on-demand {on_demand}: use less than most, {}; the rest is for programs and configured faces",
            file.faces.most.0
        ));
    }
    let Workers { number, hash_components } = &file.workers;
    for (key, given, most) in
        [("number", number.0, 256), ("hash-components", hash_components.0, 64)]
    {
        if !(1..=most).contains(&given) {
            return Err(format!("invalid {key} {given} of [workers]: use 1 to {most}"));
        }
    }
    let keys = file.anchor.iter().filter_map(|row| row.key.clone()).collect();
    let trust = TrustSettings {
        anchors: anchors::read(file.anchor)?,
        sign_local: matches!(file.management.local, Local::Signed),
    };
    if trust.sign_local && trust.anchors.is_empty() {
        return Err("local = \"signed\" without a key refuses all commands: add [[anchor]]".into());
    }
    let plan = ForwardPlan {
        parallel: false,
        workers: number.0 as usize,
        settings: Settings {
            pit_capacity: pit.0 as usize,
            pit_per_face: Some(per_face as usize),
            cs_bytes: content_store.0 as usize,
            dead_nonces: dead_nonces.0 as usize,
            lifetime_max_ms: lifetime_max.0 / 1_000_000,
            dispatch_components: hash_components.0 as usize,
            unsolicited: match file.tables.unsolicited {
                OnUnsolicited::Drop => Unsolicited::Drop,
                OnUnsolicited::KeepLocal => Unsolicited::KeepLocal,
            },
            regions: file.tables.regions.into_iter().map(|name| name.0).collect(),
            // Random, because attackers choose the names.
            seed: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
        },
        faces: FaceSettings {
            udp: udp.listen.0,
            udp_mtu: udp.mtu.map(|mtu| mtu.0),
            udp_offload: udp.offload.unwrap_or(true),
            tcp: file.tcp.map(|tcp| tcp.listen.0).unwrap_or_default(),
            websocket: file.websocket.map(|websocket| websocket.listen.0).unwrap_or_default(),
            multicast: multicast.collect(),
            ethernet: ethernet.collect(),
            idle: Duration::from_nanos(file.faces.idle_timeout.0),
            faces_max: file.faces.most.0 as usize,
            on_demand_max: on_demand.map(|number| number as usize),
        },
        routes: file
            .route
            .into_iter()
            .map(|route| PlannedRoute {
                prefix: route.prefix.0,
                to: route.to.0,
                cost: route.cost.0,
            })
            .collect(),
        strategies: file.strategy.into_iter().map(|row| (row.prefix.0, row.name.0.0)).collect(),
        unix: unix.as_ref().map(|unix| unix.path.display().to_string()),
        trust,
    };
    Ok(Config { plan, unix, keys })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[derive(Default)]
struct File {
    udp: Option<Udp>,
    tcp: Option<Tcp>,
    websocket: Option<WebSocket>,
    unix: Option<Unix>,
    ethernet: Vec<Ethernet>,
    multicast: Vec<Multicast>,
    faces: Faces,
    tables: Tables,
    workers: Workers,
    route: Vec<Route>,
    strategy: Vec<StrategyRow>,
    management: Management,
    anchor: Vec<AnchorRow>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Management {
    local: Local,
}

/// Which commands of local programs are executed.
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum Local {
    #[default]
    Any,
    Signed,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Udp {
    listen: Listen<UDP_PORT>,
    mtu: Option<Mtu>,
    offload: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Tcp {
    listen: Listen<UDP_PORT>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct WebSocket {
    listen: Listen<WEBSOCKET_PORT>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Multicast {
    interface: String,
    #[serde(default)]
    group: Group,
    mtu: Option<Mtu>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unix {
    listen: PathBuf,
    #[serde(default)]
    mode: FileMode,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ethernet {
    interface: String,
    #[serde(default)]
    method: Method,
    #[serde(default)]
    strangers: bool,
    mtu: Option<Mtu>,
}

/// How the frames of an Ethernet are received and sent.
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum Method {
    #[default]
    AfPacket,
    AfXdp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Faces {
    most: Number<Count>,
    on_demand: Option<Number<Count>>,
    idle_timeout: Number<Time>,
}

/// The threads of the tables, and how packets are assigned to them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Workers {
    number: Number<Count>,
    hash_components: Number<Count>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Tables {
    pit: Number<Count>,
    pit_per_face: Option<Number<Count>>,
    content_store: StoreSize,
    dead_nonces: Number<Count>,
    lifetime_max: Number<Time>,
    unsolicited: OnUnsolicited,
    regions: Vec<Parsed<NameBuf>>,
}

#[derive(Deserialize, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
enum OnUnsolicited {
    #[default]
    Drop,
    KeepLocal,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    prefix: Parsed<NameBuf>,
    to: Parsed<Remote>,
    #[serde(default)]
    cost: Number<Count>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrategyRow {
    prefix: Parsed<NameBuf>,
    #[serde(rename = "use")]
    name: Parsed<StrategyName>,
}

impl Default for Faces {
    fn default() -> Self {
        let settings = FaceSettings::default();
        Self {
            most: Number::of(settings.faces_max as u64),
            on_demand: None,
            idle_timeout: Number::of(settings.idle.as_nanos() as u64),
        }
    }
}

impl Default for Workers {
    fn default() -> Self {
        let components = Settings::default().dispatch_components as u64;
        Self { number: Number::of(1), hash_components: Number::of(components) }
    }
}

impl Default for Tables {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            pit: Number::of(settings.pit_capacity as u64),
            pit_per_face: None,
            content_store: StoreSize(settings.cs_bytes as u64),
            dead_nonces: Number::of(settings.dead_nonces as u64),
            lifetime_max: Number::of(settings.lifetime_max_ms * 1_000_000),
            unsolicited: OnUnsolicited::default(),
            regions: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "signatures")]
    use ringtap_ndn::relay::Module;

    use ringtap_ndn::relay::Strategy;

    use super::*;

    #[test]
    fn all_keys_are_read() {
        let config = parse(
            r#"
            [udp]
            listen = ["0.0.0.0:6363", "[::]:7000"]
            mtu = 8800
            offload = false
            [tcp]
            listen = "0.0.0.0:6363"
            [unix]
            listen = "/run/ndn.sock"
            mode = "0660"
            [[ethernet]]
            interface = "eth1"
            method = "af-xdp"
            strangers = true
            mtu = "9k"
            [[multicast]]
            interface = "eth0"
            [[multicast]]
            interface = "eth1"
            group = "[ff02::1234]:56363"
            mtu = 1280
            [faces]
            most = 100
            on-demand = 60
            idle-timeout = "1m"
            [tables]
            pit = "64k"
            pit-per-face = "1k"
            content-store = "16M"
            dead-nonces = 1000
            lifetime-max = "20s"
            unsolicited = "keep-local"
            regions = ["/here"]
            [workers]
            number = 4
            hash-components = 3
            [[route]]
            prefix = "/a/b"
            to = "udp://192.0.2.1"
            cost = 7
            [[route]]
            prefix = "/"
            to = "ether://eth1"
            [[route]]
            prefix = "/c"
            to = "tcp://192.0.2.1"
            [[strategy]]
            prefix = "/a"
            use = "multicast"
            "#,
        );
        let Config { plan, unix, .. } = config.unwrap();
        assert!(plan.faces.udp.len() == 2 && !plan.faces.udp_offload);
        assert_eq!(plan.faces.tcp, ["0.0.0.0:6363".parse().unwrap()]);
        let [first, second] = &plan.faces.multicast[..] else { panic!() };
        let shown = (first.interface.as_str(), first.group.to_string(), first.mtu);
        assert_eq!(shown, ("eth0", "224.0.23.170:56363".into(), None));
        assert_eq!((second.group.port(), second.mtu), (56363, Some(1280)));
        assert_eq!(plan.routes[2].to.to_string(), "tcp4://192.0.2.1:6363");
        assert_eq!((plan.faces.udp_mtu, plan.faces.ethernet[0].mtu), (Some(8800), Some(9216)));
        assert_eq!(plan.faces.ethernet[0].method, EthernetMethod::Xdp);
        assert_eq!((plan.faces.faces_max, plan.faces.idle.as_secs()), (100, 60));
        let Settings { pit_capacity, cs_bytes, lifetime_max_ms, .. } = plan.settings;
        assert_eq!((pit_capacity, cs_bytes), (64_000, 16 << 20));
        assert_eq!(lifetime_max_ms, 20_000);
        assert_eq!((plan.workers, plan.settings.dispatch_components), (4, 3));
        assert_eq!((plan.faces.on_demand_max(), plan.settings.pit_per_face), (60, Some(1_000)));
        assert_eq!(plan.routes[0].to.to_string(), "udp4://192.0.2.1:6363");
        assert_eq!((plan.routes[0].cost, plan.routes[1].cost), (7, 0));
        assert_eq!(plan.strategies, [("/a".parse().unwrap(), Strategy::Multicast)]);
        let unix = unix.unwrap();
        assert_eq!((unix.path.to_str(), unix.mode), (Some("/run/ndn.sock"), 0o660));
        assert_eq!(parse("[udp]").map(|config| config.plan.faces.udp.len()), Ok(2));
        assert_eq!(parse("[tcp]").map(|config| config.plan.faces.tcp.len()), Ok(2));
        assert_eq!(
            parse("[unix]\nlisten = \"x\"").map(|config| config.plan.faces.udp.len()),
            Ok(0)
        );
    }

    #[test]
    fn the_default_limits_of_senders_are_those_documented() {
        let plan = |text: &str| parse(text).map(|config| config.plan).unwrap();
        let default = plan("[udp]");
        assert_eq!(
            (default.settings.lifetime_max_ms, default.settings.cs_bytes),
            (10_000, 128 << 20)
        );
        for none in ["0", "\"0\""] {
            let text = format!("[udp]\n[tables]\ncontent-store = {none}");
            assert_eq!(plan(&text).settings.cs_bytes, 0);
        }
        assert_eq!(default.settings.pit_per_face, Some(32_768));
        assert_eq!((default.faces.faces_max, default.faces.on_demand_max()), (4096, 3072));
        let small = plan("[udp]\n[faces]\nmost = 2\n[tables]\npit = 3");
        assert_eq!((small.faces.on_demand_max(), small.settings.pit_per_face), (1, Some(1)));
        assert_eq!(plan("[udp]\n[faces]\non-demand = 0").faces.on_demand_max(), 0);
    }

    #[cfg(feature = "signatures")]
    #[test]
    fn anchors_are_read_with_their_keys() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("secret");
        std::fs::write(&key, "000102030405060708090a0b0c0d0e0f").unwrap();
        let pem = folder.path().join("pem");
        std::fs::write(&pem, "-----BEGIN PRIVATE KEY-----\nAAEC\n-----END PRIVATE KEY-----\n")
            .unwrap();
        std::fs::set_permissions(&pem, std::fs::Permissions::from_mode(0o600)).unwrap();
        let mode = |mode| {
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(0o600);
        let hmac = format!("[udp]\n[[anchor]]\nname = \"/k\"\ntype = \"hmac\"\nkey = {key:?}\n");
        let trust = |text: &str| parse(text).map(|config| config.plan.trust);
        let read = trust(&format!(
            "{hmac}allow = [\"rib\", \"faces\"]\nprefix = \"/a\"\n[[anchor]]\ntype = \"digest\"\n\
             [management]\nlocal = \"signed\"\n"
        ))
        .unwrap();
        assert!(read.sign_local && read.anchors.len() == 2);
        let [first, second] = [&read.anchors[0], &read.anchors[1]];
        assert_eq!((first.name.to_string(), first.prefix.to_string()), ("/k".into(), "/a".into()));
        assert_eq!(first.allow, [Module::Rib, Module::Faces]);
        assert_eq!((second.name.to_string(), &second.allow[..]), ("/".into(), &[Module::Rib][..]));
        for (text, words) in [
            (format!("{hmac}{}", &hmac[6..]), "two anchors /k of type hmac"),
            (hmac.replace("/k", "/"), "invalid name /"),
            (hmac.replace("name = \"/k\"\n", ""), "missing name"),
            (
                hmac.replace("hmac", "rsa"),
                "invalid type \"rsa\": use ed25519, ecdsa, hmac or digest",
            ),
            (hmac.replace("hmac", "ed25519"), "neither an NDN certificate"),
            (hmac.replace("hmac", "digest"), "a digest has no key"),
            (
                "[udp]\n[[anchor]]\ntype = \"digest\"\n[[anchor]]\ntype = \"digest\"".into(),
                "two anchors of type digest: use one",
            ),
            (
                "[udp]\n[[anchor]]\nname = \"/k\"\ntype = \"digest\"".into(),
                "/k: a digest has no name",
            ),
            (hmac.replace("secret", "pem"), "holds a PRIVATE KEY: use a secret"),
            (hmac.replace("secret", "none"), "none: No such file"),
            ("[udp]\n[[anchor]]\nname = \"/k\"\ntype = \"ecdsa\"".into(), "/k: missing key"),
            (
                format!("{hmac}allow = [\"x\"]"),
                "unknown module \"x\": use rib, faces, strategy-choice",
            ),
            ("[udp]\n[management]\nlocal = \"signed\"".into(), "add [[anchor]]"),
            ("[udp]\n[management]\nlocal = \"x\"".into(), "line 3"),
        ] {
            let error = trust(&text).map(|_| ()).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        mode(0o640);
        let error = trust(&hmac).map(|_| ()).unwrap_err();
        assert!(error.contains("(mode 0640): run 'chmod 600"), "{error}");
    }

    #[cfg(not(feature = "signatures"))]
    #[test]
    fn without_signatures_an_anchor_is_an_error() {
        let error = parse("[udp]\n[[anchor]]\ntype = \"digest\"").map(|_| ()).unwrap_err();
        assert!(error.contains("built without signatures"), "{error}");
    }

    #[test]
    fn websocket_needs_its_feature() {
        let listening = parse("[websocket]").map(|config| config.plan.faces.websocket);
        match cfg!(feature = "websocket") {
            true => assert_eq!(listening.unwrap()[0].to_string(), "0.0.0.0:9696"),
            false => assert!(listening.unwrap_err().contains("with the feature websocket")),
        }
    }

    #[test]
    fn errors_have_the_line_and_the_remedy() {
        for (text, words) in [
            ("", &["add [udp]"][..]),
            ("[udp]\nlisten = \"6363\"", &["line 2", "0.0.0.0:6363 or [::]:6363"]),
            ("[udp]\nport = 1", &["line 2", "unknown field `port`", "listen"]),
            (
                "[[multicast]]\ninterface = \"eth0\"\ngroup = \"1.2.3.4:5\"",
                &["line 3", "use 224.0.23.170:56363"],
            ),
            ("[websocket]\nlisten = \"9696\"", &["line 2", "0.0.0.0:9696 or [::]:9696"]),
            ("[tcp]\nlisten = \"x\"", &["line 2", "0.0.0.0:6363 or [::]:6363"]),
            ("[udp]\nmtu = 239", &["line 2", "invalid mtu 239: use 240 to 65535 bytes"]),
            (
                "[[ethernet]]\ninterface = \"eth0\"\nmtu = \"64k\"",
                &["line 3", "invalid mtu 65536: use 240 to 65535 bytes"],
            ),
            (
                "[[ethernet]]\ninterface = \"eth0\"\nmethod = \"xdp\"",
                &["line 3", "`af-packet` or `af-xdp`"],
            ),
            ("[[multicast]]\ninterface = \"eth0\"\nmtu = 1", &["line 3", "invalid mtu 1"]),
            ("[upd]", &["line 1", "unknown field `upd`", "`udp`"]),
            ("[udp]\nlisten = 3", &["line 2", "or a list of addresses"]),
            ("[unix]", &["line 1", "missing field `listen`"]),
            ("[unix]\nlisten = \"x\"\nmode = \"999\"", &["line 3", "\"0660\""]),
            ("[tables]\npit = \"many\"", &["line 2", "100k"]),
            ("[udp]\n[tables]\npit = 0", &["invalid pit 0: use 1 to"]),
            ("[udp]\n[tables]\npit-per-face = 0", &["invalid pit-per-face 0: use 1 to 131072"]),
            (
                "[udp]\n[tables]\npit = 5\npit-per-face = 6",
                &["invalid pit-per-face 6: use 1 to 5 (pit)"],
            ),
            (
                "[udp]\n[faces]\nmost = 9\non-demand = 9",
                &["invalid on-demand 9: use less than most, 9"],
            ),
            ("[udp]\n[workers]\nnumber = 0", &["invalid number 0 of [workers]: use 1 to 256"]),
            ("[tables]\npit = -3", &["line 2", "invalid count"]),
            // A size has a unit.
            ("[tables]\ncontent-store = 65536", &["line 2", "65536: use", "= \"128M\", or 0"]),
            ("[tables]\ncontent-store = \"64\"", &["line 2", "\"64\": use", "= \"128M\""]),
            ("[tables]\ncontent-store = \"9x\"", &["line 2", "9x"]),
            ("[tables]\ncontent-store = \"1000G\"", &["line 2", "at most \"256G\""]),
            ("[faces]\nidle-timeout = \"soon\"", &["line 2", "1h30m"]),
            ("[[route]]\nprefix = \"/a/%zz\"\nto = \"udp://1.2.3.4\"", &["line 2", "%zz"]),
            ("[[route]]\nprefix = \"/a\"\nto = \"sctp://1.2.3.4\"", &["line 3", "use udp://"]),
            ("[[strategy]]\nprefix = \"/a\"\nuse = \"fast\"", &["line 3", "best-route, multicast"]),
            ("[udp", &["line 1"]),
        ] {
            let error = parse(text).map(|_| ()).unwrap_err();
            for word in words {
                assert!(error.contains(word), "{text}: {error}");
            }
        }
    }
}
