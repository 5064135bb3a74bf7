"""Reading a page of metrics as Prometheus does."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]


class Scrape:
    """The samples of one page. `page["name", "type=greet"]` is one of them."""

    def __init__(self, page: bytes) -> None:
        self.kinds: dict[str, str] = {}
        self.samples: dict[tuple[str, Labels], float] = {}
        for family in text_string_to_metric_families(page.decode()):
            self.kinds[family.name] = family.type
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.samples, "a sample must come once"
                self.samples[key] = sample.value

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        name, *labels = (key,) if isinstance(key, str) else key
        pairs = frozenset((label, value) for label, _, value in (each.partition("=") for each in labels))
        return self.samples[name, pairs]

    def sum(self, name: str, **labels: str) -> float:
        """Of all samples of a name that have these labels."""
        return sum(self.each(name, **labels).values())

    def each(self, name: str, **labels: str) -> Mapping[Labels, float]:
        wanted = labels.items()
        return {found: value for (of, found), value in self.samples.items() if of == name and wanted <= found}

    def labels(self, name: str) -> set[frozenset[str]]:
        """The sets of label names that samples of a name have."""
        return {frozenset(label for label, _ in found) for of, found in self.samples if of == name}

    def values(self, name: str, label: str) -> set[str]:
        return {value for found in self.each(name) for of, value in found if of == label}
