"""The steps that the sessions of the Elasticsearch and the OpenSearch client share, whose calls have the same shape."""

import search_api
from session import plain

ORDER = ["_score", {"id": "asc"}]
TEXT = {"multi_match": {"query": "river town old", "fields": ["title", "body"]}}
ALL = {"match_all": {}}


def action(document, index, op="index", **more):
    return {"_op_type": op, "_index": index, "_id": document["id"], **more, **({} if op == "delete" else {"_source": document})}


def unordered(results):
    """Results of work that runs side by side: sequence numbers and versions depend on who was first."""
    shown = []
    for ok, result in results:
        for op, item in result.items():
            shown.append([ok, op, item["_id"], item["status"], item.get("result"), item.get("error")])
    return sorted(shown, key=lambda entry: entry[:3])


def bulk_helpers(s, client, helpers):
    """Whole documents, updates, deletes and errors by each of the helpers."""
    main, other, fresh = s.index("main"), s.index("other"), s.index("fresh")
    documents = s.documents
    s.same("create index", client.indices.create, index=main, body={"mappings": search_api.FIELDS})
    # In one piece, so that the order of the index, which settles ties, is the same each time.
    s.same("bulk", helpers.bulk, client, (action(d, main) for d in documents), refresh=True)
    s.same("bulk in pieces", helpers.bulk, client, (action(d, s.index("pieces")) for d in documents), chunk_size=37)
    # An index that its first write makes.
    s.same("streaming_bulk", lambda: list(helpers.streaming_bulk(
        client, [action(d, fresh) for d in documents[:20]], chunk_size=7, yield_ok=True, refresh=True)))
    s.same("parallel_bulk", lambda: unordered(helpers.parallel_bulk(
        client, (action(d, other, op="create") for d in documents[:60]), thread_count=4, chunk_size=9)))
    mixed = [
        action(documents[0], other, op="create"),  # exists
        action(documents[1], other, op="delete"),
        action({"id": "nowhere"}, other, op="delete"),
        action({**documents[2], "published_at": "no date"}, main),
        {"_op_type": "update", "_index": other, "_id": documents[3]["id"], "doc": {"title": "a title of its own"}},
        {"_op_type": "update", "_index": other, "_id": documents[4]["id"], "doc": {"n": 1}},
        {"_op_type": "update", "_index": other, "_id": "made", "doc": documents[5], "doc_as_upsert": True},
        {"_op_type": "update", "_index": other, "_id": "scripted", "upsert": documents[6],
         "script": {"source": "ctx._source.n = params.n", "params": {"n": 2}}},
        {"_op_type": "update", "_index": other, "_id": "nowhere", "doc": {"n": 1}},
        {"_op_type": "update", "_index": other, "_id": documents[4]["id"], "doc": {"n": 1}, "_source": True},
    ]
    s.same("bulk of all kinds", lambda: list(helpers.streaming_bulk(client, mixed, raise_on_error=False)))
    s.same("bulk that raises", helpers.bulk, client, mixed[:4])
    s.same("bulk statistics", helpers.bulk, client, mixed, stats_only=True, raise_on_error=False)
    s.same("bulk itself", client.bulk, index=other, body=[
        {"index": {"_id": "plain"}}, documents[7],
        {"update": {"_id": "plain"}}, {"doc": {"body": documents[8]["body"]}, "_source": ["title"]},
        {"delete": {"_id": "plain"}}], refresh=True)
    s.same("refresh all", client.indices.refresh, index=s.index("*"))


