//! Tests of `--networks` and `--geo`: origins in records and talkers, before addresses are replaced.

use std::fs;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use ringtap_testkit::mmdb::{Value as Data, database};
use serde_json::{Value, json};

use crate::common::{office, output_of, ringtap};

const NETWORKS: &str = "10.20.0.0/16 office\n10.20.64.0/24 lab\nfd20::/16 office 6\n";

/// A folder with networks, databases and a key.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("networks", NETWORKS.as_bytes());
    let country =
        |code| Data::Map(vec![("country", Data::Map(vec![("iso_code", Data::Text(code))]))]);
    let countries = [
        ("10.0.0.0/8", country("DE")),
        ("10.20.0.53/32", country("FR")),
        ("fd00::/8", country("US")),
    ];
    write("country.mmdb", &database("Test-Country", &countries));
    let system = |number, name| {
        let number = ("autonomous_system_number", Data::Number(number));
        Data::Map(vec![number, ("autonomous_system_organization", Data::Text(name))])
    };
    let systems = [
        ("10.20.0.0/24", system(64_500, "Example, \"Ltd\"")),
        ("10.0.0.0/8", system(64_501, "Rest")),
    ];
    write("asn.mmdb", &database("Test-ASN", &systems));
    write("key", &[5; 32]);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(folder.path().join("key"), mode).unwrap();
    folder
}

fn run(folder: &Path, flags: &[&str]) -> (String, String, i32) {
    let mut command = ringtap();
    command.current_dir(folder).args(["monitor", "-r"]).arg(office()).args(flags);
    output_of(&mut command)
}

fn report(folder: &Path, flags: &[&str]) -> Value {
    let (out, errors, code) = run(folder, flags);
    assert_eq!(code, 0, "{errors}");
    serde_json::from_str(&out).unwrap()
}

const FLAGS: [&str; 5] =
    ["-q", "--report=json", "--networks=networks", "--geo=country.mmdb", "--geo=asn.mmdb"];

#[test]
fn records_and_talkers_have_origins() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let writes = [
        "--write=json:a.json",
        "--write=csv:a.csv",
        "--write=parquet:a.parquet",
        "--write=eve:a.eve",
    ];
    let report = report(folder.path(), &[&FLAGS[..], &writes].concat());
    assert_eq!(report["plan"]["networks"], 3);
    assert_eq!(report["plan"]["geo"], json!(["Test-Country", "Test-ASN"]));
    let sources = report["talkers"]["by_octets"]["source"].as_array().unwrap();
    let server = sources.iter().find(|row| row["address"] == "10.20.0.10").unwrap();
    assert_eq!((&server["network"], &server["country"]), (&json!("office"), &json!("DE")));
    assert_eq!(
        (&server["as_number"], &server["as_name"]),
        (&json!(64_500), &json!("Example, \"Ltd\""))
    );

    let text = fs::read_to_string(at("a.json")).unwrap();
    let records: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let to = |address: &str| {
        let is = |record: &&Value| record["destinationIPv4Address"] == address;
        records.iter().find(is).unwrap()
    };
    let resolver = to("10.20.0.53");
    assert_eq!(
        (&resolver["destinationCountry"], &resolver["sourceCountry"]),
        (&json!("FR"), &json!("DE"))
    );
    assert_eq!(resolver["bgpDestinationAsNumber"], 64_500);
    assert_eq!(to("10.20.64.1")["destinationNetwork"], "lab");
    assert_eq!(to("10.20.64.1")["destinationAsName"], "Rest");
    let is_fd = |record: &&Value| {
        record["sourceIPv6Address"].as_str().is_some_and(|source| source.starts_with("fd20::"))
    };
    let fd = records.iter().find(is_fd).unwrap();
    assert_eq!((&fd["sourceNetwork"], &fd["sourceCountry"]), (&json!("office 6"), &json!("US")));

    let names = "sourceNetwork,destinationNetwork,sourceCountry,destinationCountry,\
        bgpSourceAsNumber,bgpDestinationAsNumber,sourceAsName,destinationAsName";
    let csv = fs::read_to_string(at("a.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains(names));
    let quoted =
        "office,office,DE,DE,64500,64500,\"Example, \"\"Ltd\"\"\",\"Example, \"\"Ltd\"\"\"";
    assert!(csv.lines().any(|line| line.contains(quoted)));
    let rows = SerializedFileReader::new(fs::File::open(at("a.parquet")).unwrap()).unwrap();
    let row = rows.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string());
    let lab = "destinationNetwork: \"lab\", sourceCountry: \"DE\", destinationCountry: \"DE\"";
    assert_eq!(
        row.filter(|row| row.contains(lab)).count(),
        csv.lines().filter(|line| line.contains(",lab,DE,DE,")).count()
    );
    assert!(!fs::read_to_string(at("a.eve")).unwrap().contains("office"));

    let (text, ..) = run(folder.path(), &["-q", "--networks=networks", "--geo=country.mmdb"]);
    assert!(
        text.lines().any(|line| line.contains("10.20.0.10") && line.ends_with("office DE")),
        "{text}"
    );
}

