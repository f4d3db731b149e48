"""One replica token by token: slow, plain, and written apart from the product's simulator.

Every sequence is moved at every step, and what each round keeps of its drafts is drawn. Lists of
objects, no clocks, no heap, no expectation.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from capplan.physics.engine import Engine, Requests


@dataclass
class Sequence:
    number: int
    arrival_s: float
    prompt: int
    cached: int
    output: int
    kind: int
    emitted: int = 0
    processed: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    preempted: int = 0
    target_s: float = 0.0
    draft_s: float = 0.0
    interference_s: float = 0.0
    rounds: int = 0

    @property
    def to_process(self) -> int:
        """Prompt, or after losing the cache everything so far."""
        return self.prompt + self.emitted

    @property
    def context(self) -> int:
        return self.prompt + self.emitted


@dataclass
class Replica:
    engine: Engine
    kept: np.ndarray  # share of rounds that keep position 1, 2, …, by kind
    rng: np.random.Generator
    undrafted: frozenset[int] = frozenset()  # kinds that go without drafts
    # A round without prefill of so many sequences, so many of them with this many drafts.
    round_s: Callable[[int, int, int], float] | None = None
    now: float = 0.0
    waiting: list[Sequence] = field(default_factory=list)
    partial: Sequence | None = None
    decoding: list[Sequence] = field(default_factory=list)  # in order of admission
    gaps: list[tuple[float, int]] = field(default_factory=list)
    batch_seconds: float = 0.0

    def drafts(self) -> int:
        return int(self.engine.draft_tokens[self.engine.variant_by_batch[len(self.decoding)]])

    def drafting(self) -> int:
        return sum(s.kind not in self.undrafted for s in self.decoding)

    def needed(self) -> int:
        own = sum(s.context for s in self.decoding) + self.drafting() * self.drafts()
        return own + (self.partial.to_process if self.partial else 0)

    def make_room(self) -> bool:
        preempted = False
        while self.needed() > self.engine.cache_tokens:
            if self.partial is not None:
                victim, self.partial = self.partial, None
            elif len(self.decoding) > 1:
                victim = self.decoding.pop()
            else:
                break
            victim.processed, victim.preempted = 0, victim.preempted + 1
            self.waiting.insert(0, victim)
            preempted = True
        return preempted

    def prefill(self) -> tuple[list[Sequence], int, float]:
        engine, n = self.engine, len(self.decoding)
        room = engine.max_batched_tokens - n - self.drafting() * self.drafts()
        room = min(room, int(engine.chunk_tokens[-1]))
        ended: list[Sequence] = []
        taken, own = 0, 0.0
        while room > 0:
            if self.partial is None:
                reserved = sum(s.to_process for s in ended)
                if not self.waiting or n + len(ended) >= engine.max_batch:
                    break
                if self.needed() + reserved + self.waiting[0].to_process > engine.cache_tokens:
                    break
                self.partial = self.waiting.pop(0)
                if self.partial.preempted == 0:
                    self.partial.processed = self.partial.cached
            one = self.partial
            tokens = min(room, one.to_process - one.processed)
            own += self.own_s(tokens, one.processed)
            one.processed += tokens
            room, taken = room - tokens, taken + tokens
            if one.processed == one.to_process:
                ended.append(one)
                self.partial = None
        return ended, taken, own

    def own_s(self, tokens: int, cached: int) -> float:
        engine = self.engine
        by_tokens = [np.interp(cached, engine.own_cached_tokens, row) for row in engine.own_s]
        smallest = engine.own_tokens[0]
        if tokens < smallest:
            return float(by_tokens[0] * tokens / smallest)
        return float(np.interp(tokens, engine.own_tokens, by_tokens))

    def step_s(self, taken: int, own: float) -> float:
        engine, n = self.engine, len(self.decoding)
        variant = engine.variant_by_batch[n]
        chunk = own + float(np.interp(taken, engine.chunk_tokens, engine.chunk_s[variant, n]))
        if not n:
            return chunk
        context = sum(s.context for s in self.decoding) / n
        decode = float(np.interp(context, engine.context_tokens, engine.step_s[variant, n]))
        if self.round_s is not None:
            decode = self.round_s(n, self.drafting(), self.drafts())
        for sequence in self.decoding:
            sequence.rounds += 1
            sequence.draft_s += engine.draft_s[variant, n]
            sequence.target_s += decode - engine.draft_s[variant, n]
            sequence.interference_s += chunk
        return decode + chunk

    def emit(self) -> None:
        """What the round gives each sequence: one token and the drafts before the first miss."""
        drafts = self.drafts()
        kinds = [sequence.kind for sequence in self.decoding]
        drafted = np.array([kind not in self.undrafted for kind in kinds], dtype=bool)
        draws = self.rng.random((len(kinds), 1))
        tokens = 1 + drafted * (draws < self.kept[kinds, :drafts]).sum(axis=1)
        for sequence, count in zip(self.decoding, tokens, strict=True):
            sequence.emitted = min(sequence.emitted + int(count), sequence.output)

    def step(self) -> None:
        preempted = self.make_room()
        ended, taken, own = ([], 0, 0.0) if preempted else self.prefill()
        duration = self.step_s(taken, own)
        assert sum(s.context for s in self.decoding) <= self.engine.cache_tokens
        self.now += duration
        self.batch_seconds += duration * len(self.decoding)
        self.gaps.append((duration, len(self.decoding)))
        self.emit()
        for sequence in ended:
            sequence.emitted += 1
            sequence.first_s = sequence.first_s or self.now
        for sequence in self.decoding + ended:
            sequence.last_s = self.now
        self.decoding = [s for s in self.decoding + ended if s.emitted < s.output]


def arriving(engine: Engine, requests: Requests, rate_per_s: float) -> list[Sequence]:
    columns = (requests.prefill_tokens + requests.cached_tokens, requests.cached_tokens)
    arrival_s = requests.arrival_s / rate_per_s
    sequences = [
        Sequence(i, float(arrival_s[i]), *(int(c[i]) for c in columns), int(m), int(kind))
        for i, (m, kind) in enumerate(zip(requests.output_tokens, requests.kind, strict=True))
    ]
    assert all(one.prompt + one.output <= engine.cache_tokens for one in sequences)
    return sequences


def served(
    engine: Engine,
    requests: Requests,
    rate_per_s: float,
    kept: np.ndarray,
    seed: int = 0,
    **settings: Any,
) -> tuple[list[Sequence], Replica]:
    """All requests with their times, and the replica that served them."""
    sequences = arriving(engine, requests, rate_per_s)
    replica = Replica(engine, kept, np.random.default_rng(seed), **settings)
    ahead = sequences[::-1]
    while ahead or replica.waiting or replica.partial or replica.decoding:
        if not (replica.waiting or replica.partial or replica.decoding):
            replica.now = max(replica.now, ahead[-1].arrival_s)
        while ahead and ahead[-1].arrival_s <= replica.now:
            replica.waiting.append(ahead.pop())
        replica.step()
    return sequences, replica


def served_closed(engine: Engine, requests: Requests, in_flight: int) -> list[Sequence]:
    """Plain decoding; the next request comes as one ends, once the engine's next step has begun."""
    sequences = arriving(engine, requests, 1.0)
    replica = Replica(engine, np.zeros((1, 0)), np.random.default_rng(0))
    ahead, late = sequences[::-1], []
    present = 0
    while True:
        while ahead and present < in_flight:
            late.append(ahead.pop())
            late[-1].arrival_s = replica.now
            present += 1
        if not (replica.waiting or replica.partial or replica.decoding):
            replica.waiting, late = late, []
        if not (replica.waiting or replica.partial or replica.decoding):
            return sequences
        replica.step()
        replica.waiting, late = replica.waiting + late, []
        started = [one for one in sequences if one.first_s]
        present -= sum(one.emitted >= one.output and one.last_s == replica.now for one in started)
