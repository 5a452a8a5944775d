"""A component for Haystack that drops near-duplicates from the documents that were found. It needs haystack-ai.

    python dedupe_haystack.py --url http://localhost:9201 ferry

Copy `kept` and `Deduplicate` into your program, and connect it behind your retriever.
"""

import httpx
from haystack import Document, Pipeline, component
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.document_stores.in_memory import InMemoryDocumentStore

import passages


def kept(url, texts, **options):
    """Returns the places of the texts that are no near-duplicate of one before."""
    reply = httpx.post(f"{url}/_neardup/dedupe", params=options, json={"texts": texts})
    reply.raise_for_status()
    return reply.json()["kept"]


@component
class Deduplicate:
    """Keeps top_k documents that differ. The retriever should find two or three times as many."""

    def __init__(self, url: str, top_k: int = 8, options: dict | None = None):
        self.url, self.top_k = url, top_k
        self.options = options or {}  # such as {"preset": "chunks"}, {"threshold": 0.8}

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]):
        places = kept(self.url, [d.content or "" for d in documents], **self.options)
        return {"documents": [documents[i] for i in places][: self.top_k]}


if __name__ == "__main__":
    args = passages.arguments(__doc__)
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=p["id"], content=p["text"]) for p in passages.ranked(args.documents, args.query)])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=24))
    pipeline.add_component("deduplicate", Deduplicate(args.url))
    pipeline.connect("retriever", "deduplicate")
    found = pipeline.run({"retriever": {"query": args.query}}, include_outputs_from={"retriever"})
    passages.show((d.id, d.content) for d in found["retriever"]["documents"][:8])
    passages.show((d.id, d.content) for d in found["deduplicate"]["documents"])
