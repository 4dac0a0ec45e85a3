#!/usr/bin/env python3
"""Rejects words that make the project's texts hard to read: riddles, personified code, archaic forms. Reads all
tracked text files. `words.py --list` prints the allowed occurrences, too. Exit code 1 if a word occurs."""

import re
import subprocess
import sys

# A regular expression, and what to write instead.
WORDS = [
    (r"nobody|somebody|no one", "name the component: caller, reader, worker"),
    (r"whoever|whomever|whosoever", "name the component"),
    (r"whichever|whatever|wherever|whence|whereof|thereof|therein|hereby|hither|thither", "any, all, where"),
    (r"so many|so much", "a number, or: as many as"),
    (r"what there is|what there are|all that there is|all there is", "name the things"),
    (r"hears?|heard|overhears?", "receives, reads"),
    (r"tells?|told|telling", "reports, returns, sends"),
    (r"begs?|owes?|owed|owing", "requests; pending"),
    (r"knows? of|knew of", "has, refers to"),
    (r"ma[dk]es? the books|keeps? the books|the books|bookkeep\w*", "counters, accounting"),
    (r"(?:is|are|was) no (?!longer|more than|less than|such)[a-z]+", "is not a ..., invalid ..."),
    (r"too dear|dearly|in vain|of old|for want of|at ease|by heart", "expensive, failed, missing"),
    (r"tally|tallies|census|knocks?|knocked|bells?", "counts, hosts, attempts, wake-up"),
    (r"lest|albeit|nay|aye|alas|henceforth|thus far|ere", "plain words"),
    (r"gladly|politely|patience|patient|forgets?|forgot|forgotten|remembers?|remembered", "stores, drops"),
    (r"lives? on|dies|die of|deaf|blind|asleep|awake", "continues, exits, idle"),
    (r"kinsman|kin|folk|brethren|guest|neighbour's", "name the component"),
]

# Path prefix, pattern of the word: protocol terms, names of other programs, quoted data.
ALLOWED = [
    ("scripts/words.py", ".*"),
]

PATTERN = re.compile("|".join(rf"\b(?:{word})\b" for word, _ in WORDS), re.IGNORECASE)
SKIPPED = (".lock", ".pcap", ".svg", ".csv", ".json", ".patch", ".der", ".pem", ".snap")
