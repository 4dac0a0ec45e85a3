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

const show = (html) => {
    const active = document.activeElement;
    const focused = content.contains(active) && active.href ? place(active) : null;
    const scrolled = [...content.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    content.innerHTML = html;
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
    if (events || ended || isFixed) return;
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
