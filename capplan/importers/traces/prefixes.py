"""What a prefix cache would have hit: block hashes replayed through one that forgets the oldest."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence


class PrefixCache:
    """Blocks of prompts by their hash; the least recently used goes first.

    A hash stands for its block and everything before it, so that a prompt finds its leading blocks
    up to the first that is missing.
    """

    def __init__(self, block_tokens: int, capacity_tokens: float | None) -> None:
        """An empty cache.

        Args:
            block_tokens: Tokens a block. [tokens]
            capacity_tokens: What it holds; None for everything ever seen. [tokens]
        """
        self._block = block_tokens
        self._most = None if capacity_tokens is None else int(capacity_tokens // block_tokens)
        self._held: OrderedDict[Hashable, None] = OrderedDict()
        self.asked = 0
        """Blocks looked for."""
        self.hit = 0
        """Blocks found."""

    def serve(self, blocks: Sequence[Hashable], prompt_tokens: float) -> float:
        """Tokens of a prompt that were there; afterwards all of it is.

        The last block may be partly filled; what is found never exceeds the prompt.
        """
        found = 0
        for block in blocks:
            if block not in self._held:
                break
            found += 1
        for block in blocks:
            self._held[block] = None
            self._held.move_to_end(block)
        while self._most is not None and len(self._held) > self._most:
            self._held.popitem(last=False)
        self.asked += len(blocks)
        self.hit += found
        return min(found * self._block, prompt_tokens)
