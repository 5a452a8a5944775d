"""Loads, pages and reads with the official Elasticsearch client."""

import urllib.parse

import common
import search_api
from official import elasticsearch, helpers


def main():
    args = common.arguments()
    client = elasticsearch.Elasticsearch(args.url, api_key=args.key or None, request_timeout=60)

    def page(number):
        body = search_api.search_body(args, number)
        if not args.params:
            return search_api.hits(client.search(
                index=args.index, query=body["query"], sort=body["sort"], from_=body["from"], size=body["size"]))
        # The typed call refuses parameters that it does not know.
        path = "/" + urllib.parse.quote(args.index, safe=",*") + "/_search"
        return search_api.hits(client.perform_request(
            "POST", path, params=args.params, body=body,
            headers={"accept": "application/json", "content-type": "application/json"}))

    if args.verb == "load":
        if not args.auto:
            client.indices.create(index=args.index, mappings=search_api.FIELDS)
        search_api.load(client, helpers, args)
    elif args.verb == "walk":
        common.walk(page)
    else:
        common.show(client.get(index=args.index, id=args.id)["_source"])


main()