def scans(s, client, helpers):
    """Exports, and copies made by them."""
    main, copy = s.index("main"), s.index("copy")
    s.same("scan", lambda: sorted((hit["_id"], hit["_source"]["title"]) for hit in helpers.scan(client, index=main, size=11)))
    s.same("scan in order", lambda: list(helpers.scan(
        client, index=main, size=11, preserve_order=True, query={"query": TEXT, "sort": ORDER, "_source": ["title", "url"]})))
    s.same("reindex helper", helpers.reindex, client, main, s.index("reindexed"), chunk_size=50)  # asks for data streams first
    s.same("copy", helpers.bulk, client, ({**hit, "_index": copy} for hit in helpers.scan(client, index=main)), chunk_size=50)
    s.same("refresh copies", client.indices.refresh, index=s.index("*"))
    s.same("count copy", client.count, index=copy)
    s.same("mapping of copy", client.indices.get_mapping, index=copy)
    s.same("reindex in the engine", client.reindex, refresh=True, body={
        "source": {"index": main, "query": TEXT}, "dest": {"index": s.index("inner")}})
    s.same("scan of the engine's copy", lambda: sorted(
        (hit["_id"], hit["_source"]["title"]) for hit in helpers.scan(client, index=s.index("inner"))))

    def scroll():
        reply = client.search(index=main, body={"query": TEXT, "sort": ORDER, "size": 13}, scroll="1m")
        pages = [reply["hits"]]
        while reply["hits"]["hits"]:
            reply = client.scroll(body={"scroll_id": reply["_scroll_id"], "scroll": "1m"})
            pages.append(reply["hits"])
        return pages, client.clear_scroll(body={"scroll_id": [reply["_scroll_id"]]})
    s.same("scroll", scroll)


def documents(s, client):
    """Single documents: reads, writes, partial updates, errors."""
    main, work, d = s.index("main"), s.index("work"), s.documents
    first = d[0]["id"]
    s.same("index", client.index, index=work, id="1", body=d[0])
    s.same("index anew", client.index, index=work, id="1", body=d[1])
    s.same("index under no id", lambda: client.index(index=work, body=d[1])["result"])
    s.same("create twice", client.create, index=work, id="1", body=d[2])
    s.same("create", client.create, index=work, id="2", body=d[2], refresh=True)
    s.same("not a document", client.index, index=main, id="3", body={"published_at": ["no", "date"]})
    for step, body in {
        "whole": {"doc": {"title": d[3]["title"], "body": d[3]["body"]}},
        "the same again": {"doc": {"title": d[3]["title"], "body": d[3]["body"]}},
        "part": {"doc": {"title": "half of it"}},
        "other field": {"doc": {"n": 5}},
        "script": {"script": {"source": "ctx._source.n += params.by", "params": {"by": 3}}},
        "script that does nothing": {"script": "ctx.op = 'none'"},
        "broken script": {"script": {"source": "ctx._source.n +"}},
    }.items():
        s.same(f"update: {step}", client.update, index=work, id="1", body=body)
        s.same(f"after update: {step}", client.get, index=work, id="1")
    s.same("update with source", client.update, index=work, id="1", body={"doc": {"n": 9}}, _source=True)
    s.same("upsert", client.update, index=work, id="4", body={"doc": {"n": 1}, "upsert": d[4]})
    s.same("upsert of what exists", client.update, index=work, id="4", body={"doc": {"n": 1}, "upsert": d[5]})
    s.same("doc_as_upsert", client.update, index=work, id="5", body={"doc": d[5], "doc_as_upsert": True})
    s.same("update of nothing", client.update, index=work, id="nowhere", body={"doc": {"n": 1}})
    s.same("conflict", client.index, index=work, id="1", body=d[0], if_seq_no=0, if_primary_term=1)
    s.same("external version", client.index, index=work, id="6", body=d[6], version=17, version_type="external")
    s.same("lower version", client.index, index=work, id="6", body=d[6], version=3, version_type="external")
    s.same("get", client.get, index=main, id=first)
    s.same("get in part", client.get, index=main, id=first, _source_includes=["t*", "url"], _source_excludes=["url"])
    s.same("get without source", client.get, index=main, id=first, _source=False)
    s.same("get_source", client.get_source, index=main, id=first)
    s.same("get nothing", client.get, index=main, id="nowhere")
    s.same("get from nowhere", client.get, index=s.index("nowhere"), id="1")
    s.same("exists", client.exists, index=main, id=first)
    s.same("exists not", client.exists, index=main, id="nowhere")
    s.same("mget", client.mget, index=main, body={"ids": [d[3]["id"], "nowhere", d[1]["id"]]})
    s.same("mget over indices", client.mget, body={"docs": [
        {"_index": work, "_id": "1"}, {"_index": s.index("nowhere"), "_id": "1"},
        {"_index": main, "_id": first, "_source": ["title"]}]})
    s.same("explain", client.explain, index=main, id=first, body={"query": TEXT})
    s.same("termvectors", client.termvectors, index=main, id=first, fields=["title"])
    s.same("delete", client.delete, index=work, id="2")
    s.same("delete nothing", client.delete, index=work, id="2")
    s.same("count", client.count, index=main, body={"query": TEXT})
    s.same("refresh work", client.indices.refresh, index=work)
    s.same("update_by_query", client.update_by_query, index=work, refresh=True, body={
        "query": ALL, "script": {"source": "ctx._source.touched = true"}})
    s.same("delete_by_query", client.delete_by_query, index=work, refresh=True, body={"query": {"ids": {"values": ["4", "5"]}}})
    s.same("left", lambda: sorted((hit["_id"], hit["_source"]) for hit in client.search(
        index=work, body={"query": {"ids": {"values": ["1", "6"]}}, "sort": "_doc"})["hits"]["hits"]))


