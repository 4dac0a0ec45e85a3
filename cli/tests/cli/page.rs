//! Tests of `--report html`: its numbers are those of JSON, it is self-contained, and all of it can be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ringtap_testkit::browser::{ADDRESSES, browse, examine};
use serde_json::Value;

use crate::common::{json, office, output_of, ringtap};

/// Kilobytes that a page may have.
const MOST: usize = 300;

/// The page of a capture, as a file, and its text.
fn page(folder: &Path, capture: &Path, flags: &[&str]) -> (PathBuf, String) {
    let capture = capture.to_str().unwrap();
    let mut command = ringtap();
    command.args(["monitor", "-q", "-r", capture, "--report", "html"]);
    let (html, stderr, code) = output_of(command.args(flags));
    assert_eq!(code, 0, "{stderr}");
    let path = folder.join("page.html");
    fs::write(&path, &html).unwrap();
    (path, html)
}

/// 60,000 packets with scans, names and applications.
fn generated(folder: &Path) -> PathBuf {
    let path = folder.join("w2.pcap");
    let flags = ["generate", "--profile", "w2", "--packets", "60k", "--seed", "4", "-w"];
    let (_, stderr, code) = output_of(ringtap().args(flags).arg(&path));
    assert_eq!(code, 0, "{stderr}");
    path
}

/// The exact numbers in a section of the page, in order.
fn numbers(html: &str, heading: &str) -> Vec<u64> {
    let (_, section) = html.split_once(&format!("<h2>{heading}</h2>")).expect(heading);
    let section = section.split("</section>").next().unwrap();
    let values = section.split("<data value=\"").skip(1);
    values.map(|value| value.split('"').next().unwrap().parse().unwrap()).collect()
}

