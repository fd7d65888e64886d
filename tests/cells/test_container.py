"""The container wall: the conformance list, its other modes, the referee on it, what locks it, how it ends."""

# ruff: noqa: F401, F811  (fixtures are imported and asked for by the same name)
from __future__ import annotations

import _thread
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance import LONG, Check, eventually, find, none_left, py, said, still_works
from conformance_hostile import CHECKS
from copies import COPIES
from engine_fixture import Engine, docker, engine_of_the_tests

import tiltyard
from tiltyard import pool
from tiltyard.cells import Cell, CellLimits, CellLost, Run, make_wall, probe_wall
from tiltyard.cells.container import ContainerWall
from tiltyard.cells.container_modes import HeldCell
from tiltyard.cells.image import of_machine
from tiltyard.cells.owner import LABEL, owner_id
from tiltyard.cells.reach import PREFIX
from tiltyard.cells.rootfs import there
from tiltyard.cells.start_git import missing
from tiltyard.errors import ArenaError, UsageError
from tiltyard.images import Images
from tiltyard.referee import Referee
from tiltyard.task import Files, SuiteWay, Task

pytestmark = pytest.mark.xdist_group("container")


@pytest.fixture(scope="module")
def wall(docker: Engine) -> Iterator[ContainerWall]:
    wall = ContainerWall()
    yield wall
    wall.close()


OTHERS = (("keeper", "stream"), ("exec", None), ("run", None))


@pytest.fixture(scope="module", params=OTHERS, ids=lambda p: "-".join(filter(None, p)))
def other(request: pytest.FixtureRequest, docker: Engine) -> Iterator[ContainerWall]:
    """The ways that are not the default."""
    mode, transport = request.param
    wall = ContainerWall(mode=mode, transport=transport)
    yield wall
    wall.close()


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_conformance(wall: ContainerWall, check: Check) -> None:
    check.on(wall)


WHERE_MODES_DIFFER = """files_given_at_the_start_are_there write_keeps_a_scripts_mode modes_stay_as_a_run_sets_them
a_capture_comes_after_the_death_of_all exit_codes_are_kept signals_are_told_from_exit_codes output_is_bytes
output_is_cut_in_the_middle the_time_limit_kills_and_keeps_what_was_said the_cpu_limit_kills stdin_is_what_was_given
the_environment_is_minimal the_current_folder_is_the_workspace_and_looks_the_same_everywhere
hashes_are_the_same_in_every_run what_can_not_be_run_is_the_players_mistake nothing_outlives_its_run
a_cell_can_be_closed_from_another_thread_during_a_run a_cell_that_is_garbage_is_closed
a_forked_childs_life_does_not_keep_a_cell a_program_has_its_descriptors_and_nothing_else a_programs_exit_is_told
a_programs_memory_can_be_set_apart files_and_runs_work_beside_a_program a_fork_bomb_ends a_memory_bomb_ends
a_disk_bomb_ends modes_shut_nobody_out ptrace_reaches_nobody nobodys_memory_is_read_or_written
nobodys_descriptors_are_taken a_run_has_no_descriptor_but_its_streams proc_changes_and_reveals_nothing_of_the_kernel
keyrings_carry_nothing_from_cell_to_cell shared_memory_carries_nothing_from_cell_to_cell sockets_by_name_end_at_the_cell
there_is_no_vsock there_is_no_netlink there_is_no_io_uring there_is_no_userfaultfd no_namespace_is_made_or_entered
nothing_is_mounted setuid_programs_are_plain_ones a_hundred_thousand_files_are_no_trouble
races_of_symbolic_links_lead_nowhere races_of_renames_block_nothing"""
FEW = [check for check in CHECKS if check.name in WHERE_MODES_DIFFER.split()]


def test_the_few_are_all_known() -> None:
    assert len(FEW) == len(WHERE_MODES_DIFFER.split())


@pytest.mark.parametrize("check", FEW, ids=str)
def test_conformance_of_other_modes(other: ContainerWall, check: Check) -> None:
    check.on(other)


