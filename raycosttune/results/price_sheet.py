"""Price sheets on disk: YAML or JSON, every problem named at once."""

import json
import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import yaml

from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.errors import InvalidPriceSheetError

KEYS = tuple(field.name for field in fields(NodePrice) if field.name != "name")
REQUIRED = tuple(f.name for f in fields(NodePrice) if f.default is MISSING and f.name in KEYS)
MERGE = "tag:yaml.org,2002:merge"
MOST_VALUES = 100_000
# PyYAML's own constructors raise the last three on a tag whose value is none of its kind.
UNREADABLE = (
    *(OSError, ValueError, RecursionError, yaml.YAMLError),
    *(LookupError, TypeError, AttributeError),
)
# Stands in a sheet whose types are all refused, so that the rest of it is checked too.
BLANK = NodePrice(name="none", per_hour=0.0)


def read_price_sheet(path: Path | str) -> PriceSheet:
    """Reads a price sheet.

    It is an object with `nodes`, an object of the types of machines by name, and perhaps
    `currency`. The keys of a type are the attributes of NodePrice; `per_hour` must be there.

    Args:
        path: A file in JSON where its name ends in .json, else in YAML.

    Raises:
        InvalidPriceSheetError: If it can't be read or values break their rules; it names all of
            them, each with its place.
    """
    path = Path(path)
    try:
        data = _parsed(path)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise InvalidPriceSheetError([f"a price sheet can't be read: {reason} @ {path}"]) from error
    problems: list[str] = []
    sheet = _sheet(data, problems)
    if sheet is None or problems:
        raise InvalidPriceSheetError([f"{problem} @ {path}" for problem in problems])
    return sheet


def _sheet(data: object, problems: list[str]) -> PriceSheet | None:
    if not isinstance(data, Mapping) or not isinstance(data.get("nodes"), Mapping):
        problems.append(f"a price sheet must be an object with `nodes` by name, got {data!r:.100}")
        return None
    unknown = [key for key in data if key not in ("nodes", "currency")]
    problems += [f"{key}: a price sheet has `nodes` and `currency` alone" for key in unknown]
    if not data["nodes"]:
        problems.append("nodes must hold at least one type of machine, got none")
    nodes = tuple(_nodes(data["nodes"], problems))
    try:
        return PriceSheet(nodes or (BLANK,), **{k: data[k] for k in ("currency",) if k in data})
    except InvalidPriceSheetError as error:
        problems += error.problems
        return None


def _nodes(data: Mapping[object, object], problems: list[str]) -> Iterator[NodePrice]:
    for name, values in data.items():
        if not isinstance(values, Mapping):
            problems.append(f"nodes.{name} must be an object, got {values!r:.100}")
            continue
        unknown, keys = [key for key in values if key not in KEYS], ", ".join(KEYS)
        problems += [f"nodes.{name}.{key}: a type of machine has {keys}" for key in unknown]
        missing = [key for key in REQUIRED if key not in values]
        problems += [f"nodes.{name}.{key} is missing" for key in missing]
        known = {key: values[key] for key in KEYS if key in values}
        try:
            # A YAML key may be a number: the rule for names says what it must be.
            args: dict[str, Any] = {"name": name, **dict.fromkeys(missing, 0.0), **known}
            yield NodePrice(**args)
        except InvalidPriceSheetError as error:
            problems += [f"nodes.{name}.{problem}" for problem in error.problems]


def _parsed(path: Path) -> object:
    if path.exists() and not path.is_file():
        msg = "it must be a file, got a folder or a device"
        raise ValueError(msg)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.loads(text, object_pairs_hook=_unique)
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_size(node: yaml.Node) -> None:
    """Refuses a document whose aliases stand for more than any sheet holds, or for themselves."""
    sizes: dict[int, float] = {}

    def size(part: yaml.Node) -> float:
        if id(part) not in sizes:
            sizes[id(part)] = math.inf  # of what holds itself
            inner = part.value if isinstance(part, yaml.CollectionNode) else ()
            pairs = inner if isinstance(part, yaml.MappingNode) else ((item,) for item in inner)
            sizes[id(part)] = 1 + sum(size(child) for pair in pairs for child in pair)
        return sizes[id(part)]

    if size(node) > MOST_VALUES:
        msg = f"with its aliases written out it must hold at most {MOST_VALUES:,} values"
        raise ValueError(msg)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        msg = f"an object must have each key once, got {', '.join(twice)} twice"
        raise ValueError(msg)
    return dict(pairs)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
    """Reads YAML without objects; a key that comes twice is an error, not the last one's."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:  # noqa: ANN401, FBT001, FBT002 - PyYAML's
        keys = [key for key, _ in node.value if key.tag != MERGE]
        _unique([(str(self.construct_object(key, deep=True)), None) for key in keys])
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping
