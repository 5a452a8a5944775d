"""Makers of pairs: each takes a text and a random source and returns what the label says about the changed text by construction.

SHORT makers change what a short text says, so the pair must not fold. LONG makers change what stands around a long text, or one figure in
it, so the pair must fold. VARIANTS change bytes and nothing that a reader sees or cares about, so the pair must fold at any length.
A maker returns None where it has nothing to change."""

import re, unicodedata
import words

NUMBER = r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w.,:/-]*\d)(?![.)] )"  # no number of a list


def of(table, lang):
    """The table's entry for a language, by its full code or its first two letters."""
    return table.get(lang) or table.get(lang[:2])


def replaced(text, match, by):
    return text[: match.start()] + by + text[match.end() :] if by != match.group() else None


def pick(random, pattern, text, flags=0):
    found = list(re.finditer(pattern, text, flags))
    return random.choice(found) if found else None


def spaced(words_):
    return [w.replace("_", " ") for w in words_.split()]


def other_digits(random, number):
    """Another number of the same form: one digit differs, or a digit more."""
    places = [i for i, c in enumerate(number) if c.isdigit()]
    i = random.choice(places)
    if random.random() < 0.2 and len(places) < 4 and "." not in number and "," not in number and number != "0":
        return number + random.choice("05")
    low = "1" if i == 0 and len(places) > 1 else "0"
    digit = random.choice([d for d in "0123456789" if d >= low and d != number[i] and unicodedata.digit(number[i], -1) >= 0])
    return number[:i] + digit + number[i + 1 :]


def number(random, text, lang):
    m = pick(random, NUMBER + r"(?!\.\d)", text, re.ASCII)
    return m and replaced(text, m, other_digits(random, m.group()))


def version(random, text, lang):
    m = pick(random, r"(?<![\d.])\d+\.\d+(?:\.\d+)+(?![\d.]*\d)|(?<=[A-Za-z] )\d+\.\d+(?![\d.,]*\d)", text, re.ASCII)
    return m and replaced(text, m, other_digits(random, m.group()))


def unit(random, text, lang):
    for group in random.sample(words.UNITS, len(words.UNITS)):
        names = group.split()
        m = pick(random, r"(?<![\w.,])(\d+(?:[.,]\d+)* ?)(%s)(?![\w/])" % "|".join(sorted(map(re.escape, names), key=len, reverse=True)), text)
        if m:
            return replaced(text, m, m.group(1) + random.choice([n for n in names if n != m.group(2)]))


def sign(random, text, lang):
    m = pick(random, r"(?<![\w.,:/)\]-])(?:(?<=[\s(=])-|(?<=[\s(=])\+)(?=\d)", text)
    if m:
        return replaced(text, m, "+" if m.group() == "-" else "-")


def negation(random, text, lang):
    rules = of(words.NEGATION, lang) or []
    for pattern, by in rules:
        m = pick(random, pattern, text)
        if m:
            changed = replaced(text, m, re.sub(pattern, by, m.group(), count=1) if "(?" not in pattern else m.expand(by))
            if changed and m.start() == 0 and changed[:1].islower():
                changed = changed[0].upper() + changed[1:]
            return changed


def exchange(table):
    def maker(random, text, lang):
        groups = of(table, lang)
        if not groups:
            return None
        for group in random.sample(groups.split("|"), len(groups.split("|"))):
            names = spaced(group)
            edge = "" if lang[:2] in ("zh", "th") else r"(?![ァ-ヿ])" if lang == "ja" else r"(?![\w\u0300-\u036f\u0900-\u0dff])"
            m = pick(
                random,
                r"%s(%s)%s"
                % (edge and r"(?<![ァ-ヿ])" if lang == "ja" else edge and r"(?<![\w\u0900-\u0dff])", "|".join(map(re.escape, names)), edge),
                text,
            )
            if m:
                return replaced(text, m, random.choice([n for n in names if n != m.group()]))

    return maker


size, place = exchange(words.SIZES), exchange(words.PLACES)
_colour = exchange(words.COLOURS)


def colour(random, text, lang):
    return None if lang == "ja" else _colour(random, text, lang)  # single characters, parts of other words


