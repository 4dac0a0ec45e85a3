//! The fields of flow records: one table, from which all outputs take names, types, values and order.
//!
//! ```text
//!     /// time to live, hop limit                                      its meaning, for docs/OUTPUTS.md
//!     2 minimumTTL [52: 1] Sent U8 = v.record.ttl[d][0];
//!     │     │       │   │    │  │    └ its value in the record `v`; d is 0 from the initiator, 1 to it
//!     │     │       │   │    │  └ the type of its column
//!     │     │       │   │    └ which records have it (presence.rs)
//!     │     │       │   └ its octets in IPFIX; without them, it is not a field of the templates
//!     │     │       └ its element in IPFIX, if there is one; `reverse` for the direction to the initiator
//!     │     └ its name in all outputs
//!     └ the edition of the columns that added it; facts without one are of the fifth
//! ```
//!
//! | output | its fields |
//! |---|---|
//! | JSON | all, in the order of the table |
//! | CSV, Parquet, Arrow, Python | all, by edition, and then in the order of the table: new columns are at the end |
//! | IPFIX | those with octets; the groups of `encode/template.rs` say where in records |
//! | facts in IPFIX | those with an element, by protocol and length (`encode/facts.rs`) |
//! | docs/OUTPUTS.md | all, in the order of the table; written by a test with `RINGTAP_WRITE=1` |
//! | packaging/compose/clickhouse.sql | as in Parquet; written by a test, too |
//! | mappings for Elastic, Loki and OpenTelemetry in packaging/ | chosen ones; a test checks their names |
//! | EVE, Zeek, NetFlow v9, protobuf | their own, with values from here: `minimumTTL::of(&view)` |
//!
//! A new field is a member of the record, and a row; with octets, also a name in a group of IPFIX. Each output goes through the rows with a [`Visit`], so the code of a
//! row is compiled into its loop; nothing is looked up for a record.

#[cfg(test)]
mod clickhouse;
mod field;
#[cfg(test)]
mod mappings;
mod parquet;
mod presence;
mod reader;
#[macro_use]
mod table;
#[cfg(test)]
mod tests;
mod value;
mod view;

use ringtap_flow::{Initiator, Kind};

use crate::formats::CommunityId;
use crate::formats::ids::flow_id;

pub(crate) use field::{Element, Field, Form, REVERSE, Shape, Type, VARIABLE};
pub use parquet::{Column, ColumnType, parquet_columns};
pub(crate) use presence::Presence;
pub use presence::{Columns, Origins};
pub use reader::{Cell, Cells, Reader};
use table::{Numbered, Numbers};
pub(crate) use table::{Row, Visit};
use value::Listed;
use value::Reads as _;
pub(crate) use value::Value::{self, *};
use view::microseconds;
pub(crate) use view::{View, ingress, is_icmp, known_paths, milliseconds, type_code};

