"""forebay dlq: the dead letters of all pipelines, and what can be done about them."""

from typer import Typer

from forebay.cli.dlq_debug import DebugLetter
from forebay.cli.dlq_decide import Discard, Note, Resolve
from forebay.cli.dlq_export import Export
from forebay.cli.dlq_list import CauseStats, ListLetters
from forebay.cli.dlq_replay import Replay
from forebay.cli.dlq_view import ViewLetter


def add_dlq_commands(app: Typer) -> None:
    app.command(
        "stats", help="Group the dead letters by cause.\n\nforebay dlq stats --pipeline orders"
    )(CauseStats)
    app.command("list", help="List dead letters.\n\nforebay dlq list --cause a41f --from 2d")(
        ListLetters
    )
    app.command("view", help="Show one, without its secrets.\n\nforebay dlq view 7f3a")(ViewLetter)
    app.command(
        "replay",
        help="Send open ones back to their stage.\n\n"
        'forebay dlq replay --cause a41f --rate 50 --reason "access granted"',
    )(Replay)
    app.command(
        "resolve",
        help='Say that they are dealt with.\n\nforebay dlq resolve 7f3a --reason "entered by hand"',
    )(Resolve)
    app.command(
        "discard",
        help='Give them up.\n\nforebay dlq discard --cause 3be0 --reason "the links are dead"',
    )(Discard)
    app.command("note", help='Leave word for others.\n\nforebay dlq note 7f3a "asked the sender"')(
        Note
    )
    app.command(
        "export",
        help="Write them in full, a JSON object a line.\n\nforebay dlq export letters.ndjson",
    )(Export)
    app.command(
        "debug",
        help="Run the stage's function on one under pdb; send and commit nothing.\n\n"
        "forebay dlq debug 7f3a --of orders:orders",
    )(DebugLetter)
