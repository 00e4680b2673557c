# Part of ./dev: Debian packages that must be on the machine, and the verb that installs all of them

build_packages=(g++ cmake ninja-build pkg-config libjansson-dev libutf8proc-dev libpcre2-dev zlib1g-dev libjpeg-dev libpng-dev libwebp-dev libtiff-dev libedit-dev libmicrohttpd-dev libcurl4-openssl-dev)
test_packages=("${build_packages[@]}" libcmocka-dev librsvg2-bin)
python_packages=(python3-dev python3-pytest python3-numpy python3-dask) # of the system's Python, which ./dev test builds the package for

# Is what this Debian package brings already here, wherever it came from?
here() {
    case $1 in
    g++) command -v c++ ;;
    ninja-build) command -v ninja ;;
    librsvg2-bin) command -v rsvg-convert ;;
    python3-dev) ls "$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')"/Python.h ;;
    python3-pytest) /usr/bin/python3 -c 'import pytest' ;;
    python3-numpy) /usr/bin/python3 -c 'import numpy' ;;
    python3-dask) /usr/bin/python3 -c 'import dask.bag' ;;
    python3-pip) python3 -m pip --version ;;
    python3-dbg) command -v python3-dbg ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    python3-sphinx) command -v sphinx-build ;;
    python3-myst-parser) sphinx_has myst_parser ;;
    python3-sphinx-rtd-theme) sphinx_has sphinx_rtd_theme ;;
    libjansson-dev) pkg-config --exists jansson ;;
    libutf8proc-dev) pkg-config --exists libutf8proc ;;
    libpcre2-dev) pkg-config --exists libpcre2-8 ;;
    zlib1g-dev) pkg-config --exists zlib ;;
    libjpeg-dev) pkg-config --exists libjpeg ;;
    libpng-dev) pkg-config --exists libpng ;;
    libwebp-dev) pkg-config --exists libwebp ;;
    libtiff-dev) pkg-config --exists libtiff-4 ;;
    libedit-dev) pkg-config --exists libedit ;;
    libmicrohttpd-dev) pkg-config --exists libmicrohttpd ;;
    libcurl4-openssl-dev) pkg-config --exists libcurl ;;
    libcmocka-dev) pkg-config --exists cmocka ;;
    openjdk-17-jre-headless) command -v java ;;
    libopenblas-dev) pkg-config --exists openblas ;;
    libdnnl-dev) echo '#include <dnnl.h>' | c++ -E -x c++ - ;;
    ocl-icd-opencl-dev) ls /usr/lib/*/libOpenCL.so ;; # which the former's CMake files ask for
    libcmocka-dev:arm64) ls /usr/lib/aarch64-linux-gnu/libcmocka.so ;;
    libc6-dev-arm64-cross) ls /usr/aarch64-linux-gnu/include/stdio.h ;;
    gcc-aarch64-linux-gnu) command -v aarch64-linux-gnu-gcc ;;
    qemu-user) command -v qemu-aarch64 ;;
    libclang-rt-*) ls "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer* ;;
    *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

# Does the Python that runs sphinx-build, which the first line of that names, have a module?
sphinx_has() { "$(sed -n '1s/^#! *//p' "$(command -v sphinx-build)")" -c "import $1"; }

# Installs those of the packages that are missing.
need() {
    local missing=() package root=() foreign=(true)
    for package; do
        here "$package" || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "missing: what Debian packages as ${missing[*]}"
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || fail "missing: ${missing[*]}; install them as root"
        root=(sudo)
    fi
    say "Installing with apt: ${missing[*]}"
    [[ ${missing[*]} != *:arm64* ]] || foreign=("${root[@]}" dpkg --add-architecture arm64)
    local log
    log=$("${foreign[@]}" 2>&1 && "${root[@]}" apt-get update -qq 2>&1 &&
        "${root[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes \
            apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" 2>&1) ||
        { say "$log"; fail "apt-get failed"; }
}

need_clang() {
    need clang
    need "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
}

#: tools                 install what any verb may need
do_tools() {
    need "${test_packages[@]}" "${python_packages[@]}" python3-pip python3-venv clang-format-14 valgrind
    need_clang
}
