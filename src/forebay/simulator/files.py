"""Which links an event carries: cards of a scenario's deck made into links."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from random import Random

from forebay.simulator.behaviours import ALWAYS, FLAKY, Behaviour
from forebay.simulator.decks import Deck, cards
from forebay.simulator.endings import AttachmentTruth, FileHostAddress, refused
from forebay.simulator.hostile import HOSTILE_NAMES, refused_links
from forebay.simulator.links import STYLES, FileLink, in_a_path

# An outage of seven seconds may take one attempt more than these: four delays, 1, 2, 4 and 8 s.
MOST_FAILURES = 3

EXPIRES_SOON_SECONDS = 5
EXPIRED_SECONDS = -3600
REDIRECT_TARGETS = 5

_NAMES = {
    "pdf": ("report.pdf", "estimate.pdf", "Invoice 12.pdf", "REPORT.PDF", "loss.summary.pdf"),
    "jpg": ("photo.jpg", "roof.jpeg", "IMG_0042.JPG"),
    "png": ("sketch.png", "floor plan.png"),
    "xml": ("estimate.xml", "claim.xml"),
}


@dataclass(frozen=True, slots=True)
class Attachment:
    """`file` is None where the link leads to nothing of ours."""

    truth: AttachmentTruth
    file: FileLink | None = None


class Files:
    """Deals attachments. The seeds of their contents are unique within the script."""

    def __init__(
        self,
        mix: Mapping[str, int],
        prefix: str,
        random: Random,
        host: FileHostAddress,
        signed_at: datetime,
    ) -> None:
        self._prefix = prefix
        self._random = random
        self._host = host
        self._signed_at = signed_at
        self._numbers = count(1)
        self._cards = Deck(cards(mix), random)
        self._styles = Deck(sorted(STYLES), random)
        self._kinds = Deck(cards({"pdf": 6, "jpg": 2, "png": 1, "xml": 1}), random)
        self._refused = Deck(refused_links(host), random)
        self._hostile_names = Deck(HOSTILE_NAMES, random)
        self._failures = Deck(range(1, MOST_FAILURES + 1), random)
        self._targets = Deck(range(1, REDIRECT_TARGETS + 1), random)

    def deal(self) -> Attachment:
        card = self._cards.deal()
        match card:
            case "refused":
                url, word = self._refused.deal()
                return Attachment(AttachmentTruth(url, refused(word)))
            case "hostile_name":
                return self.attach(self._file(Behaviour("ok"), self._hostile_names.deal()))
            case "expired_link":
                return self.attach(self._file(Behaviour("ok"), seconds=EXPIRED_SECONDS))
            case "expiring_link":
                failing = Behaviour("error", ALWAYS)
                return self.attach(self._file(failing, seconds=EXPIRES_SOON_SECONDS))
            case _:
                return self.attach(self._file(self._behaviour(card), self._name_for(card)))

    def twins(self) -> tuple[Attachment, Attachment]:
        """Two files under one name."""
        first = self._file(Behaviour("ok"))
        return self.attach(first), self.attach(self._file(Behaviour("ok"), first.name))

    def sized(self, what: Behaviour, size: int) -> Attachment:
        return self.attach(self._file(what, "large.pdf", size=size))

    def small(self) -> Attachment:
        """With a URL as short as can be: thousands of them fit into one record."""
        file = FileLink(Behaviour("ok"), self._seed(), 300, "a.pdf", "aws_version_4")
        url = f"{self._host}{file.path}"
        return Attachment(AttachmentTruth(url, file.ending()), file)

    def renewed(self, file: FileLink) -> Attachment:
        return self.attach(file.renewed(salt=str(next(self._numbers))))

    def attach(self, file: FileLink) -> Attachment:
        url = file.url(self._host, self._signed_at)
        return Attachment(AttachmentTruth(url, file.ending()), file)

    def _behaviour(self, card: str) -> Behaviour:
        name, _, always = card.partition(".")
        if always:
            return Behaviour(name, ALWAYS)
        if name in FLAKY:
            return Behaviour(name, self._failures.deal())
        return Behaviour(name, self._targets.deal() if name == "redirect-denied" else 0)

    def _name_for(self, card: str) -> str:
        """A page or a program is told from a PDF; what else it might be is another question."""
        return "report.pdf" if card in {"html", "disguised", "program", "encoded"} else ""

    def _file(
        self, what: Behaviour, name: str = "", *, seconds: int | None = None, size: int = 0
    ) -> FileLink:
        chosen = name or in_a_path(self._random.choice(_NAMES[self._kinds.deal()]))
        size = size or self._random.randrange(1_000, 60_000)
        link = FileLink(what, self._seed(), size, chosen, self._styles.deal())
        return link if seconds is None else link.lasting(seconds)

    def _seed(self) -> str:
        return f"{self._prefix}x{next(self._numbers)}"
