"""A catalogue that fills itself: add an entry under a name, and the name exists everywhere."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from gpae.errors import InputError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Names to entries of one kind ("method", "metric", "data set").

    Names are lower case. Each entry may have a second name, the one the paper prints; look-ups accept both.

    Examples
    --------
    >>> sizes: Registry[int] = Registry("size")
    >>> sizes.add("small", 1, paper_name="S")
    1
    >>> sizes["S"], list(sizes)
    (1, ['small'])
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self._entries: dict[str, T] = {}
        self._paper_names: dict[str, str] = {}

    def add(self, name: str, entry: T, *, paper_name: str | None = None) -> T:
        """Add an entry; a name can be given only once."""
        if name in self._entries:
            raise ValueError(f"the {self.what} {name!r} is registered twice")
        self._entries[name] = entry
        self._paper_names[name] = paper_name or name
        return entry

    def resolve(self, name: str) -> str:
        """Return the registered name for a name as a user or the paper writes it."""
        wanted = name.lower()
        for own, paper in self._paper_names.items():
            if wanted in (own, paper.lower()):
                return own
        raise InputError(f"unknown {self.what} {name!r}; known: {', '.join(sorted(self._entries))}")

    def paper_name(self, name: str) -> str:
        """Return the name that the paper prints for an entry."""
        return self._paper_names[self.resolve(name)]

    def __getitem__(self, name: str) -> T:
        return self._entries[self.resolve(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