def indices(s, client):
    """What is told of indices."""
    main = s.index("main")
    s.same("index exists", client.indices.exists, index=main)
    s.same("index exists not", client.indices.exists, index=s.index("nowhere"))
    s.same("get index", client.indices.get, index=main)
    s.same("get mapping", client.indices.get_mapping, index=s.index("*"))
    s.same("field mapping", client.indices.get_field_mapping, index=main, fields="ti*")
    s.same("put mapping", client.indices.put_mapping, index=main, body={"properties": {"extra": {"type": "keyword"}}})
    s.same("get settings", client.indices.get_settings, index=main)
    s.same("field caps", client.field_caps, index=main, fields="*")
    s.same("alias", client.indices.update_aliases, body={"actions": [
        {"add": {"index": main, "alias": s.index("alias")}},
        {"add": {"index": main, "alias": s.index("some"), "filter": {"term": {"url": s.documents[0]["url"]}}}}]})
    s.same("get alias", client.indices.get_alias, index=main)
    s.same("analyze", client.indices.analyze, index=main, body={"field": "title", "text": "Two Words"})
    s.same("validate", client.indices.validate_query, index=main, q="old a*", explain=True)
    s.same("cat", client.cat.indices, index=s.index("*"), h="index,docs.count,pri,rep", s="index", v=True)
    s.same("cat as JSON", client.cat.count, index=main, h="count", format="json")
    closed = s.index("pieces")
    s.same("close", client.indices.close, index=closed)
    s.same("closed index", client.indices.get, index=closed)
    s.same("mapping of a closed index", client.indices.get_mapping, index=closed)
    s.same("mappings of closed indices", client.indices.get_mapping, index=s.index("pie*"), expand_wildcards="all")
    s.same("search of a closed index", client.search, index=closed)
    s.same("open", client.indices.open, index=closed)
    s.same("create what exists", client.indices.create, index=main)
    s.same("create with a bad mapping", client.indices.create, index=s.index("bad"), body={
        "mappings": {"properties": {"title": {"type": "nothing"}}}})