def date(random, text, lang):
    months = of(words.MONTHS, lang)
    if months:
        names = months.split()
        m = pick(random, r"(?<!\w)(%s)(?!\w)" % "|".join(names), text)
        if m and re.search(r"\d", text[max(0, m.start() - 5) : m.end() + 6]):
            return replaced(text, m, random.choice([n for n in names if n != m.group()]))
    m = pick(random, r"(?<!\d)(19|20)\d\d(-\d\d-\d\d)?(?!\d)", text)
    return m and replaced(text, m, "%d%s" % (int(m.group()[:4]) + random.choice((-3, -1, 1, 2)), m.group()[4:]))


OPERATORS = "== != <= >= < > && || += -= + - * / & |".split()
SWAPS = {
    "==": ["!=", "<=", ">="],
    "!=": ["=="],
    "<=": [">=", "<"],
    ">=": ["<=", ">"],
    "<": [">", "<="],
    ">": ["<", ">="],
    "&&": ["||"],
    "||": ["&&"],
    "+=": ["-="],
    "-=": ["+="],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "&": ["|"],
    "|": ["&"],
}


def operator(random, text, lang):
    m = pick(random, r"(?<= )(%s)(?= )" % "|".join(map(re.escape, OPERATORS)), text)
    return m and replaced(text, m, random.choice(SWAPS[m.group()]))


def name_pattern(lang):
    """A capital word inside a sentence; in scripts without capitals a word in Latin letters."""
    if lang[:2] in "en de fr es it pt ru uk pl el vi tr nl cs sv da hu bg ro eo br ga sr ca hr id nb fi sk sl".split():
        return r"(?<=[^\W\d_] )[A-ZÀ-ÖØ-ÞΑ-ΩЀ-ЯĆČĎŁŃŐŘŚŠŤŰŹŻŽĐĞİŞΆΈΉΊΌΎΏ][^\W\d_]{2,}(?![\w\u0300-\u036f-])"
    return r"(?<![A-Za-z0-9_./-])[A-Z][A-Za-z]{2,}(?![A-Za-z0-9_-])"


def name(random, text, lang, names=()):
    """Exchanges a proper name inside a sentence, or a program's name, for one that stands in another text of the language."""
    m = pick(random, name_pattern(lang), text) or pick(random, r"\b[\w+-]{3,}(?=\(\d\))", text)
    others = [n for n in names if n != m.group()] if m else []
    if others:
        by = random.choice(others)
        return re.sub(r"(?<!\w)%s(?!\w)" % re.escape(m.group()), lambda _: by, text)


SHORT = {
    "number": number,
    "version": version,
    "unit": unit,
    "sign": sign,
    "negation": negation,
    "size": size,
    "colour": colour,
    "place": place,
    "date": date,
    "operator": operator,
    "name": name,
}


# Long texts.


def a_date(random, lang, year=None):
    y, m, d = year or random.randint(2005, 2025), random.randint(1, 12), random.randint(1, 28)
    if lang[:2] in ("zh", "ja"):
        return "%d年%d月%d日" % (y, m, d)
    if lang[:2] == "ko":
        return "%d년 %d월 %d일" % (y, m, d)
    months = of(words.MONTHS, lang)
    if months and random.random() < 0.6:
        name_ = months.split()[m - 1] if len(months.split()) == 12 else ""
        if name_:
            return "%d. %s %d" % (d, name_, y) if lang == "de" else "%s %d, %d" % (name_, d, y) if lang == "en" else "%d %s %d" % (d, name_, y)
    return random.choice(("%02d.%02d.%d" % (d, m, y), "%d-%02d-%02d" % (y, m, d), "%02d/%02d/%d" % (d, m, y)))


def frame(lang):
    return of(words.FRAMES, lang) or words.FRAMES["en"]


def line(kind, random, lang):
    published, by, counter, price, _ = frame(lang)
    if kind == "date":
        return published.format(d=a_date(random, lang))
    if kind == "byline":
        return by.format(p=random.choice(spaced(of(words.NAMES, lang) or words.NAMES["en"])))
    if kind == "counter":
        return counter.format(
            n=random.choice((random.randint(2, 90), random.randint(100, 9999), "%d,%03d" % (random.randint(1, 90), random.randint(0, 999)))),
            m=random.randint(0, 400),
        )
    return price.format(v="%d.%02d" % (random.randint(1, 999), random.choice((0, 49, 50, 90, 95, 99))))


def menu_line(random, lang, count):
    names = spaced(frame(lang)[4])
    return " · ".join(random.sample(names, min(count, len(names))))


