#!/usr/bin/env python3
"""Makes the corpora of the speed comparison. Deterministic (seeded), standard library only.

  corpus.py synth  OUT COUNT           OUT/synth.txt, OUT/short.txt, OUT/long.txt, OUT/pairs.txt
  corpus.py real   OUT COUNT DEBROOT   OUT/real.txt, OUT/intl.txt

One document a line, UTF-8, its words separated by single spaces.

synth  COUNT documents of lognormal length (median 265 words, sigma 0.5, clipped to 20..2000, mean about 300). Words follow a
       Zipf-Mandelbrot law (s = 1.05, q = 2.7) over 50,000 invented words; shorter words are more frequent and 1 % of the
       vocabulary carries a non-ASCII letter. Sentences start with a capital and have punctuation. 30 % are near-duplicates of an
       earlier document: every word is edited with probability 0.5, 1, 2, 5, 10 or 20 % (60 % substituted, 20 % deleted, 20 %
       followed by an inserted one).
short  the first 30 words of every document of synth.
long   20 documents of synth in a row.
pairs  up to 200 near-duplicates of synth (edited at 1 to 10 %), each on the line after the document it was made from.
real   English technical text: kernel documentation, man pages, the jargon file, fortunes, a handbook, from the Debian packages
       unpacked in DEBROOT, cut into passages of 200 to 400 words. COUNT of them at random, or all there are.
intl   the handbook's 25 translations, cut and drawn the same way; text without spaces counts three characters as one word.
"""
import bisect
import gzip
import html
import os
import random
import re
import sys

VOCABULARY = 50000
RATES = (.005, .01, .02, .05, .10, .20)
PAIRS = 200


def invent_words(rng):
    onset = list("bcdfghjklmnprstvw") + ["st", "tr", "ch", "th", ""]
    nucleus = ["a", "e", "i", "o", "u", "a", "e", "i", "o", "ea", "ou"]
    coda = ["", "", "", "n", "r", "s", "t", "l", "d", "m", "ng"]
    seen, words = set(), []
    while len(words) < VOCABULARY:
        rank = len(words)
        if rank < 200:
            syllables = 1
        elif rank < 600:
            syllables = rng.choice((1, 2))
        elif rank < 4000:
            syllables = 3 if rng.random() < .25 else 2
        else:
            syllables = rng.choice((2, 3, 3, 3, 4))
        word = "".join(rng.choice(onset) + rng.choice(nucleus) + rng.choice(coda) for _ in range(syllables))
        if rank >= 150 and rng.random() < .01:
            word = word.replace("e", "é", 1).replace("u", "ü", 1).replace("n", "ñ", 1)
        if word and word not in seen:
            seen.add(word)
            words.append(word)
    return words


class Writer:
    """Draws words, edits and punctuates them."""

    def __init__(self, rng):
        self.rng, self.words = rng, invent_words(rng)
        self.cumulated, self.total = [], 0.0
        for rank in range(len(self.words)):
            self.total += 1 / (rank + 1 + 2.7) ** 1.05
            self.cumulated.append(self.total)

    def draw(self, count):
        return [self.words[bisect.bisect_left(self.cumulated, self.rng.random() * self.total)] for _ in range(count)]

    def edit(self, source, rate):
        out = []
        for word in source:
            if self.rng.random() >= rate:
                out.append(word)
                continue
            kind = self.rng.random()
            if kind < .6:
                out += self.draw(1)
            elif kind >= .8:
                out += [word] + self.draw(1)
        return out or source

    def dress(self, words):
        out, left = [], 0
        for i, word in enumerate(words):
            if left == 0:
                word, left = word[:1].upper() + word[1:], self.rng.randint(6, 28)
            left -= 1
            if left == 0 or i == len(words) - 1:
                word, left = word + self.rng.choice("....?!"), 0
            elif self.rng.random() < .06:
                word += self.rng.choice(",,,;:")
            out.append(word)
        return " ".join(out)


