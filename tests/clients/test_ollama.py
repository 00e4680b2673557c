"""The ollama package."""
import pytest

ollama = pytest.importorskip("ollama", reason="the package ollama is not installed")
from conftest import CHAT, SENTENCE

MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
OPTIONS = {"temperature": 0, "num_predict": 6}


@pytest.fixture(scope="module")
def client(texts):
    return ollama.Client(host=texts.url)


def test_conversations_whole_and_as_streams(client):
    whole = client.chat(CHAT, MESSAGES, options=OPTIONS)
    assert whole.done and whole.done_reason == "length" and whole.eval_count == 6 and whole.created_at
    chunks = list(client.chat(CHAT, MESSAGES, options=OPTIONS, stream=True))
    assert "".join(c.message.content for c in chunks) == whole.message.content
    assert chunks[-1].done and chunks[-1].eval_count == 6 and not any(c.done for c in chunks[:-1])


def test_a_prompt_is_the_message_of_a_user(client):
    whole = client.generate(CHAT, MESSAGES[0]["content"], options=OPTIONS)
    assert whole.response == client.chat(CHAT, MESSAGES, options=OPTIONS).message.content
    assert "".join(c.response for c in client.generate(CHAT, MESSAGES[0]["content"], options=OPTIONS, stream=True)) == \
        whole.response
    told = client.generate(CHAT, MESSAGES[0]["content"], system="Be brief.", options=OPTIONS)
    messages = [{"role": "system", "content": "Be brief."}, *MESSAGES]
    assert told.response == client.chat(CHAT, messages, options=OPTIONS).message.content


def test_a_raw_prompt_is_continued(client):
    a = client.generate(CHAT, "One, two,", raw=True, options=OPTIONS, logprobs=True, top_logprobs=2)
    assert "".join(t.token for t in a.logprobs) == a.response and a.prompt_eval_count < 8
    assert all(len(t.top_logprobs) == 2 for t in a.logprobs)


def test_an_empty_prompt_loads_a_model(client):
    assert client.generate(CHAT).done_reason == "load"


def test_a_seed_makes_the_same_text(client):
    texts = [client.chat(CHAT, MESSAGES, options={"temperature": 1.5, "seed": s, "num_predict": 6}).message.content
             for s in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_embeddings_of_both_ages(client):
    a = client.embed(SENTENCE, ["A cat sleeps.", "A kitten naps."])
    assert [len(e) for e in a.embeddings] == [384, 384] and a.prompt_eval_count > 0
    assert list(client.embeddings(SENTENCE, "A cat sleeps.").embedding) == list(a.embeddings[0])
    assert len(client.embed(SENTENCE, "A cat sleeps.", dimensions=32).embeddings[0]) == 32


def test_models_are_listed_and_described(client):
    assert [m.model for m in client.list().models] == [m.model for m in client.ps().models] == [SENTENCE, CHAT]
    shown = client.show(SENTENCE)
    assert shown.capabilities == ["embedding"] and shown.modelinfo["bert.embedding_length"] == 384
    assert client.show(CHAT).details.family == "llama"


def test_errors_have_their_status(client):
    for ask, status in ((lambda: client.chat("llama4", MESSAGES), 404), (lambda: client.show("llama4"), 404),
                        (lambda: client.generate(CHAT, "x", format="json"), 400),
                        (lambda: client.chat(CHAT, MESSAGES, options={"temperature": -1}), 400)):
        with pytest.raises(ollama.ResponseError) as e:
            ask()
        assert e.value.status_code == status and len(e.value.error) > 10
