"""Makes the goldens of templates anew, with the template engine that defines them.

    pip install jinja2==3.1.6
    python3 chat/testdata/golden.py

It renders every template of chat/builtin and chat/testdata/templates with every conversation of golden.json, and
every source of jinja/testdata/language.json with that file's variables, and writes what comes out in the place of
what the files say. To add a conversation or a source, add it to its file and run this.

The engine is set up as chat templates expect it: blocks take the line break behind them and the blanks before them,
templates can change nothing that they are given, and there are break, continue, generation, raise_exception,
strftime_now and a tojson that escapes no HTML.
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2025, 3, 7, 4, 5, 9)
DEFAULTS = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "tools": None, "documents": None}


class Generation(jinja2.ext.Extension):
    """The statement that marks what the model wrote; its inside is rendered as it is."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        return jinja2.nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)


def raise_exception(message):
    raise jinja2.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=NOW.strftime)
    return env


def render(env, source, variables):
    """What a golden says of a render: the text, the message that the template raised, or the error."""
    try:
        return {"want": env.from_string(source).render(json.loads(json.dumps(variables)))}
    except Exception as e:  # whatever is wrong with a template is its result
        return {"raised": e.message} if type(e) is jinja2.TemplateError else {"error": f"{type(e).__name__}: {e}"}


def rewrite(path, change):
    golden = json.loads(path.read_text(encoding="utf-8"))
    change(golden)
    path.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main():
    env = environment()

    def prompts(golden):
        files = [f for folder in (HERE.parent / "builtin", HERE / "templates") for f in sorted(folder.glob("*.jinja"))]
        golden["renders"] = [
            {"template": f.stem, "case": case, **render(env, f.read_text(encoding="utf-8"), DEFAULTS | given)}
            for f in files
            for case, given in golden["conversations"].items()
        ]

    def language(golden):
        golden["cases"] = [
            {"source": c["source"], **render(env, c["source"], golden["vars"])} for c in golden["cases"]
        ]

    rewrite(HERE / "golden.json", prompts)
    rewrite(HERE.parent.parent / "jinja" / "testdata" / "language.json", language)


if __name__ == "__main__":
    main()
