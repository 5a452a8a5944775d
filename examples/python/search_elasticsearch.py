"""Indexes a few articles through the sidecar with Elasticsearch's own client, and searches them in five ways.

    python search_elasticsearch.py --url http://localhost:9201

What the sidecar is to do stands in the header Neardup-Control, because the client's calls refuse parameters that they don't know.
Credentials are the client's own: ELASTICSEARCH_API_KEY, where it is set. The sidecar passes them on and adds none.
"""

import argparse
import json
import os
import pathlib

from elasticsearch import Elasticsearch, helpers

ARTICLES = pathlib.Path(__file__).parent.parent / "articles.jsonl"
FIELDS = {
    "title": {"type": "text"},
    "body": {"type": "text"},
    "host": {"type": "keyword"},
    "published_at": {"type": "date"},
}


def load(client, index):
    """Writes the articles under ids of their own, so that it can be done again."""
    if not client.indices.exists(index=index):
        client.indices.create(index=index, mappings={"properties": FIELDS})
    articles = [json.loads(line) for line in ARTICLES.open(encoding="utf-8")]
    helpers.bulk(client, ({"_index": index, "_id": article["id"], "_source": article} for article in articles), refresh=True)
    print(f"{len(articles)} articles are in {index}.")


def search(client, index, text, control=None):
    headers = {"Neardup-Control": control} if control else {}
    reply = client.options(headers=headers).search(
        index=index,
        query={"multi_match": {"query": text, "fields": ["title", "body"]}},
        source=["title"],
        size=10,
    )
    print(f"\n{control or 'no control'}\nNeardup: {reply.meta.headers.get('neardup')}")
    for hit in reply["hits"]["hits"]:
        print(f"  {hit['_id']:<11} {hit['_source']['title']}")
        for folded in hit.get("inner_hits", {}).get("neardup", {}).get("hits", {}).get("hits", []):
            print(f"    {folded['_id']:<9} {told(folded['fields'])}")


def told(fields):
    """What is said of a folded hit: how far it agrees and, where it was asked for, how that is known."""
    text = f"agrees by {fields['neardup_agreement'][0]:.2f}"
    for why in fields.get("neardup_explain", []):
        text += f" ± {why['error']:.2f}, known by {why['by']}, over {why['shingles'][0]} and {why['shingles'][1]} shingles"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:9201", help="address of the sidecar")
    parser.add_argument("--index", default="articles-example", help="name of the index, which is made if there is none")
    parser.add_argument("text", nargs="*", default=["ferry"], help="words to search for")
    args = parser.parse_args()
    text = " ".join(args.text)
    client = Elasticsearch(args.url, api_key=os.environ.get("ELASTICSEARCH_API_KEY"))
    load(client, args.index)
    for control in (None, "off", "threshold=0.9; expand=ids", "explain=true; expand=ids", "dry_run"):
        search(client, args.index, text, control)


if __name__ == "__main__":
    main()
