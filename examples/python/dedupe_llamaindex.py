"""A postprocessor for LlamaIndex that drops near-duplicates from the nodes that were found. It needs llama-index-core.

    python dedupe_llamaindex.py --url http://localhost:9201 ferry

Copy `kept` and `Deduplicate` into your program, and give it to your query engine: node_postprocessors=[Deduplicate(url=…)].
"""

import httpx
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

import passages


def kept(url, texts, **options):
    """Returns the places of the texts that are no near-duplicate of one before."""
    reply = httpx.post(f"{url}/_neardup/dedupe", params=options, json={"texts": texts})
    reply.raise_for_status()
    return reply.json()["kept"]


class Deduplicate(BaseNodePostprocessor):
    """Keeps top_n nodes that differ. The retriever should find two or three times as many."""

    url: str
    top_n: int = 8
    options: dict = {}  # such as {"preset": "chunks"}, {"threshold": 0.8}

    def _postprocess_nodes(self, nodes, query_bundle=None):
        return [nodes[i] for i in kept(self.url, [n.get_content() for n in nodes], **self.options)][: self.top_n]


class Words(BaseRetriever):
    """Stands for a retriever: it ranks the passages of a file by their words."""

    def __init__(self, path):
        self.path = path
        super().__init__()

    def _retrieve(self, query_bundle):
        found = passages.ranked(self.path, query_bundle.query_str)[:24]
        return [NodeWithScore(node=TextNode(id_=p["id"], text=p["text"]), score=p["score"]) for p in found]


if __name__ == "__main__":
    args = passages.arguments(__doc__)
    nodes = Words(args.documents).retrieve(args.query)
    passages.show((n.node_id, n.get_content()) for n in nodes[:8])
    passages.show((n.node_id, n.get_content()) for n in Deduplicate(url=args.url).postprocess_nodes(nodes))
