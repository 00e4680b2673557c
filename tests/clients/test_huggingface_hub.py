"""InferenceClient of huggingface_hub, which is told the address of a route as its model."""
import pytest

hub = pytest.importorskip("huggingface_hub", reason="the package huggingface_hub is not installed")
from conftest import CHAT, SENTENCE

MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]


def test_feature_extraction_is_embedding(texts):
    pytest.importorskip("numpy", reason="huggingface_hub needs numpy for vectors")
    client = hub.InferenceClient(model=texts.url + "/embed")
    rows = client.feature_extraction("A cat sleeps.", normalize=True, truncate=True)
    assert rows.shape == (1, 384) and abs((rows**2).sum() - 1) < 1e-5
    assert client.feature_extraction("A cat sleeps.", dimensions=32).shape == (1, 32)
    with pytest.raises(hub.errors.HfHubHTTPError) as e:
        client.feature_extraction("A cat sleeps.", prompt_name="no such prompt")
    assert e.value.response.status_code == 400


def test_sentence_similarity_has_a_cosine_for_each_sentence(texts):
    client = hub.InferenceClient(model=texts.url + "/similarity")
    near, far = client.sentence_similarity("A cat sleeps.", ["A kitten naps.", "The stock market fell."])
    assert 1 > near > far > -1


@pytest.mark.parametrize("function", [None, "sigmoid", "softmax", "none"])
def test_text_classification_has_labels_by_score(small, function):
    client = hub.InferenceClient(model=small.url + "/predict")
    labels = client.text_classification("a b c", function_to_apply=function)  # of the first classifier, with one label
    assert len(labels) == 1 and labels[0].label
    assert len(client.text_classification("a b c", top_k=1)) == 1


def test_conversations_whole_and_as_streams(texts):
    client = hub.InferenceClient(base_url=texts.url + "/v1", api_key="none")
    whole = client.chat_completion(MESSAGES, model=CHAT, max_tokens=6, temperature=0, seed=1, logprobs=True,
                                   top_logprobs=2, stop=["never"], presence_penalty=0, frequency_penalty=0)
    choice = whole.choices[0]
    assert choice.finish_reason == "length" and len(choice.logprobs.content) == whole.usage.completion_tokens == 6
    stream = client.chat.completions.create(messages=MESSAGES, model=CHAT, max_tokens=6, temperature=0, stream=True)
    assert "".join(c.choices[0].delta.content or "" for c in stream) == choice.message.content


def test_errors_have_their_status(texts):
    with pytest.raises(hub.errors.HfHubHTTPError) as e:
        hub.InferenceClient(base_url=texts.url + "/v1").chat_completion(MESSAGES, model=SENTENCE)
    assert e.value.response.status_code == 400
    with pytest.raises(hub.errors.HfHubHTTPError) as e:
        hub.InferenceClient(model=texts.url).chat_completion(MESSAGES)  # asks for the model "dummy"
    assert e.value.response.status_code == 404
