"""What the sessions in Python share.

A session prints {"same": …, "searches": …, "cursors": …}, each an object of step names:

same      what the client returned, or the error that it raised: the engine's own answer, whatever is configured
searches  the pages of a search, as replies, read by their numbers up to the end of the list: they may be collapsed
cursors   the same where the client goes on from the last hit of a page: the first page may be collapsed
"""

import common


def plain(value):
    """A client's value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if hasattr(value, "body") and hasattr(value, "meta"):  # a reply of the Elasticsearch client
        return plain(value.body)
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return str(value)


def error(raised):
    """What a caller can tell of an exception."""
    shown = {"raised": type(raised).__name__, "text": str(raised)}
    for name in ("status_code", "error", "info", "body", "errors"):
        if hasattr(raised, name):
            shown[name] = plain(getattr(raised, name))
    return shown


class Session:
    def __init__(self):
        self.args = common.arguments(verbs=())
        self.documents = list(common.documents(self.args.corpus))
        self.shown = {"same": {}, "searches": {}, "cursors": {}}

    def index(self, name):
        return f"{self.args.index}-{name}"

    def show(self):
        common.show(self.shown)

    def record(self, kind, step, value):
        if step in self.shown[kind]:
            raise KeyError(f"two steps {step!r}")
        self.shown[kind][step] = plain(value)

    def same(self, step, call, *args, **params):
        try:
            value = call(*args, **params)
        except Exception as raised:
            value = error(raised)
        self.record("same", step, value)

    async def same_async(self, step, awaitable):
        try:
            value = await awaitable
        except Exception as raised:
            value = error(raised)
        self.record("same", step, value)

    def search(self, step, page, size):
        """Reads a list in pages of a size: page(from) answers one."""
        pages = []
        while not pages or hits(pages[-1]):
            pages.append(plain(page(len(pages) * size)))
        self.record("searches", step, pages)

    def cursor(self, step, page):
        """Reads a list by the sort values of the last hit: page(values) answers one."""
        pages = [plain(page(None))]
        while hits(pages[-1]):
            pages.append(plain(page(hits(pages[-1])[-1]["sort"])))
        self.record("cursors", step, pages)


def hits(page):
    held = page.get("hits", {})
    return held if isinstance(held, list) else held.get("hits")
