"""JSON Schemas of the documents that are read and written, from the frozen classes that mirror them."""

import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from .hooks import bare, marker
from .kinds import Kind, Several, Short, Single

_PLAIN: Mapping[Any, str] = {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null"}


def document(title: str, type_: Any) -> dict[str, Any]:
    """The schema (draft 2020-12) of a whole document, made from the class that mirrors it."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **of(type_)}


def of(type_: Any) -> dict[str, Any]:
    """The schema of a type: of a frozen class, what its fields are annotated with."""
    if type_ in _PLAIN:
        return {"type": _PLAIN[type_]}
    if hasattr(type_, "__metadata__"):
        kind, described = marker(type_, Kind), marker(type_, str)
        inner = dict(kind.schema) if kind else of(bare(type_))
        if marker(type_, Several):
            inner = {"anyOf": [inner["items"], {**inner, "minItems": 1}]}
        if marker(type_, Single):
            inner = {"anyOf": [inner["additionalProperties"], inner]}
        if short := marker(type_, Short):
            inner = {"anyOf": [inner["properties"][short.key], inner]}
        return {"description": described, **inner} if described else inner
    if typing.get_origin(type_) in (typing.Union, types.UnionType):
        return {"anyOf": [of(each) for each in type_.__args__]}
    if typing.get_origin(type_) is tuple:
        first, *rest = type_.__args__
        long = {} if rest == [...] else {"minItems": len(rest) + 1, "maxItems": len(rest) + 1}
        return {"type": "array", "items": of(first), **long}
    if typing.get_origin(type_) is Mapping:
        key, value = type_.__args__
        return {"type": "object", "propertyNames": of(key), "additionalProperties": of(value)}
    if typing.get_origin(type_) is Literal:
        return {"enum": list(type_.__args__)}
    fields = attrs.fields(type_)
    described = inspect.getdoc(type_)
    return {
        **({"description": described} if described else {}),
        "type": "object",
        "properties": {field.name.rstrip("_"): _of_field(field) for field in fields},
        "required": [f.name for f in fields if f.default is attrs.NOTHING or f.metadata.get("required")],
        "additionalProperties": False,
        **getattr(type_, "RULES", {}),
    }


def _of_field(field: Any) -> dict[str, Any]:
    """What has no default is always there, as null too where its type says so; what has one is left out instead."""
    schema, inner = of(field.type), getattr(field.type, "__origin__", None)
    if field.default is not attrs.NOTHING or type(None) not in typing.get_args(inner):
        return schema
    return {**{k: v for k, v in schema.items() if k != "type"}, "type": [schema["type"], "null"]}
