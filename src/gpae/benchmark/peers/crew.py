"""Who works: the peers in their environments, and ours in this one."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import gpae
from gpae.benchmark.peers.environment import PeerEnvironment
from gpae.benchmark.peers.worker import Worker, working
from gpae.progress import report

__all__ = ["OURS", "Crew", "Method", "crew_of"]

OURS = "gpae"
"""Our own worker."""


@dataclass(frozen=True, slots=True)
class Method:
    """A contender: its name, the worker that runs it, and what that worker calls it.

    ``batches`` are the numbers of rows in a call that are worth trying; one row where a library takes rows singly.
    """

    name: str
    worker: str
    call: str
    batches: tuple[int, ...] = (1,)


@dataclass(frozen=True, slots=True)
class Crew:
    """The command of each worker, and the versions that the peers run with."""

    commands: Mapping[str, Sequence[str]]
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @contextmanager
    def at_work(self, logs: Path, threads: int) -> Iterator[dict[str, Worker]]:
        """Start all workers; loading and fitting are over when the block begins."""
        with ExitStack() as stack:
            workers = {}
            for place, (name, command) in enumerate(self.commands.items()):
                report("loading and fitting", place / len(self.commands))
                # only our own worker looks for modules where this gpae is
                path = Path(gpae.__file__).parents[1] if name == OURS else None
                workers[name] = stack.enter_context(working(name, command, logs / f"{name}.log", threads, path))
            report("loading and fitting", 1.0)
            yield workers


def crew_of(peers: Sequence[PeerEnvironment], case: Path, environments: Path) -> Crew:
    """Peers in their environments, made if need be, and ours, for the folder of a case."""
    here = Path(__file__).parent
    commands: dict[str, Sequence[str]] = {}
    versions = {}
    for peer in peers:
        python = peer.ready(environments)
        commands[peer.name] = (str(python), str(here / f"{peer.name}_worker.py"), str(case))
        versions[peer.name] = peer.installed(python)
    commands[OURS] = (sys.executable, "-m", "gpae.benchmark.peers.gpae_worker", str(case))
    return Crew(commands, versions)
