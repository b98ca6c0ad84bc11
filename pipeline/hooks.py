"""The cattrs converter that holds each value of a document to its kind: one hook for each form of type."""

import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import attrs
import cattrs
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import IterableValidationNote
from cattrs.gen import make_dict_structure_fn, override

from .kinds import Kind, Several, Short, Single, Unexpected
from .source import nearest

_M = TypeVar("_M")
_Hook = Callable[[Any, Any], Any]


def converter() -> cattrs.Converter:
    """The one converter. Raises cattrs' tree of errors, whose leaves are Unexpected. No value is ever coerced."""
    made = cattrs.Converter()
    hooks: tuple[tuple[Callable[[Any], bool], Callable[[Any, cattrs.Converter], _Hook]], ...] = (
        (lambda type_: isinstance(type_, type) and attrs.has(type_), _class_hook),
        (lambda type_: _origin(type_) is tuple, _tuple_hook),
        (lambda type_: _origin(type_) is Mapping, _mapping_hook),
        (lambda type_: _origin(type_) is Literal, _choice_hook),
        (lambda type_: type(None) in typing.get_args(type_), _there_hook),
        (lambda type_: marker(type_, Short) is not None, _short_hook),
        (lambda type_: marker(type_, Single) is not None, _single_hook),
        (lambda type_: marker(type_, Several) is not None, _several_hook),
        (lambda type_: marker(type_, Kind) is not None, _kind_hook),
    )
    for fits, hook in hooks:
        made.register_structure_hook_factory(fits, hook)
    return made


def marker(type_: Any, of: type[_M]) -> _M | None:
    """The mark of class `of` that a type is annotated with, or None."""
    return next((mark for mark in getattr(type_, "__metadata__", ()) if isinstance(mark, of)), None)


def bare(type_: Any) -> Any:
    """A type without annotations and without `| None`."""
    if hasattr(type_, "__metadata__"):
        return bare(type_.__origin__)
    arguments = typing.get_args(type_)
    return bare(arguments[0]) if type(None) in arguments else type_


def keys(cls: Any) -> list[str]:
    """The keys of a mapping that mirrors `cls`: `with_` stands for `with`, which Python keeps for itself."""
    return [field.name.rstrip("_") for field in attrs.fields(cls)]


def _origin(type_: Any) -> Any:
    return typing.get_origin(type_)


def _class_hook(cls: Any, converter: cattrs.Converter) -> _Hook:
    renamed: Any = {field.name: override(rename=field.name.rstrip("_")) for field in attrs.fields(cls)}
    inner: _Hook = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, **renamed)

    def structure(value: Any, type_: Any) -> Any:
        if not isinstance(value, dict):
            raise Unexpected(f"expected a mapping with {', '.join(keys(cls))}")
        return inner(value, type_)

    return structure


def _there_hook(type_: Any, converter: cattrs.Converter) -> _Hook:
    """What may be left out: a key that is there, for nothing, is a value that somebody forgot."""
    inner = bare(type_)
    return lambda value, _: converter.structure(value, inner)


def _short_hook(type_: Any, converter: cattrs.Converter) -> _Hook:
    cls = bare(type_)
    key = typing.cast(Short, marker(type_, Short)).key
    key_type: Any = attrs.fields_dict(cls)[key].type

    def structure(value: Any, _: Any) -> Any:
        if isinstance(value, str):
            return cls(**{key: converter.structure(value, key_type)})
        return converter.structure(value, cls)

    return structure


def _single_hook(type_: Any, converter: cattrs.Converter) -> _Hook:
    single = typing.cast(Single, marker(type_, Single))
    many = bare(type_)
    one = many.__args__[1]

    def structure(value: Any, _: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get(single.key), str):
            return {single.name: converter.structure(value, one)}
        return converter.structure(value, many)

    return structure


def _tuple_hook(type_: Any, converter: cattrs.Converter) -> _Hook:
    inner = homogenous_tuple_structure_factory(type_, converter)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise Unexpected("expected a list", "write [x, y], or one `- x` a line")
        return inner(value, type_)

    return structure


def _several_hook(type_: Any, converter: cattrs.Converter) -> _Hook:
    split = typing.cast(Several, marker(type_, Several)).split
    many = bare(type_)
    one = many.__args__[0]

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, str):
            if not isinstance(value, list) or not value:
                raise Unexpected("expected text, or a list that isn't empty")
            return converter.structure(value, many)
        try:
            words = split(value)
        except ValueError as error:
            raise Unexpected(f"a shell cannot read it ({str(error).lower()})") from None
        if not words:
            raise Unexpected("expected text")
        return tuple(converter.structure(word, one) for word in words)

    return structure


def _mapping_hook(type_: Any, converter: cattrs.Converter) -> _Hook:
    key_type, value_type = type_.__args__

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise Unexpected("expected a mapping")
        wrong: list[Exception] = []
        right = {}
        for key, item in value.items():
            try:
                try:
                    converter.structure(key, key_type)
                except Unexpected as error:
                    what = f"{error.what} for a key" if error.show else error.what
                    raise Unexpected(what, error.remedy, show=False) from None
                right[key] = converter.structure(item, value_type)
            except (Unexpected, cattrs.BaseValidationError) as error:
                error.add_note(IterableValidationNote("", key, type_))
                wrong.append(error)
        if wrong:
            raise cattrs.IterableValidationError("", wrong, type_)
        return right

    return structure


def _choice_hook(type_: Any, _: cattrs.Converter) -> _Hook:
    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, str) or value not in type_.__args__:
            raise Unexpected("no such name", nearest(str(value), type_.__args__))
        return value

    return structure


def _kind_hook(type_: Any, _: cattrs.Converter) -> _Hook:
    return typing.cast(Kind, marker(type_, Kind)).structure
