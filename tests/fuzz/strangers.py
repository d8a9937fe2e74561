"""What strangers may write where a branch, an artifact or a cache is read: a corpus that every reader gets as it is."""

import json

DIGITS = "9" * 5000

JSON_SEEDS: tuple[bytes, ...] = (
    b"",
    b"\n",
    b"\0",
    b"\xff\xfe{\0}\0",
    b"\xef\xbb\xbf{}",
    b"[",
    b"[" * 200_000,
    b'{"a":' * 50_000,
    b"[]",
    b"null",
    b"{}",
    b"NaN",
    b"1e999",
    DIGITS.encode(),
    b"-" + DIGITS.encode(),
    b'"\\ud800"',
    b'{"format": null}',
    b'{"format": "reconciler.plan/v99"}',
    b'{"format": "reconciler.report/v99"}',
    b'{"format": "reconciler.\\u001b]0;x\\u0007/v3"}',
    f'{{"format": "{"x" * 100_000}"}}'.encode(),
    f'{{"format": "reconciler.plan/v3", "requests_made": {DIGITS}}}'.encode(),
    b'{"format": "reconciler.plan/v3", "service": "http://["}',
    b'{"format": "reconciler.report/v2", "service": "http://["}',
    b'{"format": "reconciler.plan/v3", "checksum": "\\ud800"}',
    b'{"format": "reconciler.plan/v3", "format": "reconciler.report/v2"}',
    json.dumps({"format": "reconciler.plan/v3", "checksum": {"a": []}}).encode(),
)

COMMIT = "1a" * 20
HEADER = f'{{"format": "reconciler.inventory/v1", "service": "http://127.0.0.1", "commits": {{"0": "{COMMIT}"}}'

INVENTORY_SEEDS: tuple[bytes, ...] = (
    *JSON_SEEDS,
    b'{"format": "reconciler.inventory/v1", "service": "http://[", "commits": {}}',
    b'{"format": "reconciler.inventory/v1", "service": "http://[::1", "commits": {}}\n',
    f'{{"format": "reconciler.inventory/v1", "service": "http://x", "commits": {{"{DIGITS}": "{COMMIT}"}}}}'.encode(),
    f'{{"format": "reconciler.inventory/v1", "service": "http://x", "commits": {{"\u00b2": "{COMMIT}"}}}}'.encode(),
    b'{"format": "reconciler.inventory/v1", "service": "http://x", "commits": {"0": "HEAD"}}',
    b'{"format": "reconciler.inventory/v1", "service": "http://\\u202egpj", "commits": {}}',
)
"""Whole lists."""

LINE_SEEDS: tuple[str, ...] = (
    f'{{"target": "project {DIGITS}", "path": "a"}}',
    f'{{"target": "project 100", "section": "milestones", "name": "a", "id": {DIGITS}}}',
    f'{{"target": "project 100", "section": "milestones", "name": {DIGITS}, "id": 1}}',
    f'{{"target": "project 100", "section": "milestones", "name": "a", "id": 1, "at": {DIGITS}}}',
    '{"target": "project 100", "section": "milestones", "name": "a", "id": 1e999}',
    '{"target": "project 100", "section": "milestones", "part": "../x", "name": "a", "id": 1}',
    '{"target": "project 100", "section": "\\u001b[2J", "name": "a", "id": 1}',
    '{"target": "project 100", "section": "hooks", "url": ' + "[" * 900 + "]" * 900 + "}",
    '{"target": "project 100", "section": "hooks", "url": NaN, "at": 0}',
    '{"target": "project 100", "path": "acme/\\u202eapi\\n"}',
    '{"target": "project 100", "path": "\\ud800"}',
    '{"target": "project 100", "path": "acme/api", "again": "9999-12-31"}',
    '{"target": "project 100", "path": "acme/api", "again": "2026-W01-1"}',
    '{"target": "project 101", "path": "acme/api"}',
    '{"target": "user 7", "path": "acme/api"}',
    '{"target": "group 18446744073709551616", "path": "acme"}',
    '{"target": "instance", "section": "milestones", "name": "a", "id": 1}',
    '{"target": "project 100", "section": "milestones", "name": "\\ud800", "id": 2, "at": 0}',
)
"""Lines of a list that is whole."""

MESSAGE_SEEDS: tuple[bytes, ...] = (
    b"",
    b"apply: " + DIGITS.encode() + b" created\n",
    b"apply: 1 created\n\nResult: " + DIGITS.encode() + b"\n",
    "apply: 1 created\n\nResult: \u00b2\n".encode(),
    b"apply: 1 created\n\nReverts: ../../applied.json\nResult: 3\n",
    b"apply: 1 created\n\nReverts: --yes\nResult: 3\n",
    b"apply: 1 created\n\nReverts: " + b"1a" * 20 + b"\nResult: 3\n",
    b"apply: 1 created\n\nManifests: --all\nJob: javascript:alert(1)\nService: http://[\n",
    b"apply: 1 created\n\nJob: https://[\nCanary: \x1b]0;x\x07\n",
    b"apply: 1 created\n\nCanary: " + b"x" * 100_000 + b"\n",
    b"apply: 1 created, 2 \xff\xfe\n\nResult: 0\n",
    b"apply: " + b"1 created, " * 20_000 + b"\n",
    b"\n\n\n" * 50_000,
)
"""Messages of commits."""

IDENTITY_SEEDS: tuple[bytes, ...] = (
    b"Ada <ada@example.com> 1772366400 +0000",
    b"Ada",
    b"Ada <> 99999999999 +0000",
    b"Ada <> " + DIGITS.encode() + b" +0000",
    b"\x1b]0;x\x07 <a@\xe2\x80\xae> 1 +0000",
    b"x" * 50_000 + b" <a> 1 +0000",
)

CONFIGURATION_SEEDS: tuple[bytes, ...] = (
    *JSON_SEEDS,
    b"inventory: {branch: ../../main}\n",
    b"inventory: {branch: reconciler/--upload-pack=x}\n",
    b"inventory: {remote: --upload-pack=x}\n",
    b"inventory: {remote: [origin]}\n",
    b"inventory: [1]\n",
    b"paths: [/etc/passwd, ../..]\n",
    b"paths: " + DIGITS.encode() + b"\n",
    b"concurrency: " + DIGITS.encode() + b"\n",
    b"concurrency: 1e999\n",
    b"rate: -1\n",
    b"ca_file: /dev/zero\n",
    b"api_url: http://[\n",
    b"api_url: 'http://x y'\n",
    b"api_url: https://\xc3\xa4.\x1b.example.com/api/v4\n",
    b"allow_deletes: {count: " + DIGITS.encode() + b", until: 2026-13-45}\n",
    b"allow_deletes: {count: 1, until: 0000-00-00}\n",
    b"issue: {project: " + DIGITS.encode() + b"}\n",
    b"set: {a: {b: c}}\n",
    b"values: [.]\n",
    b"env: [HOME, 7, null]\n",
    b"a: &a [*a]\n",
    b"a: &a {b: *a}\nvalues: *a\n",
    b"? [1]\n: 2\n",
    b"2026-13-45: x\n",
    b"!!python/object/apply:os.system [true]\n",
)
