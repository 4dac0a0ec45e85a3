//! What surrounds the content of a page: title, form, links.

use ringtap_terminal::chart::escaped;

use super::tables::KINDS;
use super::view::{MEASURES, ROWS, SPANS, View};

/// The page of a view with this content.
pub(super) fn page(title: &str, view: &View, times: Times, content: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" href=\"/page.css\">\
         <script src=\"/page.js\" defer></script><title>ringtap: {title}</title></head><body>\n\
         <a class=\"skip\" href=\"#content\">Skip to the content</a><header><h1>ringtap</h1><p><span>{title}</span><span id=\"status\" role=\"status\">{}</span></p>\n{}{}</header>\n\
         <main id=\"content\">{content}</main>\n\
         <footer>{}</footer></body></html>\n",
        escaped(&times.text),
        form(view),
        links(view, &times) + &tables(view),
        escaped(&crate::text::about()),
    )
}

/// Times of the run, seconds since 1970.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) now_s: u64,
    /// The first second that can be shown.
    pub(super) begin_s: u64,
    /// The time of the view.
    pub(super) text: String,
}

/// What is wrong with a view.
pub(super) fn error(text: &str) -> String {
    format!("<p class=\"error\">{}</p>\n", escaped(text))
}

/// The form that changes the view.
fn form(view: &View) -> String {
    let text = |value: Option<String>| escaped(&value.unwrap_or_default());
    let choice = |name: &str, chosen: bool| {
        let chosen = if chosen { " selected" } else { "" };
        format!("<option{chosen}>{name}</option>")
    };
    let is_between = view.from.is_some();
    let spans: String =
        SPANS.iter().map(|span| choice(span.0, !is_between && *span == view.span)).collect();
    let between = if is_between { "<option value=\"\" selected>between</option>" } else { "" };
    let by: String = MEASURES.iter().map(|name| choice(name, *name == view.by)).collect();
    let rows: String =
        ROWS.iter().map(|rows| choice(&rows.to_string(), *rows == view.rows)).collect();
    let time = |seconds: Option<u64>| {
        seconds.map(|seconds| view.local(seconds.saturating_mul(1_000_000_000)))
    };
    let table = view.table.as_ref().map_or_else(String::new, |table| {
        format!("<input type=\"hidden\" name=\"table\" value=\"{}\">", escaped(table))
    });
    format!(
        "<form action=\"/\" role=\"search\" aria-label=\"Filter\">{table}\
         <label>Host<input id=\"host\" name=\"host\" value=\"{}\" spellcheck=\"false\" autocapitalize=\"off\"></label>\
         <label>Port<input id=\"port\" name=\"port\" value=\"{}\" inputmode=\"numeric\"></label>\
         <label>Application<input name=\"application\" value=\"{}\" autocapitalize=\"off\"></label>\
         <label>Name contains<input name=\"name\" value=\"{}\" autocapitalize=\"off\"></label>\
         <label>Zone<select id=\"zone\" name=\"zone\"><option value=\"{}\" selected>{}</option></select></label>\
         <label>Time<select id=\"span\" name=\"span\">{between}{spans}</select></label>\
         <label>From<input id=\"from\" name=\"from\" value=\"{}\" data-seconds=\"{}\" placeholder=\"2026-11-26 10:02\"></label>\
         <label>Until<input id=\"until\" name=\"until\" value=\"{}\" data-seconds=\"{}\" placeholder=\"now\"></label>\
         <label>Largest by<select name=\"by\">{by}</select></label>\
         <label>Rows<select name=\"rows\">{rows}</select></label>\
         <button>Show</button><button type=\"button\" id=\"pause\" aria-pressed=\"false\" hidden>Pause</button></form>\n",
        text(view.host.map(|host| host.to_string())),
        text(view.port.map(|port| port.to_string())),
        text(view.application.clone()),
        text(view.name.clone()),
        view.zone,
        view.zone_name(),
        text(time(view.from)),
        text(view.from.map(|seconds| seconds.to_string())),
        text(time(view.until)),
        text(view.until.map(|seconds| seconds.to_string())),
    )
}

/// Links to other views: everything, other times, this instant.
fn links(view: &View, times: &Times) -> String {
    let &Times { now_s, begin_s, .. } = times;
    let mut links = Vec::new();
    let mut link = |to: String, text: &str| {
        links.push(format!("<a href=\"{}\">{text}</a>", escaped(&to)));
    };
    if view.is_filtered() {
        let all = |view: &mut View| {
            (view.host, view.port, view.application, view.name) = (None, None, None, None);
        };
        link(view.link_with(all), "Remove the filter");
    }
    let end = view.until.map_or(now_s, |until| until.min(now_s));
    let length = view.from.map_or(view.span.1, |from| end.saturating_sub(from)).max(1);
    let to = |end: u64| {
        view.link_with(|view| {
            (view.from, view.until) = (view.from.map(|_| end.saturating_sub(length)), Some(end));
        })
    };
    if end > begin_s.saturating_add(length) {
        link(to(end - length), "Earlier");
    }
    if view.until.is_some() {
        let later = end.saturating_add(length);
        if later < now_s {
            link(to(later), "Later");
        }
        link(view.link_with(|view| (view.from, view.until) = (None, None)), "Now");
    } else {
        link(view.link_with(|view| view.until = Some(now_s)), "Link to this time");
    }
    format!(
        "<nav aria-label=\"Views\">{}</nav>\n<details><summary>Help</summary><p>Every host, application and name is a \
         link that narrows the page to its flows; the address of the page is that of the view. A host may be a network, \
         10.0.0.0/8. Drag over a chart to see that time; or give its ends: 2026-11-26 10:02, 10:02, -1h. The head of a column \
         sorts the rows that are shown. Alerts and values of the run are those of all hosts. Keys: / goes to the filter, p \
         pauses, 0 removes the filter.</p></details>\n",
        links.join(" ")
    )
}

/// Links to the tables.
fn tables(view: &View) -> String {
    let link = |word: Option<&'static str>, title: &str| {
        let to = view.link_with(|view| {
            view.table = word.map(Into::into);
            view.rows = if word.is_some() { view.rows.max(ROWS[1]) } else { view.rows };
        });
        let current = if word == view.table.as_deref() { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"{}\"{current}>{title}</a>", escaped(&to))
    };
    let known = KINDS.iter().filter(|kind| kind.fits(view));
    let all: Vec<_> = known.map(|kind| link(Some(kind.word), kind.title)).collect();
    format!("<nav aria-label=\"Tables\">{} {}</nav>\n", link(None, "Overview"), all.join(" "))
}
