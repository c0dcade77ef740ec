"""Validates a JSON value against the JSON Schemas that `generate.mjs` writes.

A value is valid if every required member is there, every type is right and no member is unknown. Of the branches
of a union, the faults of the closest one are reported, so that a fault names a member and not a union.
"""

TYPES = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
MISSING = "required and missing"
UNKNOWN = "not in the schema"
# Members that name the branch of a union.
TAGS = ("type", "object", "role")
KEYWORDS = {
    "$ref", "type", "const", "enum", "anyOf", "allOf", "properties", "required", "additionalProperties", "items",
    "description", "minItems", "maxItems", "not", "format", "deprecated", "default",
}  # fmt: skip


class Schemas:
    """The schemas of one vendor."""

    def __init__(self, root):
        self.definitions = root["definitions"]
        self.kinds = self.resolved(root)["properties"]

    def faults(self, kind, value):
        """Faults of a value as `(path, fault)`; the path begins with the kind and has `[]` for every index."""
        return list(self.check(self.kinds[kind], value, kind))

    def resolved(self, schema):
        while "$ref" in schema:
            schema = self.definitions[schema["$ref"].removeprefix("#/definitions/").replace("%3C", "<").replace("%3E", ">")]
        return schema

    def check(self, schema, value, path):
        schema = self.resolved(schema)
        unknown = schema.keys() - KEYWORDS
        if unknown:
            raise NotImplementedError(f"schema keyword {', '.join(sorted(unknown))} at {path}")
        if "anyOf" in schema:
            yield from self.closest(schema["anyOf"], value, path)
            return
        for branch in schema.get("allOf", ()):
            yield from self.check(branch, value, path)
        types = schema.get("type")
        types = [types] if isinstance(types, str) else types
        if types and not any(TYPES[it](value) for it in types):
            yield path, f"expected {' or '.join(types)}, found {shown(value)}"
            return
        if "const" in schema and value != schema["const"]:
            yield path, f"expected {shown(schema['const'])}, found {shown(value)}"
        if "enum" in schema and value not in schema["enum"]:
            yield path, f"expected one of {', '.join(map(shown, schema['enum']))}, found {shown(value)}"
        if isinstance(value, dict):
            yield from self.members(schema, value, path)
        if isinstance(value, list) and "items" in schema:
            for element in value:
                yield from self.check(schema["items"], element, path + "[]")

    def members(self, schema, value, path):
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{path}.{name}", MISSING
        others = schema.get("additionalProperties", True)
        for name, member in value.items():
            if name in properties:
                yield from self.check(properties[name], member, f"{path}.{name}")
            elif others is False:
                yield f"{path}.{name}", UNKNOWN
            elif isinstance(others, dict):
                yield from self.check(others, member, f"{path}.{name}")

    def closest(self, branches, value, path):
        """Faults of the branch whose tags fit, or else of the branch with the fewest faults."""
        branches = list(self.flat(branches))
        fitting = [branch for branch in branches if self.fits(branch, value)]
        found = None
        for branch in fitting or branches:
            faults = list(self.check(branch, value, path))
            if found is None or len(faults) < len(found):
                found = faults
            if not faults:
                break
        yield from found or ()

    def flat(self, branches):
        for branch in branches:
            branch = self.resolved(branch)
            if branch.keys() == {"anyOf"}:
                yield from self.flat(branch["anyOf"])
            else:
                yield branch

    def fits(self, branch, value):
        if not isinstance(value, dict) or "properties" not in branch:
            return False
        tags = [(tag, self.resolved(branch["properties"][tag])) for tag in TAGS if tag in branch["properties"]]
        tags = [(tag, schema) for tag, schema in tags if "const" in schema or "enum" in schema]
        return bool(tags) and all(tag in value and not list(self.check(schema, value[tag], "")) for tag, schema in tags)


def shown(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
