"""The command line: through typer's runner where that is enough, as a real process where signals, pipes or exit
codes matter."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tiltyard.cli import app, main
from tiltyard.records import Store

COMMANDS = [
    "run",
    "demo",
    "validate",
    "tasks",
    "show",
    "play",
    "replay",
    "bench",
    "doctor",
    "gc",
    "image",
    "version",
]


def lesson(id, ref="return a + b", stub="raise NotImplementedError"):
    return {
        "id": id,
        "prompt": f"Write {id}(a, b), the sum.",
        "stub": f"def {id}(a, b):\n    {stub}\n",
        "ref": f"def {id}(a, b):\n    {ref}\n",
        "visible": [f"assert {id}(1, 2) == 3"],
        "hidden": [f"assert {id}(1, 2) == 3", f"assert {id}(0, 0) == 0", f"assert {id}(-1, 1) == 0"],
        "meta": {"source": "test", "created": "2026-11", "difficulty": None, "tags": [id[:3], "all"]},
    }


def write(path, *tasks):
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return str(path)


@pytest.fixture
def pool(tmp_path):
    return write(tmp_path / "pool.jsonl", *(lesson(id) for id in ("add", "plus", "sum1")))


def tiltyard(*arguments, **options):
    """The real command: (exit code, stdout, stderr)."""
    done = subprocess.run(
        [sys.executable, "-m", "tiltyard", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )
    return done.returncode, done.stdout, done.stderr


# -- help, versions, errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(command):
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert result.exit_code == 0
    assert "Example:" in result.output and "--json" in result.output


def test_the_bare_command_lists_the_commands():
    _, out, err = tiltyard()
    assert all(command in out + err for command in COMMANDS)


def test_version():
    code, out, err = tiltyard("version", "--json")
    assert (code, err) == (0, "")
    assert set(json.loads(out)) == {"tiltyard", "python", "platform"}
    assert tiltyard("version")[1].startswith("tiltyard 0.")


def test_doctor_exits_with_what_it_found():
    code, out, err = tiltyard("doctor", "--json")
    walls = json.loads(out)["walls"]
    assert walls["process"] is True and "Traceback" not in err
    assert code == (0 if any(works for wall, works in walls.items() if wall != "process") else 1)
    assert "process wall: works here" in tiltyard("doctor")[1]


def test_help_and_version_import_nothing_heavy():
    code = (
        "import sys\nfrom tiltyard.cli import app\nfrom typer.testing import CliRunner\n"
        "assert CliRunner().invoke(app, ['version']).exit_code == 0\n"
        "assert CliRunner().invoke(app, ['run', '--help']).exit_code == 0\n"
        "heavy = {'gymnasium', 'numpy', 'sqlalchemy'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["run", "nowhere.jsonl"], "nowhere.jsonl"),
        (["run", "bulitin"], "builtin"),
        (["run", "POOL", "--player", "chess"], "chess"),
        (["run", "POOL", "--task", "nothing*"], "nothing*"),
        (["run", "POOL", "--tag", "nothing"], "nothing"),
        (["run", "POOL", "--reward", "most"], "fraction or all"),
        (["run", "POOL", "--wall", "paper"], "paper"),
        (["run", "POOL", "--workers", "1000000"], "workers"),
        (["run", "POOL", "--store", "POOL"], "not a tiltyard store"),
        (["run", "POOL", "--player", "replay:x"], "replay:STORE#EPISODE"),
        (["run", "POOL", "--tasks-from", "/nowhere"], "/nowhere"),
        (["show", "POOL", "adds"], "did you mean 'add'"),
        (["validate", "POOL", "--repeats", "100000"], "repeats"),
        (["validate", "POOL", "--state", "POOL"], "no state file"),
        (["validate", "POOL", "--fit", "/nowhere/fit"], "can't be written"),
        (["validate", "POOL", "--fit", "/"], "is a folder"),
        (["play", "POOL", "add", "--store", "POOL"], "not a tiltyard store"),
        (["run", "POOL", "--store", "nosuchdb://x/y"], "nosuchdb://x/y is no database"),
        (["replay", "/nowhere"], "there is no store"),
        (["replay", "/nowhere", "e-1"], "there is no store"),
    ],
)
def test_errors_are_one_message_on_stderr_and_exit_code_2(arguments, found, pool, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tiltyard", *[pool if a == "POOL" else a for a in arguments]])
    with pytest.raises(SystemExit) as end:
        main()
    out, err = capsys.readouterr()
    assert end.value.code == 2 and out == ""
    assert found in err and "error: " in err and "Traceback" not in err


def test_wrong_options_are_exit_code_2_too():
    assert tiltyard("run")[0] == 2
    assert tiltyard("run", "builtin", "--workers", "0")[0] == 2
    assert tiltyard("fly")[0] == 2


def test_every_problem_of_a_pool_is_told(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "prompt": 3}\nno json\n')
    code, out, err = tiltyard("run", tmp_path / "bad.jsonl")
    assert code == 2 and out == "" and "bad.jsonl:1" in err and "bad.jsonl:2" in err


def test_a_reader_that_goes_away_is_no_error(pool):
    script = f'"{sys.executable}" -m tiltyard show "{pool}" add | head -c 1'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "a" and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
    closed = subprocess.Popen(
        [sys.executable, "-m", "tiltyard", "tasks", pool], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert closed.stdout is not None
    closed.stdout.close()
    assert b"Traceback" not in closed.communicate()[1] and closed.returncode == 141


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_closed_streams_are_no_error_and_never_the_store(closed, pool, tmp_path):
    store = tmp_path / "s.sqlite"
    command = f"exec {sys.executable} -m tiltyard run {pool} --json --store {store} {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert ">&-" in closed.split() or json.loads(done.stdout)["mean_reward"] == 1.0
    with Store(store, readonly=True) as opened:
        assert opened.count() == 3
    command = f"exec {sys.executable} -m tiltyard play {pool} add {closed} </dev/null"
    assert (
        subprocess.run(["sh", "-c", command], capture_output=True, timeout=300, check=False).returncode == 1
    )


def test_a_result_that_can_not_be_written_is_said(pool):
    command = f"exec {sys.executable} -m tiltyard tasks {pool} >/dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and "No space left" in done.stderr and "Traceback" not in done.stderr


# -- run -----------------------------------------------------------------------------------------------------------


def test_run_json_is_the_contract_and_alone_on_stdout(pool):
    code, out, err = tiltyard("run", pool, "--player", "reference", "--workers", 2, "--attempts", 2, "--json")
    summary = json.loads(out)
    assert code == 0
    assert list(summary) == ["pool", "player", "wall", "episodes", "mean_reward", "void", "digest", "tasks"]
    assert summary["pool"] == "pool" and summary["player"] == "reference" and len(summary["digest"]) == 64
    assert (summary["episodes"], summary["mean_reward"], summary["void"]) == (6, 1.0, 0)
    assert summary["tasks"] == {
        id: {"episodes": 2, "mean_reward": 1.0, "void": 0} for id in ("add", "plus", "sum1")
    }
    assert err.startswith(f"wall: {summary['wall']}; it does not protect from:\n  - ")
    assert "6 episodes in" in err


def test_run_shows_a_table(pool):
    code, out, _ = tiltyard("run", pool, "--player", "noop", "--task", "a*", "--task", "plus")
    assert code == 0
    rows = [line.split() for line in out.splitlines() if line.strip()]
    assert ["add", "1", "0.000"] in rows and ["plus", "1", "0.000"] in rows and ["all", "2", "0.000"] in rows
    assert "sum1" not in out


def test_a_long_id_is_not_cut_where_stdout_is_no_terminal(tmp_path):
    id = "a" * 200
    assert id in tiltyard("tasks", write(tmp_path / "p.jsonl", lesson(id)))[1]


def test_filters(pool, tmp_path):
    (tmp_path / "ids").write_text("plus\n\nadd\n")

    def played(*options):
        return list(json.loads(tiltyard("tasks", pool, "--json", *options)[1]))

    assert [one["id"] for one in played("--tag", "add")] == ["add"]
    assert [one["id"] for one in played("--tasks-from", tmp_path / "ids")] == ["add", "plus"]
    assert [one["id"] for one in played("--tasks-from", tmp_path / "ids", "--task", "p*")] == ["plus"]
    (tmp_path / "ids").write_text("plus\nnope\n")
    assert "'nope'" in tiltyard("tasks", pool, "--tasks-from", tmp_path / "ids")[2]
    (tmp_path / "ids").write_text("plus\n")
    assert "no task" in tiltyard("tasks", pool, "--tasks-from", tmp_path / "ids", "--task", "add")[2]


def test_the_same_seed_draws_the_same(pool):
    def digest(*options):
        return json.loads(
            tiltyard("run", pool, "--player", "random", "--episodes", 7, "--json", *options)[1]
        )["digest"]

    assert digest("--seed", 3, "--workers", 2) == digest("--seed", 3) != digest("--seed", 4)


def test_run_store_replay_and_the_replay_player(pool, tmp_path):
    store = tmp_path / "s.sqlite"
    code, _, err = tiltyard("run", pool, "--player", "reference", "--store", store)
    assert code == 0 and f"in {store}" in err
    with Store(store) as opened:
        record = next(opened.episodes(task="plus"))
    code, out, _ = tiltyard("replay", store, record.id[:8])
    assert code == 0 and f"{record.id} (plus, reference): the same" in out and record.digest in out
    result = json.loads(tiltyard("replay", store, record.id, "--json")[1])
    assert result["same"] is True and result["digest"]["recorded"] == result["digest"]["again"]
    summary = json.loads(tiltyard("run", pool, "--player", f"replay:{store}#{record.id}", "--json")[1])
    assert summary["tasks"] == {"plus": {"episodes": 1, "mean_reward": 1.0, "void": 0}}


def test_replay_without_an_episode_lists_them(pool, tmp_path):
    store = f"sqlite:///{tmp_path}/s.sqlite"  # a URL stays one
    _, _, err = tiltyard("run", pool, "--player", "noop", "--store", store)
    assert f"tiltyard replay {store} lists its episodes" in err and (tmp_path / "s.sqlite").is_file()
    code, out, _ = tiltyard("replay", store)
    lines = out.splitlines()
    assert code == 0 and [line.split()[-1] for line in lines] == ["add", "plus", "sum1"]
    listed = json.loads(tiltyard("replay", store, "--json")[1])
    assert [(one["id"], one["player"], one["reward"], one["steps"]) for one in listed] == [
        (line.split()[0], "noop", 0.0, 1) for line in lines
    ]
    assert tiltyard("replay", store, listed[1]["id"])[0] == 0


def test_replay_names_the_difference_and_exits_with_1(pool, tmp_path):
    store = tmp_path / "s.sqlite"
    tiltyard("run", pool, "--player", "reference", "--task", "add", "--store", store)
    import sqlite3

    raw = sqlite3.connect(store)
    raw.execute("update steps set observation = 'Wrote something else' where n = 0")
    raw.commit()
    raw.close()
    with Store(store) as opened:
        (record,) = opened.episodes()
    code, out, _ = tiltyard("replay", store, record.id)
    assert code == 1 and "step 1" in out and "-Wrote something else" in out and "+Wrote solution.py" in out


def test_only_voids_are_exit_code_1(tmp_path):
    binary = tmp_path / "task"
    for folder in ("start", "hidden", "reference"):
        (binary / folder).mkdir(parents=True)
    (binary / "task.toml").write_text('id = "binary"\n')
    (binary / "prompt.md").write_text("Write f.\n")
    (binary / "start" / "solution.py").write_text("def f(): pass\n")
    (binary / "reference" / "solution.py").write_text("def f(): return 1\n")
    (binary / "reference" / "data.bin").write_bytes(b"\xff\xfe")
    (binary / "hidden" / "test_f.py").write_text(
        "from solution import f\n\ndef test_f():\n    assert f() == 1\n"
    )
    code, out, err = tiltyard("run", binary, "--player", "reference", "--json")
    assert code == 1, err
    assert json.loads(out)["void"] == 1 and json.loads(out)["mean_reward"] is None
    assert "void 1x: the player raised UsageError" in err and "data.bin" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_was_finished(pool, tmp_path, number, code):
    store = tmp_path / "s.sqlite"
    command = [sys.executable, "-m", "tiltyard", "run", pool, "--player", "random", "--episodes", "100000"]
    process = subprocess.Popen(
        [*command, "--workers", "2", "--json", "--store", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 120
    while not _count(store):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert json.loads(out)["episodes"] == _count(store) >= 1
    assert "interrupted: " in err and "of 100000 episodes were finished" in err and "Traceback" not in err
    assert not _session(process.pid)


def _count(store):
    if not Path(store).exists():
        return 0
    with Store(store) as opened:
        return opened.count()


def _session(session):
    """Processes of a session that are still there (Linux; none can be seen elsewhere)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(path.parent.name)
    return found


