-- Flow records and statistics of probes, as --export kafka://BROKER/flows sends them to the topic `flows`, in tables of ClickHouse.
-- Flow records have the columns of Parquet files. The lines between `-- fields` and `-- end` are made from the table of fields:
--   RINGTAP_WRITE=1 cargo test -p ringtap-export clickhouse
CREATE DATABASE IF NOT EXISTS ringtap;

-- What a record does not have is NULL. IPv4 addresses are ::ffff:192.0.2.1.
CREATE TABLE ringtap.flows (
-- fields: columns
-- end
    probe LowCardinality(String)
) ENGINE = MergeTree PARTITION BY toDate(flowEndMilliseconds) ORDER BY flowEndMilliseconds
    TTL toDate(flowEndMilliseconds) + INTERVAL 30 DAY;

-- Each run, once a minute and at its end: packets, records and losses so far. The clock is ahead of the broker's by about
-- clockOffsetMilliseconds, if the topic has message.timestamp.type=LogAppendTime.
CREATE TABLE ringtap.probes (
    time DateTime64(3, 'UTC'),
    probe LowCardinality(String),
    run String,
    last Bool,
    version LowCardinality(String),
    settings LowCardinality(String),
    packets UInt64,
    ignoredPackets UInt64,
    records UInt64,
    sent UInt64,
    lost Map(String, UInt64),
    clockOffsetMilliseconds Int64
) ENGINE = MergeTree ORDER BY (probe, time) TTL toDate(time) + INTERVAL 90 DAY;

CREATE TABLE ringtap.messages (
-- fields: messages
-- end
    probe String,
    run Nullable(String),
    time Nullable(UInt64),
    last Nullable(Bool),
    version Nullable(String),
    settings Nullable(String),
    packets Nullable(UInt64),
    ignoredPackets Nullable(UInt64),
    records Nullable(UInt64),
    sent Nullable(UInt64),
    lost Map(String, UInt64)
) ENGINE = Kafka SETTINGS kafka_broker_list = 'kafka:19092', kafka_topic_list = 'flows', kafka_group_name = 'clickhouse',
    kafka_format = 'JSONEachRow', input_format_skip_unknown_fields = 1;

CREATE MATERIALIZED VIEW ringtap.flows_reader TO ringtap.flows AS SELECT
-- fields: values
-- end
    probe
FROM ringtap.messages AS m WHERE m.run IS NULL;

CREATE MATERIALIZED VIEW ringtap.probes_reader TO ringtap.probes AS SELECT
    fromUnixTimestamp64Milli(toInt64(assumeNotNull(m.time)), 'UTC') AS time,
    m.probe AS probe,
    assumeNotNull(m.run) AS run,
    assumeNotNull(m.last) AS last,
    coalesce(m.version, '') AS version,
    coalesce(m.settings, '') AS settings,
    coalesce(m.packets, 0) AS packets,
    coalesce(m.ignoredPackets, 0) AS ignoredPackets,
    assumeNotNull(m.records) AS records,
    assumeNotNull(m.sent) AS sent,
    m.lost AS lost,
    toInt64(assumeNotNull(m.time)) - toUnixTimestamp64Milli(coalesce(_timestamp_ms, fromUnixTimestamp64Milli(toInt64(assumeNotNull(m.time)))))
        AS clockOffsetMilliseconds
FROM ringtap.messages AS m WHERE m.run IS NOT NULL;

-- The latest run of each probe. A run that says nothing for three minutes is silent.
CREATE VIEW ringtap.health AS SELECT
    probe,
    argMax(version, time) AS version,
    argMax(settings, time) AS settings,
    max(time) AS latest,
    argMax(clockOffsetMilliseconds, time) AS clockOffsetMilliseconds,
    argMax(ignoredPackets, time) AS lostPackets,
    argMax(arraySum(mapValues(lost)), time) AS lostRecords,
    multiIf(argMax(last, time), 'ended', latest < now64(3) - INTERVAL 3 MINUTE, 'silent', lostPackets + lostRecords > 0, 'lossy', 'well') AS health
FROM ringtap.probes GROUP BY probe;
