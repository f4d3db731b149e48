"""`capplan profile routing`: how a checkpoint's routers choose experts over real text."""


def routing() -> None:
    """Not yet."""