# -- validate ------------------------------------------------------------------------------------------------------


def test_validate_and_run_what_is_fit(tmp_path):
    bad = lesson("bad", ref="return 0")
    pool = write(tmp_path / "p.jsonl", lesson("good"), bad)
    fit, state = tmp_path / "fit", tmp_path / "state"
    command = ["validate", pool, "--repeats", 2, "--fit", fit, "--state", state]
    code, out, err = tiltyard(*command, "--json")
    assert code == 1
    found = json.loads(out)
    assert found["summary"] == {"fit": 1, "unfit": 1, "void": 0}
    assert found["tasks"]["good"] == {"outcome": "fit", "reason": ""}
    assert found["tasks"]["bad"]["outcome"] == "unfit"
    assert found["tasks"]["bad"]["reason"].startswith("the reference scores 0.666667: hidden/1 (")
    assert fit.read_text() == "good\n"
    code, out, err = tiltyard(*command)
    assert code == 1 and "p: 1 fit, 1 unfit, 0 void" in out and "2 of them known from before" in err
    summary = json.loads(tiltyard("run", pool, "--tasks-from", fit, "--player", "reference", "--json")[1])
    assert list(summary["tasks"]) == ["good"] and summary["mean_reward"] == 1.0
    assert tiltyard("validate", pool, "--task", "good", "--repeats", 1)[0] == 0