fields! { |v, d|
    /// earliest packet, ms since 1970, rounded down
    1 flowStartMilliseconds [152: 8] Always Time = milliseconds(v.record.first_ns);
    /// latest packet
    1 flowEndMilliseconds [153: 8] Always Time = milliseconds(v.record.last_ns);
    /// 4 or 6
    1 ipVersion [60] Parquet U8 = v.record.key.version as u8;
    /// the initiator, as text
    1 sourceIPAddress ["sourceIPv4Address" 8, "sourceIPv6Address" 27] Always Text = v.address(d);
    /// the other end
    1 destinationIPAddress ["destinationIPv4Address" 12, "destinationIPv6Address" 28] Always Text = v.address(1 - d);
    /// port of the initiator; 0 if unknown (later fragments alone)
    1 sourceTransportPort [7: 2] Ports U16 = v.port(d);
    /// port of the other end
    1 destinationTransportPort [11: 2] Ports U16 = v.port(1 - d);
    /// IP protocol number
    1 protocolIdentifier [4: 1] Always U8 = v.record.key.protocol;
    /// octets of layer 3: headers of IP and up, no link layer
    1 octetDeltaCount [1: 8] Always U64 = v.record.octets[d];
    /// packets
    1 packetDeltaCount [2: 8] Always U64 = v.record.packets[d];
    1 reverseOctetDeltaCount [reverse] Always U64 = v.record.octets[d];
    1 reversePacketDeltaCount [reverse] Always U64 = v.record.packets[d];
    /// all TCP flags seen, or-ed, the lower eight bits
    1 tcpControlBits [6: 1] Tcp U16 = v.record.tcp_flags[d];
    1 reverseTcpControlBits [reverse] Tcp U16 = v.record.tcp_flags[d];
    /// of the first packet, type · 256 + code
    1 icmpTypeCode ["icmpTypeCodeIPv4" 32, "icmpTypeCodeIPv6" 139] Icmp U16 = TypeCode(v.record.key.protocol, v.record.icmp_type_code);
    12 reverseIcmpTypeCode [reverse "reverseIcmpTypeCodeIPv4" "reverseIcmpTypeCodeIPv6"] Icmp U16 = v.record.reverse_icmp_type_code.map(|own| TypeCode(v.record.key.protocol, own));
    /// smallest time to live, hop limit
    2 minimumTTL [52: 1] Sent U8 = v.record.ttl[d][0];
    /// largest time to live, hop limit
    2 maximumTTL [53: 1] Sent U8 = v.record.ttl[d][1];
    /// octets of layer 3 of the shortest packet; at most 65,535
    2 minimumIpTotalLength [25: 2] Sent U16 = v.record.ip_len[d][0];
    /// octets of layer 3 of the longest packet; at most 65,535
    2 maximumIpTotalLength [26: 2] Sent U16 = v.record.ip_len[d][1];
    /// type of service, traffic class, of the first packet
    2 ipClassOfService [5: 1] Sent U8 = v.record.tos[d];
    2 reverseMinimumTTL [reverse] Sent U8 = v.record.ttl[d][0];
    2 reverseMaximumTTL [reverse] Sent U8 = v.record.ttl[d][1];
    2 reverseMinimumIpTotalLength [reverse] Sent U16 = v.record.ip_len[d][0];
    2 reverseMaximumIpTotalLength [reverse] Sent U16 = v.record.ip_len[d][1];
    2 reverseIpClassOfService [reverse] Sent U8 = v.record.tos[d];
    /// events in order: the letters below
    2 history [] History Text = Letters(v.record.history);
    /// Ethernet address of the initiator, in the first packet; of the frame in the tunnel if that is one
    4 sourceMacAddress [56: 6] Ethernet Text = Mac(&v.way(d).macs[0]);
    13 reverseSourceMacAddress [reverse] TwoPaths Text = v.mac(d, 0);
    /// Ethernet address of the other end, in the same packet
    4 destinationMacAddress [80: 6] Ethernet Text = Mac(&v.way(d).macs[1]);
    13 reverseDestinationMacAddress [reverse] TwoPaths Text = v.mac(d, 1);
    /// outermost VLAN tag
    1 vlanId [58: 2] Tagged U16 = v.way(d).vlans[0];
    13 reverseVlanId [reverse] TwoPaths U16 = v.tag(d, 0);
    /// the next inner tag
    4 dot1qCustomerVlanId [245: 2] TaggedTwice U16 = v.way(d).vlans[1];
    13 reverseDot1qCustomerVlanId [reverse] TwoPaths U16 = v.tag(d, 1);
    /// top MPLS label, 0 to 1,048,575
    4 mplsTopLabel [] Labelled U32 = v.path.mpls_label;
    13 reverseMplsTopLabel [reverse] TwoPaths U32 = v.way(d).mpls_label;
    /// the label below it
    13 mplsSecondLabel [] LabelledTwice U32 = v.path.mpls_second_label;
    13 reverseMplsSecondLabel [reverse] TwoPaths U32 = v.way(d).mpls_second_label;
    /// `gre`, `erspan`, `ipip`, `6in4`, `vxlan`, `geneve`, `gtp-u`, `teredo`, `vxlan-gpe`, `gre-udp`, `mpls-udp`, `l2tp`, `l2tp-ip`, `etherip`, `gue`, `lisp`, `capwap`: the outermost opened tunnel
    4 tunnelType [] Tunnelled Text = Word(v.path.tunnel.as_ref()?.kind.name());
    /// its outer address on the side of the initiator
    4 tunnelSourceIPAddress ["tunnelSourceIPv4Address" "tunnelSourceIPv6Address"] Tunnelled Text = v.outer(|outer| &outer.src);
    /// its outer address on the other side
    4 tunnelDestinationIPAddress ["tunnelDestinationIPv4Address" "tunnelDestinationIPv6Address"] Tunnelled Text = v.outer(|outer| &outer.dst);
    /// GRE key, VXLAN or Geneve network, GTP endpoint, ERSPAN or L2TP session, LISP instance
    4 tunnelId [] TunnelId U32 = v.path.tunnel.map(|outer| outer.id).filter(|&id| id > 0);
    13 reverseTunnelId [reverse] TwoPaths U32 = v.way(d).tunnel.map(|outer| outer.id).filter(|&id| id > 0);
    /// outer Ethernet address on the side of the initiator, if `sourceMacAddress` is of the frame in the tunnel
    9 tunnelSourceMacAddress [] TunnelEthernet Text = Mac(&v.path.outer_macs[0]);
    /// outer Ethernet address on the other side
    9 tunnelDestinationMacAddress [] TunnelEthernet Text = Mac(&v.path.outer_macs[1]);
    /// the kernel's number of the interface that received the first packet
    6 ingressInterface [10] Interfaces U32 = Some(v.record.path.ingress).filter(|&index| index > 0);
    13 reverseIngressInterface [reverse] TwoInterfaces U32 = v.record.reverse_path.as_ref().map(|path| path.ingress).filter(|&index| index > 0);
    /// its name when it was opened
    12 ingressInterfaceName [] Interfaces Text = v.origin(0)?.interface.as_deref().map(|name| Name(name.as_bytes()));

    facts {
        /// [protocols recognised in payloads](MONITOR.md#payloads), in the order of first appearance
        applicationProtocol Protocol [] Extract;
        /// name that the client asks for
        tlsServerName TlsServerName [cert 294 Text] Tls;
        /// selected by the server
        tlsVersion TlsVersion [cert 288 Number(2)] Tls;
        /// protocols that the client offers, and the one that the server selected
        tlsAlpn TlsAlpn [] Tls;
        /// cipher suite that the server selected
        tlsCipher TlsCipher [cert 187 Number(4)] Tls;
        /// fingerprint of the client, of the first hello
        ja3 Ja3 [cert 463 Octets] Tls;
        /// fingerprint of the server, of the first hello
        ja3s Ja3s [cert 465 Octets] Tls;
        /// fingerprint of the client, of the first hello
        ja4 Ja4 [] Tls;
        /// `1`, `2`, `draft-29`, `Q050`, …
        quicVersion QuicVersion [] Quic;
        /// names in questions
        dnsQueryName DnsQueryName [cert 179 Text] Dns;
        /// types in questions
        dnsQueryType DnsQueryType [cert 175 Number(2)] Dns;
        /// of the first answer, such as `NXDOMAIN`
        dnsResponseCode DnsResponseCode [cert 174 Presence, cert 177 Number(1)] Dns;
        /// data of answers
        dnsAnswers DnsAnswers [cert 302 AddressV4, cert 303 AddressV6] Dns;
        /// from the first question to its answer
        dnsResponseMicroseconds DnsResponseTime [] Dns;
        /// of requests
        httpMethod HttpMethod [iana 459 Word] Http;
        /// of requests
        httpHost HttpHost [iana 460 Text] Http;
        /// of requests
        httpTarget HttpTarget [iana 461 Text] Http;
        /// of requests
        httpUserAgent HttpUserAgent [iana 468 Text] Http;
        /// status codes of responses
        httpStatus HttpStatus [iana 457 Number(2)] Http;
        /// version line of the client
        sshClient SshClient [cert 171 Text] Ssh;
        /// version line of the server
        sshServer SshServer [cert 472 Text] Ssh;
        /// host name of the client
        dhcpHostname DhcpHostname [] Dhcp;
        /// of the first message
        ntpMode NtpMode [] Ntp;
        /// of the first message
        ntpStratum NtpStratum [] Ntp;
        /// the highest that the client offers
        10 tlsClientVersion TlsClientVersion [] Tls;
        /// number of the client's configuration for an encrypted hello; `tlsServerName` is then of the outer one
        10 tlsEchConfigId TlsEchConfigId [] Tls;
        /// `session`, `ticket`, or `psk` of TLS 1.3: what resumes an earlier session
        10 tlsResumption TlsResumption [] Tls;
        /// [alerts](MONITOR.md#handshakes) of the client that are not encrypted
        10 tlsClientAlerts TlsClientAlerts [] Tls;
        /// alerts of the server that are not encrypted
        10 tlsServerAlerts TlsServerAlerts [] Tls;
        /// common name of the subject of the server's [certificate](MONITOR.md#handshakes)
        10 tlsCertificateSubject TlsCertificateSubject [cert 205 Text] Certificate;
        /// common name of its issuer
        10 tlsCertificateIssuer TlsCertificateIssuer [cert 196 Text] Certificate;
        /// alternative names of its subject
        10 tlsCertificateNames TlsCertificateNames [] Certificate;
        /// it is valid from then on, such as `2026-01-31T00:00:00Z`
        10 tlsCertificateNotBefore TlsCertificateNotBefore [cert 247 Text] Certificate;
        /// it is valid up to then
        10 tlsCertificateNotAfter TlsCertificateNotAfter [cert 248 Text] Certificate;
        /// algorithm of its public key, such as `rsaEncryption`
        10 tlsCertificateKey TlsCertificateKey [] Certificate;
        /// size of its public key, bits
        10 tlsCertificateKeyBits TlsCertificateKeyBits [cert 250 Number(2)] Certificate;
        /// algorithm of its signature, such as `sha256WithRSAEncryption`
        10 tlsCertificateSignature TlsCertificateSignature [] Certificate;
        /// its serial number, hexadecimal
        10 tlsCertificateSerial TlsCertificateSerial [cert 244 Octets] Certificate;
        /// its SHA-256, hexadecimal
        10 tlsCertificateSha256 TlsCertificateSha256 [cert 295 Octets] Certificate;
        /// number of certificates that the server sent
        10 tlsCertificateChain TlsCertificateChain [] Certificate;
        /// `expired`, `not-yet-valid`, `self-signed`, `name-mismatch`
        10 tlsCertificateFlaws TlsCertificateFlaws [] Certificate;
        /// client in the header of a [proxy](MONITOR.md#handshakes)
        10 proxySourceAddress ProxySourceAddress [] Proxy;
        /// what that client connected to
        10 proxyDestinationAddress ProxyDestinationAddress [] Proxy;
        /// port of that client
        10 proxySourcePort ProxySourcePort [] Proxy;
        /// port of what it connected to
        10 proxyDestinationPort ProxyDestinationPort [] Proxy;
        /// identifier of the first message
        9 dnsId DnsId [cert 226 Number(2)] Dns;
        /// operation, unless a query, and flags of messages, such as `RD RA`
        9 dnsFlags DnsFlags [] Dns;
        /// [records](MONITOR.md#dns-records) of answers and updates: owner, type, TTL, data
        9 dnsRecords DnsRecords [] Dns;
        /// of requests and responses, as sent
        12 httpContentType HttpContentType [iana 469 Text] Http;
        /// of requests: the page that led to them
        12 httpReferer HttpReferer [cert 115 Text] Http;
        /// of responses: the address to which they lead
        12 httpLocation HttpLocation [cert 116 Text] Http;
        /// octets of the bodies of responses
        12 httpResponseLength HttpResponseLength [] Http;
        /// [fingerprint](MONITOR.md#syn) of the SYN, such as `60:64240:2-4-8-1-3:1460:7`; `reverse…` is of the SYN with ACK
        12 tcpSynFingerprint TcpSyn [] Syn;
        /// fingerprint of the SYN with ACK
        12 reverseTcpSynFingerprint TcpSynAck [reverse] Syn;
        /// sequence number of the SYN
        12 tcpInitialSequenceNumber TcpSequence [] Syn;
        /// sequence number of the SYN with ACK
        12 reverseTcpInitialSequenceNumber TcpSynAckSequence [reverse] Syn;
    }

    /// values beyond the limit of a flow's fields
    0 payloadValuesOmitted [] Omitted U32 = Some(v.facts?.beyond()).filter(|&beyond| beyond > 0);
    /// [label](MONITOR.md#applications) of the service or protocol
    5 application [] Label Text = Name(v.record.application.as_ref()?.label.as_str().as_bytes());
    /// `name`, `content` or `port`: what the label was derived from
    5 applicationReason [] Reason Text = Word(v.record.application.as_ref()?.reason.name());

    /// octets of layer 3 of the SYN
    12 tcpSynLength [] Syn U32 = v.syn(d)?.length;
    12 reverseTcpSynLength [reverse] Syn U32 = v.syn(d)?.length;
    /// kinds of its options in order, such as `2-4-8-1-3`
    12 tcpSynOptions [] Syn Text = Name(v.syn(d)?.options.as_bytes());
    12 reverseTcpSynOptions [reverse] Syn Text = Name(v.syn(d)?.options.as_bytes());
    /// maximum segment size in its options
    12 tcpMaximumSegmentSize [] Syn U16 = v.syn(d)?.segment;
    12 reverseTcpMaximumSegmentSize [reverse] Syn U16 = v.syn(d)?.segment;
    /// window scale in its options: the shift of later windows
    12 tcpWindowScale [] Syn U8 = v.syn(d)?.scale;
    12 reverseTcpWindowScale [reverse] Syn U8 = v.syn(d)?.scale;
    /// round-trip time of the [handshake](MONITOR.md#tcp)
    5 tcpHandshakeRttMicroseconds [] Handshake U64 = v.record.tcp?.handshake_total_us();
    /// its part between the observer and the client
    5 tcpClientHandshakeRttMicroseconds [] Handshake U64 = v.record.tcp?.handshake_us[1];
    /// its part between the observer and the server
    5 tcpServerHandshakeRttMicroseconds [] Handshake U64 = v.record.tcp?.handshake_us[0];
    /// mean round-trip time to the client
    5 tcpClientRttMicroseconds [] Samples U64 = v.record.tcp?.rtt_us(1);
    /// mean round-trip time to the server
    5 tcpServerRttMicroseconds [] Samples U64 = v.record.tcp?.rtt_us(0);
    /// segments that were sent again
    5 tcpRetransmissions [] Measured U64 = v.record.tcp?.retransmissions[d];
    5 reverseTcpRetransmissions [reverse] Measured U64 = v.record.tcp?.retransmissions[d];
    /// segments that arrived later than one behind them, and were not sent again
    5 tcpOutOfOrder [] Measured U64 = v.record.tcp?.out_of_order[d];
    5 reverseTcpOutOfOrder [reverse] Measured U64 = v.record.tcp?.out_of_order[d];
    /// acknowledgments that repeat the one before
    5 tcpDuplicateAcks [] Measured U64 = v.record.tcp?.duplicate_acks[d];
    5 reverseTcpDuplicateAcks [reverse] Measured U64 = v.record.tcp?.duplicate_acks[d];
    /// segments that announce a window of zero
    5 tcpZeroWindows [] Measured U64 = v.record.tcp?.zero_windows[d];
    5 reverseTcpZeroWindows [reverse] Measured U64 = v.record.tcp?.zero_windows[d];
    /// octets of [payload](MONITOR.md#payload-octets) from the initiator; of TCP those sent again included
    12 initiatorOctets [231] Payload U64 = v.record.payload_octets()?[0];
    /// octets of payload to the initiator; of TCP those sent again included
    12 responderOctets [232] Payload U64 = v.record.payload_octets()?[1];
    /// mean [response time](MONITOR.md#response-times)
    8 responseMicroseconds [] Answered U64 = v.record.responses?.mean_us();
    /// number of responses with a time
    8 responseCount [] Answered U32 = v.record.responses.map(|times| times.count);

    /// earliest packet of the direction to the initiator
    12 reverseFlowStartMilliseconds [] Statistics Time = v.statistics()?.times(1).map(|[earliest, _]| milliseconds(earliest));
    /// latest packet of the direction to the initiator
    12 reverseFlowEndMilliseconds [] Statistics Time = v.statistics()?.times(1).map(|[_, latest]| milliseconds(latest));
    /// smallest number of octets of layer 3 of a packet
    11 packetLengthMinimum [] Statistics U64 = v.statistics()?.lengths(d).minimum();
    11 reversePacketLengthMinimum [reverse] Statistics U64 = v.statistics()?.lengths(d).minimum();
    /// mean number of octets of layer 3 of a packet
    11 packetLengthMean [] Statistics U64 = v.statistics()?.lengths(d).mean();
    11 reversePacketLengthMean [reverse] Statistics U64 = v.statistics()?.lengths(d).mean();
    /// standard deviation of the octets of layer 3 of packets
    11 packetLengthDeviation [] Statistics U64 = v.statistics()?.lengths(d).deviation();
    11 reversePacketLengthDeviation [reverse] Statistics U64 = v.statistics()?.lengths(d).deviation();
    /// largest number of octets of layer 3 of a packet
    11 packetLengthMaximum [] Statistics U64 = v.statistics()?.lengths(d).maximum();
    11 reversePacketLengthMaximum [reverse] Statistics U64 = v.statistics()?.lengths(d).maximum();
    /// sum of the squares of the octets of layer 3 of each packet; at most 2⁶⁴ - 1
    11 octetDeltaSumOfSquares [198] Statistics U64 = v.statistics()?.lengths(d).squares();
    11 reverseOctetDeltaSumOfSquares [reverse] Statistics U64 = v.statistics()?.lengths(d).squares();
    /// smallest [gap](MONITOR.md#statistics) between two packets
    11 interArrivalMicrosecondsMinimum [] Statistics U64 = microseconds(v.statistics()?.gaps(d).minimum());
    11 reverseInterArrivalMicrosecondsMinimum [reverse] Statistics U64 = microseconds(v.statistics()?.gaps(d).minimum());
    /// mean [gap](MONITOR.md#statistics) between two packets
    11 interArrivalMicrosecondsMean [] Statistics U64 = microseconds(v.statistics()?.gaps(d).mean());
    11 reverseInterArrivalMicrosecondsMean [reverse] Statistics U64 = microseconds(v.statistics()?.gaps(d).mean());
    /// standard deviation of [gaps](MONITOR.md#statistics) between two packets
    11 interArrivalMicrosecondsDeviation [] Statistics U64 = microseconds(v.statistics()?.gaps(d).deviation());
    11 reverseInterArrivalMicrosecondsDeviation [reverse] Statistics U64 = microseconds(v.statistics()?.gaps(d).deviation());
    /// largest [gap](MONITOR.md#statistics) between two packets
    11 interArrivalMicrosecondsMaximum [] Statistics U64 = microseconds(v.statistics()?.gaps(d).maximum());
    11 reverseInterArrivalMicrosecondsMaximum [reverse] Statistics U64 = microseconds(v.statistics()?.gaps(d).maximum());
    /// gaps that were below zero, and count as zero
    11 interArrivalNegativeCount [] Statistics U64 = v.statistics()?.negative_gaps(d);
    11 reverseInterArrivalNegativeCount [reverse] Statistics U64 = v.statistics()?.negative_gaps(d);
    /// smallest [active time](MONITOR.md#statistics)
    11 activeMicrosecondsMinimum [] Statistics U64 = microseconds(v.statistics()?.active().minimum());
    /// mean [active time](MONITOR.md#statistics)
    11 activeMicrosecondsMean [] Statistics U64 = microseconds(v.statistics()?.active().mean());
    /// standard deviation of [active times](MONITOR.md#statistics)
    11 activeMicrosecondsDeviation [] Statistics U64 = microseconds(v.statistics()?.active().deviation());
    /// largest [active time](MONITOR.md#statistics)
    11 activeMicrosecondsMaximum [] Statistics U64 = microseconds(v.statistics()?.active().maximum());
    /// smallest [idle time](MONITOR.md#statistics)
    11 idleMicrosecondsMinimum [] Statistics U64 = microseconds(v.statistics()?.idle().minimum());
    /// mean [idle time](MONITOR.md#statistics)
    11 idleMicrosecondsMean [] Statistics U64 = microseconds(v.statistics()?.idle().mean());
    /// standard deviation of [idle times](MONITOR.md#statistics)
    11 idleMicrosecondsDeviation [] Statistics U64 = microseconds(v.statistics()?.idle().deviation());
    /// largest [idle time](MONITOR.md#statistics)
    11 idleMicrosecondsMaximum [] Statistics U64 = microseconds(v.statistics()?.idle().maximum());
    /// number of idle times; there is one active time more
    11 idleCount [] Statistics U64 = v.statistics()?.idle().count();
    /// octets of layer 3 of each of the [first packets](MONITOR.md#statistics), at most 65,535
    11 firstPacketLengths [] Lists U16 = v.list(d, Listed::PacketOctets);
    /// their directions: 0 from the initiator, 1 to it
    11 firstPacketDirections [] Lists U8 = v.list(d, Listed::PacketDirections);
    /// their times since the earliest packet of the record
    11 firstPacketMicroseconds [] Lists U64 = v.list(d, Listed::PacketTimes);
    /// their TCP flags, the lower eight bits
    11 firstPacketFlags [] Lists U8 = v.list(d, Listed::PacketFlags);
    /// packets of each of the first [bursts](MONITOR.md#statistics)
    11 burstPackets [] Lists U64 = v.list(d, Listed::BurstPackets);
    11 reverseBurstPackets [reverse] Lists U64 = v.list(d, Listed::BurstPackets);
    /// their octets of layer 3
    11 burstOctets [] Lists U64 = v.list(d, Listed::BurstOctets);
    11 reverseBurstOctets [reverse] Lists U64 = v.list(d, Listed::BurstOctets);
    /// their beginnings since the earliest packet of the record
    11 burstStartMicroseconds [] Lists U64 = v.list(d, Listed::BurstTimes);
    11 reverseBurstStartMicroseconds [reverse] Lists U64 = v.list(d, Listed::BurstTimes);
    /// their durations
    11 burstMicroseconds [] Lists U64 = v.list(d, Listed::BurstDurations);
    11 reverseBurstMicroseconds [reverse] Lists U64 = v.list(d, Listed::BurstDurations);
    /// [entropy](MONITOR.md#statistics) of the first octets of payload, in 1/32 bit an octet
    14 payloadEntropy [] Entropy U8 = v.statistics()?.entropy(d);
    14 reversePayloadEntropy [reverse] Entropy U8 = v.statistics()?.entropy(d);

    /// name of the [network](MONITOR.md#origins) of the initiator
    5 sourceNetwork [] Networks Text = v.origin(0)?.network.as_deref().map(|name| Name(name.as_bytes()));
    /// name of the network of the other end
    5 destinationNetwork [] Networks Text = v.origin(1)?.network.as_deref().map(|name| Name(name.as_bytes()));
    /// country of the initiator, two letters
    5 sourceCountry [] Geo Text = v.origin(0)?.country.as_ref().map(|code| Name(code));
    /// country of the other end
    5 destinationCountry [] Geo Text = v.origin(1)?.country.as_ref().map(|code| Name(code));
    /// number of the autonomous system of the initiator
    5 bgpSourceAsNumber [16] Geo U32 = v.origin(0)?.as_number;
    /// number of the autonomous system of the other end
    5 bgpDestinationAsNumber [17] Geo U32 = v.origin(1)?.as_number;
    /// name of the autonomous system of the initiator
    5 sourceAsName [] Geo Text = v.origin(0)?.as_name.as_deref().map(|name| Name(name.as_bytes()));
    /// name of the autonomous system of the other end
    5 destinationAsName [] Geo Text = v.origin(1)?.as_name.as_deref().map(|name| Name(name.as_bytes()));
    /// vendor of the network card with `sourceMacAddress`
    9 sourceVendor [] Vendors Text = v.origin(0)?.vendor.as_deref().map(|name| Name(name.as_bytes()));
    /// vendor of the network card with `destinationMacAddress`
    9 destinationVendor [] Vendors Text = v.origin(1)?.vendor.as_deref().map(|name| Name(name.as_bytes()));
    /// name of the outermost VLAN, `vlanId`
    12 vlanName [] Vlans Text = v.origin(0)?.vlan.as_deref().map(|name| Name(name.as_bytes()));

    /// below 2⁵¹; equal for the parts of a flow, and in every run
    7 flowId [148: 8] Parts U64 = v.record.part.map(|_| flow_id(v.record));
    /// number of the part, from 0; a part without packets says why the flow ended
    7 flowPart [] Parts U32 = v.record.part.map(|part| part.number);

    /// 1: the source is the initiator, known by a SYN or SYN-ACK; 0: the source sent the first packet
    3 biflowDirection [239: 1] Always U8 = u8::from(v.record.initiator != Initiator::FirstPacket);
    /// 1 idle, 2 active, 3 end detected, 4 forced, 5 lack of resources
    1 flowEndReason [136: 1] Always U8 = v.record.end_reason as u8;
    /// [Community ID](https://github.com/corelight/community-id-spec) version 1, seed 0, of the inner addresses
    1 communityId [] Derived Text = Id(CommunityId::of(v.record));
}

