#!/usr/bin/env python3
"""Builds the documentation site in target/site, and checks its links.

Usage: scripts/site.py PROGRAM

Copies the pages that site/mkdocs.yml lists, and the files that they link to, to target/site-source. Writes the pages of the
folder reference there: the flags from the help of PROGRAM, a `ringtap`, and the tables of tasks, fields, metrics and losses
from README.md and docs/. Then runs MkDocs (scripts/setup-site.sh installs it)."""

import html
import os
import re
import shutil
import subprocess
import sys

import links

SOURCE = os.path.join(links.ROOT, "target/site-source")
SITE = os.path.join(links.ROOT, "target/site")
TOOLS = os.path.join(links.ROOT, "target/test-tools/site/bin")
CONFIGURATION = "site/mkdocs.yml"
GENERATED = "reference/"
STYLE = "site/site.css"


def for_generator(text):
    """A Markdown text of GitHub for the generator, which has other rules for bars of code in tables and words behind a language."""
    lines = []
    for line in text.split("\n"):
        if line.startswith("|"):
            line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
        lines.append(re.sub(r"^(```\w+) .*", r"\1", line))
    return "\n".join(lines)


def write(path, text):
    path = os.path.join(SOURCE, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(for_generator(text) if path.endswith(".md") else text)


def listed():
    """The pages in the configuration, in order."""
    return re.findall(r"^ +- .*: (\S+\.md)$", links.read(CONFIGURATION), flags=re.MULTILINE)


def moved(text, begin, end):
    """A Markdown text of the folder `begin`, with links for the folder `end`."""

    def link(match):
        target = match[1]
        if links.is_outside(target):
            return match[0]
        file, mark, anchor = target.partition("#")
        path = os.path.relpath(os.path.normpath(os.path.join(begin, file)), end or ".")
        return match[0].replace(target, path + mark + anchor)

    return links.LINK.sub(link, text)


# Pages as they are, and what they link to.


def folder_page(folder):
    """A page that lists the files of a folder."""
    names = sorted(os.listdir(os.path.join(links.ROOT, folder)))
    of_folder = lambda name: os.path.isdir(os.path.join(links.ROOT, folder, name))
    rows = [f"- [{name}]({name}{'/README.md' if of_folder(name) else ''})" for name in names]
    return f"# {folder}\n\n" + "\n".join(rows) + "\n"


def copy_pages(pages):
    """Copies pages and all that they link to."""
    waiting, done = list(pages), set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        whole = os.path.join(links.ROOT, path)
        if os.path.isdir(whole):
            page = os.path.join(path, "README.md")
            if os.path.exists(os.path.join(links.ROOT, page)):
                waiting.append(page)
                continue
            text = folder_page(path)
            write(page, text)
            folder = path
        elif path.endswith(".md"):
            text = links.read(path)
            folder = os.path.dirname(path)
            write(path, with_pages_of_folders(text, folder))
        else:
            place = os.path.join(SOURCE, path)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copyfile(whole, place)
            continue
        for _, target in links.links(text):
            file = target.partition("#")[0]
            if file and not links.is_outside(target):
                file = os.path.normpath(os.path.join(folder, file))
                waiting.append(file.removesuffix("/README.md") if not os.path.exists(os.path.join(links.ROOT, file)) else file)


def with_pages_of_folders(text, folder):
    """Links to folders become links to their pages."""

    def link(match):
        file, mark, anchor = match[1].partition("#")
        if not file or links.is_outside(match[1]) or not os.path.isdir(os.path.join(links.ROOT, folder, file)):
            return match[0]
        return match[0].replace(match[1], file.rstrip("/") + "/README.md" + mark + anchor)

    return links.LINK.sub(link, text)


# Flags.


def help_of(program, *words):
    result = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True)
    return result.stdout.rstrip("\n").split("\n")


class Help:
    """The help of a command: what it does, its usage, its groups of entries, and the text behind them."""

    def __init__(self, lines):
        self.about = lines[0]
        self.usage, self.groups, self.text = [], [], []
        group = None
        for number, line in enumerate(lines[1:], 1):
            follows = next(filter(None, lines[number + 1 :]), "")
            indent = len(line) - len(line.lstrip())
            if self.text:
                self.text.append(line)
            elif line.startswith("Usage: ") or line.startswith("       ") and not self.groups:
                self.usage.append(line.removeprefix("Usage:").strip())
            elif re.fullmatch(r"[A-Z][\w ]*:", line) and (line == "Commands:" or re.match(r" +[-<\[]", follows)):
                group = []
                self.groups.append((line[:-1], group))
            elif line and not indent:
                self.text.append(line)
            elif line and indent <= 6:
                name, _, meaning = line.strip().partition("  ")
                group.append([name, meaning.strip()])
            elif line:
                group[-1][1] = f"{group[-1][1]} {line.strip()}".strip()
        skipped = ("-h, --help", "-V, --version", "help")
        self.groups = [(name, [entry for entry in group if entry[0] not in skipped]) for name, group in self.groups]
        self.groups = [(name, group) for name, group in self.groups if group]

    def commands(self):
        return [name for title, group in self.groups if title == "Commands" for name, _ in group]


def anchor_of(words, entry):
    flag = re.search(r"--([a-z][a-z0-9-]*)", entry)
    return f"{'-'.join(words)}-{flag[1]}" if flag else None


