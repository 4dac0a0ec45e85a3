#!/usr/bin/env python3
"""Compares the public paths of the crates that other programs use with the lists in docs/api.

Usage: scripts/public-api.py

Reads the pages of `cargo doc` with the features of scripts/lint.sh. A line is the kind and the path of an item, or of a
variant, field, method or associated item of its own; what it implements of traits is not listed. With RINGTAP_WRITE=1 the lists are
written."""

import difflib
import os
import re
import sys
import urllib.parse

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
DOCS = os.path.join(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"), "doc")
CRATES = ["ringtap", "ringtap_flow", "ringtap_ring", "ringtap_sketch", "ringtap_wire"]
ITEM = re.compile(r'<a href="([^"]*?)(\w+)\.(\w+)\.html">')
MODULE = re.compile(r'<a class="mod" href="([^"]*)/index\.html"')
EXPORT = re.compile(r'<code>pub use (.*?);</code>', re.S)
MEMBER = re.compile(r'id="(method|tymethod|variant|structfield|associatedconstant|associatedtype)\.([\w.]+)(?:-\d+)?"')
# Items of traits, of other types and of the compiler follow.
OTHERS = re.compile(r'id="(?:trait-implementations|synthetic-implementations|blanket-implementations|deref-methods|implementors|foreign-impls)')


def read(*path):
    with open(os.path.join(DOCS, *path), encoding="utf-8") as page:
        return page.read()


def exports(crate, folder):
    """Yields the re-exports of a module and of the modules in it."""
    page, path = read(crate, folder, "index.html"), "::".join([crate, *filter(None, folder.split("/"))])
    for text in EXPORT.findall(page):
        yield f"use {path}: {' '.join(re.sub(r'<[^>]*>', '', text).split())}"
    # A re-exported crate is a module of this one on the page if its own pages were written before.
    for module in (place for place in MODULE.findall(page) if not place.startswith("..")):
        yield f"mod {path}::{module}"
        yield from exports(crate, os.path.join(folder, module))


def paths(crate):
    """Yields the lines of a crate."""
    yield from exports(crate, "")
    for folder, kind, name in ITEM.findall(read(crate, "all.html")):
        path = "::".join([crate, *filter(None, folder.split("/")), name])
        yield f"{kind} {path}"
        own = OTHERS.split(read(crate, urllib.parse.unquote(folder), f"{kind}.{name}.html"))[0]
        for member, inner in MEMBER.findall(own):
            yield f"{member.replace('tymethod', 'method')} {path}::{inner.replace('.field.', '::').replace('.', '::')}"


def main():
    if not os.path.exists(os.path.join(DOCS, CRATES[0], "all.html")):
        sys.exit(f"public-api: {DOCS} has no pages: run cargo doc as scripts/lint.sh does")
    failed = False
    for crate in CRATES:
        name = os.path.join("docs/api", crate.replace("_", "-") + ".txt")
        now = sorted(set(paths(crate)))
        if os.environ.get("RINGTAP_WRITE") == "1":
            os.makedirs(os.path.join(ROOT, "docs/api"), exist_ok=True)
            with open(os.path.join(ROOT, name), "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in now)
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            kept = file.read().splitlines()
        changes = [line for line in difflib.ndiff(kept, now) if line[0] in "+-"]
        print("\n".join([*changes, f"{name}: {len(now)} public paths, {len(changes)} changed"]))
        failed |= bool(changes)
    sys.exit(failed)


if __name__ == "__main__":
    main()