def framed(kind):
    """Puts one line of the kind above or below the text, with other values in each copy."""

    def maker(random, text, lang, length):
        while True:
            a, b = line(kind, random, lang), line(kind, random, lang)
            if a != b:
                break
        return ("%s\n%s" % (a, text), "%s\n%s" % (b, text)) if random.random() < 0.5 else (text + "\n" + a, text + "\n" + b)

    return maker


def menu(random, text, lang, length):
    """A menu of at most a twelfth of the text's words above one copy, another one above the other, or none."""
    count = max(3, min(13, length // 12))
    a, b = menu_line(random, lang, count), menu_line(random, lang, count)
    other = b + "\n" + text if random.random() < 0.6 and a != b else text
    return a + "\n" + text, other


def figure(random, text, lang, length):
    changed = number(random, text, lang)
    return changed and (text, changed)


def inner_date(random, text, lang, length):
    changed = date(random, text, lang)
    return changed and (text, changed)


def page(random, text, lang, length):
    """The same text on two pages: another date, author, counter and, if it is long enough, menu."""
    if length < 150:
        return None

    def one():
        parts = [
            menu_line(random, lang, min(8, length // 30)),
            line("date", random, lang),
            line("byline", random, lang),
            text,
            line("counter", random, lang),
        ]
        return "\n".join(parts)

    a, b = one(), one()
    return (a, b) if a != b else None


LONG = {
    "date": framed("date"),
    "byline": framed("byline"),
    "counter": framed("counter"),
    "price": framed("price"),
    "menu": menu,
    "figure": figure,
    "inner_date": inner_date,
    "page": page,
}


# Variants.


def case(random, text, lang):
    changed = random.choice((str.upper, str.lower, str.title))(text) if lang not in ("tr", "el", "de") else text.lower()
    return changed if changed != text else None


def punctuation(random, text, lang):
    """Other marks at the end and after words, none inside numbers or code."""
    if re.search(r"[<>=+*/|&\\_{}$#@]", text):
        return None
    end = {"zh": "。", "ja": "。", "hi": "।"}.get(lang[:2], ".")
    changed = re.sub(r"(?<=[^\W\d_])[,;:،，、](?=\s)", "", text) if random.random() < 0.5 else text
    changed = re.sub(r"[.!?。！।]+$", "", changed)
    changed += random.choice(("!", end, " …", "")) if changed == text else ""
    return changed if changed != text else None


def quotes(random, text, lang):
    changed = re.sub(r"(?<!\w)\"([^\"]*)\"", lambda m: random.choice(("„%s“", "“%s”", "«%s»")) % m.group(1), text)
    changed = re.sub(r"(?<=\w)'(?=\w)", "’", changed)
    changed = re.sub(r" - ", " – ", changed).replace("...", "…")
    return changed if changed != text else None


def form(random, text, lang):
    for f in random.sample(("NFD", "NFC", "NFKD"), 3):
        changed = unicodedata.normalize(f, text)
        if changed != text:
            return changed


def zero_width(random, text, lang):
    if lang[:2] in ("fa", "hi", "bn", "ta", "te", "mr", "gu", "kn", "ml"):
        mark = "​"
    else:
        mark = random.choice(("​", "­", "⁠", "﻿"))
    parts = re.findall(r"\S+\s*|\s+", text)
    for i in range(len(parts)):
        if random.random() < 0.15:
            parts[i] = parts[i][: len(parts[i].rstrip()) // 2] + mark + parts[i][len(parts[i].rstrip()) // 2 :]
    changed = "".join(parts)
    return changed if changed != text else mark + text


def width(random, text, lang):
    changed = re.sub(r"[!-~]+", lambda m: "".join(chr(ord(c) + 0xFEE0) for c in m.group()), text)
    return changed if changed != text and lang[:2] in ("zh", "ja", "ko") else None


def spaces(random, text, lang):
    changed = re.sub(r" ", lambda m: random.choice((" ", " ", "  ", "\n", " ")), text)
    return changed if changed != text else None


def umlauts(random, text, lang):
    if lang not in ("de", "deu") or not re.search("[äöüÄÖÜß]", text):
        return None
    for a, b in zip("äöüÄÖÜß", "ae oe ue Ae Oe Ue ss".split()):
        text = text.replace(a, b)
    return text


def accents(random, text, lang):
    """Accents left out, where the language is often written without them."""
    if lang not in ("fr", "es", "it", "pt", "cs", "el"):
        return None
    changed = unicodedata.normalize("NFC", "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c)))
    return changed if changed != text else None


VARIANTS = {
    "case": case,
    "punctuation": punctuation,
    "quotes": quotes,
    "form": form,
    "zero_width": zero_width,
    "width": width,
    "spaces": spaces,
    "umlauts": umlauts,
    "accents": accents,
}


# Records.


def record(random, lang, kind):
    """A record and, for each kind of slot, the same record with another value in that slot."""

    def choose(options):
        return random.sample(options, 2)

    t = spaced_pair(words.WITH_BALCONY if kind == "flat" else words.WITH, lang)
    slots = {
        "g": ("name", choose(spaced(of(words.GOODS, lang)))),
        "g2": ("name", choose((of(words.MEDICINES, lang) or words.MEDICINES[""]).split())),
        "c": ("colour", choose(spaced(of(words.COLOURS, lang)))),
        "z": ("size", choose("XS S M L XL XXL 36 38 40 42 44".split())),
        "v": ("number", choose([str(random.randint(5, 1900)) + random.choice(("", ".50", ".99")) for _ in range(9)])),
        "e": ("unit", choose(words.CURRENCIES.split())),
        "l": ("place", choose(spaced(of(words.PLACES, lang)))),
        "n": ("number", choose(list(map(str, range(2, 99))))),
        "m": ("number", choose(list("2345678"))),
        "u": ("unit", choose("mg g ml µg".split())),
        "d": ("date", [a_date(random, lang, 2024), a_date(random, lang, random.choice((2024, 2025)))]),
        "p": ("name", choose(spaced(of(words.NAMES, lang)))),
        "t": ("negation", random.sample(t, 2)),
        "s": ("sign", random.sample(("-", "+"), 2)),
        "k": ("unit", choose(words.SPEEDS.split())),
    }
    template = words.RECORDS[lang][kind]
    values = {k: v[1][0] for k, v in slots.items()}
    base = template.format(**values)
    for key in re.findall(r"\{(\w+)\}", template):
        changed = template.format(**dict(values, **{key: slots[key][1][1]}))
        if changed != base:
            yield slots[key][0], base, changed


def spaced_pair(table, lang):
    return of(table, lang) or of(words.WITH, lang)


# Logs.


def later(random, text):
    """The same line of a log at another time, from another address. None if it has neither."""

    def clock(m):
        return "%02d:%02d:%02d" % (random.randint(0, 23), random.randint(0, 59), random.randint(0, 59))

    changed = re.sub(r"(?<![\w:])\d\d:\d\d:\d\d(?![\w:])|(?<=\d{4}:)\d\d:\d\d:\d\d(?![\w:])", clock, text)
    changed = re.sub(
        r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])",
        lambda m: "%d.%d.%d.%d" % (random.randint(11, 220), random.randint(0, 255), random.randint(0, 255), random.randint(1, 254)),
        changed,
    )
    changed = re.sub(r"(?<=\w\[)\d+(?=\])", lambda m: str(random.randint(300, 32000)), changed)
    return changed if changed != text else None


def other_event(random, text):
    """The line with another status, level, result or user: another event."""
    for pattern, choices in random.sample(
        [
            (r"\b(?:401|403|404|500|503|200|550|554|535|530)\b", "401 403 404 500 503 200 550 554 535"),
            (
                r"(?<=\[)(?:error|warn|warning|notice|info|debug)(?=\])|(?<=:)(?:error|warn|notice|info)(?=\])|\b(?:ERROR|WARN|WARNING|NOTICE|INFO)\b",
                "error warn notice info fatal",
            ),
            (r"(?i)\b(?:failed|failure|denied|rejected|refused)\b", "accepted succeeded allowed"),
            (
                r"(?<=user )(?!from|pid|name|not|or\b|and\b)[\w.@-]+|(?<=user=)<?[\w.@-]+>?|(?<=for )(?:root|admin|test)\b",
                "root alice bob backup deploy",
            ),
            (r"\b(?:GET|POST|HEAD|PUT)\b", "GET POST HEAD DELETE"),
        ],
        5,
    ):
        m = pick(random, pattern, text)
        if m:
            by = random.choice([c for c in choices.split() if c.lower() != m.group().lower()])
            return replaced(text, m, by)
