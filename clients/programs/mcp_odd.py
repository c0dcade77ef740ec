"""An MCP server on standard input and output: forty tools with difficult schemas from the field."""

import json
import sys

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "name": {"type": "string"}}}
# By field case; the shapes are theirs, the texts are ours.
SHAPES = {
    "a1_schema_named": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"q": {"type": "string"}}},
    "a2_type_lists": {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {"type": ["string", "number", "null"]}, "c": {"anyOf": [{"type": ["integer", "null"]}]}}},
    "a3_tuples": {"type": "object", "properties": {"where": {"type": "array", "items": {"type": "array", "prefixItems": [{"type": "string"}, {"enum": ["==", "!="]}, {}]}}}},
    "a4_empty": {"type": "object"},
    "a5_no_properties": {"type": "object", "properties": {}},
    "a5_nested_empty": {"type": "object", "properties": {"options": {"type": "object", "properties": {}}}, "required": ["options"]},
    "a6_bounds": {"type": "object", "properties": {"n": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 0.5}, "l": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "m": {"type": "object", "propertyNames": {"pattern": "^x"}, "additionalProperties": {"type": "string"}}, "o": {"type": "string", "deprecated": True, "$comment": "old"}}},
    "a7_siblings": {"type": "object", "properties": {"v": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "x", "title": "T", "description": "A value."}, "n": {"$ref": "#/$defs/node", "description": "A node."}}, "$defs": {"node": NODE}},
    "a8_circles": {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": NODE}},
    "a8_required_circle": {"type": "object", "properties": {"tree": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]}, "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}},
    "a9_true": {"type": "object", "properties": {"any": {"type": "array", "items": True}, "none": {"type": "object", "additionalProperties": False}}, "additionalProperties": True},
    "a11_names": {"type": "object", "properties": {"ref": {"type": "string"}, "title": {"type": "string"}, "$schema": {"type": "string"}, "additionalProperties": {"type": "boolean"}, "with space": {"type": "string"}}, "required": ["ref"]},
    "a12_required_inside": {"type": "object", "properties": {"name": {"type": "string", "required": True}}},
    "a13_vendor": {"type": "object", "properties": {"secret": {"type": "string", "encrypted": True, "x-order": 1, "examples": ["a"]}}},
    "a14_default": {"type": "object", "properties": {"size": {"type": "integer", "default": 10}}, "required": ["size"]},
    "a15_numbers": {"type": "object", "properties": {"level": {"type": "integer", "enum": [1, 2, 3]}, "flag": {"type": "boolean", "enum": [True]}, "kind": {"const": "fixed"}}},
    "a16_limits": {"type": "object", "properties": {"s": {"type": "string", "minLength": 1.0, "maxLength": 9007199254740991}, "l": {"type": "array", "items": {"type": "string"}, "maxItems": 10}}},
    "all_of": {"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]},
    "one_of": {"type": "object", "properties": {"by": {"oneOf": [{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}]}}},
    "if_then": {"type": "object", "properties": {"a": {"type": "string"}}, "if": {"required": ["a"]}, "then": {"required": ["a"]}, "not": {"required": ["z"]}},
    "patterns": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
    "a_tool_whose_name_is_so_long_that_no_function_of_gemini_may_have_it": {"type": "object", "properties": {"q": {"type": "string"}}},
    "dotted.name-with_signs": {"type": "object", "properties": {"q": {"type": "string"}}},
}
TOOLS = [
    {"name": name, "description": f"An odd tool ({name}).", "inputSchema": schema}
    for name, schema in SHAPES.items()
]
TOOLS += [
    {"name": f"plain_{at}", "description": "", "inputSchema": SHAPES["a1_schema_named"]}
    for at in range(40 - len(TOOLS))
]


def answer(method, parameters):
    match method:
        case "initialize":
            version = parameters.get("protocolVersion", "2025-06-18")
            about = {"name": "odd", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            said = f"{parameters['name']} was given {json.dumps(parameters.get('arguments'))}"
            return {"content": [{"type": "text", "text": said}]}
        case "ping":
            return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "no such method"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)
