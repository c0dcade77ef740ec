#!/usr/bin/env python3
"""Derives the table of request fields that the validator parses against.

    scripts/derive_fields.py FOLDER > crates/toolgate-validate/src/fields.txt

FOLDER holds Google's discovery documents:

    generativelanguage.v1beta.json                        the Developer API, raw
    generativelanguage.v1beta.<date>.openapi.json         the same, newer, converted to OpenAPI
    aiplatform.v1beta1.generate-content.subset.json       Vertex AI

Only fields that a generateContent or countTokens request can reach are included: names and kinds, no prose.
"""

import json
import pathlib
import sys

# Fields that released Google SDKs send and that the documents at hand are too old (or too much
# bound to the URL) to list.
EXTRA = {
    "developer": {"GenerateContentRequest": {"continuationToken": "bytes"}},
    "vertex": {"GenerateContentRequest": {"model": "string"}},
}
EXTRA_VALUES = {"ToolType": ["MEDIA_PROCESSING"]}

# Values that the OpenAPI converter added.
ARTEFACTS = {("developer", "GenerationConfig.Modality"): {"VIDEO"}}

# The discovery format does not tell oneofs. The one that matters has a name; `optional` fields
# of proto3 each are a oneof of their own, called `_field`.
ONEOF = {
    "Part": {
        "data": [
            "text", "inlineData", "functionCall", "functionResponse", "fileData",
            "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
        ]
    },
    "FunctionResponsePart": {"data": ["inlineData", "fileData"]},
}
OPTIONAL = {
    "GenerateContentRequest": ["systemInstruction", "cachedContent"],
    "CountTokensRequest": ["systemInstruction"],
    "FunctionDeclaration": ["parameters", "parametersJsonSchema", "response", "responseJsonSchema"],
    "GenerationConfig": [
        "candidateCount", "maxOutputTokens", "temperature", "topP", "topK", "seed",
        "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs", "speechConfig",
        "thinkingConfig", "mediaResolution",
    ],
    "ThinkingConfig": ["includeThoughts", "thinkingBudget"],
}

# Enums are written out at each use; these are the ones that are types of their own. All others
# are called after their message and field.
ENUMS = {
    "Schema.type": "Type",
    "SafetySetting.category": "HarmCategory",
    "SafetySetting.threshold": "SafetySetting.HarmBlockThreshold",
    "SafetySetting.method": "SafetySetting.HarmBlockMethod",
    "GenerationConfig.responseModalities": "GenerationConfig.Modality",
    "ToolCall.toolType": "ToolType",
    "ToolResponse.toolType": "ToolType",
}

VERTEX = "GoogleCloudAiplatformV1beta1"
RENAMED = {
    "GoogleTypeLatLng": "LatLng",
    "V1mainMediaResolution": "PartMediaResolution",
    "GenerationConfigThinkingConfig": "ThinkingConfig",
}
ROOTS = ["GenerateContentRequest", "CountTokensRequest"]


def short(name):
    name = name.split("/")[-1].removeprefix(VERTEX)
    return RENAMED.get(name, name)


def capital(name):
    return name[:1].upper() + name[1:]


class Table:
    """Messages and enums of one back end, united over its documents."""

    def __init__(self, backend):
        self.backend = backend
        self.messages = {}
        self.enums = {}

    def add(self, schemas):
        schemas = {short(name): schema for name, schema in schemas.items()}
        todo, seen = list(ROOTS), set()
        while todo:
            name = todo.pop(0)
            if name in seen or name not in schemas:
                continue
            seen.add(name)
            fields = self.messages.setdefault(name, {})
            for field, spec in schemas[name].get("properties", {}).items():
                if field.startswith("_"):
                    continue
                fields[field] = self.kind(name, field, spec)
                todo += refs(spec)

    def kind(self, message, field, spec):
        if "$ref" in spec:
            return short(spec["$ref"])
        if "enum" in spec:
            return "enum:" + self.enum(message, field, spec["enum"])
        form = spec.get("format")
        match spec.get("type"):
            case "array":
                return "[]" + self.kind(message, field, spec["items"])
            case "object":
                inner = spec.get("additionalProperties", {})
                kind = self.kind(message, field, inner)
                return "struct" if kind == "value" else "{}" + kind
            case "boolean":
                return "bool"
            case "integer":
                return form or "int32"
            case "number":
                return form or "double"
            case "string":
                return {
                    "int64": "int64",
                    "byte": "bytes",
                    "google-duration": "duration",
                    "google-datetime": "timestamp",
                }.get(form, "string")
            case "any" | None:
                return "value"
        raise SystemExit(f"{message}.{field}: what is {spec}?")

    def enum(self, message, field, values):
        name = ENUMS.get(f"{message}.{field}", f"{message}.{capital(field)}")
        known = self.enums.setdefault(name, [])
        for value in [*values, *EXTRA_VALUES.get(name, [])]:
            if value not in known and value not in ARTEFACTS.get((self.backend, name), ()):
                known.append(value)
        return name

    def write(self):
        for message, fields in EXTRA[self.backend].items():
            for field, kind in fields.items():
                self.messages[message].setdefault(field, kind)
        print(f"\n[{self.backend}]")
        for name, fields in sorted(self.messages.items()):
            print(f"message {name}")
            for field, kind in sorted(fields.items()):
                print(f" {field} {kind}{self.oneof(name, field)}")
        for name, values in sorted(self.enums.items()):
            print(f"enum {name} {' '.join(values)}")

    def oneof(self, message, field):
        for group, members in ONEOF.get(message, {}).items():
            if field in members:
                return f" {group}"
        return " ?" if field in OPTIONAL.get(message, []) else ""


def refs(spec):
    found = [short(spec["$ref"])] if "$ref" in spec else []
    for inner in (spec.get("items"), spec.get("additionalProperties")):
        if isinstance(inner, dict):
            found += refs(inner)
    return found


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1])

    def load(pattern):
        for path in sorted(folder.glob(pattern)):
            yield json.loads(path.read_text())

    developer, vertex = Table("developer"), Table("vertex")
    for document in load("generativelanguage.v1beta.json"):
        developer.add(document["schemas"])
    for document in load("generativelanguage.v1beta.*.openapi.json"):
        developer.add(document["components"]["schemas"])
    for document in load("aiplatform.*.json"):
        vertex.add(document["schemas"])

    print("# Written by scripts/derive_fields.py from Google's discovery documents. Do not edit.")
    print("#")
    print("# A field is its camelCase name, its kind and, where it has one, the oneof that it is in")
    print("# (`?`: one of its own). []x is a list of x, {}x a map from strings to x.")
    developer.write()
    vertex.write()


main()
