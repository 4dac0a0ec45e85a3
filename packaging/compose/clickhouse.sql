-- Flow records from the topic `flows`, as --export kafka://BROKER/flows sends them, in a table.
CREATE DATABASE IF NOT EXISTS ringtap;

CREATE TABLE ringtap.flows (
    begin DateTime64(3),
    end DateTime64(3),
    probe LowCardinality(String),
    source IPv6,
    destination IPv6,
    source_port UInt16,
    destination_port UInt16,
    protocol UInt8,
    octets UInt64,
    packets UInt64,
    reverse_octets UInt64,
    reverse_packets UInt64,
    application LowCardinality(String),
    server_name String,
    community_id String
) ENGINE = MergeTree PARTITION BY toDate(begin) ORDER BY begin TTL toDate(begin) + INTERVAL 30 DAY;

-- Fields that a record does not have are 0 or empty; others are skipped.
CREATE TABLE ringtap.messages (
    flowStartMilliseconds UInt64,
    flowEndMilliseconds UInt64,
    probe String,
    sourceIPv4Address String,
    destinationIPv4Address String,
    sourceIPv6Address String,
    destinationIPv6Address String,
    sourceTransportPort UInt16,
    destinationTransportPort UInt16,
    protocolIdentifier UInt8,
    octetDeltaCount UInt64,
    packetDeltaCount UInt64,
    reverseOctetDeltaCount UInt64,
    reversePacketDeltaCount UInt64,
    application String,
    tlsServerName String,
    communityId String
) ENGINE = Kafka SETTINGS kafka_broker_list = 'kafka:19092', kafka_topic_list = 'flows', kafka_group_name = 'clickhouse',
    kafka_format = 'JSONEachRow', input_format_skip_unknown_fields = 1;

-- IPv4 addresses are ::ffff:192.0.2.1.
CREATE MATERIALIZED VIEW ringtap.reader TO ringtap.flows AS SELECT
    fromUnixTimestamp64Milli(toInt64(flowStartMilliseconds)) AS begin,
    fromUnixTimestamp64Milli(toInt64(flowEndMilliseconds)) AS end,
    probe,
    toIPv6(if(sourceIPv6Address = '', sourceIPv4Address, sourceIPv6Address)) AS source,
    toIPv6(if(destinationIPv6Address = '', destinationIPv4Address, destinationIPv6Address)) AS destination,
    sourceTransportPort AS source_port,
    destinationTransportPort AS destination_port,
    protocolIdentifier AS protocol,
    octetDeltaCount AS octets,
    packetDeltaCount AS packets,
    reverseOctetDeltaCount AS reverse_octets,
    reversePacketDeltaCount AS reverse_packets,
    application,
    tlsServerName AS server_name,
    communityId AS community_id
FROM ringtap.messages WHERE sourceIPv4Address != '' OR sourceIPv6Address != '';
