"""valid.json -> tasks for grove bench methods: the beginnings of functions of files that are held out.

usage: tasks.py VALID.json TASKS.jsonl [--tasks 60] [--bytes 300]

A task is the last bytes before and in the first lines of a function, of at most one function of a file, in the order of the files' paths.
"""
import argparse
import json
import re

HEAD = re.compile(r"^func .*\{\n", re.MULTILINE)


def task(path, text, size):
    """The task of a file: the head of the function in its middle, with what comes before; None where it has no function."""
    heads = list(HEAD.finditer(text))
    if not heads:
        return None
    end = heads[len(heads) // 2].end()
    return {"id": path, "category": "held out", "prompt": text[max(0, end - size):end]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("valid")
    p.add_argument("tasks")
    p.add_argument("--tasks", type=int, default=60, dest="most")
    p.add_argument("--bytes", type=int, default=300)
    a = p.parse_args()
    with open(a.valid, encoding="utf-8") as f:
        files = sorted(json.load(f))
    tasks = [t for t in (task(path, text, a.bytes) for path, text in files) if t][:a.most]
    with open(a.tasks, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(t) + "\n" for t in tasks)


if __name__ == "__main__":
    main()
