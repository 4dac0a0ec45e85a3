#!/usr/bin/env python3
"""scripts/sbom.py FILE [NAME=VERSION=LICENCE...]: prints a list of crates (CycloneDX, of cargo-cyclonedx), with these C libraries,
and without the folder of the tree. With SOURCE_DATE_EPOCH nothing else differs from build to build.
"""

import json
import pathlib
import sys

text = pathlib.Path(sys.argv[1]).read_text().replace(str(pathlib.Path.cwd()), "/ringtap")
bom = json.loads(text)
for library in sys.argv[2:]:
    name, version, licence = library.split("=")
    bom["components"].append({
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "scope": "required",
        "licenses": [{"license": {"id": licence}}],
    })
json.dump(bom, sys.stdout, indent=1)
print()