def searches(s, client):
    """Searches in every form that is paged by numbers, and those that are left alone."""
    main, alias = s.index("main"), s.index("alias")

    def search(step, body, size=10, index=main, **params):
        s.search(step, lambda start: client.search(
            index=index, body={**body, **({} if "from_" in params else {"from": start, "size": size})}, **params), size)
    text = {"query": TEXT, "sort": ORDER}
    search("text", text)
    search("everything", {"sort": [{"id": "asc"}]}, size=50)
    search("by score", {"query": TEXT}, size=1000)
    search("source filter", {**text, "_source": {"includes": ["t*", "id"], "excludes": ["title"]}}, size=25)
    search("no source", {**text, "_source": False, "fields": ["url", "published_*"], "docvalue_fields": ["id"]}, size=25)
    search("stored fields", {**text, "stored_fields": []}, size=40)
    search("all of a hit", {**text, "explain": True, "version": True, "seq_no_primary_term": True, "track_scores": True}, size=40)
    search("highlight", {
        **text, "highlight": {"fields": {"*": {"number_of_fragments": 2}}, "require_field_match": False}}, size=25)
    search("script fields", {
        **text, "_source": True, "script_fields": {"twice": {"script": "doc['id'].value + doc['id'].value"}}}, size=40)
    search("aggregations", {**text, "aggs": {
        "hosts": {"terms": {"field": "host.keyword", "order": {"_key": "asc"}},
                  "aggs": {"ids": {"cardinality": {"field": "id"}}}},
        "years": {"date_histogram": {"field": "published_at", "calendar_interval": "year"}},
        "best": {"top_hits": {"size": 3, "sort": ORDER, "fields": ["*"]}}}}, size=30)
    search("all fields", {"query": {"query_string": {"query": "old OR riv* OR A*"}}, "sort": ORDER, "fields": ["*"]}, size=40)
    search("all fields, simply", {
        "query": {"simple_query_string": {"query": "the river", "default_operator": "and"}}, "sort": ORDER})
    search("filter behind", {**text, "post_filter": {"range": {"published_at": {"gte": "2024-01-01"}}}, "min_score": 0.1})
    search("suggestions", {**text, "suggest": {"spelling": {"text": "rivr twn", "term": {"field": "body"}}}})
    search("totals", {**text, "track_total_hits": True}, rest_total_hits_as_int=True)
    search("no totals", {**text, "track_total_hits": False})
    search("alias", text, index=alias)
    search("pattern", text, index=s.index("mai*"), ignore_unavailable=True, preference="steady",
           search_type="dfs_query_then_fetch")
    search("nothing", {"query": {"match": {"title": "nothingmatchesthis"}}})
    s.search("in the URL", lambda start: client.search(
        index=main, q="title:old OR body:river", sort="_score,id:asc", _source_includes="title", from_=start, size=20), 20)

    s.same("count by size 0", client.search, index=main, body={
        "size": 0, "query": TEXT, "aggs": {"n": {"value_count": {"field": "id"}}}})
    s.same("collapsed by the client", client.search, index=main, body={**text, "collapse": {"field": "host.keyword"}, "size": 30})
    s.same("in index order", client.search, index=main, body={"query": TEXT, "sort": ["_doc"], "size": 30})
    s.same("bad query", client.search, index=main, body={"query": {"nothing": {}}})
    s.same("bad page", client.search, index=main, body={"from": -1})
    s.same("bad sort", client.search, index=main, body={"query": TEXT, "sort": ["no_such_field"]})
    s.same("beyond the window", client.search, index=main, body={"from": 10000, "size": 10})
    s.same("nowhere", client.search, index=s.index("nowhere"), body=text)
    s.same("nowhere, ignored", client.search, index=s.index("nowhere"), body=text, ignore_unavailable=True)
    s.same("rendered template", client.render_search_template, body={
        "source": '{"query":{"match":{"title":"{{q}}"}}}', "params": {"q": "old"}})

    for i, body in enumerate([text, {**text, "_source": ["title"], "highlight": {"fields": {"title": {}}}}]):
        # Twice the same index in the lines: once in its header, once by the URL.
        s.search(f"msearch {i}", lambda start: client.msearch(index=main, body=[
            {"index": main}, {**body, "from": start, "size": 60}, {}, {**body, "from": start, "size": 7}])["responses"][0], 60)
    s.same("msearch with errors", client.msearch, body=[
        {"index": main}, {"query": {"nothing": {}}}, {"index": s.index("nowhere")}, text,
        {"index": main}, {"size": 0, "query": TEXT}])


