#!/usr/bin/env python3
"""Prints the packages of the workspace by layer, and the packages that each uses.

Exits with 1 if a package is not in the table of layers in docs/ARCHITECTURE.md, if it uses a
package of a higher layer, or if there is a cycle. The files of a package must not import each other
in a circle, either. An import through a re-export counts as one of the file that defines the item; a
declaration (`mod`), a re-export and tests do not count.
"""

import collections
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))

# Comments, strings, characters and lifetimes; names; path separators; all else, one by one.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|b?r(?P<hash>\#*)".*?"(?P=hash)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]*?|[^'\\\n])'|'\w+
    |(?P<token>[A-Za-z_]\w*|::|=>|->|\S)""", re.S | re.X)
DEFINES = {"struct", "enum", "union", "trait", "type", "fn", "const", "static"}


def layers():
    """Maps the folder of each package in the table to its layer."""
    found = {}
    with open(os.path.join(ROOT, "docs/ARCHITECTURE.md")) as page:
        for line in page:
            row = re.match(r"\| (\d) \| ([^|]*) \|", line)
            if row:
                found.update((folder, int(row[1])) for folder in re.findall(r"`([^`]*)`", row[2]))
    return found


class Module:
    """The names that a module defines or imports, and the paths that its code has."""

    def __init__(self):
        self.files, self.names, self.globs, self.paths = [], collections.defaultdict(list), [], []
        self.words = collections.defaultdict(set)


class Sources:
    """The modules of one target, read from its root file."""

    def __init__(self, root):
        self.modules = collections.defaultdict(Module)
        self.read((), root, os.path.dirname(root))

    def read(self, name, path, folder):
        with open(path) as file:
            text = file.read()
        # Strings are kept for the attribute `path`.
        tokens = [match[0] for match in TOKEN.finditer(text) if match["token"] or match[0][0] == '"']
        self.module(name, path, folder, tokens)

    def module(self, name, path, folder, tokens):
        """Reads the tokens of a module. `folder` has the files of its children."""
        module = self.modules[name]
        module.files.append(path)
        at, depth, attributes, public = 0, 0, [], False
        # The depth of brackets is 0 outside all items.
        while at < len(tokens):
            token = tokens[at]
            if token == "#" and tokens[at + 1:at + 2] == ["["]:
                end = closing(tokens, at + 1)
                attributes.append(tokens[at + 2:end])
                at = end + 1
                continue
            if token == "pub":
                public = True
                at = closing(tokens, at + 1) + 1 if tokens[at + 1] == "(" else at + 1
                continue
            if attributes and any(one[0] == "cfg" and "test" in one and "not" not in one for one in attributes):
                at, attributes, public = past(tokens, at), [], False
                continue
            before = tokens[at - 1] if at else ""
            follows = tokens[at + 1] if at + 1 < len(tokens) else ""
            step = 1
            if token == "mod" and re.match(r"\w", follows):
                child = name + (follows,)
                module.names[follows].append(("module", path, child))
                if tokens[at + 2] == "{":
                    end = closing(tokens, at + 2)
                    self.module(child, path, os.path.join(folder, follows), tokens[at + 3:end])
                    step = end + 1 - at
                else:
                    self.children(child, path, folder, follows, attributes)
                    step = 3
            elif token == "use" and follows != "<":
                end = tokens.index(";", at)
                for used, alias in tree(tokens[at + 1:end], []):
                    if used[-1] == "*":
                        module.globs.append((path, used[:-1], public))
                    else:
                        module.names[alias].append(("use", path, used))
                        module.paths.append((path, used, alias if public else None))
                step = end + 1 - at
            elif token in DEFINES and depth == 0 and re.match(r"\w", follows) and follows not in DEFINES:
                module.names[tokens[at + 2] if follows == "mut" else follows].append(("item", path, None))
            elif token == "macro_rules":
                module.names[tokens[at + 2]].append(("item", path, None))
            elif re.match(r"[A-Za-z_]", token) and before not in ("::", "."):
                end = at + 1
                while end + 1 < len(tokens) and tokens[end] == "::" and re.match(r"[A-Za-z_]", tokens[end + 1]):
                    end += 2
                if end > at + 1:
                    module.paths.append((path, tokens[at:end:2], None))
                module.words[path].add(token)
                step = end - at
            if token in "{([":
                depth += 1
            elif token in "})]":
                depth -= 1
            attributes, public = [], False
            at += step

    def children(self, child, path, folder, name, attributes):
        """Reads the file of a child, or both where a feature selects one."""
        found = [os.path.join(folder, name + ".rs"), os.path.join(folder, name, "mod.rs")]
        given = [one[one.index("path") + 2].strip('"') for one in attributes if "path" in one]
        if given:
            # Relative to the folder of the file with the declaration.
            given = [os.path.normpath(os.path.join(os.path.dirname(path), one)) for one in given]
            found = given + (found if any(one[0] == "cfg_attr" for one in attributes) else [])
        for file in found:
            if os.path.exists(file):
                inner = os.path.dirname(file) if file.endswith("/mod.rs") else os.path.join(folder, name)
                self.read(child, file, inner)

    def resolve(self, name, path, seen=()):
        """The files that define what `path` means in module `name`, or None if that is another crate's."""
        first, rest = path[0], path[1:]
        if first == "crate":
            return self.within((), rest, seen)
        if first == "self":
            return self.within(name, rest, seen)
        if first == "super":
            return self.within(name[:-1], rest, seen) if name else None
        return self.within(name, path, seen)

    def within(self, name, path, seen):
        while path and path[0] in ("super", "self"):
            name, path = name[:-1] if path[0] == "super" else name, path[1:]
        if not path:
            return set()
        # A module may also re-export an item of a child by the child's name.
        step = name, path[0], bool(path[1:])
        if step in seen or name not in self.modules:
            return None
        seen += (step,)
        module, files = self.modules[name], None
        meanings = module.names.get(path[0], ())
        if path[1:]:
            # A function may have the name of a module, but begins no path.
            meanings = [one for one in meanings if one[0] == "module"] or meanings
        for kind, file, target in meanings:
            if kind == "item":
                found = {file}
            elif kind == "module":
                found = self.within(target, path[1:], seen)
            else:
                found = self.resolve(name, list(target) + path[1:], seen)
            files = files if found is None else (files or set()) | found
        if files is None:
            for _, target, _ in module.globs:
                found = self.resolve(name, target + path, seen)
                files = files if found is None else (files or set()) | found
        return files

    def imports(self):
        """Maps each pair of files to the paths by which the first imports the second."""
        found = collections.defaultdict(set)
        for name, module in self.modules.items():
            for file, path, reexport in module.paths:
                if reexport is None or reexport in module.words[file]:
                    for other in self.resolve(name, path) or ():
                        found[file, other].add("::".join(path))
            for file, path, _ in module.globs:
                for word in module.words[file] - set(module.names):
                    for other in self.resolve(name, path + [word]) or ():
                        found[file, other].add("::".join(path + [word]))
        return {pair: paths for pair, paths in found.items() if pair[0] != pair[1]}