@pytest.mark.parametrize("check", COPIES, ids=str)
def test_copies(wall: ContainerWall, check: Check) -> None:
    check.on(wall)


@pytest.mark.parametrize("check", [c for c in COPIES if not c.name.startswith("random")], ids=str)
def test_copies_of_other_modes(other: ContainerWall, check: Check) -> None:
    check.on(other)


# ------------------------------------------------------------------------------------------------ the referee

TASKS = ("add_business_days", "bank_account", "caesar_shift", "cheapest_route", "io_account_totals")


@pytest.mark.parametrize("name", TASKS)
def test_the_referee_on_it(wall: ContainerWall, name: str) -> None:
    task = pool.load("builtin")[name]
    good, bad = Referee(wall).grade(task, task.reference), Referee(wall).grade(task, task.start)
    assert (good.void, good.reward) == (None, 1.0)
    assert bad.void is None and bad.reward is not None and bad.reward < 1.0


@pytest.mark.parametrize("name", TASKS[:2])
def test_the_referee_on_other_modes(other: ContainerWall, name: str) -> None:
    task = pool.load("builtin")[name]
    good, bad = Referee(other).grade(task, task.reference), Referee(other).grade(task, task.start)
    assert (good.void, good.reward) == (None, 1.0)
    assert bad.void is None and bad.reward is not None and bad.reward < 1.0


