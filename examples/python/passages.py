"""What the examples of retrievers share: the passages of a file, ranked by words as a retriever would, and how they are shown."""

import argparse
import json
import pathlib
import re

ARTICLES = pathlib.Path(__file__).parent.parent / "articles.jsonl"


def arguments(text):
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:9201", help="address of the sidecar")
    parser.add_argument("--documents", default=str(ARTICLES), help="a file of documents, one JSON object in each line")
    parser.add_argument("query", nargs="?", default="ferry", help="what to search for")
    return parser.parse_args()


def ranked(path, query):
    """Returns the documents that hold a word of the query, those with the most of them first."""
    words, found = set(query.lower().split()), []
    with open(path, encoding="utf-8") as lines:
        for article in map(json.loads, lines):
            text = article["title"] + "\n" + article["body"]
            score = sum(word in words for word in re.findall(r"\w+", text.lower()))
            if score > 0:
                found.append({"id": article["id"], "text": text, "score": score})
    return sorted(found, key=lambda p: -p["score"])


def show(found):
    """Prints the ids and first lines of passages."""
    for id, text in found:
        print(f"{id:<12} {text.splitlines()[0]}")
    print()
