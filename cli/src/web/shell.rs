//! What surrounds the content of a page: title, form, links.

use ringtap_terminal::chart::escaped;

use super::view::{ROWS, SPANS, View};

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
        links(view, &times),
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
    let spans: String = SPANS.iter().map(|span| choice(span.0, *span == view.span)).collect();
    let rows: String =
        ROWS.iter().map(|rows| choice(&rows.to_string(), *rows == view.rows)).collect();
    let until =
        view.until.map(|until| format!("<input type=\"hidden\" name=\"until\" value=\"{until}\">"));
    format!(
        "<form action=\"/\" role=\"search\" aria-label=\"Filter\">\
         <label>Host<input id=\"host\" name=\"host\" value=\"{}\" spellcheck=\"false\" autocapitalize=\"off\"></label>\
         <label>Port<input id=\"port\" name=\"port\" value=\"{}\" inputmode=\"numeric\"></label>\
         <label>Application<input name=\"application\" value=\"{}\" autocapitalize=\"off\"></label>\
         <label>Name contains<input name=\"name\" value=\"{}\" autocapitalize=\"off\"></label>\
         <label>Time<select name=\"span\">{spans}</select></label>\
         <label>Rows<select name=\"rows\">{rows}</select></label>{}\
         <button>Show</button><button type=\"button\" id=\"pause\" aria-pressed=\"false\" hidden>Pause</button></form>\n",
        text(view.host.map(|host| host.to_string())),
        text(view.port.map(|port| port.to_string())),
        text(view.application.clone()),
        text(view.name.clone()),
        until.unwrap_or_default(),
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
    if end > begin_s.saturating_add(view.span.1) {
        link(view.link_with(|view| view.until = Some(end - view.span.1)), "Earlier");
    }
    if view.until.is_some() {
        let later = end.saturating_add(view.span.1);
        if later < now_s {
            link(view.link_with(|view| view.until = Some(later)), "Later");
        }
        link(view.link_with(|view| view.until = None), "Now");
    } else {
        link(view.link_with(|view| view.until = Some(now_s)), "Link to this time");
    }
    format!(
        "<nav aria-label=\"Views\">{}</nav>\n<details><summary>Help</summary><p>Every host, application and name is a \
         link that narrows the page to its flows; the address of the page is that of the view. Flows are shown once \
         they have ended; alerts and values of the run are those of all hosts. Keys: / goes to the filter, p pauses, 0 removes the \
         filter.</p></details>\n",
        links.join(" ")
    )
}
