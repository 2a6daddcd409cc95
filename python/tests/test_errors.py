"""What is wrong is said with the key, the place, and what to write instead."""

import diskperf
import pytest
from conftest import VAX


def test_the_hierarchy():
    assert issubclass(diskperf.SettingError, diskperf.RequestError)
    assert issubclass(diskperf.RequestError, (diskperf.Error, ValueError))
    assert issubclass(diskperf.BudgetError, diskperf.RunError)
    for name in ("RunError", "StoreError", "FileError"):
        assert issubclass(getattr(diskperf, name), diskperf.Error)
    assert diskperf.SettingError.__module__ == "diskperf"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"filesystem.rotdelai_ms": 7}, ["filesystem.rotdelai_ms", "`rotdelay_ms`"]),
        ({"drive": "eagel"}, ["eagel", "`eagle`"]),
        ({"filesystem.rotdelay_ms": "soon"}, ["rotdelay_ms", "soon"]),
        ({"filesystem.rotdelay_ms": -1}, ["rotdelay_ms", "-1"]),
        ({"filesystem.rotdelay_ms": object()}, ["filesystem.rotdelay_ms", "give a number"]),
        ({"controler.x": 1}, ["controler", "`controller`"]),
    ],
)
def test_a_wrong_setting_names_the_key_and_the_remedy(settings, words):
    for change in (
        lambda: diskperf.System(VAX, settings),
        lambda: diskperf.System(VAX).with_(settings),
        lambda: diskperf.run("read_8192", on=VAX, settings=settings),
        lambda: diskperf.run_points(VAX, "read_8192", [settings]),
        lambda: diskperf.explain(VAX, suite="read_8192", settings=settings),
    ):
        with pytest.raises(diskperf.SettingError) as raised:
            change()
        for word in words:
            assert word in str(raised.value)
        assert "--set" not in str(raised.value)


def test_a_setting_of_a_program_names_the_key():
    with pytest.raises(diskperf.SettingError, match="cal_bytes.*call_bytes"):
        diskperf.run("read_8192", on=VAX, settings={"program.cal_bytes": 4})
    with pytest.raises(diskperf.SettingError, match="program.call_bytes.*run"):
        diskperf.System(VAX, {"program.call_bytes": 4096})


def test_a_wrong_keyword_names_the_nearest():
    with pytest.raises(TypeError, match="repetition`; did you mean `repetitions`"):
        diskperf.run("read_8192", on=VAX, repetition=3)
    with pytest.raises(TypeError, match="drivr`; did you mean `driver`"):
        diskperf.System(VAX).with_(drivr="hp")


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"drives": 0}, "drives=0: give a number from 1 to 8"),
        ({"drives": 5}, "5"),
        ({"repetitions": 0}, "repetitions=0"),
        ({"size": "many"}, "size=\"many\""),
        ({"cache": "tepid"}, "cache=\"tepid\": give \"cold\", \"warm\" or \"direct\""),
        ({"fresh": "ext4"}, "fresh"),
        ({"together": True}, "together"),
    ],
)
def test_a_wrong_option_is_refused(keywords, words):
    with pytest.raises(diskperf.RequestError) as raised:
        diskperf.run("read_8192", on=VAX, **keywords)
    assert words in str(raised.value)


def test_names_that_there_are_not_get_the_nearest():
    with pytest.raises(diskperf.RequestError, match="read_8192"):
        diskperf.run("read_8193", on=VAX)
    for ask in (
        lambda: diskperf.run("ffs83", on="vax780-sc780-eagel"),
        lambda: diskperf.System("vax780-sc780-eagel"),
        lambda: diskperf.run_points("vax780-sc780-eagel", "ffs83", [{}]),
        lambda: diskperf.Catalogue().show("vax780-sc780-eagel"),
    ):
        with pytest.raises(diskperf.RequestError, match=VAX):
            ask()
    with pytest.raises(diskperf.RequestError, match="kridle-mckusick-1983"):
        diskperf.reproduce("kridle-mckusick-1984")
    with pytest.raises(diskperf.RequestError, match="systems, hosts"):
        diskperf.Catalogue().list("printers")


def test_a_file_of_the_catalogue_has_line_and_column(tmp_path):
    (tmp_path / "drives").mkdir()
    (tmp_path / "drives" / "mine.toml").write_text('extends = "eagle"\nrpm = = 3\n')
    with pytest.raises(diskperf.SettingError, match=r"mine.toml:2:7"):
        diskperf.Catalogue(tmp_path).system(VAX, drive="mine")


def test_a_program_that_fails_is_named():
    settings = {"filesystem.minfree_percent": 0}
    with pytest.raises(diskperf.RequestError, match="not enough space"):
        diskperf.run("write_8192", on=VAX, size="4G", settings=settings)


def test_stores_and_files(tmp_path):
    other = tmp_path / "other.sqlite"
    other.write_text("something else")
    with pytest.raises(diskperf.StoreError, match="not a diskperf store"):
        diskperf.open_store(other)
    store = diskperf.open_store(tmp_path / "new.sqlite")
    with pytest.raises(diskperf.StoreError, match="has no run `beef`"):
        store.run("beef")
    with pytest.raises(diskperf.StoreError, match="no `last`"):
        store.run()
    with pytest.raises(diskperf.FileError, match="missing.json"):
        store.run(str(tmp_path / "missing.json"))


@pytest.mark.parametrize(
    ("suite", "options", "words"),
    [
        ("read_8192", {"on": VAX, "drives": 5}, "drives=5: .*configure more with setting drives=5"),
        ("read_8192", {"on": VAX, "together": True}, "together=True applies to real storage.*with drives=2"),
        ("copy", {"on": VAX, "other": "/tmp"}, "other applies to real storage"),
        ("read_8192", {"on": ".", "drives": 2}, "give each with `on`, and together=True"),
        ("read_8192", {"on": ".", "together": True}, r"on=\[DIR1, DIR2\], together=True"),
        ("read_8192", {"on": ".", "size": 0}, 'give size="8M"'),
        ("read_8192", {"on": ".", "settings": {"drive.rpm": 3}}, "a modelled system has: on=vax780"),
        ("copy", {"on": ".", "settings": {"program.destination": "other"}}, "name a directory there with other=DIR"),
        (VAX, {"on": "."}, f"write `on={VAX}`"),
    ],
)
def test_a_remedy_names_what_python_has(suite, options, words):
    with pytest.raises(diskperf.RequestError, match=words) as raised:
        diskperf.describe(suite, **options)
    assert "--" not in str(raised.value)


def test_a_model_that_takes_too_much_is_told_apart():
    costs = {"kernel.system_call_ms": 10000, "kernel.read_write_ms": 10000}
    slow = {**costs, "host.speed": 0.03, "host.clock_hz": 10}
    for run in (
        lambda **more: diskperf.run("read_8192", on=VAX, settings=slow, **more),
        lambda **more: diskperf.run_points(VAX, "read_8192", [slow], **more),
    ):
        with pytest.raises(diskperf.BudgetError, match="days of virtual time.*no_budget=True"):
            run()
