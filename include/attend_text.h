/* attend_text.h - text: tokenizers, vocabularies learned from text, and files of text.
 *
 * Chapters: 1 Tokenizers and vocabularies, 2 Text files and UTF-8.
 *
 * Files are validated completely before any of their content is used. attend.h states how arguments that may be NULL
 * are marked. A tokenizer is read-only, and many threads may use it at once. */
#ifndef ATTEND_TEXT_H
#define ATTEND_TEXT_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1 Tokenizers and vocabularies ------------------------------------------------------------- */

typedef struct att_tokenizer att_tokenizer;

/* Opens the tokenizer of a model folder, or a tokenizer file. Supported (anything else is an error that names it):
 * - a folder with tokenizer.json, as the `tokenizers` package writes it: BPE (byte level, byte fallback), Unigram,
 *   WordPiece or WordLevel, with normalizers, pre-tokenizers, post-processors and decoders. Padding and the length of
 *   truncation are ignored: see max_tokens. tokenizer_config.json in the same folder is applied as the classes of
 *   `transformers` do: truncation_side, added_tokens_decoder, special tokens, add_prefix_space;
 * - a folder with vocab.json and merges.txt (GPT-2, RoBERTa, CLIP), where tokenizer_config.json is applied, too;
 * - a folder with vocab.txt and tokenizer_config.json (and special_tokens_map.json): BERT;
 * - a folder with source.spm, target.spm, vocab.json (tokenizer_config.json, special_tokens_map.json): Marian;
 * - a file: a SentencePiece model (.spm, .model), unigram or BPE (Kudo, Richardson 2018);
 * - a .gguf file of llama.cpp, or a folder with one and no config.json: byte-level BPE ("gpt2", with a known
 *   "tokenizer.ggml.pre") or SentencePiece's BPE ("llama"). */
ATT_API att_status att_tokenizer_open(att_ctx *ctx, const char *path, att_tokenizer **out);
ATT_API void att_tokenizer_free(att_tokenizer *t);
ATT_API int64_t att_tokenizer_size(const att_tokenizer *t);                  /* ids are in [0, size) */
ATT_API const char *att_tokenizer_token(const att_tokenizer *t, int32_t id); /* such as "##ing", UTF-8, up to its first
                                                                              * zero byte; NULL if out of range */
/* Returns the id of the token whose text is text [bytes], as att_tokenizer_token returns it; -1 if there is none. */
ATT_API int32_t att_tokenizer_find(const att_tokenizer *t, const char *text, size_t bytes);
/* Returns whether a token is special, such as "[CLS]" or "</s>": tokenizer.json or its settings mark it so, or in a
 * SentencePiece model it is a control symbol or the unknown piece. */
ATT_API bool att_tokenizer_is_special(const att_tokenizer *t, int32_t id);

typedef enum att_token {
    ATT_TOKEN_PAD = 0, /* pads the texts of a batch */
    ATT_TOKEN_UNK,     /* stands for what the vocabulary does not have */
    ATT_TOKEN_BOS,     /* begins a text */
    ATT_TOKEN_EOS,     /* ends it */
    ATT_TOKEN_CLS,     /* its vector stands for the text */
    ATT_TOKEN_SEP,     /* stands between two texts */
    ATT_TOKEN_MASK     /* stands for a token to predict */
} att_token;
/* Returns the id of a special token, or -1 if the files state none. The sources are tokenizer_config.json ("pad_token")
 * and, in older folders, special_tokens_map.json; otherwise the class that these name if there is no tokenizer.json, or
 * in tokenizer.json the model's unknown token and the token of "padding"; the SentencePiece model; the ids in a .gguf
 * file. */
ATT_API int32_t att_tokenizer_special(const att_tokenizer *t, att_token token);

typedef struct att_tokenize_options {
    size_t size;
    int64_t max_tokens; /* special tokens included; 0: no limit. A longer text loses its end, or its start if the
                         * folder's "truncation_side" is left */
    bool no_special;    /* do not add special tokens such as [CLS] and [SEP] */
    bool target;        /* encode as a target text (Marian has two models) */
    /* Receives each part of the text that becomes the unknown token, normalized, as UTF-8 text [bytes]: a character, or
     * a word that has no segmentation although its characters are in the vocabulary. NULL: not called. */
    void (*unknown)(void *user, const char *text, size_t bytes); /* [call] */
    void *user;                                                  /* [call] */
    bool offsets;                                                /* fill in offsets and special of att_tokens */
    bool split_special; /* treat special tokens in the text ("[MASK]") as plain text, for text that users type */
} att_tokenize_options;

