"""Near-duplicates among the documents of a file, by packages from PyPI:

  clusters.py PACKAGE INPUT FOLDER WORDS THRESHOLD

INPUT has one JSON object a line: id, which is the number of the line, and text, whose words are in lower case and have one blank between.
FOLDER gets clusters.csv (id,cluster) and, from packages that tell the pairs that they link, pairs.csv (id,id).

text-dedup and datatrove are whole programs: they link what shares a band. datasketch and rensa are libraries: what shares a band is
compared by whole sketches here, and what reaches the threshold is linked. All use two processes or threads.
"""
import itertools
import json
import multiprocessing
import os
import sys

PROCESSES = 2
PERMUTATIONS, BANDS, ROWS = 128, 32, 4  # of datasketch and rensa: at a threshold of 0.64 or more 99 pairs in 100 share a band


def texts(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)["text"]


def shingles(text, words):
    w = text.split(" ")
    return {" ".join(w[i:i + words]) for i in range(max(1, len(w) - words + 1))}


def batches(path, words, size=2000):
    every = texts(path)
    while batch := list(itertools.islice(every, size)):
        yield batch, words


class Forest:
    def __init__(self):
        self.parent = []

    def find(self, x):
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def link(self, pairs, documents, folder):
        self.parent = list(range(documents))
        with open(os.path.join(folder, "pairs.csv"), "w") as f:
            for a, b in pairs:
                f.write(f"{a},{b}\n")
                a, b = self.find(a), self.find(b)
                self.parent[max(a, b)] = min(a, b)
        write(((i, self.find(i)) for i in range(documents)), folder)


def write(rows, folder):
    with open(os.path.join(folder, "clusters.csv"), "w") as f:
        f.writelines(f"{i},{cluster}\n" for i, cluster in rows)


def datasketch_sketches(batch):
    from datasketch import MinHash
    from xxhash import xxh32_intdigest
    documents, words = batch
    sets = [[s.encode() for s in shingles(t, words)] for t in documents]
    return [m.hashvalues for m in MinHash.bulk(sets, num_perm=PERMUTATIONS, hashfunc=xxh32_intdigest)]


def datasketch(path, folder, words, threshold):
    from datasketch import MinHash, MinHashLSH
    index, sketches = MinHashLSH(num_perm=PERMUTATIONS, params=(BANDS, ROWS)), []

    def pairs():
        with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
            for values in itertools.chain.from_iterable(pool.imap(datasketch_sketches, batches(path, words))):
                m, a = MinHash(num_perm=PERMUTATIONS, hashvalues=values, permutations=none.permutations, scheme=none.scheme), len(sketches)
                for b in index.query(m):
                    if sketches[b].jaccard(m) >= threshold:
                        yield a, b
                index.insert(a, m, check_duplication=False)
                sketches.append(m)

    none = MinHash(num_perm=PERMUTATIONS)  # its permutations are shared: a sketch that is done needs none of its own
    found = list(pairs())
    Forest().link(found, len(sketches), folder)


def rensa_sketches(batch):
    from rensa import RMinHash
    documents, words = batch
    return RMinHash.from_token_sets([list(shingles(t, words)) for t in documents], num_perm=PERMUTATIONS, seed=42)


def one_thread():
    os.environ["RAYON_NUM_THREADS"] = "1"


def rensa(path, folder, words, threshold):
    from rensa import RMinHashLSH
    with multiprocessing.get_context("fork").Pool(PROCESSES, one_thread) as pool:
        sketches = list(itertools.chain.from_iterable(pool.imap(rensa_sketches, batches(path, words))))
    index = RMinHashLSH(threshold=threshold, num_perm=PERMUTATIONS, num_bands=BANDS)
    index.insert_many(sketches)

    def pairs():
        for a, others in enumerate(index.query_all(sketches)):
            for b in others:
                if b < a and sketches[a].jaccard(sketches[b]) >= threshold:
                    yield a, b

    Forest().link(pairs(), len(sketches), folder)


def text_dedup(path, folder, words, threshold):
    os.environ.update(HF_HOME=folder, HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    from text_dedup import minhash
    minhash.main(standalone_mode=False, args=[
        "--path", "json", "--data_files", path, "--split", "train", "--cache_dir", os.path.join(folder, "cache"),
        "--output", os.path.join(folder, "output"), "--column", "text", "--ngram", str(words), "--threshold", str(threshold),
        "--hash_func", "xxh3", "--num_proc", str(PROCESSES), "--no-clean_cache"])  # the caller removes the folder
    write(((i, minhash.uf.find(i)) for i, _ in enumerate(texts(path))), folder)


def datatrove(path, folder, words, threshold):
    import struct
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupSignature
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.utils.text import TextNormConfig

    # A task reads whole files, so each process gets a half of the input.
    split = os.path.join(folder, "split")
    os.mkdir(split)
    parts = [open(os.path.join(split, f"{i}.jsonl"), "w", encoding="utf-8") for i in range(PROCESSES)]
    with open(path, encoding="utf-8") as f:
        for i, line in enumerate(f):
            parts[i % PROCESSES].write(line)
    for part in parts:
        part.close()

    def run(name, tasks, *steps):
        LocalPipelineExecutor(pipeline=list(steps), tasks=tasks, workers=min(tasks, PROCESSES), start_method="fork",
                              logging_dir=f"{folder}/logs/{name}").run()

    config = MinhashConfig(n_grams=words, norm_config=TextNormConfig(norm_numbers=False, norm_weekdays=False, norm_monthnames=False))
    run("sketch", PROCESSES, JsonlReader(split), MinhashDedupSignature(f"{folder}/sketches", config))
    run("pairs", config.num_buckets, MinhashDedupBuckets(f"{folder}/sketches", f"{folder}/buckets", config=config))
    run("clusters", 1, MinhashDedupCluster(f"{folder}/buckets", f"{folder}/clusters", config=config, save_cluster_id=True))

    documents = sum(1 for _ in texts(path))
    cluster = [-1 - i for i in range(documents)]
    for part in range(PROCESSES):
        with open(f"{folder}/clusters/{part:06d}.clusters", "rb") as f:
            for line, number in struct.iter_unpack("<2I", f.read()):
                cluster[line * PROCESSES + part] = number
    write(enumerate(cluster), folder)


def main():
    package, path, folder, words, threshold = sys.argv[1:]
    {"datasketch": datasketch, "rensa": rensa, "text-dedup": text_dedup, "datatrove": datatrove}[package](path, folder, int(words), float(threshold))


if __name__ == "__main__":
    main()
