//! Columns of ClickHouse, for `packaging/compose/clickhouse.sql`.

use std::fmt::Write as _;
use std::path::Path;

use super::*;

/// The fields of JSON lines that have a column, in the order of columns.
fn all() -> impl Iterator<Item = &'static Field> {
    COLUMNS.into_iter().map(|row| &FIELDS[row]).filter(|field| field.edition > 0)
}

/// Whether its name in JSON has the IP version.
fn has_version(field: &Field) -> bool {
    field.keys[0] != field.keys[1]
}

fn json(field: &Field) -> [&'static str; 2] {
    field.keys.map(|key| key.trim_matches(|sign| ",\":".contains(sign)))
}

/// The type of a column.
fn column(field: &Field) -> String {
    let of = match field.value {
        Type::Time => "DateTime64(3, 'UTC')",
        Type::U8 => "UInt8",
        Type::U16 => "UInt16",
        Type::U32 => "UInt32",
        Type::U64 => "UInt64",
        Type::Text if has_version(field) => "IPv6",
        Type::Text => "String",
    };
    match field.shape {
        Shape::Required => of.to_owned(),
        Shape::Optional => format!("Nullable({of})"),
        Shape::List => format!("Array({of})"),
    }
}

fn columns_of_flows(text: &mut String, field: &Field) {
    let _ = writeln!(text, "    {} {},", field.name, column(field));
}

/// As they are in messages: times in milliseconds, addresses as text.
fn columns_of_messages(text: &mut String, field: &Field) {
    match field.value {
        _ if field.presence == Presence::Parquet => {}
        Type::Time => {
            let of = if field.shape == Shape::Required { "UInt64" } else { "Nullable(UInt64)" };
            let _ = writeln!(text, "    {} {of},", field.name);
        }
        _ if has_version(field) => {
            let of = if field.value == Type::Text { "String".into() } else { column(field) };
            let of = of.trim_start_matches("Nullable(").trim_end_matches(')');
            for name in json(field) {
                let _ = writeln!(text, "    {name} Nullable({of}),");
            }
        }
        _ => columns_of_flows(text, field),
    }
}

/// The values of columns, of the columns of messages.
fn values(text: &mut String, field: &Field) {
    let name = field.name;
    let [four, six] = json(field);
    let either = format!("coalesce(m.{four}, m.{six})");
    let value = match (field.value, field.shape) {
        _ if field.presence == Presence::Parquet => "if(m.sourceIPv6Address IS NULL, 4, 6)".into(),
        (Type::Time, _) => format!("fromUnixTimestamp64Milli(toInt64(m.{name}), 'UTC')"),
        (Type::Text, Shape::Required) if has_version(field) => {
            format!("toIPv6(assumeNotNull({either}))")
        }
        (Type::Text, _) if has_version(field) => format!("toIPv6({either})"),
        _ if has_version(field) => either,
        _ => format!("m.{name}"),
    };
    let _ = writeln!(text, "    {value} AS {name},");
}

/// With RINGTAP_WRITE=1 the lines are written.
#[test]
fn the_tables_of_clickhouse_have_these_columns() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/compose/clickhouse.sql");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut made = page.clone();
    type Line = fn(&mut String, &Field);
    let kinds: [(&str, Line); 3] =
        [("columns", columns_of_flows), ("messages", columns_of_messages), ("values", values)];
    for (kind, line) in kinds {
        let head = format!("-- fields: {kind}\n");
        let at = made.find(&head).expect(kind) + head.len();
        let end = at + made[at..].find("-- end\n").expect(kind);
        let mut lines = String::new();
        all().for_each(|field| line(&mut lines, field));
        made.replace_range(at..end, &lines);
    }
    if made != page && std::env::var_os("RINGTAP_WRITE").is_some() {
        return std::fs::write(&path, made).unwrap();
    }
    assert!(made == page, "run RINGTAP_WRITE=1 cargo test -p ringtap-export clickhouse");
}
