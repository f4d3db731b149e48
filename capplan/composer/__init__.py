"""Step time of a deployment, composed of operator times that others published."""

from capplan.composer.asked import Asked
from capplan.composer.compose import composed
from capplan.composer.composed import Composed

__all__ = ["Asked", "Composed", "composed"]
