#!/usr/bin/env python3
"""Compares the tables of docs/SETTINGS.md with the keys that the packages know: each key of each class has a cell, and
each cell has a key, but for those whose note begins with "older".

    python3 check_settings.py

Run with transformers 5.23.0, sentence-transformers 6.2.0, timm 1.0.31; tests/model/settings.c compares the tables with
what attend does.
"""
import dataclasses
import inspect
import json
import pathlib
import re
import sys
import tempfile

import timm.models._pretrained
import timm.models.vision_transformer
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, LayerNorm, Pooling
from timm.models._hub import save_for_hf
from transformers import tokenization_utils_base
from transformers.modeling_rope_utils import RopeParameters
from transformers.processing_utils import ImagesKwargs

TABLES = pathlib.Path(__file__).parents[2] / "docs/SETTINGS.md"


def fields(cls):
    return {f.name for f in dataclasses.fields(cls)}


BASE = fields(transformers.PretrainedConfig) | set(transformers.PretrainedConfig().to_dict())


def of_config(name):
    cls = getattr(transformers, name)
    return (fields(cls) | set(cls().to_dict())) - BASE


def parameters(function):
    return {p.name for p in inspect.signature(function).parameters.values() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)} - {"self"}


def of_tokenizer(name):
    """The arguments of the class and of its base, which takes them from a dictionary"""
    base = inspect.getsource(tokenization_utils_base.PreTrainedTokenizerBase.__init__)
    popped = set(re.findall(r'kwargs\.pop\(\s*"(\w+)"', base)) - {"max_len", "response_schema"}
    special = set(tokenization_utils_base.PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES)
    return parameters(getattr(transformers, name).__init__) | popped | special | {
        "tokenizer_class", "added_tokens_decoder", "additional_special_tokens", "extra_special_tokens", "add_bos_token", "add_eos_token",
        "tokenizer_file"}


def of_timm():
    with tempfile.TemporaryDirectory() as folder:
        model = timm.create_model("test_vit", num_classes=2)
        save_for_hf(model, folder, model_config={"label_names": ["a", "b"], "label_descriptions": {}}, model_args={"depth": 1},
                    safe_serialization=True)
        return set(json.loads(pathlib.Path(folder, "config.json").read_text())) | {"label_descriptions"}


def of_sentences():
    return set(SentenceTransformer(modules=[Pooling(4)], device="cpu")._get_model_config()) | {"truncate_dim"}


def of_classifier(name):
    """What the class of sequence classification has beside its encoder"""
    return (of_config(f"{name}Config") | BASE) & {
        "id2label", "label2id", "problem_type", "classifier_dropout", "seq_classif_dropout", "classifier_pooling",
        "classifier_activation", "classifier_bias"}


def of_cross_encoder():
    """The keys that it writes, but model_type, by which its folders are recognized"""
    source = inspect.getsource(CrossEncoder._get_model_config)
    return set(SentenceTransformer(modules=[Pooling(4)], device="cpu")._get_model_config()) - {
        "similarity_fn_name", "model_type"} | set(re.findall(r'"(\w+)"', source))


