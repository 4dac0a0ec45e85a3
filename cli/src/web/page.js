// Keeps the page up to date: the server sends the content of this view again and again.
"use strict";
const content = document.getElementById("content");
const status = document.getElementById("status");
const button = document.getElementById("pause");
let paused = false;
let ended = false;
let latest = null;

// Identifies a link after the content was replaced.
const place = (link) => {
    const same = [...content.querySelectorAll("a")].filter((one) => one.href === link.href);
    return [link.href, same.indexOf(link)];
};

const show = (html) => {
    const focused = content.contains(document.activeElement) && document.activeElement.href ? place(document.activeElement) : null;
    const scrolled = [...content.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    content.innerHTML = html;
    content.querySelectorAll(".scroll").forEach((one, at) => { one.scrollLeft = scrolled[at] || 0; });
    if (focused) {
        const same = [...content.querySelectorAll("a")].filter((one) => one.href === focused[0]);
        if (same.length) same[Math.min(focused[1], same.length - 1)].focus({ preventScroll: true });
    }
};

const update = () => {
    // Nothing changes under a selection.
    const selection = document.getSelection();
    if (!paused && latest !== null && (selection.isCollapsed || !content.contains(selection.anchorNode))) {
        show(latest);
        latest = null;
    }
};

const say = (text) => { if (status.textContent !== text) status.textContent = text; };

const pause = () => {
    paused = !paused;
    button.setAttribute("aria-pressed", paused);
    button.textContent = paused ? "Go on" : "Pause";
    say(ended ? "The run has ended" : paused ? "Paused" : "Live");
    update();
};

const events = new EventSource("/events" + location.search);
events.onmessage = (message) => {
    const event = JSON.parse(message.data);
    latest = event.content;
    update();
    ended = event.ended;
    if (ended) events.close();
    say(ended ? "The run has ended" : paused ? "Paused" : "Live");
};
events.onerror = () => {
    if (!ended) say("No connection; trying again");
    // A refusal ends the events, so try again later.
    if (events.readyState === EventSource.CLOSED && !ended) setTimeout(() => location.reload(), 10000);
};

button.hidden = false;
button.addEventListener("click", pause);
document.addEventListener("selectionchange", update);
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