def section(program, words, level):
    """The sections of a command and its sub-commands."""
    of_command = Help(help_of(program, *words))
    full = " ".join(["ringtap", *words])
    anchors = {anchor_of(words, name) for _, group in of_command.groups for name, _ in group}

    def prose(text):
        def flag(match):
            anchor = anchor_of(words, match[0])
            return f'<a href="#{anchor}">{match[0]}</a>' if anchor in anchors else match[0]

        return re.sub(r"--[a-z][a-z0-9-]*", flag, html.escape(text, quote=False))

    out = [f"{'#' * level} {full}", "", of_command.about + ".", "", "```text", *of_command.usage, "```", ""]
    for title, group in of_command.groups:
        out += [f"**{title}**", "", "<dl>"]
        for name, meaning in group:
            anchor = anchor_of(words, name)
            code = f"<code>{html.escape(name, quote=False)}</code>"
            term = f'<dt id="{anchor}"><a href="#{anchor}">{code}</a></dt>' if anchor else f"<dt>{code}</dt>"
            out.append(f"{term}<dd>{prose(meaning)}</dd>")
        out += ["</dl>", ""]
    if of_command.text:
        out += ["```text", *of_command.text, "```", ""]
    for command in of_command.commands():
        # The smallest commands, such as those of `filter ctl`, have no flags of their own.
        if len(words) < 2:
            out += section(program, [*words, command], level + 1)
    return out


def commands_page(program):
    of_program = Help(help_of(program))
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    out = ["# Commands and flags", "", f"From the help of {version}.", ""]
    out += ["| command | what it does |", "|---|---|"]
    commands = next(group for title, group in of_program.groups if title == "Commands")
    out += [f"| [`ringtap {name}`](#ringtap-{name}) | {meaning} |" for name, meaning in commands]
    out += ["", "`ringtap man DIR` writes the same as man pages.", ""]
    for name, _ in commands:
        out += section(program, [name], 2)
    return "\n".join(out)


# Tables of the documentation.


def tables(text):
    """Yields the title, the anchor and the lines of each table of a Markdown text, with the heading that it is below."""
    heads = {number: head for number, head in located_headings(text)}
    title, rows = ("", ""), []
    for number, line in enumerate([*text.split("\n"), ""]):
        if number in heads:
            title = heads[number]
        if line.startswith("|"):
            rows.append(line)
        elif rows:
            yield *title, rows
            rows = []


def located_headings(text):
    found = iter(list(links.headings(text)))
    plain = links.without_code(text).split("\n")
    for number, line in enumerate(text.split("\n")):
        if re.match(r"#{1,6} ", line) and plain[number]:
            _, title, anchor = next(found)
            yield number, (title, anchor)


def table_page(title, about, path, head):
    """A page with the table of a page that has this head."""
    found = [(heading, anchor, rows) for heading, anchor, rows in tables(links.read(path)) if rows[0] == head]
    if len(found) != 1:
        sys.exit(f"site: {path}: {len(found)} tables have the head {head}")
    heading, anchor, rows = found[0]
    folder = os.path.dirname(path)
    rows = moved("\n".join(rows), folder if "](#" not in head else folder, "reference")
    rows = rows.replace("](../docs#", f"](../{path}#")
    return f"# {title}\n\n{about} From [{heading}](../{path}#{anchor}).\n\n{rows}\n"


def tasks_page(pages):
    """All tables of tasks and commands."""
    out = ["# All tasks", "", "Tests of the project run these commands, or at least parse them.", ""]
    for path in pages:
        if path.startswith(GENERATED):
            continue
        text = links.read(path)
        title = next(links.headings(text))[1]
        for _, anchor, rows in tables(text):
            if rows[0] == "| task | command |":
                out += [f"## {'Common tasks' if path == 'README.md' else title}", "", f"From [{path}](../{path}#{anchor}).", ""]
                folder = os.path.dirname(path)
                lines = with_pages_of_folders(moved("\n".join(rows).replace("](#", f"]({os.path.basename(path)}#"), folder, "reference"), "reference")
                out += [lines, ""]
    return "\n".join(out)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    pages = listed()
    shutil.rmtree(SOURCE, ignore_errors=True)
    copy_pages([page for page in pages if not page.startswith(GENERATED)])
    shutil.copyfile(os.path.join(links.ROOT, STYLE), os.path.join(SOURCE, STYLE))
    write("reference/commands.md", commands_page(program))
    write("reference/tasks.md", tasks_page(pages))
    write(
        "reference/fields.md",
        table_page("Fields of records", "The fields of JSON, CSV, Parquet and IPFIX.", "docs/OUTPUTS.md", "| name | IE | meaning, unit | present |"),
    )
    write("reference/metrics.md", table_page("Metrics", "What `--metrics` and `--web` serve.", "docs/LIVE.md", "| metric | type | meaning |"))
    write(
        "reference/losses.md",
        table_page("Losses", "Why something is missing, or not exact.", "docs/MONITOR.md", "| loss | warning | remedy | metric |"),
    )
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    configuration = os.path.join(links.ROOT, CONFIGURATION)
    done = subprocess.run([f"{TOOLS}/mkdocs", "build", "--strict", "--quiet", "--clean", "--config-file", configuration], env=environment)
    if done.returncode:
        return done.returncode
    errors = list(links.check_site(SITE))
    for error in errors:
        print(error)
    print(f"site: {len(errors)} broken links; to read it with its search: python3 -m http.server -d target/site")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
