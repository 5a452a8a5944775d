"""Stores articles through the sidecar and sends alerts for saved searches: one for each story, however many versions of it come.

    python alerts_opensearch.py --url http://localhost:9201 < articles.jsonl

The rule of the index has `on_duplicate: tag`, so each article gets the id of its cluster when it is written. What was sent is kept in an
index of its own. So the program can be stopped and started again, and run several times at once. Elasticsearch takes the same requests.
"""

import argparse
import json
import os
import sys

from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConflictError

SEARCHES = {"ann": "ferry", "ben": "library", "eve": "choir"}
TEXT = {"title": {"type": "text"}, "body": {"type": "text"}}


def prepare(client, name):
    """Saves the searches, in an index that no rule of the sidecar matches."""
    client.indices.create(index=f"saved-{name}", body={"mappings": {"properties": {"query": {"type": "percolator"}, **TEXT}}}, ignore=400)
    for user, words in SEARCHES.items():
        query = {"multi_match": {"query": words, "fields": ["title", "body"]}}
        client.index(index=f"saved-{name}", id=user, body={"query": query}, refresh=True)


def store(client, name, article):
    """Stores an article and returns its cluster. An article without text is in none."""
    client.index(index=name, id=article["id"], body=article)
    stored = client.get(index=name, id=article["id"], params={"_source": "neardup_cluster"})
    return stored["_source"].get("neardup_cluster", article["id"])


def alert(client, name, article, cluster):
    """Percolates the article's own text, and alerts those who have not had an alert of its cluster."""
    percolate = {"field": "query", "document": article}
    found = client.search(index=f"saved-{name}", body={"query": {"percolate": percolate}, "size": 10000, "_source": False})
    for hit in found["hits"]["hits"]:
        try:  # of several programs that try it, only one succeeds
            client.create(index=f"sent-{name}", id=f"{hit['_id']} {cluster}", body={"article": article["id"]})
        except ConflictError:
            continue
        print(f"{hit['_id']}: {article['id']} {article['title']}", flush=True)  # send your alert here


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:9201", help="address of the sidecar")
    parser.add_argument("--index", default="stories-example", help="name of the index of articles")
    args = parser.parse_args()
    user = os.environ.get("OPENSEARCH_USERNAME"), os.environ.get("OPENSEARCH_PASSWORD")
    client = OpenSearch(args.url, http_auth=user if user[0] else None)
    prepare(client, args.index)
    for line in sys.stdin:
        article = json.loads(line)
        alert(client, args.index, article, store(client, args.index, article))


if __name__ == "__main__":
    main()
