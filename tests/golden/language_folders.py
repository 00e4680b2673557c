"""Random folders of causal language models as sentence-transformers embeds texts with them, like Qwen3-Embedding, and what
it makes of texts (make_qwen3_embedding.py, check_language_embeddings.py)."""
import random

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import processors
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast

from static_folders import texts, tokenizer

QUERY = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


class Language:
    types = ("llama", "mistral", "qwen2", "olmo2", "phi3", "gpt2")

    def __init__(self, r, i, small=False):
        self.type = self.types[i % len(self.types)]
        self.tokenizer = tokenizer("bytes", 280 if small else r.choice((280, 320)))
        end = self.tokenizer.token_to_id("<|endoftext|>")
        if small or r.random() < 0.7:  # as Qwen3-Embedding's
            self.tokenizer.post_processor = processors.Sequence([
                processors.ByteLevel(trim_offsets=False),
                processors.TemplateProcessing(single="$A <|endoftext|>", pair="$A <|endoftext|> $B <|endoftext|>",
                                              special_tokens=[("<|endoftext|>", end)])])
        self.side = r.choice(("left", "right"))
        self.dtype = "bfloat16" if small else r.choice(("float32", "bfloat16"))
        heads = r.choice((2, 4))
        base = dict(vocab_size=self.tokenizer.get_vocab_size() + r.choice((0, 5)), hidden_size=16 if small else r.choice((16, 32)),
                    num_hidden_layers=2, num_attention_heads=heads, num_key_value_heads=r.choice((1, 2)),
                    intermediate_size=24, max_position_embeddings=64 if small else 256, rms_norm_eps=1e-6,
                    tie_word_embeddings=r.random() < 0.5, pad_token_id=end, eos_token_id=end, bos_token_id=end)
        own = {"qwen3": dict(head_dim=8, use_sliding_window=False, attention_bias=r.random() < 0.3),
               "qwen2": dict(use_sliding_window=False), "mistral": dict(sliding_window=r.choice((None, 5))),
               "phi3": dict(sliding_window=None),
               "gpt2": dict(n_embd=16, n_layer=2, n_head=heads, n_positions=256)}.get(self.type, {})
        if self.type in ("llama", "qwen3") and not small and r.random() < 0.3:
            own["is_causal"] = False
        self.config = AutoConfig.for_model(self.type, **({"vocab_size": base["vocab_size"], "pad_token_id": end, "eos_token_id": end, "bos_token_id": end}
                                                         if self.type == "gpt2" else base), **own)
        self.pooling = "lasttoken" if small else r.choice(("lasttoken", "lasttoken", "mean", "cls", ["lasttoken", "mean"]))
        self.head = r.random() < 0.4  # the folder has the class with its output layer
        self.length = 48 if small else r.choice((24, 200))
        self.normalize = small or r.random() < 0.6
        self.seed = i

    def write(self, folder):
        torch.manual_seed(self.seed)
        model = (AutoModelForCausalLM if self.head else AutoModel).from_config(self.config)
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(1 + 0.2 * torch.randn_like(p) if "norm" in name and p.dim() == 1 and name.endswith("weight")
                        else torch.randn_like(p) * 0.3)
        model.to(getattr(torch, self.dtype)).save_pretrained(folder)
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=self.tokenizer, pad_token="<|endoftext|>", eos_token="<|endoftext|>",
                                            padding_side=self.side, model_max_length=self.length)
        tokenizer.save_pretrained(folder)
        dim = self.config.hidden_size
        modules = [Transformer(str(folder), max_seq_length=self.length), Pooling(dim, self.pooling)] + [Normalize()] * self.normalize
        for f in folder.iterdir():
            f.unlink()
        SentenceTransformer(modules=modules, prompts={"query": QUERY, "document": ""}, device="cpu").save(
            str(folder), create_model_card=False)
        if self.dtype == "bfloat16":  # the class above has read them as floats
            from safetensors.torch import load_file, save_file
            weights = load_file(folder / "model.safetensors")
            save_file({k: v.bfloat16() for k, v in weights.items()}, folder / "model.safetensors", {"format": "pt"})

    def encode(self, folder, lines, dtype, **more):
        """One by one: the class has angles in float32, and with padding those of other positions."""
        model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": getattr(torch, dtype)})
        return model.encode(lines, batch_size=1, **more)

    def ids(self, folder, lines):
        model = SentenceTransformer(str(folder), device="cpu")
        return [model.tokenizer(t, truncation=True, max_length=model.max_seq_length)["input_ids"] for t in lines]


class Qwen3(Language):
    types = ("qwen3",)


def variant(family, i, small=False):
    r = random.Random(f"{family.__name__} {i}")
    v = family(r, i, small)
    return v, [t for t in texts(r, 12) if t or small or "TemplateProcessing" in v.tokenizer.to_str()]

