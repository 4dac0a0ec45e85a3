//! Tests of signed commands: `ringtap-ndn key`, `--key` of the server and of `forward ctl`, and keys
//! of ndnd and python-ndn.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{PROGRAM, ndn};
use crate::forward::Running;
use ringtap_testkit::Background;
use ringtap_testkit::output_of;

const TYPES: [&str; 3] = ["ed25519", "ecdsa", "hmac"];

/// Creates a key; returns the lines for the configuration and the name of the key.
fn generate(folder: &Path, kind: &str, name: &str) -> (String, String) {
    let out = folder.join(kind);
    let flags = ["key", "generate", "--type", kind, name, "--out"];
    let (anchor, errors, code) = output_of(ndn().args(flags).arg(&out));
    assert_eq!((errors.as_str(), code), ("", 0));
    let (_, rest) = anchor.split_once("name = \"").unwrap();
    let name = rest.split('"').next().unwrap().to_owned();
    (anchor, name)
}

/// The flags to sign with the key of a type.
fn signing(folder: &Path, kind: &str, name: &str) -> [String; 4] {
    let path = folder.join(format!("{kind}.key")).display().to_string();
    ["--key".into(), path, "--key-name".into(), name.into()]
}

fn tool(path: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-tools");
    let found = Some(tools.join(path)).filter(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: no {path}; scripts/setup-test.sh fetches it");
    }
    found
}

#[test]
fn keys_are_private_and_never_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for kind in TYPES {
        let (anchor, name) = generate(folder.path(), kind, "/example");
        assert!(name.starts_with("/example/KEY/"), "{name}");
        assert!(anchor.contains(&format!("type = \"{kind}\"")), "{anchor}");
        assert!(anchor.contains("prefix = \"/example\""), "{anchor}");
        let mode = |end: &str| {
            let path = folder.path().join(format!("{kind}.{end}"));
            fs::metadata(path).map(|file| file.permissions().mode() & 0o777).ok()
        };
        let certificate = (kind != "hmac").then_some(0o644);
        assert_eq!((mode("key"), mode("cert")), (Some(0o600), certificate));
        let out = folder.path().join(kind);
        let flags = ["key", "generate", "--type", kind, "/other", "--out"];
        let (_, errors, code) = output_of(ndn().args(flags).arg(&out));
        assert!(code == 1 && errors.contains("File exists"), "{errors}");
    }
    // A name with KEY is the name of the key itself.
    let other = tempfile::tempdir().unwrap();
    let (_, name) = generate(other.path(), "ed25519", "/example/KEY/mine");
    assert_eq!(name, "/example/KEY/mine");
}

#[test]
fn a_server_with_a_key_registers_over_udp() {
    for kind in TYPES {
        let folder = tempfile::tempdir().unwrap();
        let (anchor, name) = generate(folder.path(), kind, "/example");
        let running = Running::start(&anchor);
        let url = format!("udp://{}", running.udp);
        let serve = |prefix: &str, signing: &[String]| {
            let mut command = Command::new(PROGRAM);
            command.args(["server", prefix, "--to", &url, "--register"]).args(signing);
            command
        };
        let signing = signing(folder.path(), kind, &name);
        for (mut command, words) in [
            (serve("/example/p", &[]), "403 no [[anchor]] for the key of this command"),
            (serve("/other", &signing), "403 the key may not register this prefix"),
        ] {
            let output = command.env("NO_COLOR", "1").output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(1) && errors.contains(words), "{errors}");
        }
        let server = Background::start(serve("/example/p", &signing), "serving");
        let ping = ["ping", "/example/p", "--to", &url, "-c", "2", "-i", "10ms"];
        let (out, errors, code) = output_of(ndn().args(ping));
        assert_eq!(code, 0, "{out}{errors}");
        server.interrupt();
        let (_, errors, code) = server.end();
        assert_eq!(code, 0, "{errors}");
        let status = running.reply(&["status"]);
        assert!(status.contains("commands refused: 2"), "{status}");
        let report = running.end();
        let refused = &report["management"]["refused"];
        assert_eq!((&refused["no-anchor"], &refused["prefix"]), (&1.into(), &1.into()), "{report}");
        // The server has removed its route.
        assert_eq!(
            (&report["routes"], &report["plan"]["anchors"][0]["name"]),
            (&0.into(), &name.into())
        );
    }
}

