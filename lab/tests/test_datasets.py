from __future__ import annotations

import gzip
import hashlib
import json

import numpy as np
import pytest

from surefoot.errors import MissingData
from surefoot_lab import datasets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


def store(folder, name, **files):
    (folder / name).mkdir(parents=True)
    for file, content in files.items():
        (folder / name / file).write_bytes(content)


def test_npz_csv_and_json(folder):
    (folder / "taxi").mkdir(parents=True)
    np.savez(folder / "taxi/taxi_demand.npz", row=np.arange(3), names=np.array(["a", "b"]))
    (folder / "taxi/hyperparameters.json").write_text(json.dumps({"slot18": {"mean": 0.74}}))
    data = datasets.load("taxi")
    assert data["row"].tolist() == [0, 1, 2]
    assert data["hyperparameters"]["slot18"]["mean"] == 0.74
    table = gzip.compress(b'price,city,note\n1.5,Elk Grove,\n,"Galt, CA",NA\n')
    store(folder, "sacramento_houses", **{"sacramento_houses.csv.gz": table})
    houses = datasets.load("sacramento_houses")
    assert np.array_equal(houses["price"], [1.5, np.nan], equal_nan=True)
    assert houses["city"].tolist() == ["Elk Grove", "Galt, CA"]
    assert np.isnan(houses["note"]).all()


def test_other_files_are_given_as_paths_and_tab_separated_tables_are_read(folder):
    files = {"model.onnx": b"model", "config_space.json": b"{}", "encoding.json": b"{}", "interface.json": b"{}"}
    store(folder, "lcbench", **files)
    assert datasets.load("lcbench")["model.onnx"].read_bytes() == b"model"
    text = b"user_id:token\trating:float\n7\t4.5\n"
    store(folder, "movielens_100k", **{f"ml-100k.{end}": text for end in ("inter", "item", "user")})
    assert datasets.load("movielens_100k")["inter_rating"].tolist() == [4.5]


def test_the_cache_is_the_second_place(folder, tmp_path):
    store(tmp_path / "cache/surefoot", "svm_grid", **{"svm_on_grid.csv.gz": gzip.compress(b"C\n1\n")})
    assert datasets.load("svm_grid")["C"].tolist() == [1.0]
    store(folder, "svm_grid", **{"svm_on_grid.csv.gz": gzip.compress(b"C\n2\n")})
    assert datasets.load("svm_grid")["C"].tolist() == [2.0]


def test_missing_data_say_what_where_from_and_where_to(folder, monkeypatch):
    with pytest.raises(MissingData) as error:
        datasets.load("svm_grid")
    text = str(error.value)
    for word in (
        "svm_on_grid.csv.gz",
        str(folder / "svm_grid"),
        "cache/surefoot/svm_grid",
        "HPOlib",
        "GPL-3",
        "1400 rows",
    ):
        assert word in text
    monkeypatch.delenv("SUREFOOT_DATA")
    with pytest.raises(MissingData, match="not set"):
        datasets.load("svm_grid")


def test_nothing_is_unpickled(folder):
    (folder / "svm_meta").mkdir(parents=True)
    np.savez(folder / "svm_meta/tst_svm.npz", names=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        datasets.load("svm_meta")


def test_a_ragged_table_is_refused(folder):
    store(folder, "svm_grid", **{"svm_on_grid.csv.gz": gzip.compress(b"C,alpha\n1,2\n3\n")})
    with pytest.raises(ValueError, match="line 3 has 1 fields"):
        datasets.load("svm_grid")


def test_verify_compares_bytes(folder, monkeypatch):
    store(folder, "svm_grid", **{"svm_on_grid.csv.gz": b"something else"})
    assert not datasets.verify("svm_grid")
    row = datasets.DATASETS["svm_grid"]
    monkeypatch.setitem(row.files, "svm_on_grid.csv.gz", hashlib.sha256(b"something else").hexdigest())
    assert datasets.verify("svm_grid")


def test_the_table_is_complete():
    assert len(datasets.DATASETS) >= 20
    for name, row in datasets.DATASETS.items():
        assert row.name == name
        assert row.files
        assert all((row.holds, row.kind, row.source, row.licence))
        assert all(len(sha256) in (0, 64) for sha256 in row.files.values())


def real(name):
    try:
        return datasets.load(name)
    except MissingData as error:
        pytest.skip(f"needs real data: {str(error)[:80]}")


def test_the_real_svm_grid():
    table = real("svm_grid")
    assert len(table["C"]) == 1400
    best = table["validation_error"].argmin()
    assert table["validation_error"][best] == pytest.approx(0.2411, abs=1e-4)
    assert (table["C"][best], table["alpha"][best], table["epsilon"][best]) == (6000, 0.1, 0.001)


def test_the_real_svm_meta_data():
    data = real("svm_meta")
    assert data["accuracy"].shape == (50, 288)
    assert data["hyperparameters"].shape == (288, 6)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(datasets.DATASETS))
def test_every_real_data_set_loads(name):
    assert real(name)
    assert datasets.verify(name)
