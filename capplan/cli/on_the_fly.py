"""`capplan plan --on`: profiles of a GPU that the forecast's model has, or one composed for it."""

from capplan.cli.compose_run import Choice, smallest
from capplan.cli.hardware import hardware
from capplan.files.catalogue import profiles_for
from capplan.files.reader import read
from capplan.records.profile import Profile


def profiles_on(model: str, choice: Choice) -> list[Profile]:
    """Known profiles of a model on the GPU, where the layout is left open; else a composed one.

    Args:
        model: Name, or a file of ours or of Hugging Face.
        choice: GPUs of a replica at most, and what else the layout is asked to be.

    Raises:
        InputError: No fleet has the GPU, or the model cannot be composed on it.
        InfeasibleError: No layout of so many GPUs holds it.
    """
    there = hardware(choice.on, choice.fleet)
    if choice.tp is None:
        known = [read(path, Profile) for path in profiles_for(model)]
        usable = [one for one in known if _is_on(one, there.name, there.gpus)]
        if usable:
            return usable
    return [smallest(model, choice).composed.profile]


def _is_on(profile: Profile, gpu: str, gpus: int) -> bool:
    deployment = profile.deployment
    return deployment.gpu == gpu and deployment.gpus_per_replica <= gpus
