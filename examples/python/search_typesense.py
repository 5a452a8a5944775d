"""Indexes a few articles through the sidecar with Typesense's own client, and searches them in five ways.

    TYPESENSE_API_KEY=xyz python search_typesense.py --url http://localhost:8109

What the sidecar is to do are parameters beside the engine's own. The key is the client's: the sidecar passes it on. The client
shows no headers of a reply, so what the sidecar did is told by the hits alone, and by `curl -i`.
"""

import argparse
import json
import os
import pathlib

import typesense

ARTICLES = pathlib.Path(__file__).parent.parent / "articles.jsonl"
FIELDS = [
    {"name": "title", "type": "string"},
    {"name": "body", "type": "string"},
    {"name": "host", "type": "string", "facet": True},
]


def load(client, name):
    """Writes the articles under ids of their own, so that it can be done again."""
    if not any(collection["name"] == name for collection in client.collections.retrieve()):
        client.collections.create({"name": name, "fields": FIELDS})
    articles = [json.loads(line) for line in ARTICLES.open(encoding="utf-8")]
    results = client.collections[name].documents.import_(articles, {"action": "upsert"})
    failed = [result for result in results if not result["success"]]
    if failed:
        raise SystemExit(f"{len(failed)} articles were refused: {failed[0]['error']}")
    print(f"{len(articles)} articles are in {name}.")


def search(client, name, text, **control):
    reply = client.collections[name].documents.search(
        {"q": text, "query_by": "title,body", "include_fields": "id,title", "per_page": 10, **control})
    print(f"\n{control or 'no control'}: {reply['found']} found, {len(reply['hits'])} shown")
    for hit in reply["hits"]:
        print(f"  {hit['document']['id']:<11} {hit['document']['title']}")
        for folded in hit.get("neardup", {}).get("hits", []):
            print(f"    {folded['id']:<9} {told(folded)}")


def told(folded):
    """What is said of a folded hit: how far it agrees and, where it was asked for, how that is known."""
    text = f"agrees by {folded['agreement']:.2f}"
    if why := folded.get("explain"):
        text += f" ± {why['error']:.2f}, known by {why['by']}, over {why['shingles'][0]} and {why['shingles'][1]} shingles"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:8109", help="address of the sidecar")
    parser.add_argument("--collection", default="articles-example", help="name of the collection, which is made if there is none")
    parser.add_argument("text", nargs="*", default=["ferry"], help="words to search for")
    args = parser.parse_args()
    text = " ".join(args.text)
    client = typesense.Client({"nodes": [args.url], "api_key": os.environ["TYPESENSE_API_KEY"], "connection_timeout_seconds": 10})
    load(client, args.collection)
    search(client, args.collection, text)
    search(client, args.collection, text, neardup="off")
    search(client, args.collection, text, neardup_threshold="0.9", neardup_expand="ids")  # a text: the client refuses fractions
    search(client, args.collection, text, neardup_explain="true", neardup_expand="ids")
    search(client, args.collection, text, neardup_totals="collapsed")


if __name__ == "__main__":
    main()
