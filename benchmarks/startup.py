"""How much a command costs beyond importing its libraries.

Prints, for `capplan --help` and for the two-week plan with all policies, the fastest wall time of
several runs over the fastest of the bare imports in the same session. Seconds differ between
machines; the ratio hardly does.
"""

import json
import shutil
import subprocess
import sys
import time

RUNS = 9
HELP_IMPORTS = "import typer, rich.console"
PLAN_IMPORTS = "import typer, rich.console, rich.table, pydantic, yaml, numpy"


def fastest_s(commands: dict[str, list[str]]) -> dict[str, float]:
    """Fastest wall time of each command, the runs interleaved so that all see the same machine."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(RUNS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> None:
    """Prints one JSON object."""
    capplan = shutil.which("capplan", path=f"{sys.prefix}/bin") or "capplan"
    times = fastest_s(
        {
            "help_imports": [sys.executable, "-c", HELP_IMPORTS],
            "help": [capplan, "--help"],
            "plan_imports": [sys.executable, "-c", PLAN_IMPORTS],
            "plan": [capplan, "plan", "servegen-m-large", "--policy", "plain,always,by-load"],
        }
    )
    print(
        json.dumps(
            {
                **{f"{name}_s": round(seconds, 3) for name, seconds in times.items()},
                "help_over_imports": round(times["help"] / times["help_imports"], 2),
                "plan_over_imports": round(times["plan"] / times["plan_imports"], 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
