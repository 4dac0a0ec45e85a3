//! Registered names of record types, classes and response codes (IANA, Domain Name System Parameters).

/// The type of an EDNS record (RFC 6891).
pub(super) const OPT: u16 = 41;

/// Generates the function from numbers to names, and its inverse.
macro_rules! names {
    ($name_of:ident, $number_of:ident, $doc:literal, $($number:literal $name:literal,)+) => {
        #[doc = concat!("The name of a ", $doc)]
        pub(super) const fn $name_of(number: u16) -> Option<&'static str> {
            match number {
                $($number => Some($name),)+
                _ => None,
            }
        }

        #[doc = concat!("The number of the name of a ", $doc)]
        pub(crate) fn $number_of(name: &str) -> Option<u16> {
            match name {
                $($name => Some($number),)+
                _ => None,
            }
        }
    };
}

names! {
    type_name, type_number, "record type or query type.",
    1 "A", 2 "NS", 3 "MD", 4 "MF", 5 "CNAME", 6 "SOA", 7 "MB", 8 "MG", 9 "MR", 10 "NULL", 11 "WKS", 12 "PTR",
    13 "HINFO", 14 "MINFO", 15 "MX", 16 "TXT", 17 "RP", 18 "AFSDB", 19 "X25", 20 "ISDN", 21 "RT", 22 "NSAP",
    23 "NSAP-PTR", 24 "SIG", 25 "KEY", 26 "PX", 27 "GPOS", 28 "AAAA", 29 "LOC", 30 "NXT", 31 "EID", 32 "NIMLOC",
    33 "SRV", 34 "ATMA", 35 "NAPTR", 36 "KX", 37 "CERT", 38 "A6", 39 "DNAME", 40 "SINK", 41 "OPT", 42 "APL",
    43 "DS", 44 "SSHFP", 45 "IPSECKEY", 46 "RRSIG", 47 "NSEC", 48 "DNSKEY", 49 "DHCID", 50 "NSEC3",
    51 "NSEC3PARAM", 52 "TLSA", 53 "SMIMEA", 55 "HIP", 56 "NINFO", 57 "RKEY", 58 "TALINK", 59 "CDS", 60 "CDNSKEY",
    61 "OPENPGPKEY", 62 "CSYNC", 63 "ZONEMD", 64 "SVCB", 65 "HTTPS", 66 "DSYNC", 67 "HHIT", 68 "BRID", 99 "SPF",
    100 "UINFO", 101 "UID", 102 "GID", 103 "UNSPEC", 104 "NID", 105 "L32", 106 "L64", 107 "LP", 108 "EUI48",
    109 "EUI64", 128 "NXNAME", 249 "TKEY", 250 "TSIG", 251 "IXFR", 252 "AXFR", 253 "MAILB", 254 "MAILA",
    255 "ANY", 256 "URI", 257 "CAA", 258 "AVC", 259 "DOA", 260 "AMTRELAY", 261 "RESINFO", 262 "WALLET", 263 "CLA",
    264 "IPN", 32768 "TA", 32769 "DLV",
}

names! {
    code_name, code_number, "response code; codes above 15 are extended codes (RFC 6891, section 6.1.3).",
    0 "NOERROR", 1 "FORMERR", 2 "SERVFAIL", 3 "NXDOMAIN", 4 "NOTIMP", 5 "REFUSED", 6 "YXDOMAIN", 7 "YXRRSET",
    8 "NXRRSET", 9 "NOTAUTH", 10 "NOTZONE", 11 "DSOTYPENI", 16 "BADVERS", 17 "BADKEY", 18 "BADTIME", 19 "BADMODE",
    20 "BADNAME", 21 "BADALG", 22 "BADTRUNC", 23 "BADCOOKIE",
}

names! {
    class_name, class_number, "class.",
    1 "IN", 3 "CH", 4 "HS", 254 "NONE", 255 "ANY",
}

names! {
    operation_name, operation_number, "operation (RFC 1035, 1996, 2136, 8490).",
    0 "QUERY", 1 "IQUERY", 2 "STATUS", 4 "NOTIFY", 5 "UPDATE", 6 "DSO",
}

pub(super) const AUTHORITATIVE: u16 = 1 << 10;
pub(super) const TRUNCATED: u16 = 1 << 9;
pub(super) const RECURSION_AVAILABLE: u16 = 1 << 7;
pub(super) const ZERO: u16 = 1 << 6;

/// The flags with their names, in order of the header.
pub(super) const FLAGS: [(u16, &str); 7] = [
    (AUTHORITATIVE, "AA"),
    (TRUNCATED, "TC"),
    (1 << 8, "RD"),
    (RECURSION_AVAILABLE, "RA"),
    (ZERO, "Z"),
    (1 << 5, "AD"),
    (1 << 4, "CD"),
];

/// The bits in the header of an operation and flags with these names; `None` if there are others.
pub(crate) fn flags_number(names: &str) -> Option<u16> {
    names.split(' ').try_fold(0, |bits, name| {
        let flag = FLAGS.iter().find(|(_, own)| *own == name).map(|(bit, _)| *bit);
        Some(bits | flag.or_else(|| Some(operation_number(name)? << 11))?)
    })
}

/// True for the classes of ordinary questions: IN, CH and ANY. The upper bit is the request of multicast DNS for a
/// unicast answer (RFC 6762, section 5.4).
pub(super) const fn is_usual_class(class: u16) -> bool {
    matches!(class & 0x7fff, 1 | 3 | 255)
}
