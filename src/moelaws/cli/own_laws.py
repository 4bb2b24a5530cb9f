"""Laws of a user's own studies: looked for only where a command names a law that moelaws lacks."""

from __future__ import annotations

from collections.abc import Iterable

from moelaws import laws


def join_own_laws(refs: Iterable[str], study: str | None = None) -> None:
    """Makes the laws ``refs`` known where a user's own study has them.

    The study is ``study``, a YAML file, or else each that config/config.yaml names. Where moelaws
    has all of these laws nothing is read, so that a mistake in a configuration which the command
    does not need is none, and so that one prediction stays quick.
    """
    if all(ref.partition(":")[0] in laws.ids() for ref in refs):
        return
    from moelaws.spec.project import CONFIG, load_project, load_study

    if study is not None:
        load_study(study)
    elif CONFIG.is_file() and (studies := load_project().studies) != "all":
        for file in studies:
            if file.endswith((".yaml", ".yml")):
                load_study(file)
