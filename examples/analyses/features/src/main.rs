//! Writes features of each flow for a classifier: `features CAPTURE… > features.parquet`

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use parquet::data_type::Int64Type;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use ringtap::{Flow, Monitor};

const FEATURES: [&str; 10] = [
    "protocol",
    "server_port",
    "duration_us",
    "packets_sent",
    "packets_received",
    "octets_sent",
    "octets_received",
    "mean_length_sent",
    "mean_length_received",
    "mean_gap_sent_us",
];

/// The features of a flow, in that order.
fn features(flow: &Flow) -> [i64; FEATURES.len()] {
    let statistics = flow.statistics.as_deref();
    let mean = |direction| statistics.and_then(|own| own.lengths(direction).mean()).unwrap_or(0);
    let gap_ns = statistics.and_then(|own| own.gaps(0).mean()).unwrap_or(0);
    [
        flow.key.protocol.into(),
        flow.server_port().into(),
        flow.last_ns.saturating_sub(flow.first_ns) / 1_000,
        flow.packets[0],
        flow.packets[1],
        flow.octets[0],
        flow.octets[1],
        mean(0),
        mean(1),
        gap_ns / 1_000,
    ]
    .map(|value| i64::try_from(value).unwrap_or(i64::MAX))
}

/// The features of all flows in these captures, sorted: workers find them in any order.
fn rows(captures: &[String]) -> Result<Vec<[i64; FEATURES.len()]>, ringtap::Failure> {
    let rows = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&rows);
    let monitor = Monitor::builder().files(captures).analyses("flows,statistics");
    monitor
        .on_flow(move |flow| {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(features(flow))
        })
        .run()?;
    let mut rows = std::mem::take(&mut *rows.lock().unwrap_or_else(PoisonError::into_inner));
    rows.sort_unstable();
    Ok(rows)
}

fn write(rows: &[[i64; FEATURES.len()]], out: impl Write + Send) -> parquet::errors::Result<()> {
    let columns = FEATURES.map(|name| format!("REQUIRED INT64 {name};")).concat();
    let schema = parse_message_type(&format!("message features {{ {columns} }}"))?;
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::default())?;
    let mut group = file.next_row_group()?;
    let mut at = 0;
    while let Some(mut column) = group.next_column()? {
        let values: Vec<i64> = rows.iter().map(|row| row[at]).collect();
        column.typed::<Int64Type>().write_batch(&values, None, None)?;
        column.close()?;
        at += 1;
    }
    group.close()?;
    file.close().map(|_| ())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let captures: Vec<String> = std::env::args().skip(1).collect();
    write(&rows(&captures)?, io::stdout())?;
    Ok(())
}

#[test]
fn all_flows_have_features() {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let rows = rows(&[ringtap::testing::BUNDLED.to_owned()]).unwrap();
    let mut file = tempfile();
    write(&rows, &mut file).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let read: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(read.len(), rows.len());
    assert!(!rows.is_empty() && rows.iter().all(|row| row[3] > 0));
}

#[cfg(test)]
fn tempfile() -> std::fs::File {
    let path = std::env::temp_dir().join(format!("features-{}.parquet", std::process::id()));
    let file =
        std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}
