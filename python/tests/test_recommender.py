"""Recommender: from frames and arrays of all kinds, with the bits of the tool; lists, vectors and measures."""
import array
import datetime
import math
import os
import pickle
import random
import subprocess

import pytest

import attend

OPTIONS = {"hidden": 16, "layers": 1, "epochs": 2, "batch": 16, "seed": 3}
rng = random.Random(1)
ROWS = [(f"u{u}", f"ü{(u * 3 + t * 7 + rng.randint(0, 2)) % 30}", 1700000000 + 100 * t + u) for t in range(8) for u in range(40)]
rng.shuffle(ROWS)
USERS, ITEMS, TIMES = ([row[i] for row in ROWS] for i in range(3))
FRAME = {"user": USERS, "item": ITEMS, "time": array.array("q", TIMES)}


def read(data, *arrays, **options):
    """A log without a training"""
    from attend.recommender import open_log
    log = open_log(data, *arrays, **options)
    return {user: log.history(user) for user in log.users()}


HISTORIES = {}
for u, i, _ in sorted(ROWS, key=lambda row: row[2]):
    HISTORIES.setdefault(u, []).append(i)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return attend.Recommender.fit(FRAME, out=tmp_path_factory.mktemp("fit") / "model", **OPTIONS)


def weights(folder):
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.skipif("ATTEND_TOOL" not in os.environ, reason="without the tool")
def test_bits_are_those_of_the_tool(fitted, tmp_path):
    lines = "".join(f"{u},{i},{t}\n" for u, i, t in ROWS)
    (tmp_path / "log.csv").write_text("user,item,time\n" + lines)
    command = [os.environ["ATTEND_TOOL"], "train", "recommend", "--data", tmp_path / "log.csv", "-o", tmp_path / "tool"]
    command += [word for name, value in OPTIONS.items() for word in (f"--{name}", str(value))]
    subprocess.run(command, check=True, capture_output=True)
    folder = tmp_path / "tool"
    assert weights(folder) == open(f"{fitted._path}/model.safetensors", "rb").read()
    attend.Recommender.fit(tmp_path / "log.csv", out=tmp_path / "file", **OPTIONS)
    assert weights(folder) == weights(tmp_path / "file")


def test_actions_of_some_users_are_held_out():
    from attend.recommender import open_log
    info = {n: open_log(FRAME, held_out_users=n).info for n in (0, 7)}
    assert [info[n]["valid_cases"] for n in (0, 7)] == [40, 7]
    assert [info[n]["train_actions"] for n in (0, 7)] == [len(ROWS) - 2 * 40, len(ROWS) - 2 * 7]
    with pytest.raises(ValueError, match="^held_out_users is -1, expected 0 or more"):
        open_log(FRAME, held_out_users=-1)


def test_logs_are_the_same_however_they_come(fitted):
    assert read(FRAME) == HISTORIES
    assert read(USERS, ITEMS, TIMES) == HISTORIES
    assert read(USERS, ITEMS, array.array("d", TIMES)) == HISTORIES
    assert read(USERS, ITEMS, [str(t) for t in TIMES]) == HISTORIES
    named = {"who": USERS, "what": ITEMS, "when": TIMES, "more": TIMES}
    assert read(named, user="who", item="what", time="when") == HISTORIES


def test_without_times_the_order_of_rows_counts():
    in_order = {}
    for u, i, _ in ROWS:
        in_order.setdefault(u, []).append(i)
    assert read(USERS, ITEMS) == in_order == read(FRAME, time=None)
    assert read(USERS, ITEMS, [7] * len(USERS)) == in_order


def test_ids_may_be_integers(tmp_path):
    numbers = {"user": [int(u[1:]) for u in USERS], "item": array.array("H", [int(i[1:]) for i in ITEMS]), "time": TIMES}
    found = read(numbers)
    assert found == {int(u[1:]): [int(i[1:]) for i in items] for u, items in HISTORIES.items()}
    assert read([2**64 - 1] * 3, array.array("Q", [2**64 - 1] * 3)) == {2**64 - 1: [2**64 - 1] * 3}
    assert read([-5, -5, -5], array.array("b", [-7, 1, -7])) == {-5: [-7, 1, -7]}
    assert read([0, 0], ["x", "y"]) == {0: ["x", "y"]} and read([0, "a"], [1, 2]) == {"0": [1], "a": [2]}


