"""Answers of an OpenAI-compatible server kept one a line: `created` and `usage` are taken.

Source: https://platform.openai.com/docs/api-reference/chat/object. Whole seconds, at which the
answer began to be made; whatever else a line holds, prompts and answers too, is not kept.
"""

from capplan.importers.traces.layout import Layout

LAYOUT = Layout(
    "OpenAI-style responses",
    {
        "arrival": "created",
        "prompt": "usage.prompt_tokens",
        "output": "usage.completion_tokens",
        "class": "model",
    },
    unit="s",
    needed=frozenset({"created", "usage.prompt_tokens", "usage.completion_tokens"}),
)

WITH_CACHE = Layout(
    LAYOUT.name,
    LAYOUT.columns | {"cached": "usage.prompt_tokens_details.cached_tokens"},
    unit=LAYOUT.unit,
    needed=LAYOUT.needed | {"usage.prompt_tokens_details.cached_tokens"},
)
