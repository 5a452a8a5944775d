"""A retriever for LangChain that drops near-duplicates from what another one finds. It needs langchain-core.

    python dedupe_langchain.py --url http://localhost:9201 ferry

Copy `kept` and `Deduplicated` into your program, and put your own retriever in the place of `Words`.
"""

import httpx
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

import passages


def kept(url, texts, **options):
    """Returns the places of the texts that are no near-duplicate of one before."""
    reply = httpx.post(f"{url}/_neardup/dedupe", params=options, json={"texts": texts})
    reply.raise_for_status()
    return reply.json()["kept"]


class Deduplicated(BaseRetriever):
    """Finds k passages that differ. The other retriever should find two or three times as many."""

    retriever: BaseRetriever
    url: str
    k: int = 8
    options: dict = {}  # such as {"preset": "chunks"}, {"threshold": 0.8}

    def _get_relevant_documents(self, query, *, run_manager):
        found = self.retriever.invoke(query, config={"callbacks": run_manager.get_child()})
        return [found[i] for i in kept(self.url, [d.page_content for d in found], **self.options)][: self.k]


class Words(BaseRetriever):
    """Stands for a retriever: it ranks the passages of a file by their words."""

    path: str

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(id=p["id"], page_content=p["text"]) for p in passages.ranked(self.path, query)[:24]]


if __name__ == "__main__":
    args = passages.arguments(__doc__)
    words = Words(path=args.documents)
    passages.show((d.id, d.page_content) for d in words.invoke(args.query)[:8])
    passages.show((d.id, d.page_content) for d in Deduplicated(retriever=words, url=args.url).invoke(args.query))