def test_results_are_integers_where_what_was_asked_is(tmp_path):
    numbers = {"user": [int(u[1:]) for u in USERS], "item": [int(i[1:]) for i in ITEMS], "time": TIMES}
    model = attend.Recommender.fit(numbers, out=tmp_path / "m", **OPTIONS)
    integers, texts = model.recommend([3, 4], 2)[0], model.recommend(["3", "4"], 2)[0]
    assert integers == [int(id) for id in texts] and all(type(id) is int for id in integers) and all(type(id) is str for id in texts)
    assert model.similar(3, 2)[0] == [int(id) for id in model.similar("3", 2)[0]]
    user = model.users[0]
    assert model.recommend(users=[user], k=3)[0] == model.recommend([model.history(user)], k=3)[0] and type(user) is int
    assert {type(id) for ids in (model.items, model.recommend(users=[user], k=3)[0][0]) for id in ids} == {int}
    assert all(type(id) is str for id in model.recommend([3, "4"], 2)[0])
    again = attend.Recommender(tmp_path / "m")
    assert again.recommend([3, 4], 2)[0] == integers and again.items == list(map(str, model.items))
    named = attend.Recommender.fit({"user": [1] * 4, "item": ["7", "007", "x", "7"]}, time=None, out=tmp_path / "n", arch="popularity")
    assert sorted(map(str, named.recommend([7], 3, exclude_seen=False)[0])) == ["007", "7", "x"]
    assert 7 in named.recommend([7], 3, exclude_seen=False)[0] and "007" in named.recommend([7], 3, exclude_seen=False)[0]


def test_numpy():
    numpy = pytest.importorskip("numpy")
    users, items, times = numpy.array(USERS), numpy.array(ITEMS, object), numpy.array(TIMES)
    dates = numpy.array(TIMES, "datetime64[s]")
    assert read(users, items, times) == HISTORIES
    assert read(users, items, dates) == read(users, items, dates.astype("datetime64[ns]")) == HISTORIES
    assert read(users[::-1][::-1], items, numpy.repeat(times, 2)[::2]) == HISTORIES
    assert read(users, items, times.astype("f4").astype("f8") * 0 + times) == HISTORIES
    dates[5] = numpy.datetime64("NaT")
    with pytest.raises(ValueError, match=r"^times\[5\]: is null$"):
        read(users, items, dates)


def test_pandas(fitted, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": USERS, "item": ITEMS, "time": TIMES})
    dates = frame.assign(time=pandas.to_datetime(frame["time"], unit="s"))
    assert read(frame) == read(dates) == HISTORIES
    assert read(dates.assign(time=dates["time"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))) == HISTORIES
    assert read(frame.astype({"user": "category", "item": object})) == HISTORIES
    numbers = frame.assign(user=frame["user"].str[1:].astype(int))
    assert read(numbers) == read(numbers.astype({"user": "category"})) == {int(u[1:]): h for u, h in HISTORIES.items()}
    model = attend.Recommender.fit(frame, out=tmp_path / "m", **OPTIONS)
    assert weights(tmp_path / "m") == open(f"{fitted._path}/model.safetensors", "rb").read()
    with pytest.raises(ValueError, match=r"^item: the frame has 2 columns 'item'; one is needed$"):
        read(pandas.concat([frame, frame[["item"]]], axis=1))
    frame.loc[7, "item"] = None
    with pytest.raises(ValueError, match=r"^column 'item'\[7\]: is null$"):
        read(frame)
    with pytest.raises(ValueError, match=r"^column 'user'\[3\]: is null|float"):
        read(numbers.assign(user=numbers["user"].where(numbers.index != 3)))
    assert model.recommend(users=frame["user"][:2].tolist(), k=1)[1].shape == (2, 1)


def test_polars_and_arrow():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    frame = polars.DataFrame({"user": USERS, "item": ITEMS, "time": TIMES})
    dates = frame.with_columns(polars.from_epoch("time", time_unit="s"))
    assert read(frame) == read(dates) == HISTORIES
    assert read(frame.with_columns(polars.col("user").cast(polars.Categorical), polars.col("time").cast(polars.Float32) * 0 + polars.col("time"))) == HISTORIES
    assert read(polars.concat([frame[:100], frame[100:]], rechunk=False)) == HISTORIES
    table = pyarrow.table({"user": USERS, "item": ITEMS, "time": TIMES})
    assert read(table) == read(pyarrow.concat_tables([table[:7], table[7:7], table[7:]])) == HISTORIES
    assert read(table.set_column(2, "time", table["time"].cast(pyarrow.timestamp("s", "UTC")))) == HISTORIES
    assert read(table["user"], table["item"].combine_chunks()[0:], table["time"]) == HISTORIES
    days = pyarrow.table({"user": ["a"] * 3, "item": ["x", "y", "z"], "time": pyarrow.array([3, 1, 2], pyarrow.date32())})
    assert read(days) == {"a": ["y", "z", "x"]}
    nulls = frame.with_columns(polars.when(polars.col("time") > TIMES[9]).then(None).otherwise(polars.col("time")).alias("time"))
    first = next(i for i, t in enumerate(TIMES) if t > TIMES[9])
    with pytest.raises(ValueError, match=rf"^column 'time'\[{first}\]: is null$"):
        read(nulls)
    with pytest.raises(TypeError, match=r"^data: a LazyFrame has no values yet; .collect\(\)"):
        read(frame.lazy())


def test_dates_of_datetime():
    dates = [datetime.datetime.fromtimestamp(t, datetime.timezone.utc) for t in TIMES]
    east = datetime.timezone(datetime.timedelta(hours=9))
    assert read(USERS, ITEMS, dates) == HISTORIES
    assert read(USERS, ITEMS, [date.replace(tzinfo=None) if i % 2 else date.astimezone(east) for i, date in enumerate(dates)]) == HISTORIES
    days = [datetime.date(2020, 1, 3), datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 0, 5)]
    assert read(["a"] * 3, ["x", "y", "z"], days) == {"a": ["y", "z", "x"]}
    with pytest.raises(ValueError, match=r"^times\[1\]: time is \"03:05:00\", not a number"):
        read(["a"] * 2, ["x"] * 2, [days[0], datetime.time(3, 5)])


