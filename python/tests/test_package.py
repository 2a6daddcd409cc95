"""The package itself: the command line, types, documentation."""

import inspect
import pathlib
import subprocess
import sys

import diskperf
import pytest


#: What is not ours is not checked with it.
CONFIGURATION = pathlib.Path(__file__).parents[2] / "pyproject.toml"


def test_the_command_line_is_there():
    def call(*words):
        return subprocess.run(
            [sys.executable, "-m", "diskperf", *words], capture_output=True, text=True
        )

    assert call("--version").stdout == f"diskperf {diskperf.__version__}\n"
    wrong = call("show", "nothing-that-there-is")
    assert wrong.returncode == 2 and wrong.stderr.startswith("diskperf: ")
    unknown = call("runn")
    assert unknown.returncode == 2 and "run" in unknown.stderr


def test_a_run_of_the_command_line_can_be_made_again():
    words = ("run", "read_8192", "--on", "vax780-sc780-eagle")
    call = [sys.executable, "-m", "diskperf", *words]
    subprocess.run(call, check=True, capture_output=True)
    stored = diskperf.open_store().run()
    assert stored.command_line[:2] == ["diskperf", "run"]
    again = diskperf.run("read_8192", on="vax780-sc780-eagle")
    assert stored.spans().to_pylist() == again.spans().to_pylist()


def test_the_stubs_are_in_step():
    pytest.importorskip("mypy")
    words = ["diskperf._native", "--mypy-config-file", CONFIGURATION, "--ignore-disjoint-bases"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *words], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_types_hold(tmp_path):
    pytest.importorskip("mypy")
    words = ["--strict", "--config-file", CONFIGURATION, "--cache-dir", tmp_path, "-p", "diskperf"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *words], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def public():
    for name in diskperf.__all__:
        thing = getattr(diskperf, name)
        yield name, thing
        if inspect.isclass(thing):
            # What it has of a class of ours counts as its own.
            of_ours = (vars(kind) for kind in thing.__mro__ if kind.__module__.startswith("diskperf"))
            for inner, member in (pair for members in of_ours for pair in members.items()):
                if not inner.startswith("_") and (callable(member) or isinstance(member, property)):
                    yield f"{name}.{inner}", member


def test_everything_public_is_documented():
    undocumented = [name for name, thing in public() if not inspect.getdoc(thing)]
    assert undocumented == []


def test_what_can_be_printed_is_printed_alike():
    members = dict(public())
    for kind in ("Run", "Comparison", "AB", "Explanation", "Differences", "Card"):
        assert f"{kind}.to_json" in members and f"{kind}.to_dict" in members, kind


def test_what_a_function_raises_is_said():
    for name in ("run", "explain", "reproduce", "run_points", "open_store", "describe"):
        documentation = inspect.getdoc(getattr(diskperf, name))
        assert "Raises:" in documentation and "Args:" in documentation, name


def test_the_example_of_the_module_is_true():
    import doctest

    assert doctest.testmod(diskperf).failed == 0
