"""A reader of news: lists what is unread, each story once. With --read it marks a story as read, in all its versions.

    python feed_opensearch.py --url http://localhost:9201
    python feed_opensearch.py --url http://localhost:9201 --read ferry-1

The rule of the index has `on_duplicate: tag`, so a story has the same id in every search, and a version that comes later has it too.
"""

import argparse
import os
import pathlib

from opensearchpy import OpenSearch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://localhost:9201", help="address of the sidecar")
    parser.add_argument("--index", default="stories-example", help="name of the index of articles")
    parser.add_argument("--state", type=pathlib.Path, default="read.txt", help="the file that remembers what was read")
    parser.add_argument("--read", metavar="ID", help="an article that was read")
    args = parser.parse_args()
    user = os.environ.get("OPENSEARCH_USERNAME"), os.environ.get("OPENSEARCH_PASSWORD")
    client = OpenSearch(args.url, http_auth=user if user[0] else None)
    read = set(args.state.read_text().split()) if args.state.exists() else set()
    everything = {"query": {"match_all": {}}, "sort": [{"published_at": "desc"}], "size": 100}
    reply = client.search(index=args.index, body=everything, params={"neardup_group": "true", "neardup_totals": "collapsed"})
    for hit in reply["hits"]["hits"]:
        story = hit["neardup"]
        if hit["_id"] == args.read:
            read.add(story["group"])
        if story["group"] not in read:
            more = f" (and {story['size'] - 1} more)" if story["size"] > 1 else ""
            print(f"{hit['_id']:<11} {hit['_source']['title']}{more}")
    args.state.write_text("\n".join(sorted(read)))


if __name__ == "__main__":
    main()