/// Origins are those of the original addresses, and equal in every arrangement.
#[test]
fn origins_are_found_before_addresses_are_replaced() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let plain = report(folder.path(), &[&FLAGS[..], &["--write=json:plain"]].concat());
    let anonymous = report(
        folder.path(),
        &[&FLAGS[..], &["--anonymise=key", "--write=json:a", "--digest"]].concat(),
    );
    let other = ["--anonymise=key", "--write=json:b", "--digest", "--skeleton=farm", "-w=3"];
    let other = report(folder.path(), &[&FLAGS[..], &other].concat());
    assert_eq!(anonymous["digest"], other["digest"]);
    let sorted = |name: &str, field: &str| {
        let text = fs::read_to_string(at(name)).unwrap();
        let value = |line| serde_json::from_str::<Value>(line).unwrap()[field].to_string();
        let mut values: Vec<_> = text.lines().map(value).collect();
        values.sort();
        values
    };
    for field in ["sourceNetwork", "destinationCountry", "bgpSourceAsNumber"] {
        assert_eq!(sorted("plain", field), sorted("a", field));
    }
    assert_eq!(sorted("a", "sourceIPv4Address"), sorted("b", "sourceIPv4Address"));
    assert_ne!(sorted("a", "sourceIPv4Address"), sorted("plain", "sourceIPv4Address"));
    let first = |report: &Value| report["talkers"]["by_octets"]["source"][0].clone();
    let [plain, anonymous] = [first(&plain), first(&anonymous)];
    assert_ne!(plain["address"], anonymous["address"]);
    assert_eq!(
        (&plain["country"], &plain["octets"]),
        (&anonymous["country"], &anonymous["octets"])
    );
}

#[test]
fn wrong_files_are_errors() {
    let folder = folder();
    fs::write(folder.path().join("nameless"), "10.0.0.0/8\n").unwrap();
    for (flag, error) in [
        (
            "--networks=nameless",
            "reading the networks in nameless: line 1: the name is missing, as in 10.1.0.0/16 office: \"10.0.0.0/8\"",
        ),
        ("--networks=missing", "reading the networks in missing: No such file"),
        ("--geo=networks", "reading the database networks: not a MaxMind database (MMDB): "),
        ("--geo=missing", "reading the database missing: No such file"),
    ] {
        let (_, errors, code) = run(folder.path(), &[flag]);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.starts_with(&format!("error: {error}")), "{errors}");
    }
    let conf = "networks = \"networks\"\ngeo = [\"country.mmdb\", \"asn.mmdb\"]\n";
    fs::write(folder.path().join("conf.toml"), conf).unwrap();
    let (plan, ..) = run(folder.path(), &["--config=conf.toml", "--dry-run"]);
    assert!(
        plan.contains("networks   3") && plan.contains("geo        Test-Country, Test-ASN"),
        "{plan}"
    );
}

