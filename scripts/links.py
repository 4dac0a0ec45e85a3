#!/usr/bin/env python3
"""Checks links and anchors.

Usage: scripts/links.py [SITE]

Without SITE: of all tracked Markdown files, by GitHub's rules for anchors, and their links into tracked HTML. With SITE, a folder of HTML: of all its pages; also
that the pages load nothing from other hosts. Exit code 1 if a link is broken."""

import html.parser
import os
import re
import subprocess
import sys
import urllib.parse

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
# Pages that are read outside the repository have whole addresses.
REPOSITORY = "https://github.com/ringtap/ringtap/blob/HEAD/"
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")


def without_code(text):
    """Blanks code in a Markdown text; lines stay in their places."""
    lines, fence = [], None
    for line in text.split("\n"):
        mark = re.match(r" {0,3}(```+|~~~+)", line)
        if fence is None and mark:
            fence = mark[1]
            lines.append("")
        elif fence is not None:
            if mark and mark[1].startswith(fence):
                fence = None
            lines.append("")
        else:
            lines.append(line)
    blank = lambda match: "\n" * match[0].count("\n") or "code"
    return re.sub(r"(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", blank, "\n".join(lines), flags=re.DOTALL)


def slug(heading):
    """The anchor of a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower().replace(" ", "-")
    return "".join(c for c in text if c.isalnum() or c in "-_")


def headings(text):
    """The level, text and anchor of each heading of a Markdown text."""
    plain = without_code(text).split("\n")
    for number, line in enumerate(text.split("\n")):
        if (match := re.match(r"(#{1,6}) +(.*?)(?: +#+)?$", line)) and plain[number]:
            yield len(match[1]), match[2], slug(match[2])


def links(text):
    """The number of the line and the target of each link of a Markdown text."""
    plain = without_code(text)
    for match in LINK.finditer(plain):
        yield plain.count("\n", 0, match.start()) + 1, match[1]


def is_outside(target):
    """Whether a target is not within this repository or site."""
    return re.match(r"[a-z][a-z0-9+.-]*:|//", target) is not None


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def check_sources():
    """Yields the errors of all tracked Markdown files."""
    tracked = subprocess.run(["git", "-C", ROOT, "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    folders = {os.path.dirname(path) for path in tracked}
    folders |= {above for path in folders for above in (path[: at.start()] for at in re.finditer("/", path))}
    pages = {path: read(path) for path in tracked if path.endswith(".md") and os.path.exists(os.path.join(ROOT, path))}
    anchors = {path: {anchor for _, _, anchor in headings(text)} for path, text in pages.items()}
    for path, text in pages.items():
        for line, target in links(text):
            folder = os.path.dirname(path)
            if target.startswith(REPOSITORY):
                folder, target = "", target.removeprefix(REPOSITORY)
            if is_outside(target):
                continue
            file, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(folder, urllib.parse.unquote(file))) if file else path
            if file not in tracked and file not in folders:
                yield f"{path}:{line}: {target}: no tracked file {file}"
            elif anchor:
                if file.endswith(".html") and file not in anchors:
                    anchors[file] = Page(read(file)).ids
                if anchor not in anchors.get(file, ()):
                    yield f"{path}:{line}: {target}: no heading or row of this name"


class Page(html.parser.HTMLParser):
    """Links, anchors and loaded addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        for name in ("href", "src", "data", "poster", "action", "srcset"):
            if target := values.get(name):
                self.targets.append(target)
                is_followed = tag == "a" or (tag == "link" and values.get("rel") in ("canonical", "next", "prev"))
                if not is_followed:
                    self.loaded.append(target)


def check_site(site):
    """Yields the errors of a folder of HTML."""
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(site) for name in names]
    pages = {}
    for path in paths:
        if path.endswith(".html"):
            with open(path, encoding="utf-8") as file:
                pages[path] = Page(file.read())
        elif path.endswith(".css"):
            with open(path, encoding="utf-8") as file:
                for target in re.findall(r"(?:url\(|@import )\s*[\"']?([^\"')\s]+)", file.read()):
                    if is_outside(target) and not target.startswith("data:"):
                        yield f"{os.path.relpath(path, site)}: loads {target}"
    count = 0
    for path, page in pages.items():
        name = os.path.relpath(path, site)
        for target in page.loaded:
            if is_outside(target) and not target.startswith("data:"):
                yield f"{name}: loads {target}"
        for target in page.targets:
            if is_outside(target):
                continue
            count += 1
            file, _, anchor = target.split("?")[0].partition("#")
            file, anchor = urllib.parse.unquote(file), urllib.parse.unquote(anchor)
            file = os.path.normpath(os.path.join(site if file.startswith("/") else os.path.dirname(path), file.lstrip("/"))) if file else path
            if os.path.isdir(file):
                file = os.path.join(file, "index.html")
            if not os.path.exists(file):
                yield f"{name}: {target}: no such file"
            elif anchor and file in pages and anchor not in pages[file].ids:
                yield f"{name}: {target}: no such anchor"
    if not pages or not count:
        yield f"{site}: no page with links"


def main():
    errors = list(check_site(sys.argv[1]) if len(sys.argv) > 1 else check_sources())
    for error in errors:
        print(error)
    print(f"links: {len(errors)} broken")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
