"""The cohere package: reranking by both versions of its interface."""
import pytest

cohere = pytest.importorskip("cohere", reason="the package cohere is not installed")

DOCUMENTS = ["a b c", "x y z", "k l m"]


@pytest.fixture(scope="module", params=["Client", "ClientV2"])
def client(request, small):
    return getattr(cohere, request.param)(api_key="none", base_url=small.url)


def test_documents_come_by_their_scores(client):
    a = client.rerank(model="bert", query="a b", documents=DOCUMENTS)
    scores = [r.relevance_score for r in a.results]
    assert sorted(r.index for r in a.results) == [0, 1, 2] and scores == sorted(scores, reverse=True)
    assert a.meta.tokens.input_tokens > 0 and not a.meta.warnings
    long = {"max_chunks_per_doc": 10} if type(client) is cohere.Client else {"max_tokens_per_doc": 4096}
    best = client.rerank(model="bert", query="a b", documents=DOCUMENTS, top_n=1, **long)
    assert [r.index for r in best.results] == [a.results[0].index]


def test_documents_that_were_truncated_are_a_warning(client):
    a = client.rerank(model="bert", query="a b", documents=["a " * 1000])
    assert "1 pair" in a.meta.warnings[0]


def test_documents_are_returned(small):
    client = cohere.Client(api_key="none", base_url=small.url)
    a = client.rerank(model="bert", query="a b", documents=[{"text": d} for d in DOCUMENTS], return_documents=True)
    assert {r.document.text for r in a.results} == set(DOCUMENTS)


def test_errors_have_the_client_s_classes(client, locked):
    with pytest.raises(cohere.NotFoundError):
        client.rerank(model="rerank-v4", query="a b", documents=DOCUMENTS)
    with pytest.raises(cohere.BadRequestError):
        client.rerank(model="distilbert", query="a b", documents=DOCUMENTS)
    with pytest.raises(cohere.UnauthorizedError):
        type(client)(api_key="wrong", base_url=locked.url).rerank(model="bert", query="a b", documents=DOCUMENTS)
