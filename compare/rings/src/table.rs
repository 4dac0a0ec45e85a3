//! The tables of the report, and all trials as CSV.

use crate::{
    candidates::{Candidate, Mode},
    claims::Results,
    latency::{Latency, MEASURES},
    many::{self, Many},
    rounds::Cell,
};
use beside::{Rate, markdown, quantile};
use std::fmt::Write;

/// A table for each item size: candidates by capacity, the fastest of each mode first.
pub fn rates(results: &Results, sizes: &[usize], capacities: &[usize]) -> String {
    let mut text = String::new();
    for &bytes in sizes {
        let _ = writeln!(
            text,
            "### {bytes} bytes\n\nMillion items per second: median (first–third quartile).\n"
        );
        let mut header = vec!["candidate".to_owned()];
        header.extend(capacities.iter().map(|capacity| format!("× {capacity}")));
        let mut rows: Vec<(Mode, f64, Vec<String>)> = Vec::new();
        for (index, candidate) in results.candidates.iter().enumerate() {
            let of = |&capacity: &usize| {
                let here = |cell: &&Cell| cell.bytes == bytes && cell.capacity == capacity;
                results.cells.iter().filter(here).find(|cell| cell.candidate == index)
            };
            let cells: Vec<&Cell> = capacities.iter().filter_map(of).collect();
            if cells.len() == capacities.len() {
                let speed = cells.iter().map(|cell| cell.median().ln()).sum();
                let mut row = vec![candidate.heading()];
                row.extend(cells.iter().map(|cell| figure(cell)));
                rows.push((candidate.mode, speed, row));
            }
        }
        rows.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut table = vec![header];
        table.extend(rows.into_iter().map(|(.., row)| row));
        text += &markdown(&table);
        text.push('\n');
    }
    text
}

/// Median and quartiles; with `~` if disturbed trials are included.
fn figure(cell: &Cell) -> String {
    let (rates, clean) = cell.sorted();
    let [low, median, high] = [0.25, 0.5, 0.75].map(|share| Rate(quantile(&rates, share)));
    format!("{}{median} ({low}–{high})", if clean { "" } else { "~" })
}

/// A table of the streaming limit and the share of it that our default ring reaches.
pub fn shares(results: &Results, sizes: &[usize], capacities: &[usize]) -> String {
    let header = ["bytes × capacity", "limit GB/s", "M lines/s", "block", "ours GB/s", "share"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for &bytes in sizes {
        for &capacity in capacities {
            let ours = results.ours(bytes, capacity);
            let Some((limit, ours)) = results.limit(bytes, capacity).zip(ours) else { continue };
            let gigabytes = |cell: &Cell| cell.median() * bytes as f64 / 1e3;
            let prefetch = &results.candidates[limit.candidate].name;
            rows.push(vec![
                format!("{bytes} × {capacity}"),
                format!("{:.1}", gigabytes(limit)),
                Rate(gigabytes(limit) * 1e3 / 64.0).to_string(),
                format!("{prefetch} {}", limit.burst),
                format!("{:.1}", gigabytes(ours)),
                format!("{:.0} %", ours.over(limit).median * 100.0),
            ]);
        }
    }
    markdown(&rows)
}

/// CSV with a line for each trial and for each latency figure.
pub fn csv(results: &Results, latencies: &[Latency], many: &[Many]) -> String {
    let mut text = String::from("measure,candidate,mode,bytes,capacity,burst,round,value,clean\n");
    for cell in results.cells {
        let Candidate { name, mode, .. } = &results.candidates[cell.candidate];
        let Cell { bytes, capacity, burst, .. } = cell;
        for (i, (rate, clean)) in cell.trials().enumerate() {
            let round = i + 1;
            let _ = writeln!(
                text,
                "million_per_s,{name},{mode},{bytes},{capacity},{burst},{round},{rate},{clean}"
            );
        }
    }
    for latency in latencies {
        let Candidate { name, mode, .. } = &results.candidates[latency.candidate];
        for (i, figures) in latency.rounds.iter().enumerate() {
            for (measure, value) in MEASURES.iter().zip(figures) {
                let round = i + 1;
                let _ = writeln!(text, "{measure},{name},{mode},64,2048,1,{round},{value},true");
            }
        }
    }
    many::csv(many, &mut text);
    text
}
