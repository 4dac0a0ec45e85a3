//! The header says what the library has.

use std::fmt::Write;
use std::fs;
use std::mem::offset_of;
use std::process::Command;

use ringtap_c::Flow;
use ringtap_testkit::have;

use crate::path;

/// A program that compiles only if `ringtap_flow` has the size and the places of [`Flow`].
fn assertions(assert: &str) -> String {
    let mut code = format!(
        "#include <ringtap.h>\n{assert}(sizeof(ringtap_flow) == {}, \"the size\");\n",
        size_of::<Flow>()
    );
    macro_rules! members {
        ($($member:ident)+) => {
            // A pattern without `..`: each member is in the list.
            let Flow { $($member),+ } = zeros();
            $(
                let (name, place) = (stringify!($member), offset_of!(Flow, $member));
                let sizeof = format!("sizeof(((ringtap_flow *)0)->{name}) == {}", size_of_val(&$member));
                let _ = writeln!(code, "{assert}({sizeof} && offsetof(ringtap_flow, {name}) == {place}, \"{name}\");");
            )+
        };
    }
    members! {
        start_ms end_ms packets octets source destination source_port destination_port tcp_flags vlan ip_version protocol
        end_reason reserved community_id application
    }
    code + "int main(void) { return 0; }\n"
}

fn zeros() -> Flow {
    Flow {
        start_ms: 0,
        end_ms: 0,
        packets: [0; 2],
        octets: [0; 2],
        source: [0; 16],
        destination: [0; 16],
        source_port: 0,
        destination_port: 0,
        tcp_flags: [0; 2],
        vlan: 0,
        ip_version: 0,
        protocol: 0,
        end_reason: 0,
        reserved: [0; 3],
        community_id: [0; 32],
        application: std::ptr::null(),
    }
}

#[test]
fn the_struct_is_that_of_the_library_in_c_and_cpp() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, file, standard, assert) in [
        ("cc", "flow.c", "-std=c11", "_Static_assert"),
        ("c++", "flow.cpp", "-std=c++11", "static_assert"),
    ] {
        if !have(compiler) {
            continue;
        }
        let code = folder.path().join(file);
        fs::write(&code, assertions(assert)).unwrap();
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-I"]);
        let status = command.arg(path("capi/include")).arg(&code).status().unwrap();
        assert!(status.success(), "{}", assertions(assert));
    }
}

/// The names of functions in a text, after `before`.
fn functions(text: &str, before: &str) -> Vec<String> {
    let names = text.split(before).skip(1).filter_map(|rest| rest.split_once('('));
    let mut names: Vec<_> = names
        .map(|(name, _)| name.to_owned())
        .filter(|name| name.starts_with("ringtap_"))
        .collect();
    names.sort();
    names
}

#[test]
fn each_function_is_declared() {
    let library = fs::read_to_string(path("capi/src/abi.rs")).unwrap();
    let header = fs::read_to_string(path("capi/include/ringtap.h")).unwrap();
    let (_, declarations) = header.split_once("extern \"C\" {").unwrap();
    // Without comments; a declaration ends with a semicolon on its line.
    let lines =
        declarations.lines().filter(|line| line.ends_with(");") && !line.starts_with([' ', '/']));
    let declared: String = lines.map(|line| line.replace("ringtap_", "\nringtap_")).collect();
    let names = functions(&declared, "\n");
    let exported = functions(&library, "extern \"C\" fn ");
    assert!(exported.len() >= 10);
    assert_eq!(names, exported);
}
