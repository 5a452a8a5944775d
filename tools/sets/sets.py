"""Makes labelled sets of near-duplicates from public texts: sets.py [-raw FOLDER] [-out FOLDER] [-offline].

Labels follow from how a pair was made, or from exact word edit similarity of two releases; never from a sketch. Each set is a folder in the
format that internal/quality reads. `subset` is the side of the split: choose (two thirds of the source documents) or kept (one third)."""

import argparse, collections, functools, hashlib, html, json, os, random as randoms, re, sys
import edits, sources, words

UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # kana and Chinese characters
RUNS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
TOKEN = re.compile(r"[%s]|[%s]{1,4}|(?:[^\W_%s%s]|[\u0300-\u036f\u064b-\u065f\u0900-\u0dff])+" % (UNSPACED, RUNS, UNSPACED, RUNS))
CHARACTER = re.compile("[%s]" % UNSPACED)


def digest(*parts):
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:8], "big")


def seeded(*parts):
    return randoms.Random(digest(*parts))


def side(family):
    return "kept" if digest("side", family) % 3 == 0 else "choose"


def tokens(text):
    return TOKEN.findall(text.casefold())


def length(text):
    """Length in words. A Chinese or Japanese character counts half a word, four letters of Thai, Lao, Khmer or Burmese one."""
    chars = len(CHARACTER.findall(text))
    return len(TOKEN.findall(text)) - chars + chars // 2


def similarity(a, b):
    """Exact edit similarity by words: twice the longest common subsequence over both lengths (bit-parallel, Hyyro 2004)."""
    a, b = tokens(a), tokens(b)
    if not a or not b:
        return float(a == b)
    masks = collections.defaultdict(int)
    for i, t in enumerate(a):
        masks[t] |= 1 << i
    full = (1 << len(a)) - 1
    v = full
    for t in b:
        u = v & masks[t] if t in masks else 0
        v = ((v + u) | (v - u)) & full
    return 2 * (len(a) - bin(v).count("1")) / (len(a) + len(b))


class Set:
    """A set in the making. At most `most` pairs of one kind and language are kept."""

    def __init__(self, name, source, licence, most, preset="", clusters=False, for_default=False):
        self.name, self.source, self.licence, self.most, self.preset, self.clusters = name, source, licence, most, preset, clusters
        self.for_default = for_default or not preset
        self.docs, self.pairs, self.count, self.seen = {}, [], collections.Counter(), set()

    def wants(self, kind, lang):
        return self.count[kind, lang] < self.most

    def add(self, kind, lang, family, a, b, grade=""):
        """Adds a pair of texts of one source document. The kind says whether the pair must fold."""
        if not self.wants(kind, lang) or a == b or not a.strip() or not b.strip() or (a, b) in self.seen:
            return
        self.seen.add((a, b))
        self.count[kind, lang] += 1
        self.pairs.append(
            (
                self.doc(a, lang),
                self.doc(b, lang),
                int(kind.startswith("must_fold")),
                grade,
                side(family),
                kind,
                lang,
                min(length(a), length(b)),
                family,
            )
        )

    def doc(self, text, lang):
        return self.docs.setdefault(text, ("%s%d" % (lang, len(self.docs)), lang))[0]

    def write(self, folder):
        folder = os.path.join(folder, self.name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "docs.jsonl"), "w", encoding="utf-8") as f:
            for text, (id_, lang) in self.docs.items():
                f.write(json.dumps({"id": id_, "lang": lang, "text": text}, ensure_ascii=False) + "\n")
        with open(os.path.join(folder, "pairs.tsv"), "w", encoding="utf-8") as f:
            f.write("id_a\tid_b\tlabel\tgrade\tsubset\tkind\tlanguage\twords\n")
            f.writelines("\t".join(map(str, p[:8])) + "\n" for p in self.pairs)
        if self.clusters:
            self.write_clusters(folder)
        meta = {
            "name": self.name,
            "gold": "pairs",
            "clusters": self.clusters,
            "preset": self.preset,
            "for_default": self.for_default,
            "source": self.source,
            "license": self.licence,
            "docs": len(self.docs),
            "pairs": len(self.pairs),
            "pairs_positive": sum(p[2] for p in self.pairs),
            "languages": sorted({p[6] for p in self.pairs}),
        }
        with open(os.path.join(folder, "meta.json"), "w") as f:
            json.dump(meta, f, indent=1, ensure_ascii=False)
        print(
            "%-28s %6d documents %6d pairs, %6d must fold, %d languages"
            % (self.name, meta["docs"], meta["pairs"], meta["pairs_positive"], len(meta["languages"])),
            flush=True,
        )

    def write_clusters(self, folder):
        """Documents joined by pairs that must fold are a cluster. One cluster of a source document and language is listed, and at most
        400 documents of a language, so that all pairs of a subset can be judged."""
        root = {}

        def find(x):
            while root.setdefault(x, x) != x:
                x = root[x]
            return x

        for p in self.pairs:
            if p[2]:
                root[find(p[0])] = find(p[1])
        spoiled = {find(p[0]) for p in self.pairs if not p[2] and find(p[0]) == find(p[1])}
        chosen, listed = {}, collections.Counter()
        for p in self.pairs:
            for x in p[:2]:
                key = p[6], p[8]
                if x not in chosen and find(x) not in spoiled and listed[p[6]] < 400 and listed.get(key, find(x)) == find(x):
                    chosen[x] = "%s\t%s\t%s-%s\n" % (x, find(x), p[4], p[6])
                    listed[key] = find(x)
                    listed[p[6]] += 1
        with open(os.path.join(folder, "clusters.tsv"), "w") as f:
            f.write("id\tcluster\tsubset\n" + "".join(chosen.values()))


