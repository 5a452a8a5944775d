"""Stores articles through the sidecar and sends alerts for saved searches: one for each story, however many versions of it come.

    TYPESENSE_API_KEY=xyz python alerts_typesense.py --url http://localhost:8109 < articles.jsonl

Typesense keeps no searches, so each is asked again, for the articles of the last hour. The rule of the collection has `on_duplicate: tag`,
so each article gets the id of its cluster when it is written. What was sent is kept in a collection of its own. So the program can be
stopped and started again, and run several times at once. Without articles it asks all the same: run it every few minutes.
"""

import argparse
import json
import os
import sys
import time

import typesense
from typesense.exceptions import ObjectAlreadyExists

SEARCHES = {"ann": "ferry", "ben": "library", "eve": "choir"}
FIELDS = [{"name": "title", "type": "string"}, {"name": "body", "type": "string"}, {"name": "stored_at", "type": "int64"}]


def prepare(client, name):
    known = {collection["name"] for collection in client.collections.retrieve()}
    for collection, fields in ((name, FIELDS), (f"sent-{name}", [{"name": "article", "type": "string"}])):
        if collection not in known:
            client.collections.create({"name": collection, "fields": fields})


def alert(client, name, user, words, since):
    """Alerts a user of each story since then, unless an alert of its cluster was sent."""
    ask = {"q": words, "query_by": "title,body", "filter_by": f"stored_at:>={since}", "per_page": 250,
           "include_fields": "id,title,neardup_cluster"}
    page = 1
    while hits := client.collections[name].documents.search({**ask, "page": page})["hits"]:
        for article in (hit["document"] for hit in hits):
            sent = {"id": f"{user} {article.get('neardup_cluster', article['id'])}", "article": article["id"]}
            try:  # of several programs that try it, only one succeeds
                client.collections[f"sent-{name}"].documents.create(sent)
            except ObjectAlreadyExists:
                continue
            print(f"{user}: {article['id']} {article['title']}", flush=True)  # send your alert here
        page += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:8109", help="address of the sidecar")
    parser.add_argument("--collection", default="stories-example", help="name of the collection of articles")
    args = parser.parse_args()
    client = typesense.Client({"nodes": [args.url], "api_key": os.environ["TYPESENSE_API_KEY"], "connection_timeout_seconds": 10})
    prepare(client, args.collection)
    for line in sys.stdin:
        client.collections[args.collection].documents.upsert({**json.loads(line), "stored_at": int(time.time())})
    for user, words in SEARCHES.items():
        alert(client, args.collection, user, words, int(time.time()) - 3600)


if __name__ == "__main__":
    main()
