#!/usr/bin/env python3
"""Records what Jinja2 makes of each template in data/jinja_cases.jsonl, and rewrites that file.

    pip install jinja2 && python3 tests/text/make_jinja_cases.py tests/text/data/jinja_cases.jsonl

The first line holds the variables, each other line a template `t` with what it renders to (`out`) or
why it does not (`error`; any error will do). To add a case, add a line {"t": "..."} and run this.
The environment is the one of transformers' apply_chat_template."""
import datetime
import json
import sys

import jinja2.ext
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise TemplateError(message)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                    extensions=[jinja2.ext.loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = datetime.datetime(2024, 7, 26, 12, 30).strftime

with open(sys.argv[1], encoding="utf-8") as f:
    first, *cases = [json.loads(line) for line in f]
with open(sys.argv[1], "w", encoding="utf-8") as f:
    print(json.dumps(first, ensure_ascii=False), file=f)
    for case in cases:
        try:
            made = {"out": env.from_string(case["t"]).render(**first["variables"])}
        except Exception as e:  # any of Jinja's or Python's
            made = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps({"t": case["t"], **made}, ensure_ascii=False), file=f)
