"""A session with the official Elasticsearch client, on one thread, on several, and in an event loop."""

import asyncio

import session_steps as steps
from official import elasticsearch, helpers
from session import Session

Elasticsearch, AsyncElasticsearch = elasticsearch.Elasticsearch, elasticsearch.AsyncElasticsearch


def replies(s, client):
    """What replies tell beside their bodies, and how the client is told to go about its requests."""
    main, first = s.index("main"), s.documents[0]["id"]

    def meta(reply):
        return {"status": reply.meta.status, "version": reply.meta.http_version, "type": type(reply).__name__,
                "headers": dict(reply.meta.headers)}
    s.same("info", client.info)  # the client checks here, and on each reply, that it talks to the product it is made for
    s.same("ping", client.ping)
    s.same("headers of info", lambda: meta(client.info()))
    s.same("headers of get", lambda: meta(client.get(index=main, id=first)))
    s.same("headers of exists", lambda: meta(client.exists(index=main, id=first)))
    s.same("headers of search", lambda: meta(client.search(index=main, q="title:old")))
    s.same("headers of bulk", lambda: meta(client.bulk(operations=[{"delete": {"_index": main, "_id": "nowhere"}}])))
    s.same("headers of text", lambda: meta(client.cat.count(index=main, h="count")))
    s.same("traced", lambda: meta(client.options(opaque_id="a trace").search(index=main, q="title:old")))
    s.same("header that turns us off", client.options(headers={"Neardup-Control": "off"}).search, index=main, size=100, sort="id")
    s.same("ignored status", client.options(ignore_status=404).get, index=main, id="nowhere")
    s.same("retried", client.options(max_retries=2, retry_on_status=(404,), request_timeout=20).get, index=main, id="nowhere")
    for name, call in {
        "NotFoundError": lambda: client.get(index=main, id="nowhere"),
        "ConflictError": lambda: client.create(index=main, id=first, document=s.documents[0]),
        "BadRequestError": lambda: client.search(index=main, query={"nothing": {}}),
        "RequestError": lambda: client.indices.create(index=main),
    }.items():
        def caught():
            try:
                call()
            except getattr(elasticsearch, name) as raised:
                return {"error": raised.error, "message": raised.message, **meta(raised)}
        s.same(name, caught)
    s.same("of its own", client.perform_request, "GET", f"/{main}/_doc/{first}", params={"_source": "title"},
           headers={"accept": "application/json"})


def typed(s, client):
    """Calls with arguments of their own in place of bodies, and what OpenSearch has otherwise or not at all."""
    main = s.index("main")
    s.search("typed", lambda start: client.search(
        index=main, query=steps.TEXT, sort=steps.ORDER, from_=start, size=9, source_includes=["title"], fields=["url"],
        aggregations={"n": {"value_count": {"field": "id"}}}, highlight={"fields": {"title": {}}}), 9)
    s.search("filtered reply", lambda start: client.search(
        index=main, query=steps.TEXT, sort=steps.ORDER, from_=start, size=200,
        filter_path=["hits.hits._id", "hits.hits._index", "hits.hits._source.title", "hits.total"]), 200)
    s.same("async search", lambda: client.async_search.submit(
        index=main, query=steps.TEXT, sort="_doc", size=20, wait_for_completion_timeout="20s")["response"]["hits"])
    s.same("terms enum", client.terms_enum, index=main, field="url", string="h", size=5)
    s.same("rank evaluation", lambda: client.rank_eval(index=main, requests=[
        {"id": "one", "request": {"query": steps.TEXT}, "ratings": []}], metric={"precision": {"k": 5}})["failures"])

    def export():
        pit, hits, after = client.open_point_in_time(index=main, keep_alive="1m")["id"], [], None
        while True:
            reply = client.search(
                pit={"id": pit, "keep_alive": "1m"}, sort="_shard_doc", size=17, search_after=after, track_total_hits=False)
            if not reply["hits"]["hits"]:
                return hits, client.close_point_in_time(id=pit)
            hits += reply["hits"]["hits"]
            after, pit = hits[-1]["sort"], reply["pit_id"]
    s.same("export from a point in time", export)
    pit = client.open_point_in_time(index=main, keep_alive="1m")["id"]
    s.cursor("point in time", lambda after: client.search(
        pit={"id": pit, "keep_alive": "1m"}, query=steps.TEXT, size=12,
        sort=[{"published_at": "desc"}, {"id": "asc"}], search_after=after))
    s.search("pages of a point in time", lambda start: client.search(
        pit={"id": pit, "keep_alive": "1m"}, query=steps.TEXT, sort=steps.ORDER, from_=start, size=12), 12)
    s.same("close point in time", client.close_point_in_time, id=pit)
    s.same("close it again", client.close_point_in_time, id=pit)


def main():
    s = Session()
    # Compressed requests and replies, as the client sends and takes them.
    with Elasticsearch(s.args.url, request_timeout=60, http_compress=True, sniff_on_start=False) as client:
        steps.bulk_helpers(s, client, helpers)
        steps.documents(s, client)
    with Elasticsearch(s.args.url, request_timeout=60) as client:
        steps.scans(s, client, helpers)
        steps.indices(s, client)
        steps.searches(s, client)
        steps.special_indices(s, client)
        replies(s, client)
        typed(s, client)
    asyncio.run(steps.asynchronous(s, AsyncElasticsearch(s.args.url, request_timeout=60, http_compress=True), helpers))
    s.show()


main()