typedef struct att_tokens { /* att_tokens_free frees the arrays */
    int32_t *ids;           /* [count] */
    int64_t count;
    int64_t *offsets;  /* [count, 2]: bytes [begin, end) of the text that each token stands for; [0, 0) for special
                        * tokens around the text. NULL if options.offsets is false */
    bool *special;     /* [count]: whether the token was added around the text, such as "[CLS]". NULL if options.offsets
                        * is false */
    int32_t *type_ids; /* [count]: type ids of a pair, for BERT's second embedding; NULL if it is not a pair */
    bool truncated;    /* the text had more than max_tokens */
    bool unknown;      /* some part of the text became the unknown token: options.unknown receives which */
    void *reserved[2];
    int64_t reserved_number[2];
} att_tokens;

/* Tokenizes text [bytes]. Any bytes are accepted, zero bytes are characters, and an empty text gives only the special
 * tokens.
 *   tokenizer.json: the ids of the `tokenizers` package (0.23). Each maximal invalid subpart of UTF-8 is read as one
 *     U+FFFD. Special tokens in the text ("[MASK]") are recognized. Time O(n), and O(n log n) for BPE in a word of n
 *     bytes. BERT, without offsets: text beyond max_tokens is not processed.
 *   SentencePiece: the ids of the `sentencepiece` package, which adds no special tokens. Each byte that is not UTF-8 is
 *     read as one U+FFFD. Time O(n) (unigram) or O(n log n) (BPE), memory O(n).
 *   Marian: the ids of the class MarianTokenizer: SentencePiece, then "</s>". Special tokens in the text ("</s>",
 *     "<pad>", "<unk>") are recognized; a language code at the start (">>de<<") is one token.
 * Offsets of a token begin and end between characters of the text (a byte that is not UTF-8 may count as one). Their
 * beginnings do not decrease:
 *   tokenizer.json: those of the `tokenizers` package, which counts characters, not bytes.
 *   SentencePiece, Marian: those of the `sentencepiece` package: from the character that the token's first one was made
 *     of to the one that the next token's was made of. U+2581 is the space before a word, or nothing at the start; of
 *     the byte tokens of a character the last one stands for it, the others for nothing.
 * opt or NULL: defaults. Errors: max_tokens negative or less than the number of special tokens; a word of more than 2
 * GiB with BPE, or a text of more with tokenizer.json; a regular expression of tokenizer.json that takes too many steps
 * on the text; a character that is unknown to a Unigram vocabulary without an unknown token; out of memory. */
ATT_API att_status att_tokenize(const att_tokenizer *t, const char *text, size_t bytes, const att_tokenize_options *opt,
                                att_tokens *out);
/* Tokenizes texts [n] on all threads of the context; bytes [n] or NULL: they are zero-terminated. out [n] receives what
 * att_tokenize fills for each, whatever the number of threads. After an error all of out is empty, and nothing needs to
 * be freed. opt or NULL: as in att_tokenize, except that `unknown` must be NULL. Errors: those of att_tokenize, which
 * name the first text that has one, "texts[3]: ..."; n not in [0, 2^31]; cancelled. */
ATT_API att_status att_tokenize_batch(const att_tokenizer *t, int64_t n, const char *const *texts, const size_t *bytes,
                                      const att_tokenize_options *opt, att_tokens *out);
/* Tokenizes two texts, a [a_bytes] and b [b_bytes], into one sequence: "[CLS] a [SEP] b [SEP]" for BERT. If it exceeds
 * max_tokens, tokens are removed from the longer text first. Offsets of a token are in its own text. opt or NULL: as in
 * att_tokenize. */
ATT_API att_status att_tokenize_pair(const att_tokenizer *t, const char *a, size_t a_bytes, const char *b,
                                     size_t b_bytes, const att_tokenize_options *opt, att_tokens *out);
ATT_API void att_tokens_free(att_ctx *ctx, att_tokens *tokens);

typedef struct att_text {
    char *text; /* [bytes], followed by a zero byte; att_text_free frees it */
    size_t bytes;
} att_text;

/* Decodes ids [n] to UTF-8 text. tokenizer.json: as the `tokenizers` package, without special tokens. SentencePiece:
 * the text of the `sentencepiece` package, in which control symbols are empty. Marian: the text of MarianTokenizer, by
 * the target's model and without special tokens. BERT: words separated by spaces, cleaned up as the `tokenizers`
 * package does if the decoder in tokenizer.json has "cleanup" (or the folder has vocab.txt), and then as `transformers`
 * does if tokenizer_config.json has "clean_up_tokenization_spaces". Errors: an id not in [0, size); out of memory. */
