"""Folders of MarianMTModels with random weights, made once: what training and translation are measured with."""
import json
import os
import shutil

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the imports below

from common import CACHE


def model_file(words):
    """A SentencePiece model of these words, one piece each."""
    from sentencepiece import sentencepiece_model_pb2
    model = sentencepiece_model_pb2.ModelProto()
    for piece, score, kind in [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3)] + [(word, -1, 1) for word in words]:
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type = 1  # unigram
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = True
    return model.SerializeToString()


def marian_folder(layers, hidden, vocabulary):
    """build/peers/marian-LAYERS-HIDDEN-VOCABULARY: 8 heads, inner layers of 4 hidden; its words are t2, t3, ..."""
    folder = CACHE / f"marian-{layers}-{hidden}-{vocabulary}"
    if folder.exists():
        return folder
    import torch
    from transformers import MarianConfig, MarianMTModel
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=vocabulary, d_model=hidden, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=8,
        decoder_attention_heads=8, encoder_ffn_dim=4 * hidden, decoder_ffn_dim=4 * hidden, max_position_embeddings=512,
        activation_function="relu", scale_embedding=True, eos_token_id=0, pad_token_id=vocabulary - 1,
        decoder_start_token_id=vocabulary - 1, init_std=0.1)  # weights large enough for translations that differ
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    MarianMTModel(config).save_pretrained(part)
    words = [f"\u2581t{i}" for i in range(2, vocabulary - 1)]
    for side in ("source", "target"):
        (part / f"{side}.spm").write_bytes(model_file(words))
    tokens = ["</s>", "<unk>", *words, "<pad>"]
    (part / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), "utf-8")
    (part / "tokenizer_config.json").write_text("{}")
    (part / "generation_config.json").write_text(json.dumps({
        "decoder_start_token_id": vocabulary - 1, "eos_token_id": 0, "pad_token_id": vocabulary - 1}))
    part.rename(folder)
    return folder
