"""What a player can do: one frozen definition a tool, and its JSON schema in the forms that harnesses speak.

Everything that a player or a harness reads about a tool is made from here: the schemas, the first observation, the
check of an action. Nothing here runs a tool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tiltyard.errors import UsageError

Form = Literal["anthropic", "openai", "openai-responses", "mcp"]
FORMS: tuple[str, ...] = ("anthropic", "openai", "openai-responses", "mcp")


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of a tool. ``type`` is a JSON type: "string" or "integer"."""

    name: str
    type: Literal["string", "integer"]
    description: str
    required: bool = True
    minimum: int | None = None
    lines: bool = False
    """A list of texts is taken as well, each for a line."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``read_only`` and ``ends`` (the episode) are told to MCP clients as annotations."""

    name: str
    description: str
    params: tuple[Param, ...] = ()
    read_only: bool = False
    ends: bool = False

    @property
    def signature(self) -> str:
        """As it stands in the first observation: ``view_file(path, start_line?, end_line?)``."""
        return f"{self.name}({', '.join(p.name + ('' if p.required else '?') for p in self.params)})"


_PATH = Param(
    "path", "string", "Path of the file, relative to the workspace, such as 'solution.py' or 'pkg/core.py'."
)

TOOLS: tuple[Tool, ...] = (
    Tool(
        "view_file",
        "Read a file of the workspace, or the lines start_line to end_line of it (counted from 1, both included).",
        (
            _PATH,
            Param("start_line", "integer", "First line to show; 1 if left out.", required=False, minimum=1),
            Param(
                "end_line",
                "integer",
                "Last line to show; the last of the file if left out.",
                required=False,
                minimum=1,
            ),
        ),
        read_only=True,
    ),
    Tool("list_files", "List the files of the workspace with their sizes.", read_only=True),
    Tool(
        "write_file",
        "Create a file, or replace all that is in it. Folders on the way are made.",
        (_PATH, Param("content", "string", "The whole new content of the file.")),
    ),
    Tool(
        "replace_text",
        "Replace a piece of a file's text. The old text must occur exactly once in the file, white space included.",
        (
            _PATH,
            Param("old", "string", "The text to replace, exactly as it stands in the file."),
            Param("new", "string", "The text to put in its place; may be empty."),
        ),
    ),
    Tool("run_tests", "Run the visible tests on the files as they are now, and show what failed and why."),
    Tool(
        "submit",
        "Hand in the files as they are now. This ends the episode; hidden tests decide the reward.",
        ends=True,
    ),
)


BASH = Tool(
    "bash",
    "Run a command in a shell in the workspace. Its folder, variables and functions are kept for the next command; "
    "what it leaves running ends with it. Nothing can be typed into it.",
    (Param("command", "string", "The command, of one or more lines."),),
)
SEARCH = Tool(
    "search",
    "Find the lines that a regular expression matches in the workspace's text files, with path and line number.",
    (
        Param("pattern", "string", "The regular expression, such as 'def parse_\\w+'."),
        Param(
            "path",
            "string",
            "A file or folder to search in; the whole workspace if left out.",
            required=False,
        ),
    ),
    read_only=True,
)
APPLY_PATCH = Tool(
    "apply_patch",
    "Apply a unified diff ('--- a/PATH', '+++ b/PATH', '@@ … @@') to the workspace. All of it is applied, or nothing.",
    (Param("patch", "string", "The diff, as git diff prints it; may change, create and delete files."),),
)
RUN_CHOSEN = Tool(
    "run_tests",
    "Run tests on the files as they are now, and show what failed and why: the visible ones, or those that are named.",
    (
        Param(
            "ids",
            "string",
            "Tests to run, one a line: a file ('tests/test_core.py') or a test in it ('tests/test_core.py::test_mean').",
            required=False,
            lines=True,
        ),
    ),
)
WITH_SHELL: tuple[Tool, ...] = (*TOOLS[:-2], APPLY_PATCH, SEARCH, BASH, RUN_CHOSEN, TOOLS[-1])
"""For tasks that give a shell (``Task.shell``)."""
ALL = WITH_SHELL
"""Every tool, in its widest form."""


def tools_of(shell: bool) -> tuple[Tool, ...]:
    """The tools of a task, by whether it gives a shell."""
    return WITH_SHELL if shell else TOOLS


def find(name: str, tools: tuple[Tool, ...] = TOOLS) -> Tool | None:
    """The tool of that name, or None."""
    return next((t for t in tools if t.name == name), None)


def schemas(form: str, tools: tuple[Tool, ...] = TOOLS, *, strict: bool = False) -> list[dict[str, Any]]:
    """The tools' JSON schemas, new objects at each call.

    ``form``: ``"anthropic"`` (name, description, input_schema), ``"openai"`` (chat completions: type, function),
    ``"openai-responses"`` (the same, flat), or ``"mcp"`` (name, title, description, inputSchema, annotations).
    ``strict`` follows OpenAI's rules for strict tools: every argument is listed as required, optional ones may be
    null, and keywords that strict mode refuses are left out. Raises UsageError for another form.
    """
    if form not in FORMS:
        raise UsageError(f"found the form {form!r}; expected one of {', '.join(FORMS)}")
    out: list[dict[str, Any]] = []
    for tool in tools:
        schema = _parameters(tool, strict)
        if form == "anthropic":
            entry: dict[str, Any] = {
                "name": tool.name,
                "description": tool.description,
                "input_schema": schema,
            }
            if strict:
                entry["strict"] = True
        elif form == "mcp":
            hints = {"readOnlyHint": tool.read_only, "destructiveHint": tool.ends, "openWorldHint": False}
            entry = {"name": tool.name, "title": tool.name.replace("_", " ").capitalize()}
            entry |= {"description": tool.description, "inputSchema": schema, "annotations": hints}
        else:
            function: dict[str, Any] = {
                "name": tool.name,
                "description": tool.description,
                "parameters": schema,
            }
            if strict:
                function["strict"] = True
            entry = {"type": "function", **function}
            if form == "openai":
                entry = {"type": "function", "function": function}
        out.append(entry)
    return out


def _parameters(tool: Tool, strict: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for p in tool.params:
        kind: Any = [p.type, "null"] if strict and not p.required else p.type
        properties[p.name] = {"type": kind, "description": p.description}
        if p.minimum is not None and not strict:
            properties[p.name]["minimum"] = p.minimum
    required = [p.name for p in tool.params if p.required or strict]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
