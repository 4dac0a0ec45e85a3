"""The tables of packaging/compose/clickhouse.sql in chdb, filled with JSON lines and a Parquet file of one run.

Arguments: the SQL, the dashboard with questions to the tables, the JSON lines, the Parquet file, the report as JSON, a line of
statistics. Instead of the reader of Kafka there is a table that keeps nothing and feeds the same views. Prints a JSON object:
`rows`, the numbers of flow records of both ways, `different`, those of one way alone, `wrong`, the sums that differ from the
report by table, `health`, the row of the probe, and `panels`, the questions of the dashboard whose answer has rows, and all."""

import json
import re
import sys

from chdb import session

sql, dashboard, lines, parquet, report, statistics = sys.argv[1:]
database = session.Session()


def query(text):
    answer = database.query(text, "JSONEachRow").bytes().decode()
    return [json.loads(line) for line in answer.splitlines()]


def statements(path):
    text = re.sub(r"--.*", "", open(path, encoding="utf-8").read())
    return [statement.strip() for statement in text.split(";") if statement.strip()]


for statement in statements(sql):
    # The reader has a column with the broker's time, here a second before the probe's.
    statement = re.sub(r"\)\s*ENGINE = Kafka.*", ", _timestamp_ms Nullable(DateTime64(3))) ENGINE = Null", statement, flags=re.S)
    # Records of captures are old.
    database.query(re.sub(r"\s+TTL .*", "", statement))

records = open(lines, encoding="utf-8").read()
now = query("SELECT toUnixTimestamp64Milli(now64(3)) AS now")[0]["now"]
about = json.loads(statistics) | {"time": int(now)}
about["_timestamp_ms"] = query(f"SELECT fromUnixTimestamp64Milli({int(now) - 1000}) AS time")[0]["time"]
settings = "SETTINGS input_format_skip_unknown_fields = 1"
for text in (records, json.dumps(about)):
    database.query(f"INSERT INTO ringtap.messages {settings} FORMAT JSONEachRow {text}")

columns = [row["name"] for row in query(f"DESCRIBE file('{parquet}', Parquet)")]
names = ", ".join(columns)
database.query("CREATE TABLE ringtap.of_parquet AS ringtap.flows ENGINE = MergeTree ORDER BY flowEndMilliseconds")
database.query(f"INSERT INTO ringtap.of_parquet ({names}) SELECT {names} FROM file('{parquet}', Parquet)")
both = [f"SELECT {names} FROM ringtap.{table}" for table in ("flows", "of_parquet")]
different = [query(f"SELECT count() AS n FROM ({one} EXCEPT {other})")[0]["n"] for one, other in (both, both[::-1])]
counts = [query(f"SELECT count() AS n FROM ringtap.{table}")[0]["n"] for table in ("flows", "of_parquet")]

with open(report, encoding="utf-8") as file:
    report = json.load(file)


def sums(key, rows):
    """Packets and octets by the text of a key, of ringtap's report and of the tables."""
    return {str(row[key]): [int(row["packets"]), int(row["octets"])] for row in rows}


def wrong(own, table):
    return [[key, own.get(key), table.get(key)] for key in sorted(set(own) | set(table)) if own.get(key) != table.get(key)][:5]


BOTH = "sum(packetDeltaCount + reversePacketDeltaCount) AS packets, sum(octetDeltaCount + reverseOctetDeltaCount) AS octets"
# The port that an end offers, as docs/MONITOR.md#flows says.
CLASS = "multiIf({0} = 0, 3, {0} < 1024, 0, {0} < 32768, 1, 2)"
source, destination = (CLASS.format(f"{end}TransportPort") for end in ("source", "destination"))
PORT = f"if(biflowDirection > 0 OR {destination} <= {source}, destinationTransportPort, sourceTransportPort)"
ADDRESS = "replaceRegexpOne(toString({0}), '^::ffff:', '')"
SENT = """(SELECT sourceIPAddress AS a, destinationIPAddress AS b, packetDeltaCount AS p, octetDeltaCount AS o FROM ringtap.flows
    UNION ALL SELECT destinationIPAddress, sourceIPAddress, reversePacketDeltaCount, reverseOctetDeltaCount FROM ringtap.flows)"""


def ends(column):
    return query(f"SELECT {ADDRESS.format(column)} AS address, sum(p) AS packets, sum(o) AS octets FROM {SENT} WHERE p > 0 GROUP BY 1")


talkers = report["talkers"]["by_octets"]
sides = {
    "applications": ("application", report["applications"]["rows"],
                     query(f"SELECT application, {BOTH} FROM ringtap.flows WHERE application IS NOT NULL GROUP BY 1")),
    "sources": ("address", talkers["source"], ends("a")),
    "destinations": ("address", talkers["destination"], ends("b")),
    "ports": ("of", [row | {"of": f"{row['protocol']} {row['port']}"} for row in talkers["port"]],
              query(f"SELECT concat(toString(protocolIdentifier), ' ', toString({PORT})) AS of, {BOTH} FROM ringtap.flows"
                    " WHERE sourceTransportPort IS NOT NULL GROUP BY 1")),
}
sums_found = {name: wrong(sums(key, own), sums(key, table)) for name, (key, own, table) in sides.items()}

panels = 0
with open(dashboard, encoding="utf-8") as file:
    targets = [target for panel in json.load(file)["panels"] for target in panel.get("targets", [])]
for target in targets:
    text = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 > 0", target["rawSql"])
    text = re.sub(r"\$__timeInterval\((\w+)\)", r"toStartOfInterval(\1, INTERVAL 1 SECOND)", text)
    panels += bool(query(text))

print(json.dumps({
    "rows": counts,
    "different": different,
    "wrong": sums_found,
    "health": query("SELECT * FROM ringtap.health"),
    "panels": [panels, len(targets)],
}))
