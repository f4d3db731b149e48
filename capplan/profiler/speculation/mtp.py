"""The target's own layers for multi-token prediction, as transformers loads them.

Each layer reads the hidden states of the one before it beside the tokens one place on, and proposes
one token, the likeliest: a checkpoint with one such layer drafts one token. Engines run that layer
again on its own states for more; transformers does not, so more cannot be measured here.

Source:
    DeepSeek-V3 (arXiv 2412.19437), section 2.2, for the layers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from capplan.errors import Complaint, InputError
from capplan.profiler.speculation.rejection import Drafts
from capplan.records.acceptance import DrafterKind


class MtpDrafter:
    """Drafts with the layers behind the target's own; reads the whole text for every round.

    Raises:
        InputError: The checkpoint has none, or fewer than drafts are wanted.
    """

    kind: DrafterKind = "autoregressive"

    def __init__(self, model: Any, draft_tokens: int) -> None:
        config = model.config.get_text_config()
        layers = getattr(config, "num_mtp_layers", None) or 0
        if layers < draft_tokens:
            rule = f"must not exceed the checkpoint's {layers} layers for multi-token prediction"
            raise InputError([Complaint("--draft-tokens", "", rule, str(draft_tokens))])
        self._model = model
        try:
            self._heads = MtpModel.from_pretrained(model, device_map={"": model.device}).eval()
        except (OSError, ValueError, RuntimeError) as error:
            rule = f"transformers cannot load its prediction layers: {str(error).splitlines()[0]}"
            raise InputError([Complaint("TARGET", "", rule[:300])]) from error

    def draft(self, text: Sequence[int], draft_tokens: int, rng: np.random.Generator) -> Drafts:
        """Proposes the likeliest token of each layer."""
        del rng
        read = torch.tensor([text], device=self._model.device)
        with torch.inference_mode():
            seen = self._model(input_ids=read[:, :-1], output_hidden_states=True, use_cache=False)
            tokens, _, _ = self._heads(
                input_ids=read[:, 1:],
                last_hidden_states=seen.hidden_states[-1],
                attention_mask=None,
                position_ids=torch.arange(1, len(text), device=read.device)[None],
                mtp_cache=MtpCache(config=self._model.config.get_mtp_config()),
            )
        return Drafts(tuple(tokens[0, :draft_tokens].tolist()))
