"""Real text for a checkpoint: what users ask, line by line."""

from typing import Literal, Self

from pydantic import Field, model_validator

from capplan.records.base import Record


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str = Field(min_length=1)


class Prompt(Record):
    """A line of a prompt file: a text, or a conversation that waits for an answer."""

    id: str | None = None
    prompt: str | None = Field(default=None, min_length=1)
    messages: tuple[Message, ...] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("needs either prompt or messages")
        if self.messages is not None and self.messages[-1].role != "user":
            raise ValueError("the last message must be the user's")
        return self

    @property
    def conversation(self) -> tuple[Message, ...]:
        """As messages, whichever form it has."""
        if self.messages is not None:
            return self.messages
        assert self.prompt is not None
        return (Message(role="user", content=self.prompt),)
