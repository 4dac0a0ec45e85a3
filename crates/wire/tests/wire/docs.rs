//! The pages that list link types and tunnels.

use std::fs;
use std::path::Path;

use ringtap_wire::{LinkType, PortKind, TunnelKind};

fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

#[test]
fn the_page_lists_the_link_types() {
    let page = page("MONITOR.md");
    let list = page.split_once("`LINKTYPE_…`): ").unwrap().1.split_once(": Ethernet").unwrap().0;
    let listed: Vec<u16> =
        list.split([',', ' ', '\n']).filter_map(|word| word.parse().ok()).collect();
    let mut supported = LinkType::SUPPORTED.map(|link| link.0);
    supported.sort_unstable();
    assert_eq!(listed, supported);
}

#[test]
fn the_pages_list_the_tunnels() {
    let kinds = TunnelKind::ALL.map(|kind| format!("`{}`", kind.name())).join(", ");
    assert!(page("OUTPUTS.md").contains(&format!("| {kinds}: the outermost opened tunnel |")));
    let [rest @ .., last] = &PortKind::ALL.map(|kind| format!("`{kind}`"))[..] else {
        panic!("there are kinds")
    };
    let rest = rest.iter().filter(|name| *name != "`none`").cloned().collect::<Vec<_>>();
    let ports = format!("{}, {last}, or `none`", rest.join(", "));
    assert!(page("MONITOR.md").contains(&ports), "{ports}");
}
