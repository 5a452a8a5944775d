"""A session with the object mapper of the official Elasticsearch client (elasticsearch.dsl, which was elasticsearch-dsl)."""

import datetime

from official import dsl
from session import Session

A, Q = dsl.A, dsl.Q


class Remark(dsl.InnerDoc):
    author = dsl.Keyword()
    text = dsl.Text()


class Article(dsl.Document):
    id = dsl.Keyword()
    title = dsl.Text(fields={"raw": dsl.Keyword(ignore_above=200)})
    body = dsl.Text(analyzer=dsl.analyzer("folding", tokenizer="standard", filter=["lowercase", "asciifolding"]))
    url = dsl.Keyword()
    host = dsl.Keyword()
    published_at = dsl.Date()
    n = dsl.Integer()
    remarks = dsl.Nested(Remark)

    def remark(self, author, text):
        self.remarks.append(Remark(author=author, text=text))


TEXT = Q("multi_match", query="river town old", fields=["title", "body"])
ORDER = ("_score", {"id": "asc"})


def article(document, number):
    made = Article(meta={"id": document["id"]}, n=number, **document)
    for i in range(number % 3):
        made.remark(f"reader {i}", f"remark {number} {i}")
    return made


def stored(found):
    return found and [found.to_dict(include_meta=True), type(found).__name__, [type(r).__name__ for r in found.remarks or []]]


def writes(s):
    main, work = s.index("main"), s.index("work")
    for name in (main, work):
        s.same(f"init {name}", Article.init, index=name)
    # In one piece, so that the order of the index, which settles ties, is the same each time.
    s.same("bulk", lambda: Article.bulk((article(d, i) for i, d in enumerate(s.documents)), index=main, refresh=True))
    s.same("bulk in pieces", lambda: Article.bulk((article(d, 0) for d in s.documents), index=s.index("pieces"), chunk_size=31))
    first, second = article(s.documents[0], 1), article(s.documents[1], 2)

    def kept(made):
        return stored(Article.get(made.meta.id, index=work))
    s.same("save", lambda: [first.save(index=work), first.save(index=work), second.save(index=work, return_doc_meta=True)])
    s.same("get", lambda: stored(Article.get(first.meta.id, index=work)))
    s.same("get nothing", Article.get, "nowhere", index=work)
    s.same("exists", Article.exists, first.meta.id, index=work)
    s.same("mget", lambda: [stored(found) for found in Article.mget([second.meta.id, "nowhere", first.meta.id], index=work)])
    for step, changes in {
        "whole text": {"title": s.documents[2]["title"], "body": s.documents[2]["body"]},
        "part of the text": {"title": "half of it"},
        "another field": {"n": 7, "published_at": datetime.datetime(2024, 5, 6, 7, 8, 9)},
        "nothing": {"n": 7},
    }.items():
        s.same(f"update: {step}", lambda: [first.update(index=work, refresh=True, **changes), kept(first)])
    s.same("update by script", lambda: [
        first.update(index=work, script="ctx._source.n += params.by", by=4, refresh=True), kept(first)])
    s.same("inner document", lambda: [second.remark("late", "one more"), second.save(index=work, refresh=True), kept(second)])
    stale = Article.get(second.meta.id, index=work)
    s.same("save of what has changed", lambda: [second.save(index=work), stale.save(index=work)])
    s.same("delete", lambda: first.delete(index=work, refresh=True))
    s.same("delete again", lambda: first.delete(index=work))
    s.same("save without a date", lambda: Article(meta={"id": "bad"}, title=1, published_at="no date").save(index=work))
    s.same("update_by_query", lambda: dsl.UpdateByQuery(index=work).query("match_all").script(source="ctx._source.n = 1").params(
        refresh=True).execute().to_dict())
    s.same("delete_by_query", lambda: Article.search(index=work).filter("term", id="nowhere").params(refresh=True).delete())


def indices(s):
    main = dsl.Index(s.index("main"))
    s.same("index", main.get)
    s.same("mapping", main.get_mapping)
    s.same("mapping as objects", lambda: dsl.Mapping.from_es(main._name).to_dict())
    s.same("settings", main.get_settings)
    s.same("alias", lambda: main.put_alias(name=s.index("alias")))
    s.same("aliases", main.get_alias)
    s.same("exists as index", main.exists)
    s.same("analyze", lambda: main.analyze(body={"analyzer": "folding", "text": "Été au port"}))
    s.same("cloned", lambda: Article._index.clone(name=s.index("clone")).create())
    s.same("saved again", lambda: Article._index.clone(name=s.index("clone")).save())
    s.same("validated", lambda: dsl.Index(s.index("clone")).validate_query(query={"match_all": {}}))


