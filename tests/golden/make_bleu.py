#!/usr/bin/env python3
"""Writes the golden files of tests/metric/bleu.c with sacrebleu, and prints the figures of tests/cli/translate/bleu_tool.c.

    pip install sacrebleu==2.6.*
    tests/golden/make_bleu.py [FOLDER_OF_multi30k]

    bleu.jsonl      translations, references, and all that BLEU and chrF make of them, to full precision
    bleu_lines.txt  for each 100 texts made of text_lines.py a line: hashes of all counts, words cut as 13a, char, none
"""
import gzip
import json
import pathlib
import subprocess
import sys

from sacrebleu.metrics import BLEU, CHRF
from text_lines import N_LINES, Random, hash_ids, line

HERE = pathlib.Path(__file__).parent
WORDS = "13a", "char", "none"
# What makes a translation of a reference, so that there is something to find: as tests/cli/translate/bleu_tool.c has it.
ALTER = r"s/ a / the /g;s/\([a-z]*\) \([a-z]*\)\.$/\2 \1 ./;s/^\(A man\) /One &/"


def metrics(words):
    return BLEU(tokenize=words, force=True), CHRF()


def counts(bleu, chrf, translation, references):
    """For each sentence the fields of att_bleu_counts, in their order."""
    rows = []
    for b, c in zip(bleu._extract_corpus_statistics(translation, references),
                    chrf._extract_corpus_statistics(translation, references)):
        rows.append(b[:2] + b[6:] + b[2:6] + c[0::3] + c[1::3] + c[2::3])
    return rows


def results(translation, references):
    for words in WORDS:
        bleu, chrf = metrics(words)
        b = bleu.corpus_score(translation, references)
        yield dict(words=words, counts=[sum(column) for column in zip(*counts(bleu, chrf, translation, references))],
                   bleu=b.score, precision=b.precisions, brevity=b.bp,
                   bleu_effective=BLEU(tokenize=words, effective_order=True).corpus_score(translation, references).score,
                   chrf=chrf.corpus_score(translation, references).score,
                   **{key: [BLEU(tokenize=words, effective_order=effective, max_ngram_order=n).corpus_score(
                       translation, references).score for n in range(1, 5)]
                      for key, effective in (("bleu_of", False), ("bleu_of_effective", True))})


