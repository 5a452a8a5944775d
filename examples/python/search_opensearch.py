"""Indexes a few articles through the sidecar with OpenSearch's own client, and searches them collapsed and uncollapsed.

    python search_opensearch.py --url http://localhost:9201

The header Neardup-Control says what the sidecar shall do. The client does not show the headers of a reply, so the header Neardup cannot
be read here. If OpenSearch asks for a user, set OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD. The sidecar passes them on and adds none.
"""

import argparse
import json
import os
import pathlib

from opensearchpy import OpenSearch, helpers

ARTICLES = pathlib.Path(__file__).parent.parent / "articles.jsonl"


def load(client, index):
    """Writes the articles under ids of their own, so that it can be done again."""
    articles = [json.loads(line) for line in ARTICLES.open(encoding="utf-8")]
    helpers.bulk(client, ({"_index": index, "_id": article["id"], "_source": article} for article in articles), refresh=True)
    print(f"{len(articles)} articles are in {index}.")


def search(client, index, text, control):
    reply = client.search(
        index=index,
        body={"query": {"multi_match": {"query": text, "fields": ["title", "body"]}}, "size": 10},
        headers={"Neardup-Control": control},
    )
    print(f"\n{control}")
    for hit in reply["hits"]["hits"]:
        print(f"  {hit['_id']:<11} {hit['_source']['title']}")
        for folded in hit.get("inner_hits", {}).get("neardup", {}).get("hits", {}).get("hits", []):
            print(f"    {folded['_id']:<9} agrees by {folded['fields']['neardup_agreement'][0]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:9201", help="address of the sidecar")
    parser.add_argument("--index", default="articles-example", help="name of the index")
    parser.add_argument("text", nargs="*", default=["ferry"], help="words to search for")
    args = parser.parse_args()
    user = os.environ.get("OPENSEARCH_USERNAME"), os.environ.get("OPENSEARCH_PASSWORD")
    client = OpenSearch(args.url, http_auth=user if user[0] else None)
    load(client, args.index)
    for control in ("expand=ids", "off"):
        search(client, args.index, " ".join(args.text), control)


if __name__ == "__main__":
    main()