/// The numbers of rows by edition and, within each, in the order of the table: the order of columns. Rows that are no
/// columns have edition 0, and are the first.
pub(crate) const COLUMNS: [usize; COUNT] = {
    let (mut order, mut count, mut edition) = ([0; COUNT], 0, 0);
    while count < COUNT {
        let mut row = 0;
        while row < COUNT {
            if FIELDS[row].edition == edition {
                order[count] = row;
                count += 1;
            }
            row += 1;
        }
        edition += 1;
    }
    order
};

/// A set of fields.
#[cfg(feature = "parquet")]
#[cfg_attr(not(feature = "arrow"), expect(unreachable_pub, reason = "exported with arrow"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen([u64; COUNT.div_ceil(64)]);

#[cfg(feature = "parquet")]
impl Chosen {
    /// All fields.
    pub(crate) const ALL: Self = Self([u64::MAX; COUNT.div_ceil(64)]);

    /// The fields of these names; other names are ignored.
    #[cfg(feature = "arrow")]
    pub fn named(names: &[impl AsRef<str>]) -> Self {
        let mut own = Self([0; COUNT.div_ceil(64)]);
        for (row, field) in FIELDS.iter().enumerate() {
            let is_named = names.iter().any(|name| name.as_ref() == field.name);
            own.0[row / 64] |= u64::from(is_named) << (row % 64);
        }
        own
    }

    #[inline(always)]
    pub(crate) const fn has(&self, row: usize) -> bool {
        self.0[row / 64] >> (row % 64) & 1 != 0
    }
}

/// The columns of a run in their order, with the numbers of their rows.
pub(crate) fn columns(further: Columns) -> impl Iterator<Item = (usize, &'static Field)> {
    let all = COLUMNS.into_iter().map(|row| (row, &FIELDS[row]));
    all.filter(move |(_, field)| field.edition > 0 && further.has(field.presence))
}