def test_a_repository_is_copied_with_its_git(
    wall: ContainerWall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILTYARD_CACHE", str(tmp_path))
    start = {"README.md": b"hello\n", "pkg/core.py": b"x = 1\n", ".git/HEAD": b"another history\n"}
    for cell in modes(wall, Images().add(start)):
        cell.write("pkg/new.py", b"y = 2\n")
        if missing() is None:
            status = cell.run(Run(("git", "status", "--porcelain"), wall_s=LONG))
            assert (status.rc, status.stdout) == (0, b"?? pkg/new.py\n"), status
        files = cell.capture(max_file_bytes=999, max_bytes=9999, max_files=99, max_depth=9).files
        assert set(files) == {"README.md", "pkg/core.py", "pkg/new.py"}


# ------------------------------------------------------------------------------------------------- what locks it


def modes(wall: ContainerWall, files: Files | None = None) -> Iterator[Cell]:
    """A cell of each mode on the same engine."""
    for mode in ("keeper", "exec", "run"):
        other = ContainerWall(mode=mode) if mode != "keeper" else wall
        cell = other.open(files or {}, CellLimits())
        try:
            yield cell
        finally:
            cell.close()


def test_code_has_no_rights_at_all(wall: ContainerWall) -> None:
    code = """
    import os
    status = dict(line.split(':\\t') for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)
    print(os.getresuid(), os.getresgid(), os.getgroups())
    print({status[k] for k in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')})
    print(status['NoNewPrivs'], status['Seccomp'])
    """
    for cell in modes(wall):
        assert said(cell, code).splitlines() == [
            "(1000, 1000, 1000) (1000, 1000, 1000) [1000]",
            "{'0000000000000000'}",
            "1 2",
        ] or said(cell, code).splitlines() == [
            "(1000, 1000, 1000) (1000, 1000, 1000) []",
            "{'0000000000000000'}",
            "1 2",
        ]


def test_nothing_but_its_own_folders_can_be_written(wall: ContainerWall) -> None:
    code = """
    import os
    open('x', 'w'); open('/tmp/x', 'w'); open('/home/x', 'w'); open('/dev/shm/x', 'w')
    for at, folders, files in os.walk('/'):
        if at in ('/proc', '/sys', '/workspace', '/tmp', '/home', '/dev/shm'):
            folders[:] = []
        elif os.access(at, os.W_OK) and not at.startswith('/proc'):
            print(at)
    """
    for cell in modes(wall):
        found = [line for line in said(cell, code).splitlines() if line != "/dev/mqueue"]
        assert found == []


def test_there_is_no_network(wall: ContainerWall) -> None:
    code = """
    import os, socket
    print(sorted(n for _, n in socket.if_nameindex()) if hasattr(socket, 'if_nameindex') else ['lo'])
    for family, address in ((socket.AF_INET, ('192.0.2.1', 80)), (socket.AF_INET, ('1.1.1.1', 53))):
        try: socket.create_connection(address, timeout=5)
        except OSError as error: print('refused')
        else: print('connected')
    print(socket.gethostname())
    """
    for cell in modes(wall):
        result = py(cell, code)
        if result.rc == 0:
            assert result.stdout.decode().splitlines() == ["['lo']", "refused", "refused", "cell"]
        else:  # the filter refuses the very sockets
            assert b"PermissionError" in result.stderr or b"Address family" in result.stderr


def test_the_keeper_is_out_of_reach(wall: ContainerWall) -> None:
    cell = wall.open({}, CellLimits())
    code = """
    import os, resource, signal
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGINT):
        os.kill(1, number)
    for path in ('/proc/1/mem', '/proc/1/environ', '/proc/1/fd'):
        try: os.listdir(path) if path.endswith('fd') else open(path, 'rb').read(1)
        except PermissionError: print('refused')
    try: resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))
    except PermissionError: print('refused')
    """
    assert said(cell, code).splitlines() == ["refused"] * 4
    still_works(cell)
    cell.close()


def test_the_folder_of_the_door_is_empty_by_then(wall: ContainerWall) -> None:
    cell = wall.open({}, CellLimits())
    assert said(cell, "import os; print(os.listdir('/run/tiltyard'))") == "[]"
    cell.close()


def test_what_the_engine_was_told(wall: ContainerWall, docker: Engine) -> None:
    limits = CellLimits(memory_bytes=256 << 20, processes=20, disk_bytes=8 << 20, disk_files=100)
    cell = wall.open({}, limits)
    assert isinstance(cell, HeldCell)
    told = wall.engine._json(f"/containers/{cell.container}/json", "looking")  # type: ignore[attr-defined]
    host = told["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] and host["AutoRemove"]
    assert host["CapDrop"] == ["ALL"] and host["SecurityOpt"] == ["no-new-privileges"]
    assert 256 << 20 < host["Memory"] == host["MemorySwap"] < 400 << 20
    assert 20 < host["PidsLimit"] < 30 and host["NanoCpus"] == 10**9
    assert "size=8388608" in host["Tmpfs"]["/workspace"] and "nr_inodes=101" in host["Tmpfs"]["/workspace"]
    assert told["Config"]["User"] == "1000:1000" and told["Config"]["Labels"][LABEL] == str(owner_id())
    cell.close()


def test_a_disk_of_files_alone_is_full_at_its_cap(wall: ContainerWall) -> None:
    cell = wall.open({}, CellLimits(disk_files=50))
    code = """
    n = 0
    try:
        while True: open(f'f{n}', 'w').close(); n += 1
    except OSError as error: print(n, error.errno)
    """
    count, number = said(cell, code).split()
    assert 40 <= int(count) <= 50 and number == "28"
    cell.close()


# ---------------------------------------------------------------------------------------------------- how it ends


def ours(wall: ContainerWall) -> list[str]:
    return [found.name for found in wall.engine.containers(f"{LABEL}={owner_id()}")]


def test_nothing_is_left_of_a_cell_and_no_network_or_volume_is_made(wall: ContainerWall) -> None:
    def seen() -> tuple[int, int]:
        volumes = wall.engine._json("/volumes", "looking")["Volumes"] or []  # type: ignore[attr-defined]
        return len(volumes), len(wall.engine._json("/networks", "looking"))  # type: ignore[attr-defined]

    before = seen()
    for cell in modes(wall):
        assert said(cell, "print(1)") == "1"
        assert seen() == before
    assert eventually(lambda: ours(wall) == []) and seen() == before


def test_many_cells_leave_no_descriptor(wall: ContainerWall) -> None:
    def one() -> None:
        with contextlib.closing(wall.open({"a": b"1"}, CellLimits())) as cell:
            cell.run(Run(("true",), wall_s=LONG))

    one()
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        one()
    assert len(list(Path("/dev/fd").iterdir())) <= before


OWNER = """
import sys, time
from tiltyard.cells import CellLimits, Run
from tiltyard.cells.container import ContainerWall
cell = ContainerWall(mode={mode!r}, transport={transport!r}).open({{}}, CellLimits())
print('open', flush=True)
cell.run(Run(('sh', '-c', 'setsid sleep {marker} & sleep {marker}'), wall_s=1000))
"""


@pytest.mark.parametrize(("mode", "transport"), [("keeper", None), *OTHERS])
def test_a_killed_owner_leaves_no_container(wall: ContainerWall, mode: str, transport: str | None) -> None:
    marker = f"5{random.randrange(10**9):09}"
    code = OWNER.format(mode=mode, transport=transport, marker=marker)
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert eventually(lambda: len(find(f"sleep\0{marker}")) == 2)
        assert any(f".{owner.pid}:" in f".{found.labels[LABEL]}" for found in wall.engine.containers(LABEL))
    finally:
        owner.kill()
        owner.communicate()
    assert none_left(marker)

    def owned() -> list[str]:
        found = wall.engine.containers(LABEL)
        return [one.name for one in found if one.labels[LABEL].startswith(f"{owner.pid}:")]

    assert eventually(lambda: owned() == [])


def test_a_container_that_is_taken_away_is_a_lost_cell(wall: ContainerWall) -> None:
    cell = wall.open({}, CellLimits())
    assert isinstance(cell, HeldCell)
    wall.engine.kill(cell.container)
    with pytest.raises(CellLost) as lost:
        cell.read("x", max_bytes=1)
    assert not lost.value.during_run
    cell = wall.open({}, CellLimits())
    assert isinstance(cell, HeldCell)
    threading.Timer(0.5, wall.engine.kill, [cell.container]).start()
    with pytest.raises(CellLost) as lost:
        cell.run(Run(("sleep", "1000"), wall_s=1000))
    assert lost.value.during_run
    with contextlib.closing(wall.open({}, CellLimits())) as cell:
        still_works(cell)


def test_an_interrupted_opening_leaves_no_orphan(wall: ContainerWall) -> None:
    chance = random.Random(7)
    interrupted = 0
    for _ in range(8):
        timer = threading.Timer(chance.uniform(0.0, 0.25), _thread.interrupt_main)
        try:
            timer.start()
            cell = wall.open({}, CellLimits())
            timer.join()
            time.sleep(0.01)
            cell.close()
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            timer.cancel()
            del timer
    assert interrupted
    cell = None
    wall.open({}, CellLimits()).close()
    assert eventually(lambda: ours(wall) == [])
    assert list(Path(tempfile.gettempdir()).glob(f"{PREFIX}{os.getpid()}-*")) == []


def test_cells_are_opened_at_the_same_time(wall: ContainerWall) -> None:
    done: list[str] = []

    def play(n: int) -> None:
        with contextlib.closing(wall.open({"n": b"%d" % n}, CellLimits())) as cell:
            done.append(said(cell, "print(open('n').read())"))

    threads = [threading.Thread(target=play, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list("012345")


# --------------------------------------------------------------------------------------------------- by name


def test_it_is_a_wall_by_name(wall: ContainerWall) -> None:
    assert probe_wall("container") is None
    made = make_wall("container", hash_seed=3)
    with contextlib.closing(made.open({}, CellLimits())) as cell:
        assert cell.wall == made.name == "container"
        first = said(cell, "print(hash('x'))")
    with contextlib.closing(wall.open({}, CellLimits())) as cell:
        assert said(cell, "print(hash('x'))") != first
    made.close()


def test_weaknesses_are_said(wall: ContainerWall) -> None:
    assert any("kernel" in text for text in wall.weaknesses)
    watched = "its size is watched"
    assert not any(watched in text for text in wall.weaknesses)
    assert any(watched in text for text in ContainerWall(mode="run").weaknesses)


def test_wrong_words_are_refused(docker: Engine) -> None:
    for wrong in ({"mode": "vm"}, {"transport": "pigeon"}, {"engine": "rkt"}, {"image": "a", "python": "b"}):
        with pytest.raises(UsageError, match="expected"):
            ContainerWall(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ArenaError, match=r"no runtime 'runx'.*runc"):
        ContainerWall(runtime="runx").open({}, CellLimits())


def test_the_runtime_can_be_named(docker: Engine) -> None:
    wall = ContainerWall(runtime="runc")
    with contextlib.closing(wall.open({}, CellLimits())) as cell:
        still_works(cell)
    assert "runc" in repr(wall)


def test_an_interpreter_with_its_packages(docker: Engine, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    packages = next(venv.glob("lib/python*/site-packages"))
    (packages / "seen_in_cells.py").write_text("X = 42\n")
    wall = ContainerWall(python=str(venv / "bin/python"))
    with contextlib.closing(wall.open({}, CellLimits())) as cell:
        assert (
            said(cell, "import seen_in_cells, sys; print(seen_in_cells.X, sys.prefix)")
            == f"42 {there(str(venv))}"
        )
    with contextlib.closing(ContainerWall().open({}, CellLimits())) as cell:
        assert py(cell, "import seen_in_cells").rc == 1


# ----------------------------------------------------------------------------------------- the arena in a container

DOCTOR = """
import json
from tiltyard.cells.doctor import examine
report = examine()
print(json.dumps([report.exit_code, report.as_json(), str(report)]))
"""
RIGHTS = (
    "--cap-add=SYS_ADMIN",
    *(
        f"--security-opt={word}"
        for word in ("seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined")
    ),
)


def doctor_in_a_container(wall: ContainerWall, *options: str) -> tuple[int, dict[str, bool], str]:
    source = Path(tiltyard.__file__).parent.parent
    command = [
        *("docker", "run", "--rm", "--network=none", f"--volume={source}:/src:ro", "--env=PYTHONPATH=/src"),
        *("--env=HOME=/tmp", "--env=PYTHONDONTWRITEBYTECODE=1", "--entrypoint=", *options),
        *(of_machine(wall.engine, wall._interpreter), "python3", "-c", DOCTOR),
    ]
    done = subprocess.run(command, capture_output=True, timeout=5 * LONG, check=False)
    assert done.returncode == 0, done.stderr.decode()
    code, data, text = json.loads(done.stdout)
    return code, data["walls"], text


@pytest.mark.parametrize("user", ["0:0", "1000:1000"])
def test_the_doctor_in_a_container_says_which_rights_it_lacks_and_they_are_enough(
    wall: ContainerWall, user: str
) -> None:
    if shutil.which("docker") is None:
        pytest.skip("there is no docker command here")
    code, walls, text = doctor_in_a_container(wall, f"--user={user}")
    assert (code, walls) == (1, {"namespace": False, "container": False, "process": True})
    asked = " ".join(RIGHTS).replace("=", " ", 1).replace("--security-opt=", "--security-opt ")
    assert "NO  user namespaces" in text and asked in text and "Only the process wall is left" in text
    code, walls, text = doctor_in_a_container(wall, f"--user={user}", *RIGHTS)
    if not walls["namespace"]:
        pytest.skip(f"this engine gives containers no such rights: {text[:300]}")
    assert code == 0


# ------------------------------------------------------------------------------------------------ with pytest in it


@pytest.mark.parametrize("way", ["remote", "in-process"])
def test_suites_are_graded_in_containers(wall: ContainerWall, way: SuiteWay) -> None:
    tests = """
    import pytest
    from calc import add

    @pytest.mark.parametrize("n", [1, 2])
    def test_add(n, tmp_path):
        assert add(n, 1) == n + 1
    """
    task = Task(
        id="suite",
        prompt="Mend add.",
        start=Files({"calc.py": "def add(a, b):\n    return a - b\n"}),
        reference=Files({"calc.py": "def add(a, b):\n    return a + b\n"}),
        suite=Files({"tests/test_calc.py": textwrap.dedent(tests)}),
        hidden=(),
        grading="pytest",
        way=way,
    )
    referee = Referee(wall)
    right = referee.grade(task, task.reference)
    assert right.reward == 1.0 and right.total == 2, right
    assert referee.grade(task, Files({})).reward == 0.0
