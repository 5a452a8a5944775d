"""Loads, pages and reads with the official OpenSearch client."""

from opensearchpy import OpenSearch, helpers

import common
import search_api


def main():
    args = common.arguments()
    headers = {"authorization": "ApiKey " + args.key} if args.key else None
    client = OpenSearch(args.url, headers=headers, timeout=60)

    def page(number):
        return search_api.hits(client.search(
            index=args.index, body=search_api.search_body(args, number), params=args.params))

    if args.verb == "load":
        if not args.auto:
            client.indices.create(index=args.index, body={"mappings": search_api.FIELDS})
        search_api.load(client, helpers, args)
    elif args.verb == "walk":
        common.walk(page)
    else:
        common.show(client.get(index=args.index, id=args.id)["_source"])


main()