ATT_API att_status att_detokenize(const att_tokenizer *t, const int32_t *ids, int64_t n, att_text *out);
ATT_API void att_text_free(att_ctx *ctx, att_text *text);

/* Learns a vocabulary by byte-pair encoding (Sennrich et al. 2016): it begins with the characters and repeatedly adds
 * the most frequent pair of adjacent pieces. The result is a SentencePiece model, the same for the same texts. */
typedef struct att_vocab att_vocab;

typedef struct att_vocab_options {
    size_t size;
    int64_t pieces;             /* vocabulary size, at least 4; the result may have fewer, see att_vocab_result */
    double character_coverage;  /* share of the text whose characters become pieces; 0: 0.9995 */
    int64_t max_characters;     /* maximum number of characters that become pieces, by frequency; 0: no limit */
    int64_t min_count;          /* characters with fewer occurrences do not become pieces; 0: 1 */
    int64_t max_length;         /* maximum length of a piece in characters, at most 64; 0: 16 */
    bool keep_text;             /* normalize only spaces; false: also NFKC, other white space and control characters */
    bool byte_fallback;         /* add 256 byte pieces: other characters are encoded as bytes, not as unknown */
    bool split_digits;          /* each digit is a piece of its own */
    const char *const *symbols; /* [call] [n_symbols]: user-defined symbols: each is one piece wherever it occurs */
    int64_t n_symbols;
    const char *const *control; /* [call] [n_control]: control symbols such as "<pad>", after <unk>, <s> and </s> */
    int64_t n_control;
    att_progress_fn progress; /* [object] or NULL */
    void *user;               /* [object] */
} att_vocab_options;

typedef struct att_vocab_result {
    size_t size;
    const void *model; /* [bytes]: the content of a .spm file, until att_vocab_free */
    size_t bytes;
    int64_t pieces, characters; /* if there are fewer pieces than requested, no remaining pair occurs twice */
    int64_t words;              /* number of distinct words */
    int64_t left_out;           /* number of characters of the texts that did not become pieces */
    const char *left_out_text;  /* [zero-terminated] these characters, the most frequent first, valid until
                                 * att_vocab_free */
} att_vocab_result;

ATT_API att_status att_vocab_new(att_ctx *ctx, const att_vocab_options *opt, att_vocab **out);
ATT_API void att_vocab_free(att_vocab *v);
/* Adds a text, such as a line. Memory grows with the number of distinct words and with the longest text. */
ATT_API att_status att_vocab_add(att_vocab *v, const char *text, size_t bytes);
/* Learns the vocabulary; call it once, after all texts were added. Errors: no text; characters and special pieces
 * exceed `pieces`. */
ATT_API att_status att_vocab_train(att_vocab *v, att_vocab_result *result);

typedef struct att_marian_tokenizer_files {
    size_t size;
    const void *source; /* [call] [source_bytes]: content of a .spm file, e.g. att_vocab_result.model */
    const void *target; /* [call] [target_bytes], or NULL: the source's */
    size_t source_bytes, target_bytes;
    const char *source_language, *target_language; /* [call] "de", or NULL; written to the settings */
} att_marian_tokenizer_files;
/* Writes the tokenizer files of a Marian folder, which is created if it does not exist: source.spm, target.spm,
 * vocab.json ("</s>", "<unk>", the pieces of both models without duplicates, "<pad>") and tokenizer_config.json. size
 * or NULL: receives the number of tokens in vocab.json. */
ATT_API att_status att_marian_tokenizer_write(att_ctx *ctx, const char *folder, const att_marian_tokenizer_files *text,
                                              int64_t *size);

/* ---- 2 Text files and UTF-8 --------------------------------------------- */

/* Texts are UTF-8; a byte order mark is skipped. Lines end with LF or CR LF, or with CR in files without LF. */

/* Opens a text for reading. The caller closes *file, a descriptor that is positioned after a byte order mark. A gzip
 * file is unpacked into an unnamed temporary file in $TMPDIR, else /tmp; a file whose lines end with CR is copied into
 * one, with LF. A pipe is opened without reading from it: see att_text_begin. Errors: the file cannot be opened; its
 * first bytes show another format (the message names it, with a command that converts it to text): UTF-16, UTF-32,
 * archives, documents and tables of other formats, a pointer of git LFS; it ends in .gz but is not a gzip file; it is
 * truncated, damaged (by its checksum), or unpacks to more than 64 MiB and 100 times its size; the temporary file
 * cannot be written. *file is then -1. */
