// Keeps the page up to date: the server sends the content of this view again and again.
"use strict";
const content = document.getElementById("content");
const status = document.getElementById("status");
const button = document.getElementById("pause");
const isFixed = new URLSearchParams(location.search).get("until");
let events = null;
let paused = false;
let ended = false;
let pressed = false;
let latest = null;

// Identifies a link after the content was replaced.
const place = (link) => {
    const same = [...content.querySelectorAll("a")].filter((one) => one.href === link.href);
    return [link.href, same.indexOf(link)];
};

// The column of each table by which its rows are sorted, and whether downwards.
const sorted = new Map();

const number = (cell) => {
    const exact = cell.querySelector("data");
    const text = cell.textContent.trim();
    return exact ? Number(exact.value) : /^[0-9.]+( s)?$/.test(text) ? parseFloat(text) : NaN;
};

const order = (table, { column, down }) => {
    const rows = [...table.querySelectorAll("tr")].filter((row) => row.querySelector("td"));
    const compare = (one, other) => {
        const [a, b] = [one, other].map((row) => row.children[column]);
        if (!a || !b) return 0;
        const [x, y] = [number(a), number(b)];
        const way = Number.isNaN(x) || Number.isNaN(y) ? a.textContent.localeCompare(b.textContent, "en", { numeric: true }) : x - y;
        return down ? -way : way;
    };
    rows.sort(compare).forEach((row) => row.parentNode.append(row));
};

// Heads of columns sort the rows that are shown.
const prepare = () => {
    content.querySelectorAll("section").forEach((section) => {
        const title = section.querySelector("h2").firstChild.textContent.trim();
        section.querySelectorAll("table").forEach((table) => {
            const heads = [...table.querySelectorAll("th")];
            const by = sorted.get(title);
            heads.forEach((head, column) => {
                const button = document.createElement("button");
                button.type = "button";
                button.textContent = head.textContent;
                head.replaceChildren(button);
                if (by && by.column === column) head.setAttribute("aria-sort", by.down ? "descending" : "ascending");
                button.addEventListener("click", () => {
                    const before = sorted.get(title);
                    const down = before && before.column === column ? !before.down : head.classList.contains("n");
                    sorted.set(title, { column, down });
                    heads.forEach((one) => one.removeAttribute("aria-sort"));
                    head.setAttribute("aria-sort", down ? "descending" : "ascending");
                    order(table, { column, down });
                });
            });
            if (by) order(table, by);
        });
    });
};

const show = (html) => {
    const active = document.activeElement;
    const focused = content.contains(active) && active.href ? place(active) : null;
    const buttons = () => [...content.querySelectorAll("th button")];
    const pushed = buttons().indexOf(active);
    const scrolled = [...content.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    content.innerHTML = html;
    prepare();
    if (pushed >= 0 && buttons()[pushed]) buttons()[pushed].focus({ preventScroll: true });
    content.querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = scrolled[at] || 0; });
    if (focused) {
        const same = [...content.querySelectorAll("a")].filter((one) => one.href === focused[0]);
        if (same.length) same[Math.min(focused[1], same.length - 1)].focus({ preventScroll: true });
    }
};

const say = (text) => { if (status.textContent !== text) status.textContent = text; };

// Nothing changes while the page is paused, under a selection, and during a click.
const update = () => {
    const selection = document.getSelection();
    const selects = !selection.isCollapsed && content.contains(selection.anchorNode);
    if (paused || pressed || selects || latest === null) return;
    show(latest.content);
    say(latest.status);
    latest = null;
};

const follow = () => {
    if (events || ended) return;
    events = new EventSource("/events" + location.search);
    events.onmessage = (message) => {
        latest = JSON.parse(message.data);
        ended = latest.ended;
        if (ended) leave();
        update();
    };
    events.onerror = () => {
        say("No connection; trying again");
        // A refusal ends the events, so try again later.
        if (events.readyState === EventSource.CLOSED) {
            events = null;
            setTimeout(follow, 10000);
        }
    };
};

const leave = () => {
    if (events) events.close();
    events = null;
};