CASES = {
    "plain": (["The cat sat on the mat.", "He reads a long book about the sea.", "It rains today"],
              [["The cat is sitting on the mat.", "He is reading a thick book about the sea.", "It is raining today."]]),
    "same": (["Two dogs run across a field of snow.", "Ein Hund läuft über die Wiese."],
             [["Two dogs run across a field of snow.", "Ein Hund läuft über die Wiese."]]),
    "punctuation": (["Hello,world!", "Wait...what?", "a.b,c-d 5-6 7.8 9,0 1.a a.1 -3 3- .5 5. ,", "(see [1], {2}; <3>)",
                     "it's 'quoted' \"so\" `and` ~so~", "a..b,,c.,d", "1.000.000,50 EUR/USD @ 5% + $3 = #4 & *5^6_7|8\\9"],
                    [["Hello, world!", "Wait... what?", "a.b, c-d 5 -6 7.8 9, 0 1. a a. 1 -3 3 - .5 5 . ,",
                      "(see [1] , { 2 } ; < 3 >)", "it 's 'quoted ' \" so \" ` and ` ~ so ~", "a . .b, ,c. ,d",
                      "1.000.000,50 EUR / USD @ 5 % + $ 3 = # 4 & * 5 ^ 6 _ 7 | 8 \\ 9"]]),
    "entities": (["&quot;Tom &amp; Jerry&quot; &lt;3", "&amp;lt; &amp;amp; &apos; &", "<skipped> a<skipped>b -\nc d-\n",
                  "one\ntwo-\nthree\n\n", "&ltt;&gt", "&quot&quot;;"],
                 [["\"Tom & Jerry\" <3", "&lt; < & ' &", "ab c d-", "one twothree", "&ltt ; & gt", "& quot\";"]]),
    "japanese": (["猫は魚を食べました。", "私 は 東京 タワー を 見 ました 。", "ﾃｽﾄ、テスト！　五・六"],
                 [["その猫が魚を食べた。", "私は東京タワーを見た。", "テスト、テスト！ 五、六"]]),
    "spaces": (["a\u00a0b\u2003c\u3000d", " a\tb \x1c c\x0bd\x85e ", "a\u200bb\ufeffc d\u180ee"],
               [["a b c d", "a b c d e", "a b c d e"]]),
    "empty": (["", "something", "", "the same"], [["nothing here", "", "", "the same"]]),
    "all empty": (["", ""], [["a b c d e", "f"]]),
    "no references' words": (["a b", "c"], [["", ""]]),
    "nothing shared": (["abc def ghi jkl"], [["mno pqr stu vwx yz"]]),
    "short": (["the cat", "a dog runs"], [["the cats", "a dog ran"]]),
    "one word": (["yes"], [["yes"]]),
    "twice": (["the the the the the the the", "a a b b a a"], [["the cat is on the mat", "a b a b a b a"]]),
    "references": (["It is a guide to action which ensures that it obeys.", "x y", "a b c d e f"],
                   [["It is a guide to action that ensures that it will forever heed commands.", "x", "a b c d"],
                    ["It is the guiding principle which guarantees that it obeys always.", "x y z", "c d e f g h i j"],
                    ["It is the practical guide for the army always to heed directions.", "", "a b c"]]),
}


def generated():
    """A corpus for intervals: sentences of a small vocabulary, some of whose words are others in the translation."""
    random, vocabulary = Random(5), "the a dog cat man woman runs sits on in grass house red big small and .".split()
    translation, reference = [], []
    for _ in range(80):
        words = [vocabulary[random.below(len(vocabulary))] for _ in range(3 + random.below(20))]
        reference.append(" ".join(words))
        translation.append(" ".join(vocabulary[random.below(17)] if random.below(5) == 0 else w for w in words))
    return translation, [reference]


CASES["generated"] = generated()
rows = []
for name, (translation, references) in CASES.items():
    row = dict(name=name, translation=translation, references=references, results=list(results(translation, references)))
    if name == "generated":
        for metric in metrics("13a"):
            score = metric.corpus_score(translation, references, n_bootstrap=1000)
            row["interval_" + score.name[:4].lower()] = [float(score._mean), float(score._ci)]
    rows.append(json.dumps(row, ensure_ascii=False) + "\n")
(HERE / "bleu.jsonl").write_text("".join(rows), "utf-8")

texts = [line(i).decode("utf-8", "replace") for i in range(N_LINES + 2)]
translation = [texts[i + 1] + " " + texts[i] for i in range(N_LINES)]
references = [[texts[i] + " " + texts[i + 1] for i in range(N_LINES)], texts[2:]]
hashes = []
for words in WORDS:
    data = counts(*metrics(words), translation, references)
    hashes.append([hash_ids([n for row in data[i:i + 100] for n in row]) for i in range(0, N_LINES, 100)])
(HERE / "bleu_lines.txt").write_text("".join(" ".join(f"{h:08x}" for h in row) + "\n" for row in zip(*hashes)))

if len(sys.argv) > 1:
    with gzip.open(pathlib.Path(sys.argv[1]) / "test_2016_flickr.en.gz", "rt", encoding="utf-8", newline="\n") as f:
        text = f.read()
    altered = subprocess.run(["sed", ALTER], input=text, capture_output=True, text=True, check=True,
                             env={"LC_ALL": "C"}).stdout
    for words in WORDS:
        for metric in metrics(words):
            print(words, metric.corpus_score(altered.split("\n")[:-1], [text.split("\n")[:-1]]).format(width=12))
