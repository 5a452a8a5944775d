"""The three verbs for Elasticsearch and OpenSearch, whose clients have the same shape in load and get."""

import common

CHUNK = 200

FIELDS = {
    "properties": {
        "id": {"type": "keyword"},
        "title": {"type": "text"},
        "body": {"type": "text"},
        "url": {"type": "keyword"},
        "published_at": {"type": "date"},
    }
}


def actions(args):
    for document in common.documents(args.corpus):
        yield {"_index": args.index, "_id": document["id"], "_source": document}


def load(client, helpers, args):
    done, errors = helpers.bulk(
        client, actions(args), chunk_size=CHUNK, raise_on_error=False, raise_on_exception=True)
    client.indices.refresh(index=args.index)
    common.show({"loaded": done, "errors": errors})


def search_body(args, number):
    # With --auto the ids are text with a keyword beside it.
    by_id = {"id.keyword" if args.auto else "id": {"order": "asc"}}
    everything = args.query == "*"
    query = {"match_all": {}} if everything else {
        "multi_match": {"query": args.query, "fields": ["title", "body"]}}
    return {
        "from": (number - 1) * args.size,
        "size": args.size,
        "query": query,
        "sort": [by_id] if everything else [{"_score": {"order": "desc"}}, by_id],
    }


def hits(reply):
    total = reply["hits"].get("total")
    return [hit["_id"] for hit in reply["hits"]["hits"]], total and total["value"]
