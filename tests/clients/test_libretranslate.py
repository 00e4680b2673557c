"""libretranslatepy, which sends forms."""
import urllib.error

import pytest

libretranslatepy = pytest.importorskip("libretranslatepy", reason="the package libretranslatepy is not installed")


def test_translate_detect_and_languages(small):
    client = libretranslatepy.LibreTranslateAPI(small.url)
    assert client.languages() == [{"code": "de", "name": "German", "targets": ["en"]}]
    text = client.translate("Kannst du mir helfen?", "de", "en")
    assert "help" in text and client.translate("Kannst du mir helfen?", "auto", "en") == text
    assert client.translate("Guten Tag!\n\nKannst du mir helfen?", "de", "en").split("\n")[1:] == ["", text]
    assert client.detect("Grüße & Küsse + 100 %") == [{"confidence": None, "language": "de"}]


def test_errors_have_their_status(small):
    with pytest.raises(urllib.error.HTTPError) as e:
        libretranslatepy.LibreTranslateAPI(small.url).translate("Hallo", "de", "fr")
    assert e.value.code == 400 and b"de-en" in e.value.read()


def test_keys_are_a_field(locked):
    assert libretranslatepy.LibreTranslateAPI(locked.url, "secret").translate("Hallo!", "de", "en")
    with pytest.raises(urllib.error.HTTPError) as e:
        libretranslatepy.LibreTranslateAPI(locked.url, "wrong").translate("Hallo!", "de", "en")
    assert e.value.code == 401
