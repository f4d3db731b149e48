"""All studies in order, with a line of progress for each part."""

from plotted import Tree
from plotted.efficiency import efficiency
from plotted.equilibrium import equilibrium
from plotted.fleet import fleet
from plotted.grid import grid
from plotted.replicas import MODELS, SEED, WORKLOADS
from plotted.spread import spread

SPREAD_MODEL = "moe"


def studies() -> Tree:
    """Every number that figures and tables show."""
    cases = [(model, workload) for model in MODELS for workload in WORKLOADS]
    tree: Tree = {"seed": SEED, "profiles": MODELS, "fleet": [], "equilibrium": [], "spread": []}
    for case in cases:
        print("fleet:", *case, flush=True)
        tree["fleet"].append(fleet(*case))
    for case in cases:
        print("equilibrium:", *case, flush=True)
        tree["equilibrium"] += equilibrium(*case)
    for workload in WORKLOADS:
        print("spread:", SPREAD_MODEL, workload, flush=True)
        tree["spread"].append(spread(SPREAD_MODEL, workload))
    print("grid: dense", flush=True)
    tree["grid"] = grid()
    tree["efficiency"] = [efficiency(model) for model in MODELS]
    return tree
