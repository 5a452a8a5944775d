"""What the client programs share: the command line and the form of what they print."""

import argparse
import json


def arguments(verbs=("load", "walk", "get")):
    parser = argparse.ArgumentParser()
    if verbs:
        parser.add_argument("verb", choices=verbs)
    parser.add_argument("--url", required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--client", help="see official.py")
    parser.add_argument("--index", required=True)
    parser.add_argument("--corpus", help="documents to load, one JSON object per line")
    parser.add_argument("--auto", action="store_true", help="let the engine find the field types")
    parser.add_argument("--query", default="*")
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--id")
    parser.add_argument("--param", action="append", default=[], metavar="K=V")
    args = parser.parse_args()
    args.params = dict(param.split("=", 1) for param in args.param)
    return args


def documents(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def show(value):
    print(json.dumps(value, ensure_ascii=False))


def walk(page):
    """Asks page(number), from 1 on, for (ids, total) until a page is empty, and shows them all."""
    pages, totals, number = [], [], 1
    while True:
        ids, total = page(number)
        totals.append(total)
        if not ids:
            break
        pages.append(ids)
        number += 1
    show({"pages": pages, "totals": totals})
