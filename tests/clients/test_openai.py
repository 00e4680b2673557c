"""The openai package: its classes of answers and of errors, whole answers and streams."""
import asyncio
import concurrent.futures

import pytest

openai = pytest.importorskip("openai", reason="the package openai is not installed")
from conftest import CHAT, SENTENCE

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def client(texts):
    return openai.OpenAI(base_url=texts.url + "/v1", api_key="none", max_retries=0)


# ---- models ----


def test_models_are_listed_and_found_by_their_names(client):
    names = [m.id for m in client.models.list()]
    assert names == [SENTENCE, CHAT, "text-embedding-3-small", "gpt-4o-mini"]
    assert client.models.retrieve(SENTENCE).owned_by == "attend"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-5")


# ---- embeddings ----


def test_base64_has_the_numbers_of_json(client):
    texts = ["A cat sleeps.", "Ein Satz mit Ümläuten.", ""]
    short = client.embeddings.create(model=SENTENCE, input=texts)  # the client asks for base64
    plain = client.embeddings.create(model="text-embedding-3-small", input=texts, encoding_format="float")
    assert [d.index for d in short.data] == [0, 1, 2]
    for a, b in zip(short.data, plain.data):
        assert len(a.embedding) == 384
        assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-8
    assert short.usage == plain.usage and short.usage.prompt_tokens == short.usage.total_tokens > 8


def test_token_ids_are_texts_too(client):
    text = client.embeddings.create(model=SENTENCE, input="A cat sleeps.")
    ids = client.embeddings.create(model=SENTENCE, input=[101, 1037, 4937, 25126, 1012, 102])
    assert text.data[0].embedding == ids.data[0].embedding
    lists = client.embeddings.create(model=SENTENCE, input=[[101, 1037, 102], [101, 4937, 102]])
    assert len(lists.data) == 2


def test_dimensions_are_the_first_numbers_with_length_1(client):
    whole = client.embeddings.create(model=SENTENCE, input="A cat sleeps.").data[0].embedding
    short = client.embeddings.create(model=SENTENCE, input="A cat sleeps.", dimensions=64).data[0].embedding
    assert len(short) == 64 and abs(sum(x * x for x in short) - 1) < 1e-5
    assert abs(short[0] / whole[0] - short[1] / whole[1]) < 1e-4


def test_truncated_texts_are_counted_or_refused(client):
    long = "word " * 1000
    a = client.embeddings.create(model=SENTENCE, input=[long, "short"])
    assert a.usage.truncated == 1
    assert client.embeddings.with_raw_response.create(model=SENTENCE, input=long).headers["x-attend-truncated"] == "1"
    with pytest.raises(openai.BadRequestError, match="256"):
        client.embeddings.create(model=SENTENCE, input=long, extra_body={"truncate": False})


# ---- conversations ----


def chat(client, **options):
    return client.chat.completions.create(model=CHAT, messages=QUESTION, **{"max_tokens": 6, "temperature": 0, **options})