def closing(tokens, at):
    """The place of the bracket that closes the one at `at`."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place] in "{([") - (tokens[place] in "})]")
        if depth == 0:
            return place
    return len(tokens)


def past(tokens, at):
    """The place after the item at `at`."""
    while at < len(tokens) and tokens[at] not in ";,})]":
        if tokens[at] == "{":
            return closing(tokens, at) + 1
        at = closing(tokens, at) + 1 if tokens[at] in "([" else at + 1
    return at + 1 if at < len(tokens) and tokens[at] in ";," else at


def tree(tokens, prefix):
    """The paths of a `use`, each with the name that it gives."""
    path, at = list(prefix), 0
    while at < len(tokens):
        if tokens[at] == "{":
            start, depth = at + 1, 0
            for place in range(at + 1, len(tokens)):
                if depth == 0 and tokens[place] in ",}":
                    if place > start:
                        yield from tree(tokens[start:place], path)
                    start = place + 1
                depth += (tokens[place] == "{") - (tokens[place] == "}")
            return
        if tokens[at] == "as":
            yield path, tokens[at + 1]
            return
        if tokens[at] == "self" and path:
            yield path, tokens[at + 2] if tokens[at + 1:at + 2] == ["as"] else path[-1]
            return
        if tokens[at] != "::":
            path.append(tokens[at])
        at += 1
    yield path, path[-1]


def circles(imports):
    """The sets of files that import each other, directly or through others."""
    uses, order, low, stack, found = collections.defaultdict(list), {}, {}, [], []
    for file, other in sorted(imports):
        uses[file].append(other)

    def visit(file):
        order[file] = low[file] = len(order)
        stack.append(file)
        for other in uses[file]:
            if other not in order:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == order[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for file in sorted(uses):
        if file not in order:
            visit(file)
    return found


def file_faults(folders):
    """The circles among the files of each package, and the imports that cause them."""
    faults = []
    for folder in folders:
        roots = [one for shape in ("lib.rs", "main.rs", "bin/*.rs", "bin/*/main.rs") for one in glob.glob(f"{folder}/src/{shape}")]
        for root in sorted(roots):
            imports = Sources(root).imports()
            for files in circles(imports):
                causes = [f"    {file} → {other}: {', '.join(sorted(imports[file, other]))}"
                          for file, other in sorted(imports) if file in files and other in files]
                faults.append("\n".join([f"{len(files)} files of {folder} import each other in a circle:"] + causes))
    return faults


def lines(folders, uses, program):
    """The lines of Rust under src of a package and of all packages that it uses, with their unit tests."""
    linked, left = set(), [program]
    while left:
        name = left.pop()
        if name not in linked:
            linked.add(name)
            left += uses[name]
    files = (file for name in linked for file in glob.glob(os.path.join(folders[name], "src/**/*.rs"), recursive=True))
    return sum(open(file).read().count("\n") for file in files)


def main():
    os.chdir(ROOT)
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    folders = {one["name"]: os.path.relpath(os.path.dirname(one["manifest_path"]), ROOT) for one in metadata["packages"]}
    uses = {one["name"]: sorted(dep["name"] for dep in one["dependencies"] if dep["kind"] is None and dep["name"] in folders)
            for one in metadata["packages"]}
    layer, faults = layers(), []
    for name, folder in folders.items():
        # The test kit is not in a layer.
        if folder != "testkit" and folder not in layer:
            faults.append(f"{folder} is not in the table of layers")
    faults += [f"{folder} is in the table of layers, but is not a package" for folder in layer if folder not in folders.values()]
    for name, others in uses.items():
        own = layer.get(folders[name], 9)
        faults += [f"{name} uses {other} of a higher layer" for other in others if layer.get(folders[other], 0) > own]

    def visit(name, path):
        if name in path:
            faults.append("cycle: " + " → ".join(path[path.index(name):] + [name]))
            return
        for other in uses[name]:
            visit(other, path + [name])

    for name in uses:
        visit(name, [])
    for name in sorted(uses, key=lambda name: (-layer.get(folders[name], 9), folders[name])):
        print(f"{layer.get(folders[name], '-')}  {folders[name]:18} {', '.join(folders[other] for other in uses[name]) or '–'}")
    print(f"{len(folders)} packages; lines under src of those that ringtap links: {lines(folders, uses, 'ringtap'):,}")
    faults += file_faults(sorted(folders.values()))
    if faults:
        sys.exit("\n".join(sorted(set(faults))))


main()