const pause = () => {
    paused = !paused;
    button.setAttribute("aria-pressed", paused);
    button.textContent = paused ? "Go on" : "Pause";
    if (paused) say("Paused: " + status.textContent);
    update();
};

// A drag over a chart shows that time.
const second = (chart, x) => {
    const [from, until, left, right] = chart.dataset.time.split(" ").map(Number);
    const box = chart.querySelector("svg").getBoundingClientRect();
    const part = ((x - box.left) / box.width - left) / (right - left);
    return from + Math.min(1, Math.max(0, part)) * (until - from);
};
let drag = null;
const dragged = (x) => {
    const box = drag.chart.getBoundingClientRect();
    const [left, right] = [Math.min(drag.x, x), Math.max(drag.x, x)];
    drag.mark.style.left = `${left - box.left}px`;
    drag.mark.style.width = `${right - left}px`;
};
content.addEventListener("pointerdown", (down) => {
    const chart = down.target.closest("figure[data-time]");
    if (!chart || down.button !== 0) return;
    const mark = document.createElement("div");
    mark.className = "mark";
    chart.append(mark);
    drag = { chart, mark, x: down.clientX };
    down.preventDefault();
});
document.addEventListener("pointermove", (move) => { if (drag) dragged(move.clientX); });
document.addEventListener("pointerup", (up) => {
    if (!drag) return;
    const { chart, mark, x } = drag;
    drag = null;
    mark.remove();
    if (Math.abs(up.clientX - x) < 5) return;
    const view = new URLSearchParams(location.search);
    const shift = 60 * Number(view.get("zone") || 0);
    const [from, until] = [x, up.clientX].map((at) => Math.round(second(chart, at) - shift)).sort((a, b) => a - b);
    view.delete("span");
    view.set("from", from);
    view.set("until", Math.max(until, from + 1));
    location.assign("/?" + view);
});
document.addEventListener("pointercancel", () => { if (drag) drag.mark.remove(); drag = null; });

// The zone of this browser, as it is now.
const zone = document.getElementById("zone");
for (const minutes of [0, -new Date().getTimezoneOffset()]) {
    if ([...zone.options].some((one) => Number(one.value) === minutes)) continue;
    const sign = minutes < 0 ? "-" : "+", two = (part) => String(Math.floor(part)).padStart(2, "0");
    const size = Math.abs(minutes);
    zone.add(new Option(minutes ? `UTC${sign}${two(size / 60)}:${two(size % 60)} (here)` : "UTC", minutes));
}
// A span instead of a time between two others.
document.getElementById("span").addEventListener("change", () => {
    document.getElementById("from").value = document.getElementById("until").value = "";
});
// Another zone shows the same time.
zone.addEventListener("change", () => {
    const view = new URLSearchParams(location.search);
    view.set("zone", zone.value);
    for (const name of ["from", "until"]) {
        const seconds = document.getElementById(name).dataset.seconds;
        if (seconds) view.set(name, seconds);
    }
    location.assign("/?" + view);
});

prepare();
follow();
button.hidden = Boolean(isFixed);
button.addEventListener("click", pause);
// Browsers allow few connections to a server: a hidden page needs none.
document.addEventListener("visibilitychange", () => { document.hidden ? leave() : follow(); });
document.addEventListener("selectionchange", update);
document.addEventListener("pointerdown", () => { pressed = true; });
const release = () => { pressed = false; update(); };
// After the click.
["pointerup", "pointercancel"].forEach((name) => document.addEventListener(name, () => { setTimeout(release, 0); }));
// A button may be released where the page does not see it.
document.addEventListener("pointermove", (move) => { if (pressed && move.buttons === 0) release(); });
document.addEventListener("keydown", (key) => {
    const typing = ["INPUT", "SELECT"].includes(document.activeElement.tagName);
    if (typing || key.ctrlKey || key.altKey || key.metaKey) return;
    if (key.key === "/") {
        key.preventDefault();
        document.getElementById("host").focus();
    } else if (key.key === "p") {
        pause();
    } else if (key.key === "0") {
        location.assign("/");
    }
});
