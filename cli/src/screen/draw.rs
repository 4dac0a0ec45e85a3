//! Draws a [`View`]. From 80 × 24 cells everything is visible; on smaller terminals, as much as
//! fits.

use std::net::IpAddr;

use anstream::adapter::strip_str;
use ratatui_core::layout::{Constraint, Layout, Rect};
use ratatui_core::style::{Color, Stylize};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use ringtap_monitor::report::activity::{Activity, Busy, Change, Target};

use super::view::{Health, Order, TALL, View};
use super::widgets::{Clear, Curve, Panel, wrapped};
use ringtap_terminal::names;
use ringtap_terminal::numbers::{bit_rate, bytes, count, of, rate};

/// Cells of a load's bar.
const BAR: usize = 10;

pub(super) fn draw(view: &View, frame: &mut Frame) {
    let [title, rates, above, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(5),
        Constraint::Length(7),
        Constraint::Min(3),
    ])
    .areas(frame.area());
    let halves = |area| {
        let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
        (left, right)
    };
    let list = view.shown_list(frame.area().height);
    // A low terminal shows a list instead of the rest.
    let [below, list_area] = match (list, frame.area().height >= TALL) {
        (None, _) => [below, Rect::ZERO],
        (Some(_), true) => {
            Layout::vertical([Constraint::Length(12), Constraint::Min(3)]).areas(below)
        }
        (Some(_), false) => [Rect::ZERO, below],
    };
    let ((packets, loads), (interval, messages)) = (halves(above), halves(below));
    if let Some(list) = list {
        let lines = view.lines.iter().map(|line| Line::raw(line.as_str())).collect();
        frame.render_widget(Panel::new(list.title, lines), list_area);
    }
    frame.render_widget(heading(view), title);
    draw_rates(view, frame, rates);
    frame.render_widget(Panel::new("Packets", packets_of(view)), packets);
    frame.render_widget(Panel::new(&load_title(view), loads_of(view, loads)), loads);
    let rows = view.outputs.len().min(usize::from(interval.height / 3));
    let [interval, health] = match rows {
        0 => [interval, Rect::ZERO],
        rows => Layout::vertical([Constraint::Min(3), Constraint::Length(rows as u16 + 2)])
            .areas(interval),
    };
    frame.render_widget(Panel::new(&interval_title(view), interval_of(view)), interval);
    frame.render_widget(Panel::new("Outputs", outputs_of(view, rows)), health);
    let [busy, messages] =
        Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(messages);
    let room = usize::from(busy.height.saturating_sub(2));
    let title = format!("Busiest hosts{}", view.order.words());
    frame.render_widget(Panel::new(&title, busy_of(view, room)), busy);
    draw_messages(view, frame, messages);
    if view.help {
        draw_help(frame);
    }
}

/// The keys, over the rest.
fn draw_help(frame: &mut Frame) {
    let lines: Vec<Line<'_>> = [
        "q, Esc  stop reading and report",
        "p       pause and go on; the run does not stop",
        "s       sort the busiest hosts by the next number",
        "t       the next list: flows, hosts, pairs, names, …",
        "?, h    this help; any key closes it",
        "",
        "Shares of flows are of the room in the table. A red",
        "output fails; its lost records are counted.",
    ]
    .map(Line::raw)
    .to_vec();
    let (width, height) = (56, lines.len() as u16 + 2);
    let whole = frame.area();
    let area = Rect {
        x: whole.width.saturating_sub(width) / 2,
        y: whole.height.saturating_sub(height) / 2,
        width: width.min(whole.width),
        height: height.min(whole.height),
    };
    frame.render_widget(Clear, area);
    frame.render_widget(Panel::new("Keys", lines), area);
}

fn load_title(view: &View) -> String {
    let memory = view.memory_bytes.map(|memory| format!(", {} of memory", bytes(memory)));
    format!("Load{}", memory.unwrap_or_default())
}

