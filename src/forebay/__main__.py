from forebay.cli.main import run

run()
