"""Why a deployment cannot be composed."""

from capplan.errors import Complaint


class Refused(Exception):  # noqa: N818 — it is a reason, and becomes an InputError with others
    """One reason; `composed` collects them into one `InputError`."""

    def __init__(self, key: str, rule: str, found: str | None = None) -> None:
        super().__init__(rule)
        self.complaint = Complaint("compose", key, rule, found)