class Archive(dsl.FacetedSearch):
    doc_types = [Article]
    fields = ["title", "body"]
    facets = {
        "hosts": dsl.TermsFacet(field="host", size=5),
        "years": dsl.DateHistogramFacet(field="published_at", calendar_interval="year"),
        "remarks": dsl.NestedFacet("remarks", dsl.TermsFacet(field="remarks.author")),
    }


def searches(s):
    main = s.index("main")
    base = Article.search(index=main).query(TEXT).sort(*ORDER)

    def search(step, query, size=10):
        s.search(step, lambda start: query[start:start + size].execute().to_dict(), size)
    search("text", base)
    search("filters", base.filter("range", published_at={"gte": "2024-01-01"}).exclude("term", host="nowhere"))
    search("combined", Article.search(index=main).query(
        Q("bool", should=[Q("match", title="old"), Q("match", body="river")], minimum_should_match=1) & ~Q("term", n=3)
    ).sort(*ORDER), 20)
    search("source", base.source(includes=["t*"], excludes=["text"]), 25)
    search("highlight", base.highlight_options(order="score").highlight("title", "body", fragment_size=40), 25)
    search("parameters", base.params(preference="steady", rest_total_hits_as_int=True).extra(
        track_total_hits=True, explain=True), 40)
    search("nested", Article.search(index=main).query(
        "nested", path="remarks", inner_hits={"size": 2, "_source": ["remarks.text"]},
        query=Q("match", remarks__text="remark")).sort(*ORDER), 30)
    search("functions", Article.search(index=main).query(
        "function_score", query=TEXT, boost_mode="sum", functions=[{"field_value_factor": {"field": "n", "missing": 1}}]
    ).sort(*ORDER), 20)
    counted = base[:]
    counted.aggs.bucket("hosts", A("terms", field="host", order={"_key": "asc"})).metric("mean", "avg", field="n")
    counted.aggs.bucket("years", "date_histogram", field="published_at", calendar_interval="year")
    search("aggregations", counted, 20)
    search("suggestion", base.suggest("spelling", "rivr twn", term={"field": "body"}), 20)
    search("from objects", dsl.Search.from_dict(base.to_dict()).index(s.index("alias")), 15)
    old = dsl.Search().query("match", title="old").sort(*ORDER)
    for i in range(2):
        s.search(f"multi {i}", lambda start: dsl.MultiSearch(index=main).add(
            base[start:start + 40]).add(old[start:start + 40]).execute()[i].to_dict(), 40)
    s.search("facets", lambda start: {**Archive("river town")[start:start + 15].execute().to_dict(), "_faceted_search": None}, 15)

    s.same("hits as objects", lambda: sorted([
        stored(hit) for hit in Article.search(index=main).filter("ids", values=[s.documents[0]["id"]]).sort("_doc")]))
    s.same("facets counted", lambda: vars(Archive("river", filters={"remarks": "reader 0"})[:0].execute().facets))
    s.same("scan", lambda: sorted(hit.meta.id + hit.title for hit in Article.search(index=main).params(size=13).scan()))
    s.same("scan in order", lambda: [stored(hit) for hit in base.params(preserve_order=True, size=9).scan()])
    s.same("count", base.count)
    s.same("only aggregations", lambda: counted[:0].execute().to_dict())
    s.same("collapsed by the client", lambda: base.collapse(
        field="host", inner_hits={"name": "more", "size": 2})[:20].execute().to_dict())
    s.same("bad query", lambda: dsl.Search(index=main).query("match", **{"no such": {"thing": 1}}).execute())
    s.same("bad searches of several", lambda: dsl.MultiSearch(index=main).add(base[:0]).add(
        dsl.Search().query("range", n={"no": 1})).execute())
    s.same("errors of several, kept", lambda: [reply and reply.to_dict() for reply in dsl.MultiSearch(index=main).add(
        base[:0]).add(dsl.Search().sort("no_such_field")).execute(raise_on_error=False)])

    s.same("export from a point in time", lambda: [
        stored(hit) for hit in Article.search(index=main).sort("_shard_doc").extra(size=16).iterate()])

    def following(query):
        pages = []
        while not pages or pages[-1]["hits"]["hits"]:
            reply = query.execute()
            pages.append(reply.to_dict())
            query = reply.hits and reply.search_after()
        return pages

    by_date = base.sort({"published_at": "desc"}, {"id": "asc"})[:12]
    s.record("cursors", "search_after", following(by_date))
    with by_date.point_in_time() as pit:
        s.record("cursors", "search_after in a point in time", following(pit))


def main():
    s = Session()
    dsl.connections.create_connection(hosts=[s.args.url], request_timeout=60)
    Archive.index = s.index("main")
    writes(s)
    indices(s)
    searches(s)
    s.show()


main()