#[test]
fn programs_sign_their_commands_if_the_configuration_requires_it() {
    let folder = tempfile::tempdir().unwrap();
    let (anchor, name) = generate(folder.path(), "ecdsa", "/example");
    let running = Running::start(&format!(
        "{anchor}allow = [\"rib\", \"faces\"]\n[management]\nlocal = \"signed\"\n"
    ));
    let register = ["register", "/example/a", "udp://127.0.0.1:9"];
    let (_, errors, code) = running.ctl(&register);
    assert!(code == 1 && errors.contains("403 no [[anchor]]"), "{errors}");
    assert!(errors.contains("sign it with --key and --key-name"), "{errors}");
    let signing = signing(folder.path(), "ecdsa", &name);
    let words: Vec<&str> = signing.iter().map(String::as_str).chain(register).collect();
    assert!(running.reply(&words).contains("/example/a is routed"));
    // Queries need no signature.
    assert!(running.reply(&["routes"]).contains("/example/a"));
    let key = folder.path().join("ecdsa.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let (_, errors, code) = running.ctl(&words);
    assert!(code == 2 && errors.contains("chmod 600"), "{errors}");
    let report = running.end();
    assert_eq!(report["management"]["refused"]["no-anchor"], 1, "{report}");
    assert_eq!(report["plan"]["local_commands"], "signed");
}

#[test]
fn keys_and_certificates_of_ndnd_are_read() {
    let Some(ndnd) = tool("ndnd") else { return };
    let folder = tempfile::tempdir().unwrap();
    for kind in [&["ed25519"][..], &["ecc", "secp256r1"]] {
        let path = |end: &str| folder.path().join(format!("{}.{end}", kind[0]));
        let made = |arguments: &[&str], to: &Path| {
            let input = fs::File::open(path("key")).ok();
            let mut command = Command::new(&ndnd);
            command.arg("sec").args(arguments);
            input.map(|file| command.stdin(file));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            fs::write(to, &output.stdout).unwrap();
            fs::set_permissions(to, Permissions::from_mode(0o600)).unwrap();
        };
        made(&[&["keygen", "/example"], kind].concat(), &path("key"));
        let key = path("key").display().to_string();
        made(&["sign-cert", &key], &path("cert"));
        let of = if kind[0] == "ecc" { "ecdsa" } else { kind[0] };
        // The names are in the files.
        let running = Running::start(&format!(
            "[[anchor]]\ntype = \"{of}\"\nkey = {:?}\nallow = [\"rib\", \"faces\"]\n\
             [management]\nlocal = \"signed\"\n",
            path("cert").display().to_string()
        ));
        let reply = running.reply(&["--key", &key, "register", "/a", "udp://127.0.0.1:9"]);
        assert!(reply.contains("/a is routed"), "{reply}");
        assert_eq!(running.end()["management"]["refused"], serde_json::json!({}));
    }
}

#[test]
fn python_ndn_verifies_our_certificates_and_reads_our_keys() {
    const SCRIPT: &str = "
import asyncio, base64, sys
from Cryptodome.PublicKey import ECC
from ndn import encoding, security
from ndn.app_support.security_v2 import parse_certificate
from ndn.security.validator import known_key_validator as known

for kind in ('ed25519', 'ecdsa'):
    wire = base64.b64decode(open(f'{sys.argv[1]}/{kind}.cert').read())
    certificate = parse_certificate(wire)
    name, meta, content, sig = encoding.parse_data(wire)
    key = ECC.import_key(open(f'{sys.argv[1]}/{kind}.key').read())
    public = ECC.import_key(bytes(content))
    verify = known.verify_ed25519 if kind == 'ed25519' else known.verify_ecdsa
    period = certificate.signature_info.validity_period
    print(kind, encoding.Name.to_str(name[:3]), verify(public, sig), public == key.public_key(), meta.content_type, len(bytes(period.not_after)))
";
    let Some(python) = tool("venv/bin/python") else { return };
    let folder = tempfile::tempdir().unwrap();
    for kind in ["ed25519", "ecdsa"] {
        generate(folder.path(), kind, "/example/KEY/1");
    }
    let output = Command::new(python).args(["-c", SCRIPT]).arg(folder.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "ed25519 /example/KEY/1 True True 2 15\necdsa /example/KEY/1 True True 2 15\n",
        "{errors}"
    );
}