#[test]
fn the_numbers_of_a_page_are_those_of_json() {
    let folder = tempfile::tempdir().unwrap();
    for capture in [office(), generated(folder.path())] {
        let (_, html) = page(folder.path(), &capture, &[]);
        let report = json(&capture, &[]);
        let number = |value: &Value| value.as_u64().unwrap();
        let of = |rows: &Value, names: &[&str]| -> Vec<u64> {
            let rows = rows.as_array().unwrap().iter();
            rows.flat_map(|row| names.iter().map(|name| number(&row[name]))).collect()
        };
        let packets = &report["packets"];
        assert_eq!(
            numbers(&html, "Packets")[..3],
            [&packets["received"], &packets["ipv4"], &packets["ipv6"]].map(number)
        );
        let protocols: BTreeSet<u64> = numbers(&html, "Protocols").into_iter().collect();
        let all = report["protocols"].as_object().unwrap().values();
        let expected = all.flat_map(|one| [&one["packets"], &one["octets"]].map(number));
        assert_eq!(protocols, expected.collect());
        let talkers = &report["talkers"]["by_octets"];
        for (heading, rows) in [("Top sources", "source"), ("Top pairs", "pair")] {
            assert_eq!(numbers(&html, heading), of(&talkers[rows], &["octets", "packets"]));
        }
        let scans = &report["scans"];
        let vertical = "Vertical scans: one source, many ports of one target";
        if html.contains(vertical) {
            let mut ports = of(&scans["vertical"], &["ports"]);
            ports.sort_unstable_by(|one, other| other.cmp(one));
            ports.truncate(10);
            assert_eq!(numbers(&html, vertical), ports);
        }
        let (_, figures) = html.split_once("<dl>").unwrap();
        let shown = |name: &str| {
            let (_, value) =
                figures.split_once(&format!("<dt>{name}</dt><dd><data value=\"")).unwrap();
            value.split('"').next().unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(shown("packets"), number(&packets["received"]));
        assert_eq!(shown("on the wire"), number(&report["octets"]["wire"]));
        assert_eq!(shown("flow records"), number(&report["flows"]["records"]));
        let rows = ["vertical", "horizontal"].map(|kind| scans[kind].as_array().unwrap().len());
        assert_eq!(shown("scans"), rows.iter().sum::<usize>() as u64);
        assert_eq!(shown("packets dropped"), 0);
        assert_eq!(html.matches("<svg").count(), 2);
    }
}

#[test]
fn findings_stand_before_the_volumes() {
    let folder = tempfile::tempdir().unwrap();
    let (_, html) = page(folder.path(), &office(), &[]);
    let place = |heading: &str| html.find(&format!("<h2>{heading}")).expect(heading);
    let order = [
        "Vertical scans",
        "Top sources",
        "DNS failures",
        "Flows",
        "Conversations",
        "Protocols",
        "Packets",
        "Run",
    ]
    .map(place);
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn a_page_is_small_and_requests_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for capture in [office(), generated(folder.path())] {
        let (_, html) = page(folder.path(), &capture, &[]);
        assert!(html.len() < MOST * 1000, "{} bytes", html.len());
        let text = html.replace("http://www.w3.org/2000/svg", "");
        for unwanted in ["<script", "src=", "href=", "@import", "http:", "https:", "url("] {
            assert!(!text.contains(unwanted), "the page contains {unwanted:?}");
        }
    }
}

#[test]
fn all_of_a_page_can_be_read_on_desktop_phone_and_paper() {
    let folder = tempfile::tempdir().unwrap();
    // What is wider than its place, texts of a chart that overlap or leave it, and text that is too small.
    let script = "
        let faults = [];
        if (root.scrollWidth > root.clientWidth) faults.push('page ' + root.scrollWidth);
        for (let one of root.querySelectorAll('body *:not(svg *)'))
            if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0)
                faults.push(one.tagName + ' ' + one.className + ' ' + one.textContent.slice(0, 40));
        for (let table of root.querySelectorAll('table'))
            if (!table.querySelector('th')) faults.push('no names of columns: ' + table.textContent.slice(0, 40));
        ADDRESSES
        for (let chart of root.querySelectorAll('svg')) {
            let around = chart.getBoundingClientRect();
            let boxes = [...chart.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
            boxes.forEach(([text, box], at) => {
                if (box.left < around.left || box.right > around.right || box.bottom > around.bottom) faults.push('out ' + text);
                if (box.height < 9) faults.push('small ' + text + box.height);
                for (let [other, more] of boxes.slice(at + 1))
                    if (box.left < more.right && more.left < box.right && box.top + 3 < more.bottom && more.top + 3 < box.bottom)
                        faults.push(text + ' over ' + other);
            });
        }
        return root.querySelectorAll('section').length + ' sections; ' + faults.join('; ');";
    let script = &script.replace("ADDRESSES", ADDRESSES);
    for capture in [office(), generated(folder.path())] {
        let (path, html) = page(folder.path(), &capture, &[]);
        let expected = format!("{} sections; ", html.matches("<section").count());
        for width in [360, 390, 800, 1280] {
            let Some(found) = examine(folder.path(), &path, width, script) else { return };
            assert_eq!(found, expected, "{width} wide");
        }
        let pdf = folder.path().join("page.pdf");
        let flags = [&format!("--print-to-pdf={}", pdf.display())[..], "--no-pdf-header-footer"];
        browse(folder.path(), &flags, &format!("file://{}", path.display()));
        assert!(fs::read(&pdf).unwrap().starts_with(b"%PDF-"));
    }
}

#[test]
fn states_have_a_page_and_measurements_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("a.state");
    let (_, stderr, code) = output_of(
        ringtap()
            .args(["monitor", "-q", "-r"])
            .arg(office())
            .args(["--interval", "1s", "--state"])
            .arg(&state),
    );
    assert_eq!(code, 0, "{stderr}");
    let (html, stderr, code) = output_of(ringtap().args(["merge", "--report", "html"]).arg(&state));
    assert_eq!(code, 0, "{stderr}");
    assert!(html.contains("<title>ringtap: 1 state</title>") && html.matches("<svg").count() == 2);
    let sketch = folder.path().join("a.sketch");
    let (_, stderr, code) = output_of(
        ringtap()
            .args(["measure", "-r"])
            .arg(office())
            .args(["--write", &format!("sketch:{}", sketch.display())]),
    );
    assert_eq!(code, 0, "{stderr}");
    let (_, stderr, code) = output_of(ringtap().args(["merge", "--report", "html"]).arg(&sketch));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--report html cannot be used with measurements"), "{stderr}");
}