def language(code):
    """One code a language: zh_CN and zh_TW stay apart."""
    code = code.split("@")[0]
    if code in ("code", "log", "tags", "zh"):
        return code
    return {"zh_CN": "zh_CN", "zh_TW": "zh_TW", "zh_HK": "zh_TW"}.get(code, code[:2] if code[:3] != "fil" else "fil")


def paragraphs(doc, low, high):
    for i, p in enumerate(doc.text.split("\n")):
        if low <= length(p) <= high:
            yield i, p


def shortened(text, target, random):
    """A run of paragraphs of about target words, from a place chosen by random; the last one is cut at a word. None if there are too few."""
    parts = text.split("\n")
    first = random.randrange(max(1, len(parts) // 2))
    taken, have = [], 0
    for p in parts[first:]:
        n = length(p)
        if have + n > target * 1.1:
            cut = int(len(p) * (target - have) / n)
            cut = p.rfind(" ", 0, cut) if " " in p[:cut] else cut
            if cut > 0 and target - have > 3:
                taken.append(p[:cut].rstrip())
            have = target
            break
        taken.append(p)
        have += n
        if have >= target:
            break
    return "\n".join(taken) if have >= 0.9 * target else None


def name_pool(docs, languages=None):
    """Proper names that stand inside sentences, for each language."""
    pool = collections.defaultdict(collections.Counter)
    for d in docs:
        lang = language(d.lang)
        for n in re.findall(edits.name_pattern(lang), d.text[:3000]):
            pool[lang][n] += 1
    return {lang: sorted(n for n, _ in sorted(c.items(), key=lambda x: (-x[1], x[0]))[:400] if not n.isupper()) for lang, c in pool.items()}


def short(set_, docs, kinds, low=4, high=50, each=2):
    """Minimal pairs from short texts: (key, lang, family, text)."""
    docs = sorted(docs, key=lambda d: digest(d.key))
    pool = name_pool(docs)
    for d in docs:
        lang = language(d.lang)
        kinds_here = [k for k in kinds if set_.wants("must_not_fold/" + k, lang)]
        if not kinds_here or not low <= length(d.text) <= high:
            continue
        random, made = seeded(set_.name, d.key), 0
        for k in sorted(kinds_here, key=lambda k: (set_.count["must_not_fold/" + k, lang], random.random())):
            changed = edits.name(random, d.text, lang, pool.get(lang, ())) if k == "name" else edits.SHORT[k](random, d.text, lang)
            if changed and tokens(changed) != tokens(d.text) or changed and k in ("sign", "operator") and changed != d.text:
                set_.add("must_not_fold/" + k, lang, d.family, d.text, changed)
                made += 1
            if made >= each:
                break


def long(set_, docs, lengths=(60, 80, 120, 200, 400, 1000), each=1):
    """Long texts in many lengths that differ in what stands around them, or in a figure."""
    counts = collections.Counter()
    for d in sorted(docs, key=lambda d: digest(d.key)):
        lang, whole = language(d.lang), length(d.text)
        for target in lengths:
            if whole < target or counts[lang, target] >= set_.most:
                continue
            random = seeded(set_.name, d.key, target)
            text = shortened(d.text, target, random)
            if not text or length(text) < 60:
                continue
            kinds = [k for k in edits.LONG]
            for k in sorted(kinds, key=lambda k: (counts[lang, target, k], random.random()))[: each + 2]:
                made = edits.LONG[k](random, text, lang, target)
                if made and tokens(made[0]) != tokens(made[1]):
                    set_.add("must_fold/" + k, lang, d.family, *made)
                    counts[lang, target, k] += 1
                    counts[lang, target] += 1
                    break


def variants(set_, docs, low, high):
    for d in sorted(docs, key=lambda d: digest("v", d.key)):
        lang = language(d.lang)
        kinds = [k for k in edits.VARIANTS if set_.wants("must_fold/" + k, lang)]
        if not kinds or not low <= length(d.text) <= high:
            continue
        random = seeded(set_.name, d.key)
        for k in sorted(kinds, key=lambda k: (set_.count["must_fold/" + k, lang], random.random())):
            changed = edits.VARIANTS[k](random, d.text, lang)
            if changed and changed != d.text:
                set_.add("must_fold/" + k, lang, d.family, d.text, changed)
                break


def releases(set_, by_release, least=0.85, low=60, high=3000):
    """Consecutive releases of one document that are revisions: they must fold. Less similar ones are not judged."""
    for older, newer in zip(by_release, by_release[1:]):
        for key in sorted(set(older) & set(newer), key=digest):
            a, b = older[key], newer[key]
            lang = language(a.lang)
            if (
                a.text == b.text
                or not set_.wants("must_fold/release", lang)
                or not low <= min(length(a.text), length(b.text))
                or max(length(a.text), length(b.text)) > high
            ):
                continue
            s = similarity(a.text, b.text)
            if s >= least and tokens(a.text) != tokens(b.text):
                set_.add("must_fold/release", lang, a.family, a.text, b.text, "%.3f" % s)


def neighbours(set_, docs, kind, group, least, most, high=3000, low=3, short=1.01):
    """Different documents of one group (the packages of one source, the entries beside each other) that look alike: they must not fold.
    `least` and `most` bound their edit similarity, `least` and `short` that of texts of under 50 words."""
    groups = collections.defaultdict(list)
    for d in docs:
        groups[language(d.lang), group(d)].append(d)
    for (lang, _), members in sorted(groups.items(), key=lambda x: digest(x[0])):
        members.sort(key=lambda d: digest(d.key))
        for a, b in zip(members, members[1:]):
            if not set_.wants("must_not_fold/" + kind, lang):
                break
            n = min(length(a.text), length(b.text))
            if not low <= n or max(length(a.text), length(b.text)) > high or tokens(a.text) == tokens(b.text) or side(a.family) != side(b.family):
                continue
            s = similarity(a.text, b.text)
            if least <= s < (short if max(length(a.text), length(b.text)) < 50 else most):
                set_.add("must_not_fold/" + kind, lang, a.family, a.text, b.text, "%.3f" % s)


def renamed(set_, docs, low=60, high=400):
    """One product's page with another's name throughout: they must not fold. The name stands in the text at least four times."""
    docs = sorted(docs, key=lambda d: digest("r", d.key))
    names = sorted({d.key.split("/")[-1].split(".")[0] for d in docs if re.fullmatch(r"[a-z][a-z0-9-]{3,14}", d.key.split("/")[-1].split(".")[0])})
    for d in docs:
        lang, name = language(d.lang), d.key.split("/")[-1].split(".")[0]
        if not set_.wants("must_not_fold/renamed", lang) or not low <= length(d.text) <= high or len(name) < 4:
            continue
        pattern = re.compile(r"(?i)(?<![\w-])%s(?![\w-])" % re.escape(name))
        if len(pattern.findall(d.text)) >= max(4, length(d.text) / 30):
            other = seeded(set_.name, d.key).choice([n for n in names if n != name])
            set_.add("must_not_fold/renamed", lang, d.family, d.text, pattern.sub(other, d.text))


def windows(doc, count):
    """Runs of lines of one document as documents of their own."""
    lines = doc.text.split("\n")
    for i in range(0, max(1, len(lines) - 3), max(1, len(lines) // count)):
        yield doc._replace(key="%s#%d" % (doc.key, i), text="\n".join(lines[i:]))


def short_paragraphs(docs, high=50):
    for d in docs:
        for i, p in paragraphs(d, 6, high):
            yield d._replace(key="%s#%d" % (d.key, i), text=p)


# Sets for one preset each.


def part(text, start, share):
    """A part of the text, both bounds by share of its characters, moved to the next blank if one is near."""
    bounds = []
    for at in (int(start * len(text)), int((start + share) * len(text))):
        blank = re.compile(r"\s").search(text, at, min(len(text), at + 30))
        bounds.append(blank.start() if at and blank else at)
    return text[bounds[0] : bounds[1]].strip()


def quotes(a, b):
    """Whether a has a run of 40 characters of b."""
    return any(b[i : i + 40] in a for i in range(0, len(b) - 40, 40))


def with_another(docs, low, high):
    """Yields documents of these lengths with another one of the same language and side of the split that quotes nothing of it, or None."""
    last = {}
    for d in sorted(docs, key=lambda d: digest("another", d.key)):
        if low <= length(d.text) <= high:
            at = d.lang, side(d.family)
            other = last.get(at)
            yield d, other if other and other.family != d.family and not quotes(d.text, other.text) else None
            last[at] = d


def excerpts(set_, docs):
    """Parts of a long text beside the whole, and beside the whole of another text."""
    for d, other in with_another(docs, 1000, 8000):
        lang, random = language(d.lang), seeded("excerpt", d.key)
        for percent in (5, 10, 25, 50):
            start, share = random.random() * (1 - percent / 100), percent / 100
            set_.add("must_fold/part_%02d" % percent, lang, d.family, part(d.text, start, share), d.text)
            if other:
                set_.add("must_not_fold/part_%02d_of_other" % percent, lang, d.family, part(other.text, start, share), d.text)


def passages(set_, docs):
    """Passages of 100 to 300 words of one text that overlap, or lie one in the other, or are neighbours."""
    for d, other in with_another(docs, 700, 8000):
        lang, random = language(d.lang), seeded("passage", d.key)
        size = random.uniform(100, 300) / length(d.text)
        start = random.random() * (1 - 2 * size)
        base = part(d.text, start, size)
        for percent in (90, 75, 20, 10, 0):
            kind = "must_fold/overlap_%02d" if percent > 50 else "must_not_fold/overlap_%02d"
            set_.add(kind % percent, lang, d.family, base, part(d.text, start + size * (1 - percent / 100), size))
        for percent in (70, 50):
            inside = start + random.random() * size * (1 - percent / 100)
            set_.add("must_fold/within_%02d" % percent, lang, d.family, base, part(d.text, inside, size * percent / 100))
        if other:
            set_.add("must_not_fold/other_text", lang, d.family, base, part(other.text, start, size))


def reports(set_, docs, headlines):
    """One report in two papers: another headline, byline and date, and up to a quarter cut from its end; or two reports in one paper."""

    def paper(random, lang, text):
        head = [random.choice(headlines[lang]), edits.line("byline", random, lang), edits.line("date", random, lang)]
        return "\n".join(head + [part(text, 0, random.uniform(0.75, 1))])

    for d, other in with_another(docs, 120, 500):
        lang, random = language(d.lang), seeded("report", d.key)
        set_.add("must_fold/report", lang, d.family, paper(random, lang, d.text), paper(random, lang, d.text))
        if other:
            state = random.getstate()
            first = paper(random, lang, d.text)
            random.setstate(state)
            set_.add("must_not_fold/other_report", lang, d.family, first, paper(random, lang, other.text))


def site(random, lang, lines, words_):
    """A frame of about so many words around the pages of a site: a menu, a list of other pages and a footer."""
    teasers, have = [], 0
    while have < words_:
        teasers.append(random.choice(lines[lang]))
        have += length(teasers[-1])
    links = ["<li><a href=/%d>%s</a></li>" % (i, html.escape(t)) for i, t in enumerate(teasers)]
    menu, foot = edits.menu_line(random, lang, 8).split(" · "), html.escape(random.choice(lines[lang]))
    menu = "".join("<li><a href=/%d>%s</a></li>" % x for x in enumerate(menu))
    before, after = random.choice(
        (
            ("<nav><ul>%s</ul></nav>", "<aside><ul>%s</ul></aside>"),
            ('<div class="menu"><ul>%s</ul></div>', '<div id="sidebar"><ul>%s</ul></div>'),
        )
    )
    first = random.random() < 0.5
    aside = after % "".join(links)

    def page(text):
        body = "<div>%s</div>" % "".join("<p>%s</p>" % html.escape(p) for p in text.split("\n"))
        return "<html><head><title>%s</title></head><body>%s%s%s%s<footer><p>%s</p></footer></body></html>" % (
            foot,
            before % menu,
            aside if first else "",
            body,
            "" if first else aside,
            foot,
        )

    return page


def pages(set_, docs, lines):
    """One text as a page of two sites, whose frames have a tenth, half or as many words as the text; or two texts in the frame of one site."""
    for d, other in with_another(docs, 150, 1000):
        lang, random = language(d.lang), seeded("page", d.key)
        for percent in (10, 50, 100):
            size = length(d.text) * percent / 100
            one, two = site(random, lang, lines, size), site(random, lang, lines, size)
            set_.add("must_fold/frame_%03d" % percent, lang, d.family, one(d.text), two(d.text))
            if other:
                set_.add("must_not_fold/other_text_%03d" % percent, lang, d.family, one(d.text), one(other.text))


def tags(set_, docs):
    """The tags of a thing, one a line, in another order, without one or with one more; or with another value of one or two tags; or another
    thing's that has at least half of them."""
    values, last = collections.defaultdict(set), {}
    docs = [d for d in docs if 4 <= len(d.text.split("\n")) <= 25]
    for d in docs:
        for t in d.text.split("\n"):
            values[t.split("::")[0]].add(t)
    for d in sorted(docs, key=lambda d: digest("tags", d.key)):
        have, random = d.text.split("\n"), seeded("tags", d.key)

        def add(kind, tags_):
            random.shuffle(tags_)
            set_.add(kind, "tags", d.family, d.text, "\n".join(tags_))

        def others(count):
            chosen = random.sample(have, count)
            return [random.choice(sorted(values[t.split("::")[0]] - set(have)) or [t + "-2"]) if t in chosen else t for t in have]

        add("must_fold/order", have[:])
        add("must_fold/one_left_out", random.sample(have, len(have) - 1))
        add("must_fold/one_more", have + [random.choice(sorted(values["use"] | values["works-with"]))])
        add("must_not_fold/one_other_value", others(1))
        add("must_not_fold/two_other_values", others(2))
        other = last.get((side(d.family), have[-1]), d)
        theirs = set(other.text.split("\n"))
        if other.family != d.family and len(theirs & set(have)) >= len(have) / 2 and theirs != set(have):
            set_.add("must_not_fold/other_thing", "tags", d.family, d.text, other.text)
        last[side(d.family), have[-1]] = d


def make(raw, out, only):
    DEBIAN, MANUAL = (
        "Debian package descriptions and their translations",
        "manual pages of Debian (manpages, manpages-l10n, manpages-ja, manpages-zh, manpages-vi)",
    )
    GPL, DOCS = (
        "GPL-2+ and others, as the packages say",
        "Debian installation guide, handbook, reference, FAQ, policy, developers' reference, maintainers' guide, GNOME help",
    )

    @functools.lru_cache(None)
    def descriptions(suite):
        return list(sources.descriptions(raw, suite))

    @functools.lru_cache(None)
    def manuals(suite):
        return list(sources.manuals(raw, suite))

    @functools.lru_cache(None)
    def guides(suite):
        return list(sources.guides(raw, suite))

    @functools.lru_cache(None)
    def eastern():
        docs = list(sources.declarations(raw)) + [d for d in sources.chapters(raw)]
        return [w for d in docs for w in windows(d, 30 if d.key.startswith("udhr") else 4)]

    @functools.lru_cache(None)
    def messages():
        wanted = "en_GB de fr es it pt_BR ru uk pl el ar hi zh_CN zh_TW ja ko th vi tr nl cs sv da hu bg ro bn ta te".split()
        return [d for d in sources.messages(raw) if d.lang in wanted and 4 <= length(d.text) <= 50 and "%" not in d.text]

    @functools.lru_cache(None)
    def fortunes():
        return [
            d for d in sources.fortunes(raw) if "arteascii" not in d.key and len(re.findall(r"\w", d.text)) > 0.6 * len(re.sub(r"\s", "", d.text))
        ]

    @functools.lru_cache(None)
    def dictionaries():
        return list(sources.dictionaries(raw))

    def by_key(docs):
        return {d.key: d for d in docs}

    ALL = ("number", "version", "unit", "sign", "negation", "size", "colour", "place", "date", "name")
    makers = {}

    def maker(name, source, licence, most, preset="", clusters=False, for_default=False):
        """Registers a function that fills the set of this name. The set is of the kind of duplicates that the preset is for; for_default
        says that its labels are right for the default preset too."""

        def register(fill):
            def run():
                set_ = Set(name, source, licence, most, preset, clusters, for_default)
                fill(set_)
                set_.write(out)

            makers[name] = run

        return register

    @maker("records", "templates of this script with words of 19 languages", "none needed", 250)
    def _(s):
        for lang in words.RECORDS:
            for i in range(60):
                for kind in words.RECORDS[lang]:
                    random = seeded("record", lang, kind, i)
                    for k, a, b in edits.record(random, lang, kind):
                        if random.random() < 0.55:
                            s.add("must_not_fold/" + k, lang, "record/%s/%s/%d" % (lang, kind, i), a, b)

    @maker("short-descriptions", DEBIAN, GPL, 120)
    def _(s):
        short(s, (d._replace(text=d.text.replace("\n", ". ", 1)) for d in descriptions("bookworm")), ALL)

    @maker("short-manuals", "paragraphs of " + MANUAL, GPL, 80)
    def _(s):
        short(s, short_paragraphs(manuals("bookworm")), ALL)

    @maker("short-guides", "paragraphs of " + DOCS, GPL, 50)
    def _(s):
        short(s, short_paragraphs(guides("bookworm")), ALL)

    @maker("short-messages", "messages of GTK, GIMP, Nautilus, GNOME Settings, aptitude, GLib in their translations", "GPL, LGPL", 90)
    def _(s):
        short(s, messages(), ALL)

    @maker("short-fortunes", "fortunes in 12 languages", GPL, 150)
    def _(s):
        unsigned = (d._replace(text=re.split(r"\n\s+--", d.text)[0]) for d in fortunes())
        short(s, unsigned, ALL)

    @maker("short-verses", "the Koran in 6 languages (quran-json), Universal Declaration of Human Rights (udhr)", "CC BY-SA 4.0, MIT", 120)
    def _(s):
        short(
            s,
            short_paragraphs(list(sources.declarations(raw)) + list(sources.chapters(raw))),
            ("number", "negation", "name", "size", "colour", "place"),
            each=1,
        )

    @maker("short-dictionaries", "FreeDict dictionaries", GPL, 60)
    def _(s):
        chosen = [d for d in dictionaries() if digest(d.key) % 25 == 0]
        short(s, chosen, ("number", "negation", "size", "colour", "place"))

    @maker("short-code", "lines of code of Python's standard library", "PSF", 1500)
    def _(s):
        folder, docs = os.path.dirname(os.__file__), []
        for file in sorted(os.listdir(folder)):
            if file.endswith(".py"):
                for i, row in enumerate(open(os.path.join(folder, file), encoding="utf-8", errors="replace")):
                    if 12 < len(row.strip()) < 160 and not row.strip().startswith("#"):
                        docs.append(sources.Doc("python/%s/%d" % (file, i), "code", "python/" + file, row.strip()))
        short(s, docs, ("operator", "number"), low=3, each=1)
        for d in docs:
            for a, b in (("not in", "in"), ("is not", "is"), ("if not", "if"), ("True", "False")):
                if a in d.text:
                    s.add("must_not_fold/negation", "code", d.family, d.text, d.text.replace(a, b, 1))
                    break

    @maker("long-manuals", MANUAL, GPL, 110)
    def _(s):
        long(s, manuals("bookworm"))

    @maker("long-guides", DOCS, GPL, 110)
    def _(s):
        long(s, guides("bookworm"))

    @maker("long-descriptions", DEBIAN, GPL, 150)
    def _(s):
        long(s, descriptions("bookworm"), lengths=(60, 80, 120, 200))

    @maker("long-eastern", "the Koran in 6 languages (quran-json), Universal Declaration of Human Rights in 25 (udhr)", "CC BY-SA 4.0, MIT", 100)
    def _(s):
        long(s, eastern())

    @maker("long-fortunes", "fortunes of more than 60 words", GPL, 100)
    def _(s):
        long(s, fortunes(), lengths=(60, 80, 120, 200))

    @maker("variants-short", DEBIAN + "; " + MANUAL, GPL, 60, clusters=True)
    def _(s):
        variants(s, list(short_paragraphs(manuals("bookworm"))) + messages(), 3, 50)

    @maker("variants-long", DOCS, GPL, 40, clusters=True)
    def _(s):
        docs = [d._replace(text=t) for d in guides("bookworm") for t in [shortened(d.text, 60 + digest(d.key) % 400, seeded("cut", d.key))] if t]
        variants(s, docs, 60, 500)

    @maker("simplified-traditional", "manual pages and the Koran in Chinese, tables of OpenCC (opencc-js)", "GPL-2+, CC BY-SA 4.0, Apache-2.0", 2500)
    def _(s):
        tables = sources.chinese_tables(raw)

        def traditional(text):
            out_, i = [], 0
            while i < len(text):
                n = next((n for n in (6, 5, 4, 3, 2, 1) if text[i : i + n] in tables), 0)
                out_.append(tables[text[i : i + n]] if n else text[i])
                i += max(n, 1)
            return "".join(out_)

        docs = [d for d in manuals("bookworm") + list(sources.chapters(raw)) + guides("bookworm") if language(d.lang) == "zh_CN"]
        for d in sorted(list(short_paragraphs(docs, 60)), key=lambda d: digest(d.key))[:1800]:
            s.add("must_fold/script", "zh", d.family, d.text, traditional(d.text))
        for d in docs:
            for target in (80, 200, 400):
                text = shortened(d.text, target, seeded("script", d.key, target))
                if text:
                    s.add("must_fold/script", "zh", d.family, text, traditional(text))

    @maker("manual-releases", MANUAL + " of three releases", GPL, 400, "versions", clusters=True, for_default=True)
    def _(s):
        releases(s, [by_key(manuals(suite)) for suite in sources.SUITES])
        neighbours(s, manuals("bookworm"), "sibling", lambda d: d.key.split("/")[-1][:3], 0.15, 0.5)

    @maker("guide-releases", DOCS + " of three releases and two architectures", GPL, 400, "versions", clusters=True, for_default=True)
    def _(s):
        releases(s, [by_key(guides(suite)) for suite in sources.SUITES])
        by_arch = [
            {d.key.replace("amd64", "arm64"): d for d in guides("bookworm") if "amd64" in d.key},
            {d.key: d for d in guides("bookworm") if "arm64" in d.key},
        ]
        releases(s, by_arch)
        neighbours(s, guides("bookworm"), "sibling", lambda d: d.key.rsplit("/", 1)[0] + d.key.rsplit("/", 1)[1][:4], 0.15, 0.5)

    @maker("description-releases", DEBIAN + " of three releases", GPL, 500, "versions", clusters=True, for_default=True)
    def _(s):
        releases(s, [by_key(descriptions(suite)) for suite in sources.SUITES], least=0.8)

    @maker("description-siblings", DEBIAN + ": packages of one source", GPL, 400)
    def _(s):
        neighbours(s, descriptions("bookworm"), "sibling", lambda d: d.family, 0.3, 0.7)

    @maker("renamed", DEBIAN + "; " + MANUAL, GPL, 150)
    def _(s):
        renamed(s, descriptions("bookworm") + manuals("bookworm"))

    @maker("fortune-neighbours", "fortunes in 12 languages", GPL, 300)
    def _(s):
        neighbours(s, fortunes(), "other_text", lambda d: (d.family.rsplit("/", 1)[0], side(d.family), d.text[:3]), 0.1, 0.5, short=0.7)

    @maker("dictionary-neighbours", "FreeDict dictionaries", GPL, 500)
    def _(s):
        neighbours(s, [d for d in dictionaries() if digest(d.family) % 5 == 0], "headword", lambda d: (d.family, d.text[:4]), 0.3, 0.6)

    @maker("readme-releases", "readmes and changelogs of npm packages in several versions", "MIT", 200, "versions", clusters=True, for_default=True)
    def _(s):
        versions = collections.defaultdict(list)
        for key, version, text in sources.readmes(raw):
            versions[key].append(sources.Doc(key, "en", "npm/" + key.split("/")[0], text))
        for key, docs in versions.items():
            for a, b in zip(docs, docs[1:]):
                releases(s, [{key: a}, {key: b}], high=9000)

    @maker("logs", "lines of logs from the tests of fail2ban", "GPL-2+", 4000, preset="logs")
    def _(s):
        for d in sources.log_lines(raw):
            for i in range(4):
                random = seeded("log", d.key, i)
                changed = edits.later(random, d.text)
                if changed:
                    s.add("must_fold/log", "log", d.family, d.text, changed)
                if i < 2:
                    event = edits.other_event(random, d.text)
                    if event:
                        s.add("must_not_fold/log_event", "log", d.family, d.text, event)

    @functools.lru_cache(None)
    def headlines():
        lines = collections.defaultdict(list)
        for d in guides("bookworm"):
            lines[language(d.lang)] += [p for _, p in paragraphs(d, 4, 14)]
        return lines

    @maker("excerpts", DOCS, GPL, 30, "plagiarism", clusters=True)
    def _(s):
        excerpts(s, guides("bookworm"))

    @maker("passages", DOCS, GPL, 40, "chunks", clusters=True)
    def _(s):
        passages(s, guides("bookworm"))

    @maker("reports", DOCS, GPL, 80, "news", clusters=True)
    def _(s):
        reports(s, [d for d in guides("bookworm") if headlines()[language(d.lang)]], headlines())

    @maker("pages", DOCS, GPL, 40, "mirrors", clusters=True)
    def _(s):
        pages(s, [d for d in guides("bookworm") if headlines()[language(d.lang)]], headlines())

    @maker("tags", "tags of Debian packages (debtags)", GPL, 1500, "goods", clusters=True)
    def _(s):
        tags(s, list(sources.tags(raw, "bookworm")))

    for name, run in makers.items():
        if not only or name in only:
            run()


NOTES = """# Labelled sets of near-duplicates

Made by `make sets` (tools/sets) from public texts. Each folder is a set: docs.jsonl (id, lang, text), pairs.tsv (id_a, id_b, label,
grade, subset, kind, language, words), meta.json (source, licence) and, where all pairs of a subset are judged, clusters.tsv.
`make quality` measures them.

- `label` 1: must fold; 0: must not. `kind` says so too, and what was changed.
- `words`: length of the shorter text. A Chinese or Japanese character counts half a word, four letters of Thai one.
- `subset`: `choose` (two thirds of the source documents) or `kept` (one third), by a hash of the source document or of its group.
- `grade`: exact edit similarity by words, where that made the label.

How labels were made:

- Minimal pairs (must_not_fold/number, unit, ...): one thing in a text of at most 50 words is exchanged for another.
- Long texts (must_fold/date, figure, menu, ...): a text of 60 to 1000 words with other lines around it, or one figure or date in it
  changed. A menu is at most a twelfth of the text; page is date, author, counter and menu together, from 150 words.
- Releases: one document in two consecutive releases of Debian or npm, edit similarity at least 0.85 (descriptions: 0.8), at least
  60 words. Less similar ones are not judged.
- Siblings, headwords, other texts: different documents of one group with an edit similarity under 0.5 (descriptions: 0.7,
  dictionaries: 0.6); under 50 words any similarity (fortunes: 0.7).
- Renamed: another name throughout a text of 60 to 400 words in which the name stands four times and once in 30 words.
- Variants: other bytes for the same text: case, punctuation, quotes, Unicode forms, invisible characters, widths, spaces, ue for ü,
  accents left out, traditional for simplified characters.
- Logs: time, address and process number differ (must fold), or the event does (must not). They are meant for a preset for logs.
- Excerpts: a part of a text of 1000 to 8000 words beside the whole (must fold) or beside another whole (must not). A text that has a run of
  40 characters of the other is no other text.
- Passages: of 100 to 300 words, of one text; overlap_75 share three quarters, within_50 is half of the other (must fold); neighbours share a
  fifth or less (must not).
- Reports: one text under two headlines, bylines and dates, up to a quarter cut from its end; or two texts under one head (must not).
- Pages: one text as HTML in the frames of two sites, of a tenth, half or as many words as the text; or two texts in one frame (must not).
- Tags: a package's tags in any order, one left out or added (must fold); one or two with another value, or those of another package that
  shares half of them (must not).
- for_default in meta.json says whether the labels are right for the default preset too, where a set is meant for a preset.

Known noise, from reading some hundred pairs of each kind:

- colour, size, place and name exchange words without grammar, and now and then a word in another sense ("espacio en blanco", "top
  level"). The text still says something else.
- name takes any capital word inside a sentence, in German any noun.
- date takes any number from 1900 to 2099, also of a standard or port (about one in ten).
- sign makes some senseless commands (-0 to +0).
- accents may join two words of Spanish, French or Italian that differ in meaning ("esta", "está").
- case, punctuation and quotes of a few texts with code change an option or a string.
- release pairs of descriptions just over 60 words may differ in a version or a name alone. By the rule for long texts they fold.
- clusters of manual-releases: siblings of one template (true and false, iso_8859-2 and iso_8859-16) are different clusters, and share
  up to nine words in ten.
- short-code depends on the version of Python that runs the script.
- texts in small languages have English parts where nobody translated them.

"""


def readme(out):
    """Writes README.md: what the sets are, and a table of what is in them."""
    rows, kinds, total = [], collections.Counter(), collections.Counter()
    for name in sorted(os.listdir(out)):
        path = os.path.join(out, name, "pairs.tsv")
        if not os.path.exists(path):
            continue
        meta = json.load(open(os.path.join(out, name, "meta.json")))
        pairs = [l.rstrip("\n").split("\t") for l in open(path, encoding="utf-8")][1:]
        here = collections.Counter(p[5] for p in pairs)
        kinds.update(here)
        total.update(p[5].split("/")[0] for p in pairs)
        rows.append(
            "| %s | %d | %d | %d | %d | %s | %s | %s; %s |"
            % (
                name,
                meta["docs"],
                len(pairs),
                meta["pairs_positive"],
                sum(p[4] == "kept" for p in pairs),
                ", ".join("%s %d" % (k.split("/")[1], n) for k, n in here.most_common()),
                " ".join(meta["languages"]),
                meta["source"],
                meta["license"],
            )
        )
    with open(os.path.join(out, "README.md"), "w", encoding="utf-8") as f:
        f.write(
            NOTES + "%d sets, %d pairs: %d must fold, %d must not.\n\n" % (len(rows), sum(total.values()), total["must_fold"], total["must_not_fold"])
        )
        f.write(
            "| set | documents | pairs | must fold | kept | kinds | languages | source; licence |\n|---|---|---|---|---|---|---|---|\n"
            + "\n".join(rows)
            + "\n\n"
        )
        f.write("| kind | pairs |\n|---|---|\n" + "".join("| %s | %d |\n" % x for x in sorted(kinds.items())))


def main():
    cache = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "neardup")
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("-raw", default=os.path.join(cache, "sets-raw"), help="folder for what is downloaded")
    p.add_argument("-out", default=os.path.join(cache, "sets"), help="folder for the sets")
    p.add_argument("-offline", action="store_true", help="use what is downloaded already")
    p.add_argument("-only", default="", help="names of sets, joined by commas")
    a = p.parse_args()
    if not a.offline:
        sources.fetch(a.raw)
    make(a.raw, a.out, [n for n in a.only.split(",") if n])
    readme(a.out)


if __name__ == "__main__":
    main()