/// Failing outputs, then those that lost records, then the others, in at most `room` lines.
fn outputs_of(view: &View, room: usize) -> Vec<Line<'_>> {
    let mut outputs: Vec<_> = view.outputs.iter().collect();
    outputs.sort_by_key(|output| (!output.failing, std::cmp::Reverse(output.lost)));
    let line = |output: &Health| {
        let mut text =
            if output.failing { "fails".into() } else { format!("{} sent", count(output.sent)) };
        if output.lost > 0 {
            text += &format!(", {} lost", count(output.lost));
        }
        if output.queued_bytes > 0 {
            text += &format!(", {} wait", bytes(output.queued_bytes));
        }
        let line =
            Line::from(vec![Span::raw(format!("{text}  ")).bold(), Span::raw(output.name.clone())]);
        match (output.failing, output.lost) {
            (true, _) => line.red(),
            (false, 1..) => line.yellow(),
            _ => line,
        }
    };
    if outputs.len() <= room {
        return outputs.into_iter().map(line).collect();
    }
    let shown = room.saturating_sub(1);
    let more = format!("and {} more", outputs.len() - shown);
    outputs.into_iter().take(shown).map(line).chain([more.dim().into()]).collect()
}

fn heading(view: &View) -> Line<'_> {
    let seconds = view.elapsed.as_secs();
    let time = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Line::from(vec![
        "ringtap".bold().cyan(),
        format!("  {time}").bold(),
        if view.paused { "  PAUSED".bold().yellow() } else { "".into() },
        "  ?: keys  q: stop and report  ".dim(),
        Span::raw(&view.title),
    ])
}

fn draw_rates(view: &View, frame: &mut Frame, area: Rect) {
    let now = view.rates.back().copied().unwrap_or(0);
    let most = view.rates.iter().copied().max().unwrap_or(0);
    let full = scale(most);
    let title = format!(
        "{} packets/s, {} (most {}, full height {} packets/s)",
        rate(now as f64),
        bit_rate(view.bits),
        rate(most as f64),
        rate(full as f64)
    );
    let width = usize::from(area.width.saturating_sub(2));
    let latest = view.rates.iter().copied().skip(view.rates.len().saturating_sub(width));
    frame.render_widget(Curve { title, numbers: latest.collect(), most: full }, area);
}

/// The packets per second of a full column: 1, 2 or 5 with zeros, at least 100.
fn scale(most: u64) -> u64 {
    let decades = (2..19).map(|zeros| 10_u64.pow(zeros));
    let scales = decades.flat_map(|decade| [1, 2, 5].map(|digit| decade * digit));
    scales.into_iter().find(|scale| *scale >= most).unwrap_or(most)
}

/// A line with a name and a value.
fn pair<'a>(name: &str, value: String) -> Line<'a> {
    Line::from(vec![Span::raw(format!("{name:<13}")), value.bold()])
}

/// Received and lost packets.
fn packets_of(view: &View) -> Vec<Line<'_>> {
    let now = &view.now;
    let received = now.packets + now.dropped;
    let share = |part: u64| 100.0 * part as f64 / received.max(1) as f64;
    let lost = |name: &str, part: u64| {
        let line = pair(name, format!("{} ({:.1} %)", count(part), share(part)));
        if part > 0 { line.yellow() } else { line }
    };
    // What is lost is above what does not fit.
    let mut lines = vec![pair("received", count(received)), lost("dropped", now.dropped)];
    if now.shed > 0 {
        lines.push(lost("shed", now.shed));
    }
    if view.records_lost() > 0 {
        lines.push(pair("records lost", count(view.records_lost())).yellow());
    }
    lines.extend(view.losses.iter().map(|loss| Line::raw(loss.as_str()).yellow()));
    lines.extend([pair("read", count(now.packets)), pair("octets", bytes(now.bytes))]);
    lines
}

fn interval_title(view: &View) -> String {
    let Some((interval, _)) = &view.interval else { return "Interval".into() };
    let seconds = interval.end.0.saturating_sub(interval.start.0) as f64 / 1e9;
    format!("Last {seconds} s")
}

