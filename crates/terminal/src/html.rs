//! A report as a page: one HTML file with embedded styles and charts and without scripts, for screen, phone and print.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use crate::chart::{STYLE as CHARTS, escaped};
use crate::page::{Page, Part, Section};
use crate::table::{Cell, Lean, Table};

/// The style of a page, besides that of its charts.
pub const STYLE: &str = include_str!("html.css");

/// Most columns of a table that stands beside another one.
const IN_COLUMN: usize = 6;

/// The page. Nothing in it is requested from elsewhere.
pub fn html(page: &Page, title: &str, about: &str) -> String {
    let (title, about) = (escaped(title), escaped(about));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>{title}</title><style>{STYLE}{CHARTS}</style></head><body>\n\
         <header><h1>{title}</h1><p>{about}</p></header>\n<main>\n"
    );
    html += &content(page);
    html += "</main>\n";
    if let Some(last) = &page.last {
        let _ = writeln!(html, "<footer>{}</footer>", escaped(last));
    }
    html + "</body></html>\n"
}

/// What is between the header and the footer.
pub fn content(page: &Page) -> String {
    let mut html = String::new();
    if !page.figures.is_empty() {
        html += "<dl>";
        for (name, value) in &page.figures {
            // Writing to a String cannot fail.
            let _ = write!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), data(value));
        }
        html += "</dl>\n";
    }
    // Sections between wide ones are in columns.
    for group in page.sections.chunk_by(|one, next| is_wide(one) == is_wide(next)) {
        let wide = group.iter().any(is_wide);
        html += if wide { "" } else { "<div class=\"columns\">\n" };
        group.iter().for_each(|one| section(&mut html, one));
        html += if wide { "" } else { "</div>\n" };
    }
    html
}

/// Whether a section is as wide as the page: as asked, or for a table that would be cut in a column.
fn is_wide(section: &Section) -> bool {
    let is_large = |part: &Part| match part {
        Part::Table(table) => table.used().iter().filter(|used| **used).count() > IN_COLUMN,
        Part::Line(_) | Part::Charts(_) => false,
    };
    section.wide || section.parts.iter().any(is_large)
}

fn section(html: &mut String, section: &Section) {
    let links = section.links.iter().map(|(text, to)| format!(" {}", anchor(to, &escaped(text))));
    let links: String = links.collect();
    let _ = writeln!(html, "<section><h2>{}{links}</h2>", escaped(&section.title));
    for part in &section.parts {
        match part {
            Part::Line(line) => _ = writeln!(html, "<p>{}</p>", escaped(line)),
            Part::Table(rows) if rows.is_empty() => {}
            Part::Table(rows) => table(html, rows),
            Part::Charts(charts) => {
                *html += "<div class=\"charts\">";
                for one in charts {
                    let _ =
                        write!(html, "<figure data-time=\"{}\">{}</figure>", one.time(), one.svg());
                }
                *html += "</div>\n";
            }
        }
    }
    *html += "</section>\n";
}

/// The first column in which all rows have a number is drawn as bars, too, if the rows are in its order.
fn table(html: &mut String, table: &Table) {
    let numbers = |column: usize| {
        let cells = table.rows.iter().map(move |row| row.get(column).and_then(|cell| cell.exact));
        cells.collect::<Option<Vec<u64>>>()
    };
    let bars = (0..table.lean.len()).find_map(|column| Some((column, numbers(column)?)));
    let bars = bars.filter(|(_, numbers)| numbers.is_sorted_by(|one, next| one >= next));
    let most = bars.iter().flat_map(|(_, numbers)| numbers).copied().max().unwrap_or(0);
    let used = table.used();
    *html += "<div class=\"scroll\"><table>";
    if !table.head.is_empty() {
        *html += "<tr>";
        for ((name, lean), _) in
            table.head.iter().zip(&table.lean).zip(&used).filter(|(_, used)| **used)
        {
            let class = class(lean, false);
            let _ = write!(html, "<th scope=\"col\"{class}>{}</th>", escaped(name));
        }
        *html += "</tr>\n";
    }
    for (at, row) in table.rows.iter().enumerate() {
        *html += "<tr>";
        for (column, (cell, lean)) in row.iter().zip(&table.lean).enumerate() {
            if !used[column] {
                continue;
            }
            let bar = match &bars {
                Some((of, numbers)) if *of == column && most > 0 => {
                    format!(" style=\"--bar:{:.1}%\"", numbers[at] as f64 / most as f64 * 100.0)
                }
                _ => String::new(),
            };
            // On a narrow page the name of the column stands in the cell.
            let label = table.head.get(column).filter(|_| !cell.text.is_empty());
            let label = label.map(|name| format!(" data-label=\"{}\"", escaped(name)));
            let class = class(lean, has_address(&cell.text));
            let (label, data) = (label.unwrap_or_default(), data(cell));
            let _ = write!(html, "<td{class}{label}{bar}>{data}</td>");
        }
        *html += "</tr>\n";
    }
    *html += "</table></div>\n";
}

