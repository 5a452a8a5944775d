"""How the sidecar's controls get through the clients for Python, and the header of its replies back.

    controls.py elasticsearch|opensearch|typesense --url URL [--key KEY] --index NAME

Each way asks the sidecar to leave a search for "ferry" alone, or to fold hardly anything, but for "none", which asks for nothing.
It prints {way: [hits, header]}: how many hits came, and the header Neardup as far as the client shows it; or {way: error} where
the client refuses.
"""

import argparse
import json

CONTROL = {"Neardup-Control": "off"}


def elasticsearch(args):
    from elasticsearch import Elasticsearch
    client = Elasticsearch(args.url)

    def told(reply):
        return [len(reply["hits"]["hits"]), reply.meta.headers.get("neardup")]
    yield "none", lambda: told(client.search(index=args.index, q="ferry"))
    yield "header", lambda: told(client.options(headers=CONTROL).search(index=args.index, q="ferry"))
    yield "parameter", lambda: told(client.search(index=args.index, q="ferry", neardup="off"))


def opensearch(args):
    from opensearchpy import OpenSearch
    client = OpenSearch(args.url)

    def told(reply):
        return [len(reply["hits"]["hits"]), None]
    yield "none", lambda: told(client.search(index=args.index, params={"q": "ferry"}))
    yield "header", lambda: told(client.search(index=args.index, params={"q": "ferry"}, headers=CONTROL))
    yield "parameter", lambda: told(client.search(index=args.index, params={"q": "ferry", "neardup": "off"}))
    yield "body", lambda: told(client.search(index=args.index, params={"q": "ferry"}, body={"neardup": "off"}))


def typesense(args):
    import typesense
    client = typesense.Client({"nodes": [args.url], "api_key": args.key, "connection_timeout_seconds": 60})

    def told(**control):
        reply = client.collections[args.index].documents.search({"q": "ferry", "query_by": "title,body", **control})
        return [len(reply["hits"]), None]
    yield "none", told
    yield "parameter", lambda: told(neardup="off")
    yield "text", lambda: told(neardup_threshold="0.999")
    yield "fraction", lambda: told(neardup_threshold=0.999)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["elasticsearch", "opensearch", "typesense"])
    for name in ("url", "key", "index"):
        parser.add_argument("--" + name)
    args = parser.parse_args()
    shown = {}
    for way, search in globals()[args.kind](args):
        try:
            shown[way] = search()
        except Exception as raised:
            shown[way] = type(raised).__name__
    print(json.dumps(shown))


main()
