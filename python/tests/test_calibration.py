"""The calibrated numbers of the catalogue, which a fit has to find again."""

import pathlib
import re
from collections import Counter

import diskperf
import pytest
from diskperf._fit.calibration import Texts, _solved, fitted
from diskperf._fit.card import CardModel, numbers_of

CATALOGUE = pathlib.Path(__file__).parents[2] / "catalogue"

#: Which of several: chosen, and not fitted.
RULES = {
    ("controllers/sc780-initial-arbitration.toml", "attention"),
    ("controllers/sc750.toml", "separate_adaptors"),
    ("controllers/uda50.toml", "overlap_decode"),
}


@pytest.fixture(scope="module")
def texts():
    return Texts.read(CATALOGUE)


@pytest.fixture(scope="module")
def published():
    """The ids of all cells, with what each was measured on."""
    text = (CATALOGUE / "published" / "published.toml").read_text()
    found = {}
    for cell in text.split("[[cell]]"):
        words = dict(re.findall(r'^(id|target|target_variant) = "(.*)"$', cell, re.M))
        if "id" in words and "target" in words:
            found[words["id"]] = ":".join(words[key] for key in ("target", "target_variant") if key in words)
    return found


def cells_of(texts, published, name):
    patterns = [re.escape(one).replace(r"\*", "[^/]*") for one in texts.sets()[name]]
    return [one for one in published if any(re.fullmatch(pattern, one) for pattern in patterns)]


def files_of(systems):
    rows = [row for name in sorted(systems) for row in diskperf.System(name).parameters.to_pylist()]
    return {row["file"].removeprefix("catalogue/") for row in rows}


def test_everything_calibrated_is_fitted_or_chosen(texts, published):
    numbers, by_hand = texts.calibrated(), texts.by_hand()
    assert {(one.file, one.key) for one in by_hand} >= RULES
    page = (CATALOGUE.parent / "ACCURACY.md").read_text().splitlines()
    for listed, opening in ((numbers, "calibrated on:"), (by_hand, "calibrated by hand on:")):
        assert len(listed) == sum(f"| {opening}" in line for line in page), opening
        assert {one.set for one in listed} <= set(texts.sets())
    for name, count in Counter(one.set for one in numbers).items():
        cells = cells_of(texts, published, name)
        assert len(cells) >= count, f"{name} has fewer cells than numbers"
        files = files_of({published[one] for one in cells})
        for one in numbers:
            if one.set == name:
                assert one.file in files, f"no system of {name} has {one.file}"
                free = one.free()
                assert free.low < one.number < free.high, one


def test_a_set_presupposes_only_what_stands_before_it(texts, published):
    order = list(texts.sets())
    for number, name in enumerate(order):
        files = files_of({published[one] for one in cells_of(texts, published, name)})
        presupposed = {one.set for one in texts.calibrated() if one.file in files}
        # What a Sun's two boards have in common: the cells of one hang on that one alone.
        late = presupposed & set(order[number + 1 :])
        if not name.startswith(("raw", "file", "fsck", "xylogics", "dump", "format")):
            assert not late, f"{name} hangs on {late}, which is fitted after it"


def test_what_is_as_another_has_its_number(texts):
    again = texts
    for one in texts.calibrated():
        again = again.with_(one.file, one.key, one.number)
    for name, text in texts.parts().items():
        assert again[name].replace("_", "") == text.replace("_", ""), name


def test_a_number_is_changed_in_its_line_and_where_it_is_followed(texts):
    changed = texts.with_("drivers/hp-1983-07.toml", "complete_ms", 0.5)
    different = {name for name, text in changed.parts().items() if text != texts[name]}
    assert {"drivers/hp-1983-07.toml", "drivers/hp-1984.toml", "drivers/uda.toml", "drivers/xy.toml"} <= different
    for name in different:
        lines = zip(texts[name].splitlines(), changed[name].splitlines())
        assert [new for old, new in lines if old != new] == ["complete_ms = 0.5"]
    with pytest.raises(diskperf.RequestError, match="stands there 0 times"):
        texts.with_("drivers/hp-1983-07.toml", "complete", 0.5)


def test_the_card_is_a_model(texts):
    """With the catalogue's own number it gives what `reproduce` gives."""
    [one] = [one for one in texts.calibrated() if one.set == "xylogics" and one.key == "command_ms"]
    numbers = numbers_of(["zachariassen-1987/misc/cheetah/gnuemacs-ratio-to-451"])
    assert [number.metric for number in numbers] == ["ratio"]
    assert numbers[0].uncertainty == pytest.approx((0.03**2 + (0.05 / 3**0.5 / 2.2) ** 2) ** 0.5)
    model = CardModel(
        numbers, [one.free()], lambda values: texts.with_(one.file, one.key, values[0]).parts()
    )
    own = model.at([[one.free().place(one.number)], [1.0]])
    card = diskperf.reproduce("zachariassen-1987", cell=numbers[0].name)
    assert own[0, 0] == card.cells["modelled"][0]
    assert own[1, 0] > own[0, 0] and model.evaluations == 2


def test_a_fit_finds_the_catalogues_number(texts):
    """The others take longer: tools/calibrate."""
    changed, found = fitted(texts, "single-sectors")
    assert found.parameters["determined"] == ["yes"]
    assert changed.parts() == texts.parts(), str(found)


def test_without_a_table_what_the_others_do_not_tell_is_where_a_search_begins(texts):
    """T5 alone has cells with data that come late; the 750's memory is in none of T2's."""
    changed, found = fitted(texts, "initial-arbitration", without="T5")
    [late] = [one for one in changed.calibrated() if one.set == "initial-arbitration"]
    assert found is None and late.number == late.free().value(0.5)

    numbers = [one for one in texts.calibrated() if one.set == "one-drive" and one.key == "copy_ms_per_kb"]
    of_sc780 = numbers_of(["kridle-mckusick-1983/T2/vax780-sc780-eagle/8K/read_8192/1"])
    found = _solved(texts, "one-drive", numbers, of_sc780, 1)
    rows = {row["file"]: row for row in found.parameters}
    untold = rows["hosts/vax750.toml"]
    assert untold["determined"] == "by its prior" and untold["value"] == pytest.approx(0.6, rel=0.1)
    assert rows["hosts/vax780.toml"]["determined"] == "yes"
    assert any("hosts/vax750.toml" in note and "close to its expected value" in note for note in found.notes)
