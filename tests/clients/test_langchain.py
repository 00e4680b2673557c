"""langchain-openai: its embeddings, which send the ids of tokens by default, and its chats."""
import pytest

langchain = pytest.importorskip("langchain_openai", reason="the package langchain-openai is not installed")
from conftest import CHAT, SENTENCE


def embeddings(texts, **options):
    return langchain.OpenAIEmbeddings(model=SENTENCE, base_url=texts.url + "/v1", api_key="none",
                                      check_embedding_ctx_length=False, **options)


def test_documents_and_queries_have_vectors(texts):
    e = embeddings(texts)
    rows = e.embed_documents(["A cat sleeps.", "A kitten naps.", "The stock market fell."])
    query = e.embed_query("A cat sleeps.")
    assert [len(r) for r in rows] == [384] * 3 and query == rows[0]
    assert len(embeddings(texts, dimensions=64).embed_query("A cat sleeps.")) == 64


@pytest.mark.parametrize("responses", [False, True])
def test_chats_whole_and_as_streams(texts, responses):
    chat = langchain.ChatOpenAI(model=CHAT, base_url=texts.url + "/v1", api_key="none", temperature=0, max_tokens=6,
                                use_responses_api=responses)
    question = [("system", "Be brief."), ("human", "What is the capital of France?")]
    whole = chat.invoke(question)
    assert whole.text and whole.usage_metadata["output_tokens"] == 6
    chunks = list(chat.stream(question))
    assert len(chunks) > 2 and "".join(c.text for c in chunks) == whole.text


def test_a_conversation_continues(texts):
    chat = langchain.ChatOpenAI(model=CHAT, base_url=texts.url + "/v1", api_key="none", temperature=0, max_tokens=6,
                                use_responses_api=True)
    first = chat.invoke("What is the capital of France?")
    assert chat.invoke([("human", "What is the capital of France?"), first, ("human", "And of Italy?")]).text


def test_completions(texts):
    model = langchain.OpenAI(model=CHAT, base_url=texts.url + "/v1", api_key="none", temperature=0, max_tokens=4)
    assert model.invoke("One, two,")


def test_errors_are_those_of_openai(texts):
    import openai

    with pytest.raises(openai.NotFoundError):
        langchain.ChatOpenAI(model="gpt-5", base_url=texts.url + "/v1", api_key="none").invoke("Hello")