@pytest.mark.parametrize("message, call", [
    (r"^user: the frame has no column 'user'; it has 'who', 'item'$", lambda: read({"who": USERS, "item": ITEMS})),
    (r"^time: the frame has no column 'time'; .*time=None", lambda: read({"user": USERS, "item": ITEMS})),
    (r"^items has 2 rows, but users has 3$", lambda: read(["a", "b", "c"], ["x", "y"])),
    (r"^times has 1 rows, but users has 3$", lambda: read(["a"] * 3, ["x"] * 3, [1])),
    (r"^times\[2\]: is negative", lambda: read(["a"] * 3, ["x"] * 3, [1, 2, -3])),
    (r"^times\[1\]: is null \(NaN\)", lambda: read(["a"] * 3, ["x"] * 3, array.array("d", [1, math.nan, 3]))),
    (r"^times\[0\]: is infinite", lambda: read(["a"], ["x"], [math.inf])),
    (r"^times\[1\]: is a date, but the first is a number", lambda: read(["a"] * 2, ["x"] * 2, ["1", "2020-01-01"])),
    (r"^times\[0\]: .*neither", lambda: read(["a"], ["x"], [object()])),
    (r"^times\[0\]: .*soon", lambda: read(["a"], ["x"], ["soon"])),
    (r"^users\[1\]: is null", lambda: read(["a", None], ["x", "y"])),
    (r"^items\[0\]: is empty", lambda: read(["a"], [""])),
    (r"^items\[0\]: is a float", lambda: read(["a"], array.array("d", [1]))),
    (r"^items\[1\]: is of the type float", lambda: read(["a", "a"], ["x", 2.5])),
    (r"^items\[1\]: is not valid Unicode", lambda: read(["a", "a"], ["x", "\ud800"])),
    (r"^action 0: user .*zero byte", lambda: read(["a\0b"], ["x"])),
    (r"^users: .*not int", lambda: read(5, ["x"])),
    (r"^users: .*not str", lambda: read("abc", ["x"])),
    (r"^data: int", lambda: read(5)),
    (r"no action", lambda: read([], [])),
    (r"^nothing: ", lambda: read(FRAME, nothing=1)),
    (r"^kind: 'x', must be one of leave-one-out, time, none$", lambda: read(FRAME, split="x")),
])
def test_wrong_logs(message, call):
    with pytest.raises(attend.Error, match=message):
        call()