def special_indices(s, client):
    """Documents with children, suggestions, and an alias whose index is made anew."""
    family, roll, d = s.index("family"), s.index("roll"), s.documents
    s.same("create family", client.indices.create, index=family, body={"mappings": {"properties": {
        "id": {"type": "keyword"}, "kin": {"type": "join", "relations": {"text": "remark"}},
        "complete": {"type": "completion"}}}})
    lines = []
    for document in d[:30]:
        lines += [{"index": {"_id": document["id"]}}, {**document, "kin": "text", "complete": document["title"][:50]}]
        lines += [{"index": {"_id": "to " + document["id"], "routing": document["id"]}},
                  {"remark": "remark on " + document["id"], "kin": {"name": "remark", "parent": document["id"]}}]
    s.same("bulk of a family", client.bulk, index=family, body=lines, refresh=True)
    s.search("parents", lambda start: client.search(index=family, body={
        "from": start, "size": 8, "sort": [{"id": "asc"}],
        "query": {"has_child": {"type": "remark", "query": ALL, "inner_hits": {}}}}), 8)
    s.same("get by routing", client.get, index=family, id="to " + d[0]["id"], routing=d[0]["id"])
    s.same("update by routing", client.update, index=family, id="to " + d[0]["id"], routing=d[0]["id"], body={
        "doc": {"title": d[1]["title"]}})
    s.same("completions", client.search, index=family, body={"size": 0, "suggest": {"title": {
        "prefix": d[0]["title"][:3], "completion": {"field": "complete", "size": 3}}}})

    s.same("create roll", client.indices.create, index=roll + "-000001", body={"aliases": {roll: {"is_write_index": True}}})
    s.same("write by alias", client.index, index=roll, id="1", body=d[0])
    s.same("roll over", client.indices.rollover, alias=roll, body={})
    s.same("write by alias again", client.index, index=roll, id="2", body=d[1], refresh=True)
    s.same("bulk by alias", client.bulk, index=roll, body=[
        {"create": {"_id": "3"}}, d[2], {"update": {"_id": "2"}}, {"doc": {"title": "another"}}])
    s.same("require an alias", client.index, index=s.index("no-alias"), id="1", body=d[0], require_alias=True)
    s.same("mappings of roll", client.indices.get_mapping, index=roll + "-*")
    s.same("documents of roll", lambda: [
        client.get(index=f"{roll}-{number:06}", id=str(i)) for number, i in ((1, 1), (2, 2), (2, 3))])


async def asynchronous(s, client, helpers):
    """The same with the client that runs in an event loop."""
    main, index, d = s.index("main"), s.index("async"), s.documents

    async def listed(results):
        return [result async for result in results]

    async def pages():
        found, start = [], 0
        while not found or found[-1]["hits"]["hits"]:
            reply = await client.search(index=main, body={"query": TEXT, "sort": ORDER, "from": start, "size": 15})
            found.append(plain(reply))
            start += 15
        return found
    await s.same_async("async bulk", helpers.async_bulk(client, [action(e, index) for e in d[:40]], chunk_size=13))
    mixed = [action(d[0], index, op="create"), action(d[41], index), action(d[1], index, op="delete")]
    await s.same_async("async streaming_bulk", listed(helpers.async_streaming_bulk(client, mixed, raise_on_error=False)))
    await s.same_async("async refresh", client.indices.refresh(index=index))
    await s.same_async("async scan", listed(helpers.async_scan(
        client, index=index, size=9, preserve_order=True, query={"sort": [{"id.keyword": "asc"}]})))
    await s.same_async("async reindex", helpers.async_reindex(client, index, s.index("async-copy")))
    await s.same_async("async get", client.get(index=index, id=d[2]["id"]))
    await s.same_async("async update", client.update(index=index, id=d[2]["id"], body={"doc": {"title": d[3]["title"]}}))
    await s.same_async("async nothing", client.get(index=index, id="nowhere"))
    await s.same_async("async mapping", client.indices.get_mapping(index=s.index("async*")))
    s.record("searches", "async", await pages())
    await client.close()