ATT_API att_status att_open_text(const char *path, int *file);

typedef struct att_text_start {
    size_t size;
    size_t mark;  /* bytes of a byte order mark, which the caller must skip: 3 or 0 */
    bool returns; /* lines end with CR */
} att_text_start;
/* Checks data [bytes], the first that were read from a pipe, as att_open_text does with a file; name: what it is called
 * in errors. */
ATT_API att_status att_text_begin(const char *name, const void *data, size_t bytes, att_text_start *out);

/* Checks that text [bytes] is valid UTF-8. The error names the line of `name` (a file or something else), the encoding
 * that the text seems to have, and a command that converts it. */
ATT_API att_status att_check_utf8(const char *name, int64_t line, const char *text, size_t bytes);
ATT_API bool att_utf8_valid(const char *text, size_t bytes);
/* Decodes the first character of text [bytes], bytes > 0, and returns its length, at least 1. If it is not UTF-8, the
 * maximal invalid subpart is read as one U+FFFD (Unicode 15, section 3.9; Python's errors='replace'). */
ATT_API size_t att_utf8_decode(const char *text, size_t bytes, uint32_t *code);
/* Writes a code point that is not a surrogate, and returns its length. */
ATT_API size_t att_utf8_encode(uint32_t code, char out[4]);

/* A table is a sequence of records of fields, in lines. Blank lines and records whose fields are all blank are skipped.
 * In CSV (RFC 4180, and as Excel writes it) a field may be in quotes, inside which "" stands for a quote and line ends
 * are text. A first line "sep=;" names the separator. Otherwise it is the tab, semicolon or comma that occurs equally
 * often, at least once, in each of the first 100 records. A tab takes precedence; between comma and semicolon it is the
 * comma, unless each comma of the first line is between two digits. If none occurs equally often, it is the most
 * frequent one of the first record. If each field of the first record except the first begins with a space, spaces
 * after separators are not part of fields. */
typedef struct att_table att_table;

typedef enum att_table_format {
    ATT_TABLE_CSV = 0, /* as above */
    ATT_TABLE_TSV      /* fields between tabs; quotes are text */
} att_table_format;

typedef struct att_table_options {
    size_t size;
    att_table_format format;
    int64_t skip_bad_lines; /* leave out up to as many malformed records, see att_table_refuse; 0: none */
} att_table_options;

/* Opens a file as a table: see att_open_text. options or NULL: defaults. */
ATT_API att_status att_table_open(att_ctx *ctx, const char *path, const att_table_options *options, att_table **out);
/* Opens a table from an open descriptor, which remains the caller's and may be a pipe; name: what it is called in
 * errors. options or NULL: defaults. */
ATT_API att_status att_table_open_stream(att_ctx *ctx, int file, const char *name, const att_table_options *options,
                                         att_table **out);
ATT_API void att_table_free(att_table *t);

/* A part of a text, not zero-terminated. */
typedef struct att_byte_view {
    const char *data; /* [bytes] */
    size_t bytes;
} att_byte_view;

typedef struct att_table_record {
    size_t size;
    int64_t line;                /* line where the record begins, from 1 */
    int64_t n;                   /* number of its fields; 0: the table has ended */
    const att_byte_view *fields; /* [n], without their quotes, valid until the next record */
    int64_t offset;              /* bytes of the text up to its end */
} att_table_record;
/* Reads the next record. Errors: a quote inside a field that is not quoted; a line of more than 2^20 bytes; text that
 * is not UTF-8.
 */
ATT_API att_status att_table_next(att_table *t, att_table_record *out);
/* Reports that the last record is malformed. If skip_bad_lines allows it, the record is left out, as malformed ones are
 * in att_table_next. Otherwise returns the error "PATH: line N: why". */
ATT_API att_status att_table_refuse(att_table *t, const char *why);

typedef struct att_table_info {
    size_t size;
    char separator;  /* ',', ';' or tab */
    int64_t skipped; /* malformed records that were left out */
    const char *bad; /* the error sentence of the first of them, with its line; NULL: none. Valid as long as the
                      * table */
    int64_t bytes;   /* bytes of the text, unpacked; 0 for a pipe */
} att_table_info;
ATT_API att_status att_table_describe(const att_table *t, att_table_info *info);

#ifdef __cplusplus
}
#endif
#endif