def test_lists(fitted):
    ids, scores = fitted.recommend(ITEMS[:3], k=4)
    assert len(ids) == len(scores) == 4 and not set(ids) & set(ITEMS[:3]) and list(scores) == sorted(scores, reverse=True)
    several, rows = fitted.recommend([ITEMS[:3], ITEMS[5:6]], k=4)
    assert several[0] == ids and rows[0].tolist() == scores.tolist() and len(several) == 2
    assert fitted.recommend(users="u3", k=2)[0] == fitted.recommend(users=["u3"], k=2)[0][0] == fitted.recommend(HISTORIES["u3"], 2)[0]
    assert set(fitted.recommend(ITEMS[:3], k=50, exclude_seen=False)[0]) == set(fitted.items)
    allowed, few = fitted.recommend([ITEMS[:1]], k=3, allow=fitted.items[:2], deny=[fitted.items[0], "none"], exclude_seen=False)
    assert allowed == [[fitted.items[1]]] and math.isnan(few[0].tolist()[1])
    assert fitted.recommend(["none", ITEMS[0]], k=1, skip_unknown=True)[0] == fitted.recommend(ITEMS[:1], k=1)[0]
    assert fitted.recommend([], k=2)[0] == [] and len(fitted.recommend([[]], k=2)[0][0]) == 2
    similar, cosines = fitted.similar(ITEMS[0], k=3)
    assert ITEMS[0] not in similar and all(-1.0001 <= c <= 1.0001 for c in cosines.tolist())
    assert fitted.similar([ITEMS[0], ITEMS[1]], k=3)[0][0] == similar


def test_scores_are_products_of_vectors(fitted):
    vectors, one = fitted.vectors.tolist(), fitted.embed(ITEMS[:5]).tolist()
    ids, scores = fitted.recommend(ITEMS[:5], k=3, exclude_seen=False)
    for id, score in zip(ids, scores.tolist()):
        product = sum(a * b for a, b in zip(one, vectors[fitted.items.index(id)]))
        assert abs(product - score) < 1e-5
    assert len(fitted.embed([ITEMS[:2], ITEMS[:1]])) == 2


def test_measures(fitted):
    found = fitted.evaluate()
    assert found["cases"] == 40 and 0 < found["ndcg"] <= found["hr"] <= 1
    again = attend.open(fitted._path)
    assert isinstance(again, attend.Recommender) and again.evaluate(FRAME) == found
    assert again.read(FRAME).evaluate() == found and again.users == fitted.users
    assert fitted.evaluate(part="valid", candidates="popularity", negatives=5, draws=2)["candidates"] == 6
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.recommend(ITEMS[:3])[0] == fitted.recommend(ITEMS[:3])[0]


def test_models_that_count(tmp_path):
    shares = []
    for arch, options in (("neighbors", {"neighbors": 4, "history_decay": 0.5}), ("ease", {"l2": 20}), ("popularity", {})):
        model = attend.Recommender.fit(FRAME, out=tmp_path / arch, arch=arch, callback=shares.append, **options)
        assert model.info["type"] == f"attend-{arch}" and len(model.recommend(users=["u1"])[0][0]) > 0
        assert model.evaluate()["cases"] == 40
    assert shares and shares[-1] == 1
    with pytest.raises(ValueError, match="l2: does not go with"):
        attend.Recommender.fit(FRAME, out=tmp_path / "x", arch="popularity", l2=3)
    with pytest.raises(attend.UnsupportedError):
        model.vectors


@pytest.mark.parametrize("message, call", [
    ("histories.0.: the model has no item 'none'", lambda m: m.recommend([["none"]])),
    ("histories or users", lambda m: m.recommend()),
    ("histories or users", lambda m: m.recommend([ITEMS[0]], users=["u1"])),
    ("histories: 'abc'", lambda m: m.recommend("abc")),
    ("is not the id", lambda m: m.recommend([[1.5]])),
    ("k: 0", lambda m: m.recommend([ITEMS[0]], 0)),
    ("allow: has no item", lambda m: m.recommend([ITEMS[0]], allow=[])),
    ("allow: the model has no item 'x'", lambda m: m.recommend([ITEMS[0]], allow=["x"])),
    ("'none': the log has no such user", lambda m: m.recommend(users=["none"])),
    ("items: the model has no item", lambda m: m.similar("none")),
    ("part: 'x', must be one of valid, test", lambda m: m.evaluate(part="x")),
    ("split: is an option of a log", lambda m: m.evaluate(split="time")),
    ("has no log", lambda m: attend.Recommender(m._path).evaluate()),
])
def test_what_is_refused(fitted, message, call):
    with pytest.raises(attend.Error, match=message):
        call(fitted)
