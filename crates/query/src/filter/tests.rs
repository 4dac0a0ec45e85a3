//! Filters as text, and as SQL.

use super::Filter;

fn sql(text: &str) -> String {
    Filter::new(text).unwrap_or_else(|error| panic!("{text}: {error}")).sql()
}

fn error(text: &str) -> String {
    Filter::new(text).expect_err(text).to_string()
}

#[test]
fn addresses_and_networks_are_compared_as_text_or_number() {
    assert_eq!(sql("src host 10.1.2.3"), "sourceIPAddress = '10.1.2.3'");
    assert_eq!(
        sql("host 2001:DB8:0::1"),
        "(sourceIPAddress = '2001:db8::1' OR destinationIPAddress = '2001:db8::1')"
    );
    assert_eq!(sql("dst net 10.1.0.0/16"), "starts_with(destinationIPAddress, '10.1.')");
    assert_eq!(
        sql("src net 10.1.2.3/12"),
        "(ipVersion = 4 AND ipv4_number(sourceIPAddress) BETWEEN 167772160 AND 168820735)"
    );
    assert_eq!(
        sql("src net 0.0.0.0/0"),
        "(ipVersion = 4 AND ipv4_number(sourceIPAddress) BETWEEN 0 AND 4294967295)"
    );
    assert!(sql("net 2001:db8::/33").contains(
        "BETWEEN '20010db8000000000000000000000000' AND '20010db87fffffffffffffffffffffff'"
    ));
}

#[test]
fn words_of_tcpdump_and_fields_are_joined() {
    assert_eq!(
        sql("tcp dst port 443"),
        "(protocolIdentifier = 6 AND coalesce(destinationTransportPort = 443, false))"
    );
    assert_eq!(sql("not ip6 && proto 47"), "(NOT ipVersion = 6 AND protocolIdentifier = 47)");
    assert_eq!(
        sql("udp and (ip or ip6)"),
        "(protocolIdentifier = 17 AND (ipVersion = 4 OR ipVersion = 6))"
    );
    assert_eq!(sql("src portrange 1-9"), "coalesce(sourceTransportPort BETWEEN 1 AND 9, false)");
    assert_eq!(
        sql("octets >= 10k"),
        "coalesce((octetDeltaCount + coalesce(reverseOctetDeltaCount, 0)) >= 10000, false)"
    );
    assert!(sql("duration > 1m").ends_with("> 60000, false)"));
    assert_eq!(sql("minimumttl < 5"), "coalesce(minimumTTL < 5, false)");
    assert!(sql("failed or refused").ends_with("coalesce(reverseTcpControlBits & 6, 0) = 4))"));
    assert_eq!(sql("app != DNS"), "NOT coalesce(lower(application) = 'dns', false)");
    assert_eq!(
        sql("tlsServerName ~ \"it's\""),
        "coalesce(regexp_matches(tlsServerName, 'it''s', 'i'), false)"
    );
    assert_eq!(
        sql("status 404"),
        "coalesce(len(list_filter(httpStatus, lambda value: value = 404)) > 0, false)"
    );
    assert!(sql("name = a.example").contains("lower(value) = 'a.example'"));
    assert_eq!(
        sql("flowEndMilliseconds < 1970-01-01T00:00:01Z"),
        "coalesce(epoch_ms(flowEndMilliseconds) < 1000, false)"
    );
}

#[test]
fn faults_are_named_and_marked() {
    assert_eq!(
        error("tcp and nam = x"),
        "unknown field nam; there is name, tlsServerName, dnsQueryName, dhcpHostname\n  tcp and nam = x\n          ^"
    );
    for (text, words) in [
        ("", "expected a test such as host 10.1.2.3, found the end"),
        ("host", "expected an address, found the end"),
        ("host www.example.com", "for names use name = \"www.example.com\""),
        ("net 10.0.0.0/33", "use at most 32 bits"),
        ("port 65536", "use a number below 65536"),
        ("portrange 9-1", "use 8000-8999"),
        ("proto 256", "use a number from 0 to 255"),
        ("src tcp", "expected host, net, port or portrange, found tcp"),
        ("tcp or udp and ip", "use parentheses"),
        ("(tcp", "expected ), found the end"),
        ("tcp)", "expected and, or, or the end, found )"),
        ("tcp udp", "expected and, or, or the end, found udp"),
        ("octets ~ 5", "~ is for texts"),
        ("octets > many", "invalid count"),
        ("duration > soon", "invalid duration"),
        ("name = \"x", "does not end"),
        ("flowEndMilliseconds > soon", "invalid time"),
    ] {
        let found = error(text);
        assert!(found.contains(words), "{text}: {found}");
    }
    let deep = format!("{}tcp{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(error(&deep).contains("fewer parentheses"));
    assert!(error(&"not ".repeat(100_000)).contains("fewer parentheses"));
}

proptest::proptest! {
    /// Any text is a filter or an error, and no text of a user leaves its quotation marks.
    #[test]
    fn any_text_is_read(text in "\\PC{0,40}", name in "\\PC{0,20}") {
        let _ = Filter::new(&text).map_err(|error| error.to_string());
        if !name.contains('"') && let Ok(filter) = Filter::new(&format!("name = \"{name}\"")) {
            let sql = filter.sql();
            let quotes = sql.matches('\'').count();
            proptest::prop_assert!(quotes.is_multiple_of(2), "{sql}");
        }
    }
}
