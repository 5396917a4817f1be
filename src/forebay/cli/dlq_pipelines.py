"""The pipeline that dead letters are of: as it is named, or where its name leads to."""

from forebay.cli.errors import WrongUse
from forebay.cli.loading import load_pipeline
from forebay.cli.session import Session
from forebay.engine.letters import DeadLetter
from forebay.engine.pipeline import Pipeline
from forebay.engine.stages import Stage


def named_or_found(session: Session, reference: str | None, name: str) -> Pipeline | None:
    """`orders:orders` for pipeline orders, as most are written; None where nothing is found."""
    if reference is not None:
        return load_pipeline(reference, session)
    try:
        found = load_pipeline(name, session)
    except WrongUse:
        return None
    return found if found.name == name else None


def reference_of(reference: str | None, name: str) -> str:
    """As an import statement can use it: `module:attribute`."""
    module, _, attribute = (reference or name).partition(":")
    return f"{module}:{attribute or module.rpartition('.')[2]}"


def pipeline_of(session: Session, letter: DeadLetter, reference: str | None) -> Pipeline:
    pipeline = named_or_found(session, reference, letter.pipeline)
    if pipeline is None:
        raise WrongUse(
            f"Dead letter {letter.id} is of pipeline {letter.pipeline or '(unknown)'}, and no "
            f"module of that name holds it here. Nothing was done. Say where it is: --of "
            f"module:pipeline."
        )
    return pipeline


def stage_of(letter: DeadLetter, pipeline: Pipeline) -> Stage:
    """By the topic that the letter is on: a stage may have got another name since."""
    for stage in pipeline.stages:
        if pipeline.route(stage).dead_letter_topic == letter.dlq_topic:
            return stage
    names = ", ".join(stage.name for stage in pipeline.stages)
    raise WrongUse(
        f"No stage of {pipeline.name} ({names}) has {letter.dlq_topic} for its dead letters, where "
        f"{letter.id} lies. Nothing was done. Name its own pipeline with --of."
    )
