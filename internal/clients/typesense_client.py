"""Loads, pages and reads with the official Typesense client."""

import os
import urllib.parse

import typesense

import common

CHUNK = 200
AUTO = [{"name": ".*", "type": "auto"}]


def fields(documents):
    """Dates are numbers in one corpus and text in another."""
    date = "int64" if all(isinstance(d.get("published_at", 0), int) for d in documents) else "string"
    return [
        {"name": "title", "type": "string"},
        {"name": "body", "type": "string"},
        {"name": "url", "type": "string", "index": False, "optional": True},
        {"name": "published_at", "type": date, "optional": True},
    ]


def connect(args):
    url = urllib.parse.urlsplit(args.url)
    os.environ["NO_PROXY"] = url.hostname  # a proxy for the web is not meant for the engine
    node = {"host": url.hostname, "port": str(url.port), "protocol": url.scheme}
    return typesense.Client({"nodes": [node], "api_key": args.key, "connection_timeout_seconds": 60})


def load(client, args):
    documents = list(common.documents(args.corpus))
    client.collections.create({"name": args.index, "fields": AUTO if args.auto else fields(documents)})
    replies = client.collections[args.index].documents.import_(
        documents, {"action": "upsert"}, batch_size=CHUNK)
    errors = [reply for reply in replies if not reply["success"]]
    common.show({"loaded": len(replies) - len(errors), "errors": errors})


def main():
    args = common.arguments()
    client = connect(args)

    def page(number):
        # The engine cannot sort by id; its own order settles ties.
        reply = client.collections[args.index].documents.search({
            "q": args.query, "query_by": "title,body", "page": number, "per_page": args.size, **args.params})
        return [hit["document"]["id"] for hit in reply["hits"]], reply["found"]

    if args.verb == "load":
        load(client, args)
    elif args.verb == "walk":
        common.walk(page)
    else:
        common.show(client.collections[args.index].documents[args.id].retrieve())


main()