PROCESSOR = set(ImagesKwargs.__annotations__) | {"image_processor_type", "model_input_names", "backend"}
GENERATION = set(transformers.GenerationConfig().to_dict())
CAUSAL = {"Llama", "Mistral", "Olmo2", "Phi3", "Qwen2", "Qwen3", "GPT2"}  # attention reads is_causal of their settings
KNOWN = {
    "PretrainedConfig": BASE,
    **{f"{n}Config": of_config(f"{n}Config") | ({"is_causal"} if n in CAUSAL else set()) for n in (
        "Bert", "Roberta", "XLMRoberta", "Camembert", "MPNet", "DistilBert",
        "ModernBert", "NomicBert", "Gemma3Text", "Marian", "Llama", "Mistral", "Olmo2", "Phi3", "Qwen2", "Qwen3", "GPT2", "ViT", "DeiT", "Dinov2",
        "Dinov2WithRegisters")},
    **{f"{n}ForSequenceClassification": of_classifier(n) for n in (
        "Bert", "Roberta", "DistilBert", "MPNet", "ModernBert", "NomicBert")},
    "sentence_transformers": {"activation_fn", "version"}, "CrossEncoder": of_cross_encoder(),
    "modules.json of CrossEncoder": {"idx", "name", "path", "type", "kwargs"},
    "Transformer of CrossEncoder": set(Transformer.config_keys) | {"max_seq_length", "do_lower_case"},
    "StaticModel": {"model_type", "normalize", "max_length", "embedding_dtype", "vocabulary_quantization", "hidden_dim",
                    "seq_length", "tokenizer_name", "apply_pca", "sif_coefficient", "pooling"},  # as model2vec 0.10.0 writes it
    "nomic-bert": set("""activation_function attn_pdrop bos_token_id causal dense_seq_output embd_pdrop eos_token_id fused_bias_fc fused_dropout_add_ln initializer_range layer_norm_epsilon max_trained_positions mlp_fc1_bias mlp_fc2_bias moe_every_n_layers moe_top_k n_embd n_head n_inner n_layer n_positions num_experts pad_vocab_size_multiple parallel_block parallel_block_tied_norm prenorm qkv_proj_bias reorder_and_upcast_attn resid_pdrop rotary_emb_base rotary_emb_fraction rotary_emb_interleaved rotary_emb_scale_base rotary_scaling_factor scale_attn_by_inverse_layer_idx scale_attn_weights summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj tie_word_embeddings type_vocab_size use_cache use_flash_attn use_rms_norm use_xentropy vocab_size""".split()),
    "RopeParameters": set(RopeParameters.__annotations__),
    **{f"{n}ImageProcessor": PROCESSOR for n in ("ViT", "DeiT", "Bit")},
    "language models": GENERATION, "MarianMTModel": GENERATION,
    "SentenceTransformer": of_sentences(),
    "modules.json": {"idx", "name", "path", "type", "kwargs"},
    "Transformer": set(Transformer.config_keys) | {"max_seq_length", "do_lower_case"},
    "Pooling": set(Pooling.config_keys), "Normalize": set(Normalize.config_keys),
    "Dense": set(Dense.config_keys), "LayerNorm": set(LayerNorm.config_keys), "Dropout": set(Dropout.config_keys),
    **{n: of_tokenizer(n) for n in ("BertTokenizer", "GPT2Tokenizer", "LlamaTokenizer", "Qwen2Tokenizer",
                                    "PreTrainedTokenizerFast", "MarianTokenizer")},
    "timm": of_timm(),
    "VisionTransformer": parameters(timm.models.vision_transformer.VisionTransformer.__init__),
    "PretrainedCfg": fields(timm.models._pretrained.PretrainedCfg),
}


def main():
    wrong, classes, seen = [], [], {}
    for line in TABLES.read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] == "key":
            classes = cells[1:-1]
            wrong += [f"{c}: no such class is known here" for c in classes if c not in KNOWN]
        elif cells and cells[0].startswith("`"):
            key, older = cells[0].strip("`"), cells[-1].startswith("older")
            having = [c for c in classes if key in KNOWN.get(c, ())]
            base = [c for c in classes if key in BASE]
            for c in classes:
                seen.setdefault(c, set()).add(key)
            if not having and not older and not base:
                wrong.append(f"{', '.join(classes)}: no class has \"{key}\"")
    for name, keys in KNOWN.items():
        wrong += [f"{name}: \"{key}\" has no row" for key in sorted(keys - seen.get(name, set()))]
    print("\n".join(wrong) or f"{sum(map(len, KNOWN.values()))} keys of {len(KNOWN)} classes are in {TABLES.name}")
    return bool(wrong)


sys.exit(main())
