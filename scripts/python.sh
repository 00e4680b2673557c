# Part of ./dev: the Python package, and tests that need packages of PyPI

# The package's tests: FOLDER of the build, Python with its options, arguments of pytest
python_tests() {
    PYTHONPATH=$1/python PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 $2 -m pytest -q -p no:cacheprovider "${@:3}"
}

#: python [--asan | --debug | --torch] [PYTEST ARGS]
#:                       the Python package's tests, with NumPy and as if it were not installed, and its stubs; or under the
#:                       address and undefined-behavior sanitizers, or by a debug Python, which counts references (installs
#:                       it). With ATTEND_TEST_CALLS=10000 so many calls of everything, after which nothing may be left. Or,
#:                       of attend.torch, with torch and transformers (5 GB, installed once in build/torch-venv, unless
#:                       ATTEND_TORCH_PYTHON names a Python that has them)
do_python() {
    local how=${1:-} options=(-DATT_PYTHON=ON -DATT_TESTS=OFF -DATT_EXAMPLES=OFF) libraries log=build/python-leaks.log
    case $how in --asan | --debug | --torch) shift ;; esac
    [ $# -gt 0 ] || [ "$how" != --torch ] || set -- python/tests/test_torch.py python/tests/test_transformers.py
    [ $# -gt 0 ] || set -- python/tests
    need "${build_packages[@]}" "${python_packages[@]}"
    build_tool
    fetch_models build/attend
    case $how in
    --asan)
        build_in python-asan "${options[@]}" -DPython_EXECUTABLE=/usr/bin/python3 "-DATT_SETS=$(best_sets)"
        libraries="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libubsan.so)"
        export PYTHONMALLOC=malloc UBSAN_OPTIONS=print_stacktrace=1
        # A child of a process with threads hangs where one of these holds a lock of the sanitizer's allocator.
        LD_PRELOAD=$libraries ASAN_OPTIONS=detect_leaks=0 python_tests build-python-asan /usr/bin/python3 -k 'not fork and not pool_while' "$@"
        # Python itself leaves memory behind at its end; ours is what has the extension among its callers.
        LD_PRELOAD=$libraries LSAN_OPTIONS=exitcode=0 python_tests build-python-asan /usr/bin/python3 python/tests/test_leaks.py >$log 2>&1
        ! awk 'BEGIN { RS = "" } /leak of .*_attend/' $log | grep . || fail "python: these leaks are of the extension ($log)"
        ;;
    --debug)
        need python3-dbg
        build_in python "${options[@]}" -DPython_EXECUTABLE=/usr/bin/python3-dbg
        # NumPy and pyarrow of Debian do not count references.
        ATTEND_WITHOUT='numpy pyarrow' python_tests build-python '/usr/bin/python3-dbg -X dev' "$@"
        ;;
    --torch)
        build_in release -DATT_PYTHON=ON -DPython_EXECUTABLE=/usr/bin/python3
        local python=${ATTEND_TORCH_PYTHON:-build/torch-venv/bin/python}
        if [ -z "${ATTEND_TORCH_PYTHON:-}" ]; then
            need python3-venv
            [ -x "$python" ] || /usr/bin/python3 -m venv build/torch-venv
            "$python" -m pip install -q --disable-pip-version-check -r python/tests/requirements-torch.txt
        fi
        "$python" -c 'import pytest, torch, transformers' || fail "python: $python needs what python/tests/requirements-torch.txt lists"
        python_tests build "$python" "$@"
        ;;
    *)
        need python3-venv
        build_in release -DATT_PYTHON=ON -DPython_EXECUTABLE=/usr/bin/python3
        python_tests build /usr/bin/python3 "$@"
        ATTEND_WITHOUT='numpy pyarrow torch' python_tests build /usr/bin/python3 "$@"
        [ -x build/stubs-venv/bin/stubtest ] || { /usr/bin/python3 -m venv build/stubs-venv && build/stubs-venv/bin/pip install -q mypy; }
        PYTHONPATH=build/python build/stubs-venv/bin/stubtest attend._attend
        ;;
    esac
}

# A Python environment in FOLDER with the lines of FILE, each installed by itself: packages_in FOLDER FILE
packages_in() {
    local line
    [ -x "$1/bin/python" ] || /usr/bin/python3 -m venv "$1"
    cmp -s "$2" "$1/installed.txt" && return
    say "Installing into $1 the packages of $2"
    grep -v '^#' "$2" | while read -r line; do
        "$1/bin/python" -m pip install -q --disable-pip-version-check "$line" || say "$line cannot be installed: its tests are skipped"
    done
    cp "$2" "$1/installed.txt"
}

#: serve-clients [PYTEST ARGS]
#:                       attend serve as the packages openai, huggingface_hub, langchain-openai, libretranslatepy, cohere and
#:                       ollama, curl, and schemathesis by its /openapi.json use it (installs them into build/clients-venv)
do_serve-clients() {
    need "${build_packages[@]}" python3-venv curl
    build_tool
    fetch_models build/attend
    packages_in build/clients-venv tests/clients/requirements.txt
    [ $# -gt 0 ] || set -- tests/clients
    ATTEND=$PWD/build/attend PYTHONDONTWRITEBYTECODE=1 build/clients-venv/bin/python -m pytest -q -rs -p no:cacheprovider "$@"
}

#: recipes [PYTEST ARGS] the recipes of docs/SCALE.md for Dask, Spark and Ray Data, while a process of theirs is killed (installs
#:                       them into build/recipes-venv, 1.3 GB, and Java 17)
do_recipes() {
    need "${build_packages[@]}" python3-dev python3-venv openjdk-17-jre-headless
    build_in release -DATT_PYTHON=ON -DPython_EXECUTABLE=/usr/bin/python3
    packages_in build/recipes-venv examples/python/requirements.txt
    [ $# -gt 0 ] || set -- -rs python/tests/test_engines.py
    python_tests build build/recipes-venv/bin/python "$@"
}
