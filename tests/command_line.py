"""The command line as tests call it, in their own process."""

from click.testing import CliRunner

from moelaws.cli import cli


def call(*words, **options):
    """How ``moelaws WORDS`` ends; a user's mistake is raised."""
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False, **options)


def printed(*words, **options):
    """What ``moelaws WORDS``, which must succeed, writes to standard output."""
    done = call(*words, **options)
    assert done.exit_code == 0, done.output
    return done.stdout
