"""One definition a tool, in every form; what a schema allows is what parse_action takes."""

from __future__ import annotations

import pytest

from tiltyard.errors import UsageError
from tiltyard.tools import FORMS, TOOLS, Call, parse_action, schemas

NAMES = ["view_file", "list_files", "write_file", "replace_text", "run_tests", "submit"]


def test_the_tools() -> None:
    assert [t.name for t in TOOLS] == NAMES


def test_anthropic() -> None:
    made = {t["name"]: t for t in schemas("anthropic")}
    assert list(made) == NAMES
    assert made["write_file"]["input_schema"]["required"] == ["path", "content"]
    assert set(made["submit"]) == {"name", "description", "input_schema"}
    assert made["submit"]["input_schema"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_openai_strict_lists_every_argument() -> None:
    made = {t["function"]["name"]: t["function"] for t in schemas("openai", strict=True)}
    view = made["view_file"]
    assert view["strict"] is True
    assert view["parameters"]["required"] == ["path", "start_line", "end_line"]
    assert view["parameters"]["properties"]["start_line"]["type"] == ["integer", "null"]
    assert "minimum" not in view["parameters"]["properties"]["start_line"]
    strict_call = {"path": "a", "start_line": None, "end_line": None}
    assert parse_action({"name": "view_file", "arguments": strict_call}) == Call("view_file", {"path": "a"})


def test_openai_forms_differ_in_the_envelope_only() -> None:
    for chat, flat in zip(schemas("openai"), schemas("openai-responses"), strict=True):
        assert {"type": "function", **chat["function"]} == flat


def test_mcp() -> None:
    made = {t["name"]: t for t in schemas("mcp")}
    assert made["view_file"]["annotations"]["readOnlyHint"] is True
    assert made["submit"]["annotations"] == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "openWorldHint": False,
    }
    assert made["view_file"]["inputSchema"]["properties"]["start_line"]["minimum"] == 1


def test_forms_are_new_objects() -> None:
    first = schemas("mcp")
    first[0]["inputSchema"]["properties"].clear()
    assert schemas("mcp")[0]["inputSchema"]["properties"]


def test_unknown_form() -> None:
    with pytest.raises(UsageError, match=r"gemini.*anthropic"):
        schemas("gemini")


@pytest.mark.parametrize("form", FORMS)
def test_a_schema_describes_everything(form: str) -> None:
    for entry in schemas(form):
        flat = entry.get("function", entry)
        schema = flat.get("input_schema") or flat.get("inputSchema") or flat["parameters"]
        assert flat["description"]
        assert all(p["description"] for p in schema["properties"].values())
