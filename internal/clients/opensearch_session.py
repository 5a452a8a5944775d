"""A session with the official OpenSearch client, on one thread, on several, and in an event loop."""

import asyncio

import opensearchpy
from opensearchpy import AsyncOpenSearch, OpenSearch, helpers

import session_steps as steps
from session import Session


def own(s, client):
    """What this client does in its own way."""
    main, first = s.index("main"), s.documents[0]["id"]
    s.same("info", client.info)
    s.same("ping", client.ping)
    for name, call in {
        "NotFoundError": lambda: client.get(index=main, id="nowhere"),
        "ConflictError": lambda: client.create(index=main, id=first, body=s.documents[0]),
        "RequestError": lambda: client.search(index=main, body={"query": {"nothing": {}}}),
        "TransportError": lambda: client.indices.create(index=main),
    }.items():
        def caught():
            try:
                call()
            except getattr(opensearchpy, name) as raised:
                return [raised.status_code, raised.error, raised.info, str(raised)]
        s.same(name, caught)
    s.same("ignored status", client.get, index=main, id="nowhere", ignore=404)
    s.same("header that turns us off", client.search, index=main, size=100, sort="id", headers={"Neardup-Control": "off"})
    s.same("of its own", client.transport.perform_request, "GET", f"/{main}/_doc/{first}", params={"_source": "title"})
    s.same("plain", client.http.get, f"/{main}/_source/{first}")
    s.search("filtered reply", lambda start: client.search(
        index=main, body={"query": steps.TEXT, "sort": steps.ORDER, "from": start, "size": 200},
        filter_path=["hits.hits._id", "hits.hits._index", "hits.hits._source.title", "hits.total"]), 200)

    def export():
        pit, hits, after = client.create_pit(index=main, params={"keep_alive": "1m"})["pit_id"], [], {}
        while True:
            reply = client.search(body={"pit": {"id": pit, "keep_alive": "1m"}, "sort": ["_doc"], "size": 17, **after})
            if not reply["hits"]["hits"]:
                return hits, client.delete_pit(body={"pit_id": [pit]})["pits"][0]["successful"]
            hits += reply["hits"]["hits"]
            after = {"search_after": hits[-1]["sort"]}
    s.same("export from a point in time", export)
    pit = client.create_pit(index=main, params={"keep_alive": "1m"})["pit_id"]
    body = {"pit": {"id": pit, "keep_alive": "1m"}, "query": steps.TEXT, "size": 12}
    s.cursor("point in time", lambda after: client.search(body={
        **body, "sort": [{"published_at": "desc"}, {"id": "asc"}], **({"search_after": after} if after else {})}))
    s.search("pages of a point in time", lambda start: client.search(body={**body, "sort": steps.ORDER, "from": start}), 12)
    s.same("close point in time", lambda: client.delete_pit(body={"pit_id": [pit]})["pits"][0]["successful"])


def main():
    s = Session()
    with OpenSearch(s.args.url, timeout=60, http_compress=True) as client:
        steps.bulk_helpers(s, client, helpers)
        steps.documents(s, client)
    with OpenSearch(s.args.url, timeout=60, connection_class=opensearchpy.RequestsHttpConnection) as client:
        steps.indices(s, client)
        steps.searches(s, client)
        own(s, client)
    asyncio.run(steps.asynchronous(s, AsyncOpenSearch(s.args.url, timeout=60, http_compress=True), helpers))
    s.show()


main()