/// Numbers of any width, IPinfo's layout; a database without a known field.
#[test]
fn other_layouts_of_databases_are_read() {
    let folder = folder();
    let write = |name: &str, value: Data| {
        let bytes = database("Test-Layout", &[("10.0.0.0/8", value)]);
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    let origin = |name: &str| {
        let found = report(folder.path(), &["-q", "--report=json", &format!("--geo={name}")]);
        let talker = &found["talkers"]["by_octets"]["source"][0];
        [&talker["country"], &talker["as_number"], &talker["as_name"]].map(Value::clone)
    };
    for (kind, bytes) in [
        (5, &[0xfb, 0xf4][..]),
        (8, &[0, 0, 0xfb, 0xf4]),
        (9, &[0xfb, 0xf4]),
        (9, &[0, 0, 0, 0, 0, 0, 0xfb, 0xf4]),
        (10, &[0xfb, 0xf4]),
    ] {
        write(
            "width.mmdb",
            Data::Map(vec![("autonomous_system_number", Data::Integer(kind, bytes))]),
        );
        assert_eq!(origin("width.mmdb"), [Value::Null, json!(64_500), Value::Null], "{kind}");
    }
    let texts = |fields: &[(&'static str, &'static str)]| {
        Data::Map(fields.iter().map(|&(name, text)| (name, Data::Text(text))).collect())
    };
    let expected = [json!("DE"), json!(64_500), json!("Example")];
    for fields in [
        &[
            ("asn", "AS64500"),
            ("as_name", "Example"),
            ("country", "Germany"),
            ("country_code", "DE"),
        ],
        &[("asn", "AS64500"), ("name", "Example"), ("country", "DE"), ("route", "10.0.0.0/8")],
    ] {
        write("ipinfo.mmdb", texts(fields));
        assert_eq!(origin("ipinfo.mmdb"), expected, "{fields:?}");
    }
    for value in [texts(&[("city", "Berlin")]), texts(&[("country", "Germany")]), texts(&[])] {
        write("other.mmdb", value);
        let (_, errors, code) = run(folder.path(), &["-q", "--geo=other.mmdb"]);
        let words =
            "reading the database other.mmdb: its type is \"Test-Layout\", and no record has";
        assert!(code == 2 && errors.contains(words), "{code} {errors}");
    }
}

/// A capture with a SYN to port 8443 in VLAN 10.
fn tagged() -> Vec<u8> {
    let frame = [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 10, 8, 0][..],
        &[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
        &[0xc3, 0x50, 0x20, 0xfb, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0],
    ]
    .concat();
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let len = frame.len() as u32;
    let head = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 1]);
    [head, words(&[1_700_000_000, 0, len, len]), frame].concat()
}

#[test]
fn vlans_and_ports_have_the_names_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("a.pcap", &tagged());
    write("vlans", b"10 office, \"2nd\"\n");
    write("ports", b"8443/tcp internal-api\n");
    let run = |flags: &[&str]| {
        let mut command = ringtap();
        command.current_dir(folder.path()).args(["monitor", "-q", "-r", "a.pcap"]).args(flags);
        output_of(&mut command)
    };
    let lists = ["--vlans=vlans", "--port-labels=ports"];
    let writes = ["--write=json:a.json", "--write=csv:a.csv", "--state=a.state", "--report=json"];
    let (report, errors, code) = run(&[lists, ["--write=parquet:a.parquet", writes[3]]].concat());
    assert_eq!(code, 0, "{errors}");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["plan"]["vlans"], 1);
    assert_eq!(report["applications"]["rows"][0]["application"], "internal-api", "{report}");
    let (_, errors, code) = run(&[&lists[..], &writes].concat());
    assert_eq!(code, 0, "{errors}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let record: Value = serde_json::from_str(&read("a.json")).unwrap();
    for (name, value) in [
        ("vlanName", "office, \"2nd\""),
        ("application", "internal-api"),
        ("applicationReason", "port"),
    ] {
        assert_eq!(record[name], value, "{record}");
    }
    assert_eq!(record["ingressInterfaceName"], Value::Null);
    let csv = read("a.csv");
    assert!(csv.lines().next().unwrap().split(',').any(|name| name == "vlanName"), "{csv}");
    assert!(csv.contains(",\"office, \"\"2nd\"\"\","), "{csv}");
    let file = fs::File::open(folder.path().join("a.parquet")).unwrap();
    let rows = SerializedFileReader::new(file).unwrap();
    let row = rows.get_row_iter(None).unwrap().next().unwrap().unwrap().to_string();
    assert!(row.contains("vlanName: \"office, \"2nd\"\""), "{row}");
    let (_, _, code) = run(&["--write=csv:b.csv"]);
    assert!(code == 0 && !read("b.csv").contains("vlanName"));

    // Labels of a report are those of its states.
    let merge = |flags: &[&str]| {
        let mut command = ringtap();
        command.current_dir(folder.path()).args(["merge", "a.state"]).args(flags);
        output_of(&mut command)
    };
    let (_, errors, code) = merge(&[]);
    assert!(code == 1 && errors.contains("use the same --names and --port-labels"), "{errors}");
    let (text, errors, code) = merge(&["--port-labels=ports"]);
    assert!(code == 0 && text.contains("internal-api"), "{text} {errors}");

    write("vlans", b"# id name\n4096 office\n");
    write("ports", b"8443 internal-api\n");
    for (flag, words) in [
        (lists[0], "error: reading the VLANs in vlans: line 2: use a VLAN from 0 to 4095"),
        (lists[1], "error: reading the port labels in ports: line 1: invalid port \"8443\""),
        ("--vlans=missing", "error: reading the VLANs in missing"),
    ] {
        let (_, errors, code) = run(&[flag]);
        assert!(code == 2 && errors.starts_with(words), "{errors}");
    }
}