def test_a_stream_has_the_text_of_the_whole_answer(client):
    whole, text, usage, reasons = chat(client), "", None, []
    for chunk in chat(client, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert text == whole.choices[0].message.content != ""
    assert reasons == [whole.choices[0].finish_reason] == ["length"]
    assert usage.completion_tokens == whole.usage.completion_tokens == 6


def test_the_client_s_own_stream_has_the_same_text(client):
    with client.chat.completions.stream(model=CHAT, messages=QUESTION, max_tokens=16, temperature=0) as stream:
        for _ in stream:
            pass
        whole = chat(client, max_tokens=16).choices[0].message.content
        assert stream.get_final_completion().choices[0].message.content == whole


def test_a_text_ends_before_a_stop_string(client):
    whole = chat(client).choices[0].message.content
    word = whole.split()[2]
    a = chat(client, stop=[word, "never"]).choices[0]
    assert a.message.content == whole[: whole.index(word)] and a.finish_reason == "stop"


def test_a_seed_makes_the_same_text(client):
    sampled = [chat(client, temperature=1.5, seed=s).choices[0].message.content for s in (1, 1, 2)]
    assert sampled[0] == sampled[1] != sampled[2]


def test_n_texts_differ_and_share_the_prompt(client):
    a = chat(client, temperature=1.5, seed=3, n=3)
    assert [c.index for c in a.choices] == [0, 1, 2] and len({c.message.content for c in a.choices}) > 1
    assert a.usage.completion_tokens <= 18 and a.usage.prompt_tokens == chat(client).usage.prompt_tokens


def test_log_probabilities_are_those_of_the_text(client):
    choice = chat(client, max_tokens=16, logprobs=True, top_logprobs=3).choices[0]
    assert choice.finish_reason == "stop" and choice.logprobs.content[-1].token == "<|im_end|>"
    tokens = choice.logprobs.content[:-1]
    assert "".join(t.token for t in tokens).strip() == choice.message.content
    for t in tokens:
        assert bytes(t.bytes).decode() == t.token
        assert [x.logprob for x in t.top_logprobs] == sorted((x.logprob for x in t.top_logprobs), reverse=True)
        assert t.top_logprobs[0].token == t.token and len(t.top_logprobs) == 3  # temperature 0


def test_a_bias_makes_a_token_certain(client):
    biased = chat(client, logit_bias={"198": 100}, max_tokens=3).choices[0].message.content
    assert biased == biased[0] * 3


def test_parts_of_a_message_are_its_text(client):
    parts = [{"role": "system", "content": "Be brief."},
             {"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "text", "text": "2 + 2?"}]}]
    plain = [parts[0], {"role": "user", "content": "What is 2 + 2?"}]
    a, b = (client.chat.completions.create(model=CHAT, messages=m, max_completion_tokens=6, temperature=0)
            for m in (parts, plain))
    assert a.choices[0].message.content == b.choices[0].message.content


def test_what_is_not_built_is_refused_with_a_sentence(client):
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    for options in ({"tools": [tool]}, {"response_format": {"type": "json_object"}}, {"extra_body": {"no_field": 1}},
                    {"temperature": -1}, {"n": 0}, {"logit_bias": {"x": 1}}):
        with pytest.raises(openai.BadRequestError) as e:
            chat(client, **options)
        assert e.value.type == "invalid_request_error" and e.value.param and len(e.value.message) > 20
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]
    with pytest.raises(openai.BadRequestError, match="text"):
        client.chat.completions.create(model=CHAT, messages=image)


# ---- completions ----


def test_completions_continue_each_prompt(client):
    a = client.completions.create(model=CHAT, prompt=["One, two,", "Monday, Tuesday,"], max_tokens=4, temperature=0, n=2)
    assert len(a.choices) == 4 and a.choices[0].text == a.choices[1].text != a.choices[2].text
    echo = client.completions.create(model=CHAT, prompt="One, two,", max_tokens=4, temperature=0, echo=True)
    assert echo.choices[0].text == "One, two," + a.choices[0].text
    text = "".join(c.choices[0].text for c in client.completions.create(model=CHAT, prompt="One, two,", max_tokens=4,
                                                                        temperature=0, stream=True))
    assert text == a.choices[0].text


def test_completions_have_log_probabilities(client):
    a = client.completions.create(model=CHAT, prompt="One, two,", max_tokens=4, temperature=0, logprobs=2).choices[0]
    assert "".join(a.logprobs.tokens) == a.text and len(a.logprobs.token_logprobs) == 4
    assert all(len(t) == 2 for t in a.logprobs.top_logprobs) and a.logprobs.text_offset[0] == 0


# ---- responses ----


def respond(client, **options):
    return client.responses.create(model=CHAT, input="What is the capital of France?", temperature=0,
                                   **{"max_output_tokens": 16, **options})


def test_a_response_has_the_text_of_a_conversation(client):
    a = respond(client)
    expected = chat(client, max_tokens=16)
    assert a.output_text == expected.choices[0].message.content
    assert (a.usage.input_tokens, a.usage.output_tokens) == (expected.usage.prompt_tokens, expected.usage.completion_tokens)
    assert a.status == "completed" and a.error is None and a.output[0].content[0].annotations == []
    short = respond(client, max_output_tokens=2)
    assert short.status == "incomplete" and short.incomplete_details.reason == "max_output_tokens"


def test_instructions_and_items_are_a_conversation(client):
    told = client.responses.create(model=CHAT, instructions="Be brief.", temperature=0, max_output_tokens=6, store=False,
                                   input=QUESTION, metadata={"key": "value"})
    messages = [{"role": "system", "content": "Be brief."}, *QUESTION]
    expected = client.chat.completions.create(model=CHAT, messages=messages, temperature=0, max_tokens=6)
    assert told.output_text == expected.choices[0].message.content
    assert told.instructions == "Be brief." and told.metadata == {"key": "value"}
    items = [*QUESTION, told.output[0].model_dump(), {"role": "user", "content": [{"type": "input_text", "text": "Why?"}]}]
    assert client.responses.create(model=CHAT, input=items, max_output_tokens=4).output_text


def test_events_of_a_response_are_numbered_and_complete(client):
    events = list(respond(client, stream=True))
    kinds = [e.type for e in events]
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added",
                         "response.content_part.added"]
    assert kinds[-4:] == ["response.output_text.done", "response.content_part.done", "response.output_item.done",
                          "response.completed"]
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == events[-4].text == events[-1].response.output_text == respond(client).output_text


def test_the_client_s_own_stream_of_responses(client):
    with client.responses.stream(model=CHAT, input=QUESTION, max_output_tokens=16, temperature=0) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        assert stream.get_final_response().output_text == text


def test_responses_have_log_probabilities(client):
    a = respond(client, include=["message.output_text.logprobs"], top_logprobs=2).output[0].content[0]
    assert "".join(t.token for t in a.logprobs if not t.token.startswith("<|")).strip() == a.text
    assert all(len(t.top_logprobs) == 2 for t in a.logprobs)


def test_responses_that_need_what_is_stored_are_refused(client):
    for options in ({"previous_response_id": "resp_1"}, {"tools": [{"type": "web_search"}]}, {"background": True},
                    {"text": {"format": {"type": "json_object"}}}, {"include": ["file_search_call.results"]}):
        with pytest.raises(openai.BadRequestError):
            respond(client, **options)


# ---- errors ----


def test_unknown_models_are_not_found_and_the_others_listed(client):
    for ask in (lambda: client.embeddings.create(model="gpt-5", input="x"),
                lambda: client.responses.create(model="gpt-5", input="x"),
                lambda: client.chat.completions.create(model="gpt-5", messages=QUESTION)):
        with pytest.raises(openai.NotFoundError, match=SENTENCE):
            ask()
    with pytest.raises(openai.BadRequestError, match="language model"):
        client.chat.completions.create(model=SENTENCE, messages=QUESTION)


def test_keys_are_checked(locked):
    base = locked.url + "/v1"
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=base, api_key="wrong", max_retries=0).models.list()
    assert openai.OpenAI(base_url=base, api_key="secret").models.list().data


def test_a_full_queue_is_a_rate_limit_that_the_client_waits_out(locked):
    def ask(client):
        try:
            return len(client.embeddings.create(model=SENTENCE, input=["many words in a text " * 10] * 10).data)
        except openai.RateLimitError as e:
            assert int(e.response.headers["retry-after"]) >= 1
            return 0

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        eager = openai.OpenAI(base_url=locked.url + "/v1", api_key="secret", max_retries=0)
        counts = list(pool.map(ask, [eager] * 8))
        assert set(counts) == {0, 10}
        patient = openai.OpenAI(base_url=locked.url + "/v1", api_key="secret", max_retries=20)
        assert set(pool.map(ask, [patient] * 3)) == {10}


def test_many_requests_at_once(texts):
    async def ask():
        async with openai.AsyncOpenAI(base_url=texts.url + "/v1", api_key="none") as client:
            embed = [client.embeddings.create(model=SENTENCE, input=f"Text {i}") for i in range(8)]
            talk = [client.chat.completions.create(model=CHAT, messages=QUESTION, max_tokens=4, temperature=0)
                    for i in range(4)]
            return await asyncio.gather(*embed, *talk)

    answers = asyncio.run(ask())
    assert len({a.choices[0].message.content for a in answers[8:]}) == 1
