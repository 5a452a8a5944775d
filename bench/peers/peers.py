"""The contenders from PyPI. One request a line on the standard input, one answer a line on the standard output:

  time CONTENDER COUNT PATH   sketches the first COUNT lines of the file: "ok WALL-SECONDS CPU-SECONDS"
  agree CONTENDER PATH        sketches the lines two by two: "ok MEAN-SHARE-OF-EQUAL-POSITIONS"

Anything that goes wrong is answered with "error WHY". The fields are separated by tabs. rensa and datasketch come without a
tokeniser, so they share the usual Python one: re.findall(r"\\w+", text.lower()), four words joined by a space.
"""
import functools
import gc
import os
import re
import sys
import time

for name in ("RAYON", "OMP", "OPENBLAS", "NUMBA"):
    os.environ[name + "_NUM_THREADS"] = "1"
os.environ.update(DAFT_RUNNER="native", DAFT_ANALYTICS_ENABLED="0", DO_NOT_TRACK="true", DAFT_PROGRESS_BAR="0")
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
if CORES:  # daft makes one worker for every core that it sees
    os.sched_setaffinity(0, {min(CORES)})

WORDS, POSITIONS = 4, 128
WORD = re.compile(r"\w+").findall


def shingles(text):
    w = WORD(text.lower())
    return list(map(" ".join, zip(w, w[1:], w[2:], w[3:]))) if len(w) >= WORDS else [" ".join(w)]


@functools.cache
def corpus(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        return [line.rstrip("\n") for line in f]


def rensa():
    from rensa import RMinHash

    def sketch(texts):
        return RMinHash.digest_matrix_from_token_sets([shingles(t) for t in texts], num_perm=POSITIONS, seed=42)

    def rows(texts):
        out = []
        for text in texts:
            m = RMinHash(num_perm=POSITIONS, seed=42)
            m.update(shingles(text))
            out.append(m.digest())
        return out

    return list, sketch, rows


def datasketch():
    from datasketch import MinHash
    from xxhash import xxh32_intdigest

    def sketch(texts):
        return MinHash.bulk([[s.encode() for s in shingles(t)] for t in texts], num_perm=POSITIONS, hashfunc=xxh32_intdigest)

    return list, sketch, lambda texts: [m.hashvalues.tolist() for m in sketch(texts)]


def daft(normalized):
    import daft as d
    from daft.functions import minhash, normalize
    column = d.col("text")
    if normalized:
        column = normalize(column, remove_punct=True, lowercase=True, white_space=True)
    column = minhash(column, num_hashes=POSITIONS, ngram_size=WORDS, seed=1, hash_function="xxhash3_64").alias("minhash")

    def sketch(frame):
        return frame.select(column).collect()

    def load(texts):
        return d.from_pydict({"text": texts}).collect()

    return load, sketch, lambda texts: sketch(load(texts)).to_pydict()["minhash"]


MAKERS = {"rensa": rensa, "datasketch": datasketch, "daft": lambda: daft(False), "daft normalize": lambda: daft(True)}


@functools.cache
def contender(name):
    """How a list of texts becomes the contender's own input (not timed), the timed part, and texts to lists of positions."""
    made = MAKERS[name]()
    made[1](made[0](["a first call starts its threads and loads what is loaded late"]))
    if CORES:  # the threads are made; they may go where there is room
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), CORES)
    return made


@functools.lru_cache(maxsize=8)
def loaded(name, path, count):
    return contender(name)[0](corpus(path)[:count])


def measure(name, count, path):
    sketch, documents = contender(name)[1], loaded(name, path, int(count))
    gc.collect()
    gc.disable()
    wall, cpu = time.perf_counter(), time.process_time()
    out = sketch(documents)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    gc.enable()
    del out
    return wall, cpu


def agree(name, path):
    rows = contender(name)[2](corpus(path))
    shares = [sum(x == y for x, y in zip(a, b)) / POSITIONS for a, b in zip(rows[::2], rows[1::2])]
    return (sum(shares) / len(shares),)


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)  # a library that prints must not spoil an answer
    os.dup2(2, 1)
    for line in sys.stdin:
        verb, *fields = line.rstrip("\n").split("\t")
        try:
            values = {"time": measure, "agree": agree}[verb](*fields)
            print("ok", *values, sep="\t", file=answers)
        except Exception as e:  # whatever it is, the other contenders go on
            print("error", " ".join(f"{type(e).__name__}: {e}".split()), sep="\t", file=answers)


main()
