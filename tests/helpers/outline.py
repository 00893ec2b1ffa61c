"""What a page holds: its tags in order, whether they close in order, and its words."""

from html.parser import HTMLParser


class Outline(HTMLParser):
    """Every opening tag with its attributes, whether tags are nested properly, and all text."""

    VOID = frozenset({"meta", "img", "br", "link", "input", "hr"})

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.unbalanced, self.words = [], [], [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        self.words += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def fetched(self):
        """Whatever a browser fetches by itself."""
        places = ("src", "href", "srcset", "action")
        return [found[name] for tag, found in self.tags if tag != "a" for name in places if name in found]

    @property
    def followed(self):
        """Where a reader can go."""
        return [found["href"] for found in self.all("a") if "href" in found]