/// A column of numbers; a cell with an address, which must not be broken where it would be another one.
fn class(lean: &Lean, has_address: bool) -> &'static str {
    match (lean, has_address) {
        (Lean::Right, _) => " class=\"n\"",
        (Lean::Left, true) => " class=\"a\"",
        (Lean::Left, false) => "",
    }
}

/// Whether a word is an address, perhaps with a port or the length of a prefix.
fn has_address(text: &str) -> bool {
    text.split([' ', ',', '(', ')']).any(|word| {
        let word = word.trim_end_matches(':');
        let host = word.split_once('/').map_or(word, |(host, _)| host);
        host.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok()
    })
}

fn anchor(to: &str, text: &str) -> String {
    format!("<a href=\"{}\">{text}</a>", escaped(to))
}

fn data(cell: &Cell) -> String {
    let mut text = escaped(&cell.text);
    if let Some(number) = cell.exact {
        text = format!("<data value=\"{number}\" title=\"{number}\">{text}</data>");
    }
    match &cell.link {
        Some(to) => anchor(to, &text),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_numbers_are_exact() {
        let mut page = Page::default();
        page.figure("received", Cell::count(1234));
        page.heading("A & B");
        page.line("<script>alert(1)</script>\u{7}\u{202e}\u{e0041}");
        let mut table = Table::new(&[Lean::Left, Lean::Right]);
        table.row(["\"x\"".into(), Cell::bytes(2048)]);
        table.row(["y".into(), Cell::bytes(1024)]);
        page.table(table);
        page.heading("C");
        page.link("CSV", "/csv?a=1&b=2".into());
        let mut table =
            Table::with_head(&[("host", Lean::Left), ("n", Lean::Right), ("none", Lean::Left)]);
        table.row([Cell::from("h").to("?host=h".into()), Cell::count(1)]);
        table.row(["10.0.0.1 → 10.0.0.2".into(), Cell::count(1), "".into()]);
        page.table(table);
        page.last("digest".into());
        let html = html(&page, "<t>", "now");
        for wanted in [
            "<title>&lt;t&gt;</title>",
            "<data value=\"1234\" title=\"1234\">1,234</data>",
            "A &amp; B",
            "&lt;script&gt;alert(1)&lt;/script&gt;\\u{7}\\u{202e}\\u{e0041}",
            "&quot;x&quot;",
            "<td class=\"n\" style=\"--bar:50.0%\"><data value=\"1024\"",
            "<td class=\"a\" data-label=\"host\">10.0.0.1 → 10.0.0.2</td><td class=\"n\" data-label=\"n\" style=",
            "<h2>C <a href=\"/csv?a=1&amp;b=2\">CSV</a></h2>",
            "<tr><th scope=\"col\">host</th><th scope=\"col\" class=\"n\">n</th></tr>",
            "<td data-label=\"host\"><a href=\"?host=h\">h</a></td>",
            "<footer>digest</footer>",
        ] {
            assert!(html.contains(wanted), "{wanted:?} is missing in {html}");
        }
        assert!(!html.contains("<script"));
        for address in
            ["10.0.0.1", "a 10.0.0.1:53", "[fd00::1]:53 x", "fd00::1: y", "seen by (10.0.0.0/8)"]
        {
            assert!(has_address(address), "{address}");
        }
        assert!(!has_address("host 10.0.0 at 10:20:30, v1.2.3"));
    }
}
