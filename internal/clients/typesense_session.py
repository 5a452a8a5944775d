"""A session with the official Typesense client, on one thread and in an event loop."""

import asyncio
import json
import os
import time
import urllib.parse

import typesense

from session import Session

FIELDS = [
    {"name": "title", "type": "string", "infix": True},
    {"name": "body", "type": "string"},
    {"name": "url", "type": "string", "index": False, "optional": True},
    {"name": "host", "type": "string", "facet": True},
    {"name": "published_at", "type": "string", "sort": True, "optional": True},
    {"name": "n", "type": "int32", "facet": True, "optional": True},
    {"name": "words", "type": "string[]", "facet": True, "optional": True},
    {"name": "near", "type": "float[]", "num_dim": 3, "optional": True},
]
TEXT = {"q": "the town", "query_by": "title,body"}
ALL = {"q": "*", "query_by": "title"}


class Typesense(Session):
    """A session whose key comes with the command line. The engine sorts by no id: its own order settles ties."""

    def __init__(self):
        super().__init__()
        for number, document in enumerate(self.documents):
            document.update(n=number % 7, words=document["title"].split()[:2], near=[1, number % 5, number % 11 / 10])

    def settings(self, key=None):
        url = urllib.parse.urlsplit(self.args.url)
        os.environ["NO_PROXY"] = url.hostname  # a proxy for the web is not meant for the engine
        node = {"host": url.hostname, "port": str(url.port), "protocol": url.scheme}
        return {"nodes": [node], "api_key": key or self.args.key, "connection_timeout_seconds": 60,
                "retry_interval_seconds": 0.01}

    def create(self, client, name, **more):
        return client.collections.create({"name": self.index(name), "fields": FIELDS, **more})

    def pages(self, step, documents, params, size):
        """Reads a search in pages."""
        self.search(step, lambda start: documents.search({**params, "page": start // size + 1, "per_page": size}), size)


def collections(s, client):
    s.same("create", lambda: s.create(client, "main"))
    s.same("create twice", lambda: s.create(client, "main"))
    s.same("create a bad one", lambda: client.collections.create({
        "name": s.index("bad"), "fields": [{"name": "x", "type": "y"}]}))
    s.same("create with all", lambda: s.create(
        client, "work", token_separators=["-"], symbols_to_index=["+"], enable_nested_fields=True))
    s.same("create with fields found", lambda: client.collections.create({
        "name": s.index("auto"), "enable_nested_fields": True, "fields": [{"name": ".*", "type": "auto"}]}))
    s.same("retrieve", client.collections[s.index("main")].retrieve)
    s.same("retrieve nothing", client.collections[s.index("nowhere")].retrieve)
    s.same("is there", lambda: [s.index(name) in client.collections for name in ("main", "nowhere")])
    s.same("retrieve all", lambda: sorted(
        (c for c in client.collections.retrieve() if c["name"].startswith(s.index(""))), key=lambda c: c["name"]))


def imports(s, client):
    main, work = (client.collections[s.index(name)].documents for name in ("main", "work"))
    s.same("import", main.import_, s.documents, {"action": "create"})
    s.same("import in pieces", work.import_, s.documents[:40], {"action": "upsert", "return_id": True}, batch_size=7)
    s.same("import again", work.import_, s.documents[38:42], {"action": "create"})
    s.same("import with documents", work.import_, s.documents[40:44], {
        "action": "emplace", "return_doc": True, "return_id": True})
    part = [{"id": d["id"], "title": s.documents[i + 1]["title"]} for i, d in enumerate(s.documents[:5])]
    whole = [{"id": d["id"], "title": s.documents[i + 1]["title"], "body": s.documents[i + 1]["body"]}
             for i, d in enumerate(s.documents[5:9])]
    s.same("import of parts", work.import_, [*part, {"id": "nowhere", "n": 1}], {"action": "update", "return_doc": True})
    s.same("import of whole texts", work.import_, whole, {"action": "update", "return_doc": True})
    lines = "\n".join([json.dumps(s.documents[50]), "", "no json", '{"title":1,"body":[]}', '{"n":"x","id":"bad"}', "[]",
                       json.dumps({**s.documents[51], "n": "12"}), json.dumps(s.documents[50])])
    s.same("import of lines", work.import_, lines, {"action": "create", "return_id": True})
    s.same("import of bytes", work.import_, lines.encode(), {"action": "upsert", "return_doc": True})
    for values in ("coerce_or_reject", "coerce_or_drop", "drop", "reject"):
        dirty = [{**s.documents[60], "n": "7"}, {**s.documents[61], "n": "x"}, {**s.documents[62], "title": 5},
                 {**s.documents[63], "body": None}]
        s.same(f"dirty values: {values}", work.import_, dirty, {
            "action": "upsert", "dirty_values": values, "return_doc": True})
    s.same("import into fields found", client.collections[s.index("auto")].documents.import_, s.documents[:9], {
        "action": "create", "return_doc": True})
    s.same("import of nothing", work.import_, [])
    s.same("import to nowhere", client.collections[s.index("nowhere")].documents.import_, s.documents[:2])


def documents(s, client):
    first, second, third = ({k: v for k, v in s.documents[i].items()} for i in (70, 71, 72))
    all_, one = client.collections[s.index("work")].documents, client.collections[s.index("work")].documents[first["id"]]
    s.same("document: create", all_.create, first)
    s.same("document: create twice", all_.create, first)
    s.same("document: create without id", all_.create, {k: v for k, v in second.items() if k != "id"})
    s.same("document: create dirty", all_.create, {**second, "n": "5"}, {"dirty_values": "coerce_or_reject"})
    s.same("document: create too little", all_.create, {"title": "x"})
    s.same("document: upsert", all_.upsert, {**third, "id": first["id"]})
    s.same("document: retrieve", one.retrieve)
    s.same("document: retrieve in part", one.retrieve, {"include_fields": "title,n"})
    s.same("document: retrieve nothing", all_["nowhere"].retrieve)
    for step, change in {
        "whole text": {"title": second["title"], "body": second["body"]}, "part of the text": {"title": "half of it"},
        "another field": {"n": 3}, "null": {"n": None}, "null text": {"body": None}, "undeclared": {"beside": {"x": [1, 2]}},
    }.items():
        s.same(f"document: update {step}", lambda: [one.update(change), one.retrieve()])
    s.same("document: update nothing", all_["nowhere"].update, {"n": 1})
    s.same("document: update by filter", all_.update, {"n": 9}, {"filter_by": "n:=1"})
    s.same("document: delete", one.delete)
    s.same("document: delete again", one.delete)
    s.same("document: delete by filter", all_.delete, {"filter_by": "n:=4", "batch_size": 10})
    s.same("document: delete by nothing", all_.delete, {})
    s.same("export", all_.export)
    s.same("export in part", client.collections[s.index("main")].documents.export, {
        "filter_by": "n:<3", "exclude_fields": "body,near"})
    s.same("export fields", client.collections[s.index("main")].documents.export, {"include_fields": "id,title"})


def schemas(s, client):
    work = client.collections[s.index("work")]
    for step, field in {
        "add": {"name": "beside", "type": "object", "optional": True}, "drop": {"name": "words", "drop": True},
    }.items():
        s.same(f"schema: {step}", lambda: [work.update({"fields": [field]}), work.retrieve()])
    s.same("schema: bad", work.update, {"fields": [{"name": "title", "type": "int32"}]})
    s.same("schema: of fields found", client.collections[s.index("auto")].retrieve)
    s.same("alias", client.aliases.upsert, s.index("alias"), {"collection_name": s.index("main")})
    s.same("alias: retrieve", client.aliases[s.index("alias")].retrieve)
    s.same("alias: all", lambda: [a for a in client.aliases.retrieve()["aliases"] if a["name"].startswith(s.index(""))])
    s.same("alias: its collection", client.collections[s.index("alias")].retrieve)
    s.same("collection: delete", client.collections[s.index("auto")].delete)
    s.same("collection: delete again", client.collections[s.index("auto")].delete)


def searches(s, client):
    main = client.collections[s.index("main")].documents
    s.pages("text", main, TEXT, 10)
    s.pages("everything", main, ALL, 40)
    s.pages("filtered and sorted", main, {
        **TEXT, "filter_by": "n:<2 || n:>3 && host:!=nowhere", "sort_by": "n:desc,_text_match:desc"}, 9)
    s.pages("sorted by text", main, {**ALL, "sort_by": "published_at:asc"}, 25)
    s.pages("facets", main, {**TEXT, "facet_by": "host,n,words", "max_facet_values": 4, "facet_query": "host:a"}, 13)
    s.pages("fields named", main, {**TEXT, "include_fields": "id,title,url", "highlight_full_fields": "title"}, 12)
    s.pages("fields left out", main, {**TEXT, "exclude_fields": "body,near,out_of"}, 12)
    s.pages("highlights", main, {
        **TEXT, "highlight_fields": "body", "highlight_affix_num_tokens": 2, "highlight_start_tag": "<b>",
        "highlight_end_tag": "</b>", "snippet_threshold": 5, "enable_highlight_v1": False}, 20)
    s.pages("how words match", main, {
        "q": "rivr towm", "query_by": "title,body", "query_by_weights": "3,1", "num_typos": "2,1", "prefix": "true,false",
        "drop_tokens_threshold": 2, "typo_tokens_threshold": 3, "exhaustive_search": True, "prioritize_exact_match": False,
        "max_candidates": 9, "split_join_tokens": "fallback", "text_match_type": "max_weight", "min_len_1typo": 3}, 15)
    s.pages("phrase and exclusion", main, {"q": '"the old" -nothing', "query_by": ["body", "title"]}, 15)
    s.pages("infix", main, {"q": "oa", "query_by": "title", "infix": "always"}, 15)
    s.pages("limited", main, {**TEXT, "limit_hits": 1000, "search_cutoff_ms": 30000, "use_cache": False}, 30)
    # The engine's cache outlives a collection: a filter that is new in each run finds nothing in it.
    s.pages("cached", main, {**TEXT, "use_cache": True, "cache_ttl": 1, "filter_by": f"n:<{time.time_ns() % (1 << 30) + 9}"}, 17)
    s.pages("alias", client.collections[s.index("alias")].documents, TEXT, 11)
    s.same("no hits", main.search, {"q": "nothingmatchesthis", "query_by": "title"})
    s.same("counts alone", main.search, {**TEXT, "per_page": 0, "facet_by": "host"})
    s.same("grouped by the client", main.search, {**TEXT, "group_by": "host", "group_limit": 3})
    s.same("turned off", main.search, {**TEXT, "neardup": "off", "per_page": 100})
    for step, params in {
        "bad field": {"q": "x", "query_by": "nothing"}, "bad filter": {**TEXT, "filter_by": "n:<<1"},
        "too many a page": {**TEXT, "per_page": 251}, "page 0": {**TEXT, "page": 0}, "no query": {},
        "limit of hits": {**TEXT, "limit_hits": 5, "per_page": 10}, "long": {"q": "town " * 900, "query_by": "title"},
    }.items():
        s.same(f"refused: {step}", main.search, params)
    s.same("nowhere", client.collections[s.index("nowhere")].documents.search, TEXT)


def several(s, client):
    main = s.index("main")
    for i in range(3):
        s.search(f"multi {i}", lambda start: client.multi_search.perform({"searches": [
            {"collection": main, "q": "river", "page": start // 20 + 1},
            {"collection": main, "q": "old", "page": start // 20 + 1, "facet_by": "host"},
            {"collection": s.index("alias"), "q": "*", "page": start // 20 + 1},
        ]}, {"query_by": "title,body", "per_page": 20})["results"][i], 20)
    s.same("multi that fails", client.multi_search.perform, {"searches": [
        {"collection": s.index("nowhere"), **TEXT}, {"collection": main, **TEXT, "neardup": "off"},
        {"collection": main, **TEXT, "query_by": "nothing"}]}, {})
    s.same("multi of nothing", client.multi_search.perform, {"searches": []}, {})
    s.same("multi without collection", client.multi_search.perform, {"searches": [TEXT]}, {})
    s.same("multi, too many", client.multi_search.perform, {"searches": [{"collection": main, **TEXT}] * 51}, {})


def curation(s, client):
    curated = client.collections[s.index("main")]
    ids = [d["id"] for d in s.documents]
    s.same("synonym", curated.synonyms.upsert, "streams", {"synonyms": ["brook", "river", "stream"]})
    s.same("synonym: one way", curated.synonyms.upsert, "towns", {"root": "hamlet", "synonyms": ["town", "village"]})
    s.same("synonym: retrieve", lambda: [curated.synonyms.retrieve(), curated.synonyms["towns"].retrieve()])
    s.pages("synonyms", curated.documents, {"q": "hamlet", "query_by": "title,body"}, 14)
    s.same("synonym: delete", lambda: [curated.synonyms["towns"].delete(), curated.synonyms["streams"].delete()])
    s.same("override", curated.overrides.upsert, "pinned", {
        "rule": {"query": "pinned old", "match": "exact"}, "includes": [{"id": ids[1], "position": 1}],
        "excludes": [{"id": ids[2]}]})
    s.same("override: filter", curated.overrides.upsert, "filter", {
        "rule": {"query": "fewer", "match": "contains"}, "filter_by": "n:<5", "remove_matched_tokens": True})
    s.same("override: retrieve", lambda: [curated.overrides.retrieve(), curated.overrides["pinned"].retrieve()])
    s.same("curated", curated.documents.search, {"q": "pinned old", "query_by": "title", "per_page": 1})
    s.pages("filtered by an override", curated.documents, {"q": "fewer old", "query_by": "title,body"}, 14)
    s.pages("curated off", curated.documents, {"q": "pinned old", "query_by": "title,body", "enable_overrides": False}, 14)
    s.pages("hidden", curated.documents, {**TEXT, "hidden_hits": ",".join(ids[3:6])}, 14)
    s.same("override: bad", curated.overrides.upsert, "bad", {"rule": {}})
    s.same("override: delete", lambda: [curated.overrides["pinned"].delete(), curated.overrides["filter"].delete()])
    preset = "/presets/" + s.index("preset")
    s.same("preset", client.api_call.put, preset, entity_type=dict, body={"value": {**TEXT, "per_page": 9, "sort_by": "n:asc"}})
    s.same("preset: retrieve", client.api_call.get, preset, entity_type=dict, params={}, as_json=True)
    s.search("preset", lambda start: curated.documents.search({"preset": s.index("preset"), "page": start // 9 + 1}), 9)
    s.same("preset: delete", client.api_call.delete, preset, entity_type=dict)


def keyless(key):
    """What is told of a key, without the number that the engine counts up."""
    return {name: value for name, value in key.items() if name != "id"}


def keys(s, client):
    value, numbers = s.index("search-only"), []

    def made(**schema):
        key = client.keys.create({"description": "of a session", "collections": [s.index(".*")], **schema})
        numbers.append(key["id"])
        return keyless(key)
    s.same("key", made, actions=["documents:search"], value=value, expires_at=64723363199)
    s.same("key: of its own", lambda: len(made(actions=["documents:get"])["value"]))
    s.same("key: bad", made, actions=[])
    s.same("key: retrieve", lambda: [keyless(client.keys[numbers[0]].retrieve()), client.keys[2**31].retrieve()])
    s.same("key: all", lambda: [keyless(key) for key in client.keys.retrieve()["keys"] if key["id"] == numbers[0]])
    search_only = typesense.Client(s.settings(value))
    s.pages("key: searches", search_only.collections[s.index("main")].documents, TEXT, 10)
    s.same("key: writes not", search_only.collections[s.index("main")].documents.create, s.documents[0])
    for step, embedded in {
        "filtered": {"filter_by": "n:>2"}, "without body": {"exclude_fields": "body,near"},
        "of a size": {"per_page": 10, "filter_by": "n:<6", "expires_at": 64723363190},
    }.items():
        scoped = client.keys.generate_scoped_search_key(value, embedded).decode()
        documents = typesense.Client(s.settings(scoped)).collections[s.index("main")].documents
        s.pages(f"key: {step}", documents, {**TEXT, "filter_by": "n:<7"}, 10)
    wrong = typesense.Client(s.settings("wrong"))
    s.same("key: wrong", wrong.collections[s.index("main")].documents.search, TEXT)
    s.same("key: delete", lambda: [len(client.keys[number].delete()) for number in numbers])


def replies(s, client):
    """What the engine says of itself, and what it does not have in this version."""
    s.same("healthy", client.operations.is_healthy)
    s.same("debug", client.debug.retrieve)
    s.same("metrics", lambda: sorted(client.metrics.retrieve()))
    s.same("no such operation", client.operations.perform, "nothing")
    s.same("slow requests", client.operations.toggle_slow_request_log, {"log_slow_requests_time_ms": -1})
    s.same("stopwords", client.stopwords.upsert, s.index("words"), {"stopwords": ["the"]})
    s.same("stopwords: retrieve", client.stopwords.retrieve)
    s.same("synonym sets", client.synonym_sets.retrieve)
    s.same("curation sets", client.curation_sets.retrieve)
    s.same("analytics", client.analytics.rules.retrieve)
    s.same("stemming", client.stemming.dictionaries.retrieve)
    s.same("conversations", client.conversations_models.retrieve)
    s.same("models", client.nl_search_models.retrieve)
    s.same("of its own", client.api_call.get, "/collections/" + s.index("main"), entity_type=dict, params={}, as_json=True)


async def asynchronous(s):
    client = typesense.AsyncClient(s.settings())
    await s.same_async("async create", client.collections.create({"name": s.index("async"), "fields": FIELDS}))
    held = client.collections[s.index("async")].documents
    await s.same_async("async import", held.import_(s.documents[:30], {"action": "create", "return_id": True}, batch_size=11))
    await s.same_async("async create document", held.create(s.documents[31]))
    await s.same_async("async update", held[s.documents[0]["id"]].update({"title": "half of it"}))
    await s.same_async("async retrieve", held[s.documents[0]["id"]].retrieve())
    await s.same_async("async retrieve nothing", held["nowhere"].retrieve())
    await s.same_async("async export", held.export())
    main = client.collections[s.index("main")].documents
    pages = await asyncio.gather(*(main.search({**TEXT, "page": page, "per_page": 16}) for page in range(1, 30)))
    last = next(number for number, page in enumerate(pages) if not page["hits"])
    s.record("searches", "async, all at once", pages[:last + 1])
    several = await client.multi_search.perform(
        {"searches": [{"collection": s.index("main"), "q": "old", "neardup": "off"}]}, {"query_by": "title"})
    s.record("same", "async multi", several)
    await s.same_async("async delete", client.collections[s.index("async")].delete())
    await client.api_call.aclose() if hasattr(client.api_call, "aclose") else None


def main():
    s = Typesense()
    client = typesense.Client(s.settings())
    for step in (collections, imports, documents, schemas, searches, several, curation, keys, replies):
        step(s, client)
    asyncio.run(asynchronous(s))
    s.show()


main()
