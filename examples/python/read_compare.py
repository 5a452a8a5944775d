"""Says which pairs of a file of documents a person should look at, by the JSON of `sidecar compare`. It needs no engine.

    python read_compare.py ../articles.jsonl

The pairs whose agreement lies within two standard errors of the threshold are those that could as well have gone the other way.
All pairs of the file are compared: for more than some thousand documents, take the pairs that `sidecar cluster` finds.
"""

import argparse
import itertools
import json
import subprocess


def compared(sidecar, path, fields, threshold):
    """Yields a verdict for each pair of the file's documents, as the sketches tell it."""
    with open(path, encoding="utf-8") as lines:
        ids = [json.loads(line)["id"] for line in lines if line.strip()]
    pairs = "".join(f"{a}\t{b}\n" for a, b in itertools.combinations(ids, 2))
    command = [sidecar, "compare", "--docs", path, "--fields", fields, "--pairs", "-",
               "--threshold", str(threshold), "--output", "json"]
    done = subprocess.run(command, input=pairs, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    for line in done.stdout.splitlines():
        yield json.loads(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", help="a file of documents, one JSON object in each line")
    parser.add_argument("--sidecar", default="sidecar", help="the program")
    parser.add_argument("--fields", default="title,body", help="the fields that are compared")
    parser.add_argument("--threshold", type=float, default=0.64, help="the least agreement of near-duplicates")
    args = parser.parse_args()
    verdicts = sorted(
        compared(args.sidecar, args.documents, args.fields, args.threshold), key=lambda v: v["agreement"], reverse=True)
    near = [v for v in verdicts if v["near_duplicate"]]
    print(f"{len(verdicts)} pairs, {len(near)} of near-duplicates at a threshold of {args.threshold}")
    for v in verdicts:
        doubt = abs(v["agreement"] - args.threshold) <= 2 * v["error"]
        if v["near_duplicate"] or doubt:
            verdict = "near-duplicates" if v["near_duplicate"] else "two texts"
            look = ", look at them" if doubt else ""
            print(f"  {v['agreement']:.2f} ± {v['error']:.2f}  {v['id_a']:<11} {v['id_b']:<11} {verdict}{look}")


if __name__ == "__main__":
    main()