fn interval_of(view: &View) -> Vec<Line<'_>> {
    let Some((interval, live)) = &view.interval else {
        return vec!["none finished yet".dim().into()];
    };
    let conversations = &interval.conversations;
    let about = if conversations.exact { "" } else { "about " };
    let mut lines = vec![
        pair("packets", count(interval.packets.handled)),
        flows_of(*live, view.max_flows),
        pair(
            "conv.",
            format!("{about}{} TCP, {} UDP", count(conversations.tcp), count(conversations.udp)),
        ),
    ];
    let mut protocols: Vec<_> = interval.protocols.iter().collect();
    protocols.sort_by_key(|(protocol, volume)| (std::cmp::Reverse(volume.octets), **protocol));
    lines.extend(protocols.into_iter().map(|(protocol, volume)| {
        let value = format!("{} in {}", bytes(volume.octets), count(volume.packets));
        pair(&names::protocol(*protocol), value)
    }));
    lines
}

/// Live flows, and how full their table is.
fn flows_of<'a>(live: u64, most: u64) -> Line<'a> {
    let share = 100.0 * live as f64 / most.max(1) as f64;
    let line = pair("flows live", format!("{} ({share:.1} % of room)", count(live)));
    if share > 90.0 { line.yellow() } else { line }
}

/// The busiest hosts of the interval, in at most `room` lines.
fn busy_of(view: &View, room: usize) -> Vec<Line<'_>> {
    let Some(activity) = &view.activity else {
        return Vec::new();
    };
    let Activity { senders, receivers, targets, spreaders, changers, .. } = activity;
    // The first list gets the rows that the others leave.
    let rest: usize =
        [targets.len().min(2), spreaders.len().min(2), changers.len().min(2)].iter().sum();
    let line = |what: &str, address: &IpAddr, value: String| {
        Line::from(vec![Span::raw(format!("{what:<7}{address}  ")), value.bold()])
    };
    let sent = |row: &Busy| line("sent", &row.address, bytes(row.lower));
    let received = |row: &Busy| line("recv", &row.address, bytes(row.lower));
    let packets = |row: &Target| {
        let value = format!("{} packets, {}", count(row.lower), names::protocol(row.protocol));
        line("recv", &row.address, value)
    };
    let peers = |row: &Busy| line("peers", &row.address, of(row.lower, "host"));
    let change = |row: &Change| {
        let value = format!("{} → {}", bytes(row.before), bytes(row.now));
        line("change", &row.address, value)
    };
    match view.order {
        Order::Mixed => {
            let first = senders.iter().take(room.saturating_sub(rest).max(2)).map(sent);
            let others = targets.iter().take(2).map(packets);
            let others = others.chain(spreaders.iter().take(2).map(peers));
            first.chain(others).chain(changers.iter().take(2).map(change)).collect()
        }
        Order::Sent => senders.iter().take(room).map(sent).collect(),
        Order::Received => receivers.iter().take(room).map(received).collect(),
        Order::Packets => targets.iter().take(room).map(packets).collect(),
        Order::Peers => spreaders.iter().take(room).map(peers).collect(),
        Order::Change => changers.iter().take(room).map(change).collect(),
    }
}

/// Queues, then threads, the busiest first.
fn loads_of(view: &View, area: Rect) -> Vec<Line<'_>> {
    let room = usize::from(area.height.saturating_sub(2));
    let all: u64 = view.queues.iter().sum();
    let share = |part: u64| part as f64 / all.max(1) as f64;
    let queues = view.queues.iter().enumerate().filter(|_| view.queues.len() > 1);
    let mut lines: Vec<_> = queues
        .map(|(at, &part)| {
            let value = format!("{}/s, {:.0} %", rate(part as f64), 100.0 * share(part));
            pair(&format!("queue {at}"), value)
        })
        .take(room / 2)
        .collect();
    let mut loads: Vec<_> = view.loads.iter().collect();
    loads.sort_by(|a, b| b.busy.total_cmp(&a.busy));
    loads.truncate(room - lines.len());
    lines.extend(loads.iter().map(|load| {
        let output = load.output().and_then(|place| view.outputs.get(place));
        let name = output.map_or("", |output| &output.name);
        bar(&load.thread, load.busy, format!("{:.0} % {name}", 100.0 * load.busy))
    }));
    lines
}

/// A line with a name, a bar for a share from 0 to 1, and a value.
fn bar<'a>(name: &str, share: f64, value: String) -> Line<'a> {
    // A full bar is a full core.
    let full = (share * BAR as f64) as usize;
    let color = if share > 0.9 { Color::Red } else { Color::Green };
    let name: String = name.chars().take(17).collect();
    Line::from(vec![
        Span::raw(format!("{name:<18}")),
        Span::styled("█".repeat(full.min(BAR)), color),
        Span::raw("·".repeat(BAR.saturating_sub(full))).dim(),
        Span::raw(format!(" {value}")),
    ])
}