# -- show, tasks, play ---------------------------------------------------------------------------------------------


def test_show_hides_the_hidden_tests_unless_asked(pool):
    for form in ([], ["--json"]):
        assert "add(-1, 1)" not in tiltyard("show", pool, "add", *form)[1]
        assert "add(-1, 1)" in tiltyard("show", pool, "add", "--hidden", *form)[1]
    assert json.loads(tiltyard("show", pool, "add", "--json")[1])["hidden"] == 3
    text = tiltyard("show", pool, "add", "--hidden")[1]
    assert "Write add(a, b), the sum." in text and "return a + b" in text and "steps 12" in text


def test_tasks(pool):
    rows = json.loads(tiltyard("tasks", pool, "--json")[1])
    assert [row["id"] for row in rows] == ["add", "plus", "sum1"]
    assert "3 tasks in pool" in tiltyard("tasks", pool)[1]


SCRIPT = """
help
nonsense
view
view solution.py one
"
view solution.py 1 1
list
write solution.py
def add(a, b):
    return a - b
.
replace solution.py
a - b
.
a + b
.
{"tool": "view_file", "path": "solution.py"}
test
submit
"""


def test_play_from_a_script(pool, tmp_path):
    store = tmp_path / "s"
    code, out, err = tiltyard("play", pool, "add", "--store", store, input=SCRIPT)
    assert code == 0 and out == "reward 1.000: 3 of 3 hidden tests pass\n"
    for text in (
        "Write add(a, b), the sum.",
        "there is no command 'nonsense'",
        "usage: view PATH",
        "return a + b",
    ):
        assert text in err
    with Store(store) as opened:
        (record,) = opened.episodes()
    assert record.player == "person" and record.reward == 1.0
    tools = [action["tool"] for action in record.actions]
    assert tools == [
        "view_file",
        "list_files",
        "write_file",
        "replace_text",
        "view_file",
        "run_tests",
        "submit",
    ]
    assert tiltyard("replay", store, record.id)[0] == 0


