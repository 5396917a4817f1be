"""The tools of the kafka_consumer mod, which its document leaves to other programs."""

from typer import Typer

from forebay.cli.mod_replay import ReplayBackup
from forebay.cli.mod_reprocess import ReprocessDlq


def add_tool_commands(app: Typer) -> None:
    app.command(
        "replay-backup",
        help="Send records of backup files to a topic, or through a function.\n\n"
        "forebay mod replay-backup kafka_backup.csv.2.gz kafka_backup.csv --topic orders-again\n\n"
        "Key, value and headers are as they were; the partition is chosen anew.",
    )(ReplayBackup)
    app.command(
        "reprocess-dlq",
        help="Try the dead letters of the mod once more, also while it runs.\n\n"
        "forebay mod reprocess-dlq kafka_dlq.csv --processor orders:process\n\n"
        "What succeeds leaves the file, what fails stays with a higher retry_count.",
    )(ReprocessDlq)
