#!/usr/bin/env python3
"""Rejects what makes the project's texts hard to read: words (riddles, personified code, archaic forms), doc comments that
begin with a reference to another item, and long cells of tables. Reads all tracked text files, identifiers included. Prints
`path:line: word: advice` for each occurrence; `--list` prints the allowed occurrences too. Exit code 1 if a word occurs
outside the allow list."""

import os
import re
import subprocess
import sys

# A regular expression, and what to write instead.
WORDS = [
    (r"nobody|somebody", "name the component: caller, reader, worker"),
    (r"whoever|whomever|whosoever|whichever(?! (?:comes first|is))|wherever", "name the component; any, all, where"),
    (r"whence|whereof|thereof|therein|thereby|hereby|hither|thither|henceforth", "plain words"),
    (r"lest|albeit|nay|aye|alas|ere|gladly|politely|dearly", "plain words"),
    (r"what there (?:is|are)|all (?:that )?there is", "name the things"),
    (r"hears?|heard|overhears?", "receives, reads"),
    (r"tells?|told|telling", "reports, returns, sends, distinguishes"),
    (r"begs?|owes?|owed|owing", "requests; pending"),
    (r"knows? of|knew of", "has, refers to"),
    (r"(?:ma[dk]es?|keeps?|kept) (?:the )?books|bookkeep\w*", "counters, accounting"),
    (r"(?<!there )(?:is|are|was) no (?:duration|number|name|address|option|packet|frame|file|error|answer|filter|rule|loop|way)s?",
     "is not a ..., invalid ..."),
    (r"too dear|in vain|of old(?=[.,;:])|for want of|at ease|by heart|by lot|for good", "expensive, failed, missing, random"),
    (r"tally|tallies|tallied|census|knock(?:s|ed)?", "counts, hosts, attempts"),
    (r"patience|forgets?|forgot|forgotten|remembers?|remembered", "polls, stores, drops"),
    (r"dies|died|deaf|kin|folk|brethren", "exits, ends, closed"),
    (r"told apart|counted apart|kept apart", "distinguished, counted separately"),
    (r"(?:struct|enum|trait|type) (?:Knock|Census|Board|Came|Whole|Bell|Standing|TooDear|Tally|Books)",
     "a name that says what the type is"),
]

# The start of a path, a pattern of the line, and the reason.
ALLOWED = [
    ("examples/analyses/", r"(?i)knock", "port knocking is the field's term"),
    ("cli/Cargo.toml", r"knocks", "an example's name"),
    ("docs/LIBRARY.md", r"(?i)knock", "port knocking is the field's term"),
    ("scripts/words.py", "", "the list itself"),
    ("", r"fragments[_ ]forgotten|forgotten_fragments|\"forgotten\"", "a published name"),
    ("", r"\bnobody\b.*(user|chown|UID|unprivileged|flags|this name)|(user|chown).*\bnobody\b|--user", "the name of a system user"),
    ("examples/make-office-capture.sh", "printf", "a payload of the bundled capture"),
]

SKIPPED_SUFFIXES = (".lock", ".pcap", ".pcapng", ".svg", ".png", ".csv", ".patch", ".der", ".pem", ".snap")
SKIPPED_PREFIXES = ("LICENSE", "experiments/runs/", "compare/runs/", "fuzz/corpus/")

FORBIDDEN = [(re.compile(rf"\b(?:{word})\b", re.IGNORECASE), advice) for word, advice in WORDS]
ANY = re.compile("|".join(rf"\b(?:{word})\b" for word, _ in WORDS), re.IGNORECASE)
# A doc comment of one line that only refers to another place.
POINTER = re.compile(r"\s*//[/!] See (?:the )?[^.]*\.?$")
DOC = re.compile(r"\s*//[/!]")
# A doc comment that begins with a reference to another item. A sentence may have "the same" before a noun.
REFERENCE = re.compile(
    r"\s*//[/!]\s+(?:(?:It|They|This|That|These|Those|Ditto|Likewise)\b"
    r"|(?:Like|As) (?:the )?(?:above|before|that|this|it|them)\b"
    r"|The same(?: (?:again|also|as|at|behind|before|but|by|for|from|if|in|of|on|to|when|where|with|without)\b|[,;:.]))"
)

# Most characters of a cell of a table.
CELL = 200


def spaced(line):
    """Separates the parts of identifiers: `tells_all` and `TellsAll` become words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", line.replace("_", " "))


def occurrences(lines):
    """Yields the line number, the text and the advice of each forbidden word in `lines`."""
    for number, line in enumerate(lines, 1):
        text = spaced(line)
        if ANY.search(text) or ANY.search(line):
            for word, advice in FORBIDDEN:
                for match in word.finditer(text):
                    yield number, match[0], advice
                if not word.search(text) and (match := word.search(line)):
                    yield number, match[0], advice
        if POINTER.match(line):
            around = lines[number - 2 : number - 1] + lines[number : number + 1]
            if not any(DOC.match(other) for other in around):
                yield number, line.strip(), "say what the item does"
        if (match := REFERENCE.match(line)) and not (number > 1 and DOC.match(lines[number - 2])):
            yield number, match[0].strip(), "say what the item is or does"
        # Rows of tables: in source code, bars mean other things.
        if line.startswith("| ") and (long := [cell for cell in line.split(" | ") if len(cell) > CELL]):
            yield number, long[0].strip("| ")[:40], "a paragraph below the table is easier to read"


def reason(path, line):
    """Returns why an occurrence is allowed, or `None`."""
    for start, pattern, why in ALLOWED:
        if path.startswith(start) and re.search(pattern, line):
            return why
    return None


def main():
    show_allowed = "--list" in sys.argv[1:]
    paths = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    hits = allowed = 0
    for path in filter(None, paths):
        # Another tracked file has the contents of a symbolic link.
        if os.path.islink(path) or path.endswith(SKIPPED_SUFFIXES) or path.startswith(SKIPPED_PREFIXES):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().split("\n")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        for number, word, advice in occurrences(lines):
            why = reason(path, lines[number - 1])
            if why is None:
                hits += 1
                print(f"{path}:{number}: {word}: {advice}")
            else:
                allowed += 1
                if show_allowed:
                    print(f"{path}:{number}: {word}: allowed: {why}")
    print(f"words: {hits} to change, {allowed} allowed")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main())