def test_play_and_score_less(pool):
    code, out, _ = tiltyard("play", pool, "add", input="submit\n")
    assert code == 0 and out.startswith("reward 0.000: 0 of 3 hidden tests pass\n  hidden/1: ")
    record = json.loads(tiltyard("play", pool, "add", "--json", input="submit\n")[1])
    assert record["task"] == "add" and record["reward"] == 0.0
    assert "cut by its steps limit" in tiltyard("play", pool, "add", input="list\n" * 12)[1]


@pytest.mark.parametrize("script", ["quit\n", "", "write solution.py\nno dot\n"])
def test_leaving_a_game(pool, script):
    code, out, err = tiltyard("play", pool, "add", input=script)
    assert code == 1 and out == "" and "nothing was handed in" in err and "Traceback" not in err


def test_a_played_game_is_stored_and_its_id_told(pool, tmp_path):
    store = tmp_path / "s.sqlite"
    _, _, err = tiltyard("play", pool, "add", "--store", store, input="submit\n")
    with Store(store) as opened:
        assert f"stored as {next(opened.episodes()).id} in {store}" in err


def test_play_with_an_editor_on_a_terminal(pool, tmp_path):
    import pty

    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/raise NotImplementedError/return a + b/" "$1"\n')
    editor.chmod(0o755)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tiltyard", "play", pool, "add"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "EDITOR": str(editor), "VISUAL": ""},
    )
    os.close(theirs)
    os.write(ours, b"write solution.py\nsubmit\n")
    out, _ = process.communicate(timeout=120)
    os.close(ours)
    assert out == "reward 1.000: 3 of 3 hidden tests pass\n"


def test_demo_compares_the_three_players(pool):
    code, out, _ = tiltyard("demo", pool, "--workers", "1", "--json")
    found = json.loads(out)
    assert (code, found["as_expected"]) == (0, True)
    assert [(r["player"], r["mean_reward"]) for r in found["runs"]][::2] == [
        ("noop", 0.0),
        ("reference", 1.0),
    ]


def test_gc_without_an_engine_says_so():
    code, out, err = tiltyard("gc", "--engine", "dockr")
    assert (code, out) == (2, "")
    assert "docker" in err and "Traceback" not in err
