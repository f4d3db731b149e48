"""Keeps count of bad rows, up to the number that the user allows."""

from capplan.errors import Complaint, InputError

_SHOWN = 20


class Ledger:
    """Complaints about rows; more than are allowed end the reading."""

    def __init__(self, allowed: int = 0) -> None:
        self._allowed = allowed
        self._shown: list[Complaint] = []
        self.count = 0

    def add(self, complaint: Complaint) -> None:
        """Notes a bad row.

        Raises:
            InputError: There are more than allowed, and enough to show.
        """
        self.count += 1
        if len(self._shown) < _SHOWN:
            self._shown.append(complaint)
        elif self.count > self._allowed:
            self._refuse("there are more; reading stopped here")

    def check(self) -> None:
        """Raises what was noted, if it is more than allowed.

        Raises:
            InputError: With the first 20 bad rows.
        """
        if self.count > self._allowed:
            self._refuse(None)

    def _refuse(self, ending: str | None) -> None:
        remedy = f"--skip-bad {self.count} reads on without them"
        if ending is not None:
            remedy = f"{ending}: --skip-bad N allows N of them"
        rule = f"{self.count} bad rows" if self.count > 1 else "1 bad row"
        raise InputError([*self._shown, Complaint("--skip-bad", "", rule, remedy=remedy)])