/// The latest messages, as many as fit.
fn draw_messages(view: &View, frame: &mut Frame, area: Rect) {
    let room = usize::from(area.height.saturating_sub(2));
    let width = usize::from(area.width.saturating_sub(2)).max(1);
    let latest = view.messages.iter().rev();
    let broken =
        latest.flat_map(|line| wrapped(&strip_str(line).to_string(), width).into_iter().rev());
    let mut lines: Vec<_> = broken.take(room).map(Line::raw).collect();
    lines.reverse();
    frame.render_widget(Panel::new("Alerts and messages", lines), area);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui_core::backend::TestBackend;
    use ratatui_core::terminal::Terminal;
    use ringtap_engine::Watch;
    use ringtap_monitor::EndedInterval;
    use ringtap_monitor::report::{Interval, Time, Volume};

    use super::*;
    use crate::loads::ThreadLoad;

    /// The lines of a terminal of this size.
    fn shown(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(view, frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        (0..height).map(line).collect()
    }

    fn view() -> View {
        let watch = Watch::new();
        let mut view = View::new("eth0 by AF_XDP".into(), 2, 10_000);
        view.update(&watch, Duration::from_secs(60), Vec::new());
        watch.packets.add(0, 3_000_000);
        watch.packets.add(1, 1_000_000);
        watch.bytes.add(0, 256_000_000);
        watch.dropped.add(0, 1_000_000);
        let load = |thread: &str, busy| ThreadLoad { thread: thread.into(), busy };
        let loads = vec![load("attendant", 0.01), load("queue 0", 0.97)];
        view.update(&watch, Duration::from_secs(62), loads);
        let mut interval =
            Interval { start: Time(0), end: Time(5_000_000_000), ..Interval::default() };
        interval.packets.handled = 1_234_567;
        interval.protocols.insert(6, Volume { packets: 1_000_000, octets: 5 << 20 });
        interval.protocols.insert(132, Volume { packets: 7, octets: 700 });
        let host = |last| IpAddr::from([10, 0, 0, last]);
        let activity = Activity {
            senders: vec![Busy { address: host(1), lower: 3 << 20, upper: 4 << 20 }],
            receivers: vec![Busy { address: host(3), lower: 9 << 20, upper: 9 << 20 }],
            spreaders: vec![Busy { address: host(2), lower: 77, upper: 77 }],
            ..Activity::default()
        };
        view.interval(&EndedInterval {
            interval: &interval,
            live: 4_321,
            activity: Some(&activity),
        });
        view.add_message("warning: something is wrong");
        view.memory_bytes = Some(2 << 20);
        view.losses = vec!["450 flows ended early".into()];
        let output = |name: &str, failing, lost, queued_bytes| Health {
            name: name.into(),
            failing,
            sent: 7,
            lost,
            queued_bytes,
        };
        view.outputs = vec![
            output("json:flows.json", false, 0, 3 << 10),
            output("ipfix://[fd00::1]:4739", true, 12, 0),
        ];
        view
    }

    #[test]
    fn a_terminal_of_80_by_24_shows_all_values() {
        let lines = shown(&view(), 80, 24);
        let has =
            |words: &[&str]| lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
        let page = lines.join("\n");
        assert!(has(&["eth0 by AF_XDP", "0:01:02", "q: stop"]), "{page}");
        assert!(
            has(&["2.00 M packets/s", "1.02 Gbit/s", "full height 2.00 M packets/s"]),
            "{page}"
        );
        assert!(has(&["received", "5,000,000"]), "{page}");
        assert!(has(&["dropped", "1,000,000 (20.0 %)"]), "{page}");
        assert!(has(&["Last 5 s"]) && has(&["packets", "1,234,567"]), "{page}");
        assert!(has(&["flows live", "4,321 (43.2 % of room)"]), "{page}");
        assert!(has(&["Load, 2.00 MiB of memory"]), "{page}");
        assert!(
            has(&["fails, 12 lost", "ipfix://[fd00::"]) && has(&["7 sent, 3.00 KiB wait"]),
            "{page}"
        );
        assert!(has(&["records lost", "12"]) && has(&["450 flows ended early"]), "{page}");
        assert!(has(&["10.0.0.1", "3.00 MiB"]) && has(&["10.0.0.2", "77 hosts"]), "{page}");
        assert!(has(&["TCP", "5.00 MiB in 1,000,000"]) && has(&["SCTP"]), "{page}");
        assert!(
            has(&["queue 0", "1.50 M/s, 75 %"]) && has(&["queue 1", "500 k/s, 25 %"]),
            "{page}"
        );
        assert!(has(&["queue 0", "97 %"]), "{page}");
        assert!(has(&["warning: something is wrong"]), "{page}");
    }

    #[test]
    fn lists_of_flows_are_below_the_rest_or_instead_of_it() {
        let mut view = view();
        view.lines = vec!["host  octets".into(), "10.0.0.7  7".into()];
        let page = |view: &View, height| shown(view, 100, height).join("\n");
        assert!(!page(&view, 24).contains("10.0.0.7"));
        let tall = page(&view, 40);
        assert!(tall.contains("Flows, live ones first") && tall.contains("10.0.0.7"), "{tall}");
        assert!(tall.contains("Busiest hosts") && tall.contains("warning: something"), "{tall}");
        for title in
            ["Flows, live", "Hosts of", "Pairs of", "Applications of", "Names of", "Failed"]
        {
            view.turn();
            let low = page(&view, 24);
            assert!(low.contains(title) && low.contains("10.0.0.7"), "{low}");
            assert!(low.contains("received") && !low.contains("Busiest hosts"), "{low}");
        }
        view.turn();
        assert_eq!(view.list, None);
    }

    #[test]
    fn a_bar_is_full_if_the_core_is() {
        let shown = |share| bar("a", share, String::new()).spans[1].content.chars().count();
        assert_eq!([0.0, 0.09, 0.55, 0.99, 1.0].map(shown), [0, 0, 5, 9, 10]);
    }

    #[test]
    fn hosts_are_sorted_by_each_number_and_help_covers_the_rest() {
        let mut view = view();
        let page = |view: &View| shown(view, 80, 24).join("\n");
        for (title, host) in [
            ("Busiest hosts by octets sent", "sent   10.0.0.1"),
            ("Busiest hosts by octets received", "recv   10.0.0.3"),
            ("Busiest hosts by packets received", ""),
            ("Busiest hosts by hosts sent to", "peers  10.0.0.2"),
            ("Busiest hosts by change", ""),
            ("Busiest hosts─", "sent   10.0.0.1"),
        ] {
            view.sort();
            let page = page(&view);
            assert!(page.contains(title) && page.contains(host), "{page}");
        }
        assert!(!page(&view).contains("PAUSED"));
        view.paused = true;
        view.help = true;
        let page = page(&view);
        assert!(page.contains("PAUSED") && page.contains("pause and go on"), "{page}");
    }

    /// A full column, and a full bar, have their scale beside them.
    #[test]
    fn one_packet_a_second_fills_no_bar() {
        let (watch, load) = (Watch::new(), ThreadLoad { thread: "queue 0".into(), busy: 0.0 });
        let mut view = View::new("eth0".into(), 2, 100);
        for second in 1..=60 {
            watch.packets.add(0, 1);
            view.update(&watch, Duration::from_secs(second), vec![load.clone()]);
        }
        let lines = shown(&view, 80, 24);
        assert!(lines[1].contains("most 1, full height 100 packets/s"), "{}", lines[1]);
        assert!(!lines.concat().contains('█'), "{}", lines.join("\n"));
        assert_eq!([0, 100, 101, 999, 2_000_001].map(scale), [100, 100, 200, 1_000, 5_000_000]);
    }

    #[test]
    fn any_terminal_size_can_be_drawn() {
        let mut view = view();
        view.help = true;
        for (width, height) in [(1, 1), (2, 50), (20, 5), (80, 3), (400, 100)] {
            assert_eq!(shown(&view, width, height).len(), usize::from(height));
        }
        // Also before the first packet.
        shown(&View::default(), 80, 24);
    }
}
