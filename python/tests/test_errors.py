"""attend.Error and what its classes also are."""
import pickle

import pytest

import attend

CLASSES = {
    "ArgumentError": (ValueError, "ERR_ARGUMENT"), "ShapeError": (ValueError, "ERR_SHAPE"), "DtypeError": (TypeError, "ERR_DTYPE"),
    "OutOfMemoryError": (MemoryError, "ERR_MEMORY"), "FileError": (OSError, "ERR_IO"), "FileNotFound": (FileNotFoundError, "ERR_IO"),
    "FormatError": (ValueError, "ERR_FORMAT"), "UnsupportedError": (ValueError, "ERR_UNSUPPORTED"),
    "CancelledError": (Exception, "ERR_CANCELLED"), "SystemCallError": (OSError, "ERR_SYSTEM"), "BusyError": (Exception, "ERR_BUSY"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_each_class(name):
    also, status = CLASSES[name]
    kind = getattr(attend, name)
    error = kind("a sentence")
    assert isinstance(error, attend.Error) and isinstance(error, also) and str(error) == "a sentence" and error.status == status
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == "a sentence" and again.status == status
    assert kind.__module__ == "attend"


def test_all_classes_are_there():
    classes = {name for name in dir(attend) if isinstance(getattr(attend, name), type) and issubclass(getattr(attend, name), attend.Error)}
    assert classes == {*CLASSES, "Error"} and attend.Error("x").status is None


def test_the_number_of_the_system_s_error(tmp_path):
    with pytest.raises(attend.FileNotFound) as error:
        attend.load_safetensors(tmp_path / "none")
    assert error.value.errno == 2
    with pytest.raises(attend.FileError) as error:
        attend.load_safetensors(tmp_path)
    assert not isinstance(error.value, FileNotFoundError)


def test_threads():
    config = attend.config()
    assert config["threads"] >= 1 and config["version"] == attend.__version__ and config["isa"]
    try:
        attend.set_threads(1)
        assert attend.config()["threads"] == 1
        for bad in (-1, config["threads"] + 1):
            with pytest.raises(attend.ArgumentError):
                attend.set_threads(bad)
        with pytest.raises(TypeError):
            attend.set_threads("2")
    finally:
        attend.set_threads(0)
    assert attend.config()["threads"] == config["threads"]
