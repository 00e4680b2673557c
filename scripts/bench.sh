# Part of ./dev: measurements

#: bench [--peers]       measure; with --peers beside other libraries, in the same run (fetches them: 5 GB)
do_bench() {
    [ "${1:---peers}" = --peers ] || fail "bench: $1 is not an option; --peers is"
    if [ $# -gt 0 ]; then
        bench_peers
        return
    fi
    need "${build_packages[@]}"
    build_tool
    build/attend bench peak
    build/attend bench bandwidth
    build/attend bench gemm --m 1024 --n 1024 --k 1024
    build/attend bench attention --heads 12 --tq 1024 --dim 64
    build/attend bench attention --heads 12 --tq 1024 --dim 64 --pass bwd
}

# The Python environment of the peers; ATTEND_PEERS_PYTHON names another one.
bench_peers() {
    local python=${ATTEND_PEERS_PYTHON:-build/peers-venv/bin/python} wanted=bench/peers/requirements.txt
    need "${build_packages[@]}" libopenblas-dev libdnnl-dev ocl-icd-opencl-dev python3-venv
    build_tool # makes build/
    fetch_models build/attend
    build_in release -DATT_BENCH=ON
    if [ -z "${ATTEND_PEERS_PYTHON:-}" ] && ! cmp -s $wanted build/peers-venv/installed.txt; then
        say "Installing into build/peers-venv what attend is measured against"
        python3 -m venv build/peers-venv
        "$python" -m pip install -q --disable-pip-version-check -r $wanted
        cp $wanted build/peers-venv/installed.txt
    fi
    title "matrix products: attend, OpenBLAS, oneDNN"
    build/bench/bench_peers_gemm
    title "attention: attend, PyTorch"
    "$python" bench/peers/attention.py
    "$python" bench/peers/attention.py --threads 1 --rounds 2
    title "sentences: attend, ONNX Runtime, sentence-transformers"
    "$python" bench/peers/sentences.py
    title "learning: attend, PyTorch"
    "$python" bench/peers/train.py
    title "translation: attend, CTranslate2"
    "$python" bench/peers/translate.py
}
