//! Tests of help, usage errors and files that have two roles.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use ringtap_testkit::output_of;

use crate::common::ndn;

/// The commands that the help lists.
const COMMANDS: [&str; 5] = ["forward", "ping", "server", "load", "key"];

#[test]
fn no_arguments_show_the_help_on_one_screen() {
    let (help, errors, code) = output_of(&mut ndn());
    assert_eq!((errors.as_str(), code), ("", 0));
    for command in COMMANDS {
        assert!(help.contains(command), "{help}");
    }
    assert!(!help.contains("completions"), "{help}");
    assert!(help.lines().count() <= 24, "{} lines", help.lines().count());
    assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    let (same, _, code) = output_of(ndn().arg("--help"));
    assert_eq!((same, code), (help, 0));
}

#[test]
fn every_command_has_help_and_the_program_has_a_version() {
    for command in COMMANDS {
        let (help, _, code) = output_of(ndn().args([command, "--help"]));
        assert!(code == 0 && help.contains(&format!("ringtap-ndn {command}")), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    let (build, _, code) = output_of(ndn().arg("--version"));
    let first = format!("ringtap-ndn {}\ncommit ", env!("CARGO_PKG_VERSION"));
    assert!(code == 0 && build.starts_with(&first), "{build}");
}

#[test]
fn usage_errors_name_a_remedy_and_exit_with_2() {
    for (flags, words) in [
        ("forward", "use --config ndn.toml"),
        ("forwrd", "'forward'"),
        ("forward --config no-such.toml", "no-such.toml"),
        ("ping /a/seg=x", "invalid name component"),
        ("ping /a --to tcp://h", "udp://HOST:6363 or unix:PATH"),
        ("server /a --payload 9k", "has room for"),
        ("server /a --register", "--to"),
        ("server /a --listen udp://127.0.0.1 --register", "--listen"),
        ("load /a --names zip", "unique, uniform, zipf:S or one-hot"),
        ("load /a --window 0", "window of 1 to 4M"),
    ] {
        let (out, errors, code) = output_of(ndn().args(flags.split(' ')));
        assert!(errors.contains(words), "{flags}: {errors}");
        assert_eq!((out.as_str(), code), ("", 2), "{flags}: {errors}");
    }
}

#[test]
fn completions_and_man_pages_list_the_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _, code) = output_of(ndn().args(["completions", shell]));
        assert!(code == 0 && script.contains("fail-on-drop"), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    ndn().arg("man").arg(folder.path()).assert().success();
    let page = fs::read_to_string(folder.path().join("ringtap-ndn-forward.1")).unwrap();
    assert!(page.contains("fail\\-on\\-drop") && page.contains(".TH"), "{page}");
}

#[test]
fn the_socket_of_a_forwarder_is_none_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("secret"), "ab".repeat(32)).unwrap();
    fs::set_permissions(path("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("f.toml", path("link")).unwrap();
    for socket in ["f.toml", "./link", "secret"] {
        let key = "[[anchor]]\ntype = \"hmac\"\nname = \"/a/KEY/1\"\nkey = \"secret\"";
        let text = format!("[unix]\nlisten = \"{socket}\"\n{key}\n");
        fs::write(path("f.toml"), &text).unwrap();
        for more in [&[][..], &["--dry-run"]] {
            let mut command = ndn();
            command.args(["forward", "--config", "f.toml"]).args(more).current_dir(&folder);
            let (_, errors, code) = output_of(&mut command);
            assert!(code == 2 && errors.contains("name the same file"), "{socket}: {errors}");
        }
        assert_eq!(fs::read_to_string(path("f.toml")).unwrap(), text);
    }
}