def save(directory, name, documents):
    # The file appears whole or not at all, so that a run that was broken off leaves none that looks finished.
    path = os.path.join(directory, name + ".txt")
    with open(path + ".part", "w", encoding="utf-8", newline="\n") as f:
        f.writelines(d + "\n" for d in documents)
    os.replace(path + ".part", path)


def synth(directory, count, seed=20240601):
    rng = random.Random(seed)
    writer = Writer(rng)
    duplicate = [i >= count * .7 for i in range(count)]
    rng.shuffle(duplicate)
    bases, documents, pairs = [], [], []
    for again in duplicate:
        if again and bases:
            text, words = rng.choice(bases)
            rate = rng.choice(RATES)
            documents.append(writer.dress(writer.edit(words, rate)))
            if .01 <= rate <= .1 and len(pairs) < 2 * PAIRS:
                pairs += [text, documents[-1]]
            continue
        words = writer.draw(max(20, min(2000, int(rng.lognormvariate(5.58, .5)))))
        documents.append(writer.dress(words))
        bases.append((documents[-1], words))
    save(directory, "short", (" ".join(d.split(" ")[:30]) for d in documents))
    save(directory, "long", (" ".join(documents[i:i + 20]) for i in range(0, count, 20)))
    save(directory, "pairs", pairs)
    save(directory, "synth", documents)


TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.S | re.I)
WORD = re.compile(r"\w+")
FONT = re.compile(r"\\f[A-Z]|\\f\([A-Z]{2}|\\&|\\-")


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    return (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8", "replace")


def unroff(source):
    out = []
    for line in source.splitlines():
        if line.startswith(('.\\"', "'\\\"")):
            continue
        if line.startswith((".", "'")):
            line = re.sub(r"^[.'][A-Za-z]{1,2}\s*", "", line)
        out.append(FONT.sub(lambda m: "-" if m.group() == "\\-" else "", line))
    return "\n".join(out)


def passages(text, rng):
    pieces = text.split()
    start = 0
    while start < len(pieces):
        want, count, end = rng.randint(200, 400), 0, start
        while end < len(pieces) and count < want:
            count += len(WORD.findall(pieces[end]))
            if len(pieces[end]) > 40:  # a sentence of a script that sets no spaces
                count += len(pieces[end]) // 3
            end += 1
        if count >= 20:
            yield " ".join(pieces[start:end])
        start = end


def extract(path, name):
    """The language ("en" where none is told) and the text of an unpacked file, or None."""
    if "/Documentation/" in name and re.search(r"\.(rst|txt)(\.gz)?$", name) and "/translations/" not in name:
        return "en", read(path)
    if "/man/man" in name and name.endswith(".gz"):
        return "en", unroff(read(path))
    if name.endswith("jargon.txt.gz") or ("/games/fortunes/" in name and "." not in os.path.basename(name)):
        return "en", read(path)
    if "/debian-handbook/html/" in name and name.endswith(".html"):
        return name.split("/html/")[1].split("/")[0], html.unescape(TAG.sub(" ", read(path)))
    return None


def real(directory, count, root, seed=7):
    rng = random.Random(seed)
    paths = sorted(os.path.join(d, f) for d, _, files in os.walk(root) for f in files)
    english, others, languages = [], [], set()
    for path in paths:
        found = None if os.path.islink(path) else extract(path, path[len(root):])
        if not found:
            continue
        language, text = found
        if language.startswith("en"):
            english += passages(text, rng)
        else:
            languages.add(language)
            others += passages(text, rng)
    for name, documents in ("real", english), ("intl", others):
        if documents:
            save(directory, name, rng.sample(documents, min(count, len(documents))))
    print(f"real: {len(english)} passages; intl: {len(others)} in {len(languages)} languages", file=sys.stderr)


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    if sys.argv[1] == "synth":
        synth(sys.argv[2], int(sys.argv[3]))
    else:
        real(sys.argv[2], int(sys.argv[3]), sys.argv[4].rstrip("/"))
