# Part of ./dev: eight examples

#: demo                  install what is missing, build, fetch the model, show what attend does
do_demo() {
    local attend=build/attend
    need "${build_packages[@]}"
    build_tool
    fetch_models $attend

    title "1 of 8: translation"
    echo "A Transformer that attend has trained on everyday sentences of Tatoeba (runs/tatoeba.sh), and what each word of"
    echo "the translation looked at. It comes with attend: models/tatoeba-de-en."
    local text="Kannst du mir helfen, diesen Satz zu übersetzen?"
    printf '%s\n\n' "$dim\$ echo \"$text\" | $attend translate --alignment -$plain"
    echo "$text" | $attend translate --alignment -

    title "2 of 8: self-attention, step by step"
    echo "Three words as vectors of three numbers; what does \"shiny\" take from each of them?"
    run $attend explain simplified | sed '/^4  /,$d'
    echo "(attend explain simplified goes on; attend explain lists the chapters)"

    title "3 of 8: how similar are these sentences?"
    echo "A Transformer (MiniLM, 22.7 million weights) turns each into 384 numbers; the table has their cosines."
    mapfile -t sentences <examples/sentences.txt
    printf '%s\n\n' "$dim\$ $attend similarity -m $model \"${sentences[0]}\" \"${sentences[1]}\" ...$plain"
    $attend similarity -m $model "${sentences[@]}"

    title "4 of 8: search by meaning"
    echo "The nearest of $(wc -l <examples/facts.txt) sentences. They need not share a word with the question."
    run $attend search -m $model --corpus examples/facts.txt -k 3 <<'END'
Why does it hurt to eat spicy food?
What keeps my data safe from thieves?
END

    title "5 of 8: what one attention head looks at"
    # Layer 3, head 1 (both from 0) can be read by eye: words look at the noun they belong to, nouns at [CLS].
    # So can layer 0, head 2 (the token before) and layer 4, head 9 (from a piece of a word to the next piece; try
    # "Kannst du mir helfen, diesen Satz zu übersetzen?"). docs/EXPLAIN.md has more.
    echo "Rows are words that look, columns the words looked at; each row sums to 1. This head ties words to their noun:"
    echo "\"the\", \"a\", \"new\", \"near\" find theirs, and the right one of the two houses; nouns rest on [CLS]."
    run $attend attention -m $model "The man who sold the house bought a new house near the sea." --layer 3 --head 1 \
        --svg build/attention.svg
    echo "The same as a picture: build/attention.svg"

    title "6 of 8: a conversation"
    echo "A language model (SmolLM2, 135 million weights), which predicts the next token again and again."
    run $attend chat -m $language_model <<'END'
What is the capital of Japan?
And of Italy?
END

    title "7 of 8: what is in this picture?"
    echo "A vision Transformer that attend has trained on Fashion-MNIST (runs/fashion-mnist.sh), and what its [CLS] token"
    echo "attends to. It comes with attend: models/fashion-mnist."
    run $attend classify --top 3 --attention build/ankle-boot.svg models/fashion-mnist/examples/ankle-boot.png
    echo "The picture and the attention: build/ankle-boot.svg"

    title "8 of 8: a caption for this photo"
    echo "Convolutions and a GRU with attention that attend has trained on Flickr8k (runs/flickr8k.sh), and where in the"
    echo "photo each word comes from. It comes with attend: models/flickr8k-captions."
    run $attend caption --attention build/astronaut.svg models/flickr8k-captions/examples/astronaut.png
    echo "The photo and the attention: build/astronaut.svg"
}
