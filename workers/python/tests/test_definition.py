"""Definitions made from functions."""

import unittest
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Optional

from toolgate_worker import Context, Image, tool
from toolgate_worker.definition import define
from toolgate_worker.errors import ArgumentError, DefinitionError

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Counter:
    start: int
    now: int = field(init=False, default=0)


def get_current_weather(location: str, unit: str = "celsius") -> dict[str, Any]:
    """Gets the current weather for a given location."""
    return {"location": location, "unit": unit}


class Definitions(unittest.TestCase):
    maxDiff = None

    def test_r080_r082_weather_example(self) -> None:
        definition = define(get_current_weather)
        self.assertEqual(definition.name, "get_current_weather")
        self.assertEqual(definition.description, "Gets the current weather for a given location.")
        self.assertEqual(
            definition.input_schema,
            {
                "type": "object",
                "properties": {
                    "location": {"type": "string"},
                    "unit": {"type": "string", "default": "celsius"},
                },
                "required": ["location"],
                "additionalProperties": False,
            },
        )

    def test_parameters(self) -> None:
        sentinel = object()

        def many(
            first: int,
            /,
            untyped,  # type: ignore[no-untyped-def]
            described: Annotated[int, "From the hint."],
            implicit: str = None,  # type: ignore[assignment]
            hidden: Any = sentinel,
            *,
            keyword: bool = False,
            **rest: float,
        ) -> None:
            """Does.

            Args:
                first: The first.
                described: From the docstring.
            """

        definition = define(many)
        properties = definition.input_schema["properties"]
        self.assertEqual(
            properties,
            {
                "first": {"type": "integer", "description": "The first."},
                "untyped": {},
                "described": {"type": "integer", "description": "From the hint."},
                "implicit": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "hidden": {},
                "keyword": {"type": "boolean", "default": False},
            },
        )
        self.assertEqual(definition.input_schema["required"], ["first", "untyped", "described"])
        self.assertEqual(definition.input_schema["additionalProperties"], {"type": "number"})
        self.assertEqual(
            definition.warnings, ["parameter `untyped` has no type hint and accepts any value"]
        )
        arguments = {"first": 1, "untyped": [], "described": 2, "more": 3}
        positional, named = definition.bind(arguments, Context())
        self.assertEqual(positional, [1])
        self.assertEqual(named, {"untyped": [], "described": 2, "more": 3.0})

    def test_context_is_not_shown(self) -> None:
        def plain(ctx: Context, x: int) -> None: ...
        def optional(x: int, ctx: Optional[Context] = None) -> None: ...
        def text(ctx: "Context", x: int) -> None: ...
        def unimported(ctx: "toolgate_worker.Context", x: int) -> None: ...  # noqa: F821
        def open_ended(ctx: Context, x: int, **rest: Any) -> None: ...

        for function in (plain, optional, text, unimported, open_ended):
            with self.subTest(function.__name__):
                definition = define(function)
                self.assertEqual(list(definition.input_schema["properties"]), ["x"])
                context = Context()
                _, named = definition.bind({"x": 1}, context)
                self.assertIs(named["ctx"], context)
                with self.assertRaises(ArgumentError):
                    definition.bind({"x": 1, "ctx": {}}, context)

    def test_marks(self) -> None:
        @tool(
            name="a.b-c",
            title="T",
            description="D",
            timeout=1.5,
            sequential="disk",
            deterministic=True,
            sessions=["s"],
            read_only=True,
            destructive=False,
            idempotent=True,
            open_world=False,
        )
        def marked() -> None:
            """Not shown."""

        definition = define(marked)
        self.assertEqual((definition.name, definition.description), ("a.b-c", "D"))
        self.assertEqual(
            definition.annotations(),
            {
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        )
        self.assertEqual(
            definition.meta(),
            {
                "dev.toolgate/deterministic": True,
                "dev.toolgate/sequential": "disk",
                "dev.toolgate/timeoutMs": 1500,
                "dev.toolgate/sessions": ["s"],
            },
        )

    def test_result_schemas(self) -> None:
        def nothing() -> None: ...
        def text() -> str: ...
        def number() -> int:
            """Counts.

            Returns:
                The count.
            """

        def media() -> list[Image]: ...
        def mixed() -> "list[str | Image]": ...
        def optional() -> "dict[str, int] | None": ...
        def unknown() -> "Decimal": ...
        def record() -> Counter: ...

        table = {"type": "object", "additionalProperties": {"type": "integer"}}
        cases = [
            (nothing, None),
            (text, None),
            (number, {"type": "integer", "description": "The count."}),
            (media, None),
            (mixed, None),
            (optional, {"anyOf": [table, {"type": "null"}]}),
            (unknown, None),
            # A result may have more members than its constructor takes.
            (
                record,
                {
                    "type": "object",
                    "properties": {"start": {"type": "integer"}},
                    "required": ["start"],
                },
            ),
        ]
        for function, expected in cases:
            with self.subTest(function.__name__):
                self.assertEqual(define(function).output_schema, expected)
        self.assertIn("the result has no schema", define(unknown).warnings[0])

    def test_refused_functions(self) -> None:
        def starred(*names: str) -> None: ...
        def unsupported(x: complex) -> None: ...
        def unresolved(x: "Decimal") -> None: ...
        def größe() -> None: ...

        cases = [
            (starred, "tool `starred`: `*names` has no JSON form; use a list parameter"),
            (unsupported, "tool `unsupported`: parameter `x`: the type `complex` has no JSON form"),
            (unresolved, "tool `unresolved`: parameter `x`: cannot resolve the type `Decimal`"),
            (größe, "tool `größe`: the name 'größe' needs"),
        ]
        for function, expected in cases:
            with self.subTest(function.__name__):
                with self.assertRaises(DefinitionError) as caught:
                    define(function)
                self.assertTrue(str(caught.exception).startswith(expected), caught.exception)


if __name__ == "__main__":
    unittest.main()
